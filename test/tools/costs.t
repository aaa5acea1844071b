# bench/costs at a size that says nothing of speed: every variant is measured as the plan that it
# names, settings are suggested, and what the planner would choose is told as it is.
use strict;
use warnings;

use File::Temp qw(tempdir);
use GpuSortNode;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => ['max_worker_processes = 8']);
$node->start;
$node->wait_service;
my $scratch = tempdir(CLEANUP => 1);
local @ENV{qw(PGHOST PGPORT)} = ($node->host, $node->port);

sub costs
{
	my ($csv, @arguments) = @_;
	my $output = '';
	IPC::Run::run([ 'bench/costs', split(/ /, "-c int16,int88 -w 64MB -k -e"), $engine, '-o', "$scratch/$csv",
		@arguments ],
				  '<', '/dev/null', '>', \$output, '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default * 5));
	return ($? >> 8, $output);
}

my ($status, $output) = costs('first.csv', split(/ /, "-n 1000,10000,30000 -r 2 -W 1"));
is($status, 0, 'bench/costs') or diag $output;
unlike($output, qr/no plan of/, 'every plan is the one that is meant') or diag $output;
like($output, qr/^suggested: gpusort\.setup_cost = [\d.]+, gpusort\.row_cost = [\d.]+$/m, 'suggests settings')
	or diag $output;
my %times;
open my $file, '<', "$scratch/first.csv" or die "$scratch/first.csv: $!";
while (<$file>)
{
	my ($mode, $case, $rows, $variant, undef, $value) = split /,/;
	$times{"$mode $case $rows"}{$variant}++ if /^(?:costs|first)/ && $value > 0;
}
my %each = map { $_ => 2 } qw(scan native-0 native4MB-0 gpusort-0 native-1 native4MB-1 gpusort-1);
is_deeply($times{"costs $_"}, \%each, "$_ rows in every variant, twice")
	for map { ("int16 $_", "int88 $_") } 1000, 10000, 30000;
is($times{'first int88 10000'}{"$_-first"}, 10, "the first sort of ten connections, $_") for qw(native gpusort);

# 2 cases, 3 sizes, 2 numbers of workers, 2 sizes of work_mem; the first sort, 3 sizes
($status, $output) = costs('never.csv', '-f', "$scratch/first.csv", '-s', 'gpusort.setup_cost=1e9');
like($output, qr/^given settings: gpusort is chosen at 0 of 27 points/m,
	'an earlier run can be looked at again; never chosen');
($status, $output) = costs('always.csv', '-f', "$scratch/first.csv", '-s', 'gpusort.setup_cost=0,gpusort.row_cost=0');
like($output, qr/^given settings: gpusort is chosen at 27 of 27 points/m, 'always chosen');
like($output, qr/^int88 +0 +64MB +\S+ +1000\b/m, 'from the fewest rows on') or diag $output;
($status, $output) = costs('some.csv', '-f', "$scratch/first.csv", '-s',
	'gpusort.setup_cost=0,gpusort.row_cost=0,gpusort.min_rows=5000');
like($output, qr/^given settings: gpusort is chosen at 18 of 27 points/m, 'chosen for many rows');

# the grid of plans above sorts: all kinds are measured, judged, and judged again from the file
sub grid
{
	my ($csv, @arguments) = @_;
	my $output = '';
	IPC::Run::run([ 'bench/costs', 'grid', qw(-n 3000 -r 1 -W 1 -w 64MB -v -k -e), $engine, '-o', "$scratch/$csv",
		@arguments ],
				  '<', '/dev/null', '>', \$output, '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default * 5));
	return ($? >> 8, $output);
}
($status, $output) = grid('grid.csv', '-c', 'distinct,join');
is($status, 0, 'bench/costs grid') or diag $output;
like($output, qr/^(\d+) of \1 points measured/m, 'measures every point') or diag $output;
my ($measured) = $output =~ /^(\d+) of/m;
my ($judged, $not_measured) = $output =~ /^all +(\d+) .*?(?:\((\d+) not measured\))?$/m;
is($judged + ($not_measured // 0), 2 * $measured, 'and judges each with and without workers') or diag $output;
($status, $output) = grid('again.csv', '-f', "$scratch/grid.csv", '-s', 'gpusort.setup_cost=1e9');
like($output, qr/^all +\d+ +\d+% +0% /m,
	'an earlier run can be looked at again, with settings that never choose gpusort') or diag $output;

done_testing;
