# Join orders are PostgreSQL's: on a star schema the tree of joined relations is the same with gpusort and without,
# with costs as they are and where gpusort seems to cost nothing, and so are the answers.
use strict;
use warnings;

use File::Temp qw(tempdir);
use GpuSortNode;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'max_worker_processes = 8', "shared_preload_libraries = 'gpusort'" ]);
$node->start;
$node->wait_service;
my $queries = tempdir(CLEANUP => 1);
local @ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'postgres');

sub run_bench
{
	my (@command) = @_;
	my $output = '';
	IPC::Run::run(\@command, '<', '/dev/null', '>', \$output, '2>&1',
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default * 5));
	return ($? >> 8, $output);
}

my ($status, $output) = run_bench('bench/workloads', 'star', '0.1', '-l', 'C.UTF-8', '-d', 'star', '-Q', $queries, '-w',
	$queries);
is($status, 0, 'the star schema is made') or diag($output);
is(scalar(my @files = glob "$queries/*.sql"), 13, 'and has its queries');

my @free = map { ('-c', $_) } qw(gpusort.setup_cost=0 gpusort.row_cost=0);
my %settings = (
	'as they are' => [],
	'of analysts' => [ map { ('-c', $_) } qw(work_mem=256MB jit=off random_page_cost=1.1) ],
	'where gpusort costs nothing' => \@free,
	'where it costs nothing, nor do workers' =>
		[ @free, map { ('-c', $_) } qw(parallel_setup_cost=0 parallel_tuple_cost=0 min_parallel_table_scan_size=0) ],
	'in one process' => [ @free, '-c', 'max_parallel_workers_per_gather=0' ]);
for my $name (sort keys %settings)
{
	($status, $output) = run_bench('bench/workload', '-d', 'star', '--explain-only', @{ $settings{$name} }, $queries);
	is($status, 0, "settings $name: joins are the same") or diag($output);
	like($output, qr/13 of 13 queries/, "settings $name: of all queries");
	like($output, qr/GpuSort/, "settings $name: gpusort is in some of the plans");
}
($status, $output) = run_bench('bench/workload', '-d', 'star', '-k', 1, @free, $queries);
like($output, qr/\b0 differ/, 'answers are the same') or diag($output);

done_testing;
