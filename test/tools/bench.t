# bench/run, keep and scale-out at a size that says nothing of speed: every section runs, finds the plans
# it is about, and would tell of a wrong order or of a plan that is not gpusort's.
use strict;
use warnings;

use File::Temp qw(tempdir);
use GpuSortNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => ['max_worker_processes = 8']);
$node->start;
$node->wait_service;
my $scratch = tempdir(CLEANUP => 1);
my $psql = $node->config_data('--bindir') . '/psql';
local @ENV{qw(PGHOST PGPORT)} = ($node->host, $node->port);

# Runs bench/run with 20,000 rows; returns its exit status and output.
sub bench
{
	my ($csv, @arguments) = @_;
	my $output = '';
	IPC::Run::run([ 'bench/run', qw(-n 20k -k 20k -N 10k -r 1 -W 1 -p 2 -w 64MB -e), $engine, '-o', "$scratch/$csv",
		@arguments ],
				  '<', '/dev/null', '>', \$output, '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default * 5));
	return ($? >> 8, $output);
}

sub lines
{
	my ($csv) = @_;
	open my $file, '<', "$scratch/$csv" or return;
	return grep { !/^(?:#|mode,)/ } <$file>;
}

my ($status, $output) = bench('all.csv', '-f', qw(check yardstick shapes nodes scaling));
is($status, 0, 'bench/run') or diag $output;
my @notes = $output =~ /^NOTE: .*/mg;
is("@notes", '', 'every plan is as it should be');
my %times;
for (lines('all.csv'))
{
	my ($mode, $case, $rows, $variant, undef, $value) = split /,/;
	$times{$mode}{$case}++ if $value > 0;
}
is_deeply([ sort keys %{ $times{$_->[0]} } ], [ sort split / /, $_->[1] ], "section $_->[0] has all cases")
	for [ check => 'k4 k8 text expression' ], [ yardstick => 'k4 k8 text expression' ], [ out => 'k4 k8 text expression' ],
	[ shapes => 'wide keys8 few nulls sorted reverse ctas window copy' ],
	[ nodes => 'distinct icu merge window' ], [ scaling => 'k8' ];
my @other;
for my $mode (qw(check yardstick shapes nodes scaling))
{
	push @other, map { "$mode $_" } grep { $times{$mode}{$_} != 4 } sort keys %{ $times{$mode} };
}
is("@other", '', 'each in four variants');
like($output, qr/Same order and same rows as native: 16 of 16/, 'in the same order');
like($output, qr/^\| copy +\| 20000 \|(?: +[0-9.]+ \|){4} +[0-9.]+x \|$/m,
	'the table at the end has times and a ratio');

($status, $output) = bench('builds.csv', qw(-f builds));
is($status, 0, 'bench/run builds') or diag $output;
my %built;
for (lines('builds.csv'))
{
	my ($mode, $case, undef, $variant, undef, $value, undef, $detail) = split /,/;
	$built{$case} .= "$variant $1 " if $mode eq 'builds' && $value > 0 && $detail =~ /^"(\d)/;
}
delete @built{qw(text text-unlogged)};
my $reindexed = delete $built{reindex};
is_deeply(\%built,
	{ map { ($_ => "native-parallel 0 $engine-parallel 1 ", "$_-unlogged" => "native-parallel 0 $engine-parallel 1 ") }
		qw(int4 int8 three numeric text-C) }, 'each index is built by PostgreSQL and by gpusort');
like($reindexed, qr/^native-parallel 0 $engine-parallel [56] $/, 'as those of a table are, and of its TOAST table');

($status, $output) = bench('keys.csv', '-f', '-v', "native-serial,$engine-serial", 'keys', 'strings');
is($status, 0, 'bench/run keys strings') or diag $output;
@notes = $output =~ /^NOTE: .*/mg;
is("@notes", '', 'every plan is as it should be');
my %keys;
for (lines('keys.csv'))
{
	my ($mode, $case, undef, $variant, undef, $value) = split /,/;
	$keys{$case} .= "$variant " if $mode eq 'keys' && $value > 0;
}
# what needs locales, or an extension, that need not be there
my @keys = grep { $output !~ /keys: $_ left out/ } qw(citext geometry latin1);
is_deeply(\%keys,
	{ map { ($_ => "native-serial $engine-serial ") }
		qw(int4-array text-array jsonb tstzrange int8multirange record numeric numeric-long urls abbreviated), @keys },
	'each type of keys is sorted by both') or diag $output;
my %strings = map { /^strings,([^,]+),/ ? ($1 => 1) : () } lines('keys.csv');
is(scalar(keys %strings), 15, 'as is each kind of strings, some of them without statistics, too') or diag $output;

($status, $output) = bench('above.csv', qw(-f above above-shapes));
is($status, 0, 'bench/run above') or diag $output;
my (%chosen, %native);
for (lines('above.csv'))
{
	my ($mode, $case, $rows, $variant, undef, $value, $unit, $detail) = split /,/;
	$chosen{$mode}{$case} = $detail if $variant eq "$engine-chosen" && $value > 0;
	$native{$mode}{$case}++ if $variant =~ /^native/ && $value > 0 && $unit eq 'ms';
}
is_deeply([ sort keys %{ $chosen{above} } ],
	[ sort qw(sum lag lead ntile first_value top1 distinct group percentile string_agg count_distinct distinct_on merge
		rollup
		rollup2 limit100k limit1M offset) ], 'section above has all queries');
is_deeply([ sort keys %{ $native{above} } ], [ sort keys %{ $chosen{above} } ], 'with a native plan each');
is_deeply([ sort keys %{ $chosen{'above-shapes'} } ],
	[ sort qw(skew skew_percentile few_window few_group wide wrong_few wrong_many) ],
		'section above-shapes has all cases');
like($chosen{above}{sum}, qr/ plan: .*WindowAgg > .*GpuSort/, 'the nodes of a plan');
like($output, qr/^sum +native [0-9.]+, $engine [0-9.]+ ms: [0-9.]+x/m, 'each is told of at once');
my $counts = qr/[0-9]+ \+ [0-9]+/;
like($output,
	qr/^\| sum \| 20000 \| [0-9.]+ \| (?:sort|hash)-(?:serial|parallel) \| $engine \| [0-9.]+ \| $counts \| [0-9.]+x \|/m,
	'and in the table');

SKIP:
{
	($status, $output) = bench('collation.csv', qw(-f collation));
	is($status, 0, 'bench/run collation') or diag $output;
	skip 'the C library has no en_US.UTF-8', 4 if $output =~ /^note: collation: left out/m;
	my %measured;
	for (lines('collation.csv'))
	{
		my ($mode, $case, undef, $variant, undef, $value) = split /,/;
		$measured{"$mode $case"}{$variant}++ if $value > 0;
	}
	is_deeply([ sort keys %measured ], [ sort map({ ("check $_", "collation $_", "collation $_-C") } qw(md5 words few)),
		'mark md5', 'mark words' ], 'section collation has all cases');
	is_deeply([ sort keys %{ $measured{"collation $_"} } ],
		[ sort "$engine-serial", "$engine-parallel", qw(native-serial native-parallel) ], "$_ in four variants")
		for qw(md5 words);
	my $beside_c = qr/[0-9.]+ times its time under "C"/;
	like($output,
		qr/^words +native [0-9.]+, $engine-serial [0-9.]+ ms: [0-9.]+x.*; $beside_c \(mark 1\.6: (?:met|MISSED)\)/m,
		'beside PostgreSQL and beside "C"');
}

mkdir "$scratch/results";
$output = `bench/keep -o $scratch/results $scratch/all.csv $scratch/keys.csv 2>&1`;
is($?, 0, 'bench/keep') or diag $output;
my $kept = slurp_file("$scratch/results/yardstick.csv");
like($kept, qr/^question,case,machine,versions,engine,native_ms,gpusort_ms,peer_ms,runs,commit,date\n/, 'the columns');
my @kept = $kept =~ /^yardstick,"(\w+), 20000 rows",.*,"PostgreSQL [^"]+, gpusort [^"]+",\w+,[0-9.]+,[0-9.]+,,1,/mg;
is("@{[ sort @kept ]}", 'expression k4 k8 text', 'both sides of each case');
$output = `bench/keep -o $scratch/results $scratch/all.csv 2>&1`;
is(slurp_file("$scratch/results/yardstick.csv"), $kept, 'a case is kept once');

# a psql that has gpusort sort by another column
mkdir "$scratch/bin";
open my $file, '>', "$scratch/bin/psql" or die $!;
print $file <<"SCRIPT";
#!/bin/bash
case " \$* " in *' -c '*) exec $psql "\$@" ;; esac
input=\$(cat)
if [[ \$input == *'enable = on'*key_hash* ]]; then
	input=\${input//ORDER BY k8/ORDER BY k4}
fi
exec $psql "\$@" <<<"\$input"
SCRIPT
close $file;
chmod 0755, "$scratch/bin/psql";
{
	local $ENV{PATH} = "$scratch/bin:$ENV{PATH}";
	($status, $output) = bench('wrong.csv', qw(-q k8 check));
	is($status, 1, 'a wrong order ends in an error');
	like($output, qr/WRONG: k8, $engine-serial/, 'which says whose');
}

$node->safe_psql('postgres', 'ALTER DATABASE postgres SET gpusort.min_rows = 1000000');
($status, $output) = bench('native.csv', qw(-q k8 -v), "native-serial,$engine-serial", 'yardstick');
like($output, qr/^NOTE: yardstick k8, $engine-serial: native plan$/m, 'a plan that is not gpusort\'s is told of');
like($output, qr/^\| k8 .*[0-9]\* \|/m, 'and marked in the table');

# clusters of its own; a wrong answer fails
$output = '';
IPC::Run::run([ 'bench/scale-out', qw(-n 20k -r 1 -w 64MB -v gpusort -k), '1 2', '-e', $engine, '-o',
	"$scratch/scale-out.csv" ],
			  '<', '/dev/null', '>', \$output, '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default * 5));
is($?, 0, 'bench/scale-out') or diag $output;
my %ways;
for (lines('scale-out.csv'))
{
	my ($mode, $case, undef, $variant, undef, $value) = split /,/;
	push @{ $ways{$case} }, $variant =~ s/-gpusort$//r if $value > 0;
}
is_deeply(\%ways, {
	sort => [qw(1-direct 1-plain 1-copy 2-plain 2-copy)],
	top => [qw(1-direct 1-plain 1-union 1-pushed 2-plain 2-union 2-pushed)],
	map { $_ => [qw(1-direct 1-plain 1-pushed 2-plain 2-pushed)] } qw(distinct_on window group) },
	'has all cases in all ways');

SKIP:
{
	skip 'there is no cc', 1 if system('command -v cc >/dev/null') != 0;
	is(system(qw(cc -std=c11 -Wall -Wextra -Werror -fsyntax-only bench/parts/duckdb.c)), 0,
		'the program for DuckDB compiles');
}

done_testing;
