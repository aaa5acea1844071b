# bench/workload on a small database with queries of known outcome: it tells which plan changed, whose
# answer differs, ties or fails, and says so by its exit status.  bench/workloads makes a database.
use strict;
use warnings;

use File::Temp qw(tempdir);
use GpuSortNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'max_worker_processes = 8', "shared_preload_libraries = 'gpusort, pg_stat_statements'" ]);
$node->start;
$node->wait_service;
my $scratch = tempdir(CLEANUP => 1);
local @ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'postgres');

sub run_bench
{
	my (@command) = @_;
	my $output = '';
	IPC::Run::run(\@command, '<', '/dev/null', '>', \$output, '2>&1',
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default * 5));
	return ($? >> 8, $output);
}

# What bench/workload is to judge: milliseconds of queries without gpusort, with it, and forced.  The machine may have
# other things to do.
sub given_times
{
	my ($folder, %times) = @_;
	open my $file, '>', "$scratch/$folder.times" or die $!;
	for my $name (sort keys %times)
	{
		my %of;
		@of{qw(off on forced)} = @{ $times{$name} };
		print $file map { "$name $_ $of{$_}\n" } grep { defined $of{$_} } sort keys %of;
	}
	close $file or die $!;
	return;
}

# Runs bench/workload on one of the folders, with gpusort chosen wherever it can be.
sub workload
{
	my ($folder, @arguments) = @_;
	return run_bench('bench/workload', '-k', 1, '--times', "$scratch/$folder.times",
		map({ ('-c', $_) } qw(gpusort.setup_cost=0 gpusort.row_cost=0 gpusort.force=on)), @arguments, "$scratch/$folder");
}

sub queries
{
	my ($folder, %query) = @_;
	mkdir "$scratch/$folder";
	for my $name (keys %query)
	{
		open my $file, '>', "$scratch/$folder/$name.sql" or die $!;
		print $file $query{$name};
		close $file;
	}
	return;
}

# The line of a query in what was printed, without its times
sub line_of
{
	my ($output, $name) = @_;
	my ($line) = $output =~ /^\Q$name\E +(.*)/m or return '';
	return $line =~ s/^(?:\S+ +){3}//r =~ s/ +/ /gr;
}

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE t AS SELECT i AS id, i % 7 AS few, md5((i % 500)::text) AS word, i * 0.1::float8 AS f
	FROM generate_series(1, 20000) i;
CREATE TABLE u AS SELECT i AS id, i % 3 AS few FROM generate_series(1, 5000) i;
VACUUM ANALYZE t, u;
SQL

my $on = "current_setting('gpusort.enable')::bool";
queries('good',
	sorted => qq{-- a comment; of two parts\nSELECT id, word FROM t ORDER BY word COLLATE "C", id;\n},
	plain => 'SELECT count(*) FROM t WHERE few = 3',
	floats => 'SELECT few, sum(f), avg(f) FROM (SELECT * FROM t ORDER BY CASE WHEN ' . $on
	. ' THEN id ELSE -id END OFFSET 0) s GROUP BY few',
	ties => "SELECT few, id FROM t ORDER BY few, CASE WHEN $on THEN id ELSE -id END LIMIT 5",
	dependent => "SELECT sum(n) FROM (SELECT row_number() OVER (PARTITION BY few) * id AS n "
		. "FROM (SELECT * FROM t ORDER BY md5(id || current_setting('work_mem') || $on) OFFSET 0) s) r",
	several => "\\timing on\nSELECT 1; SELECT ';' || few FROM u GROUP BY few; DROP TABLE t");

given_times('good', map { ($_ => [ 20000, 20000 ]) } qw(sorted plain floats ties dependent several-1 several-2));
my ($status, $output) = workload('good', '-o', "$scratch/good.csv", '--plans', "$scratch/plans");
is($status, 0, 'queries with equal answers') or diag $output;
is(line_of($output, 'sorted'), 'changed same same even GpuSort',
	'a plan that changed, and its node') or diag $output;
like(line_of($output, 'plain'), qr/^same same same even$/, 'one that did not') or diag $output;
like(line_of($output, 'floats'), qr/^\w+ same same /, 'sums of floats in another order are the same');
like(line_of($output, 'ties'), qr/^changed same ties /, 'LIMIT among equal rows') or diag $output;
like(line_of($output, 'dependent'), qr/^\w+ same plan-dependent /, "an answer that depends on PostgreSQL's plan")
	or diag $output;
like(line_of($output, 'several-2'), qr/^\w+ same same /, 'several queries in a file');
like($output, qr/^left out: 1 statements\n    several: DROP TABLE t: not a query$/m,
	'what is no query is left out, and named');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 20000, 'and not run');
like($output, qr/^changed: .*geometric mean of the ratios [\d.]+$/m, 'a mean');
like($output, qr/^planning: [\d.]+ ms without gpusort, [-+][\d.]+ % with it/m, 'the time of planning');
for my $variant (qw(off on))
{
	open my $file, '<', "$scratch/plans/sorted.$variant.txt" or die "sorted.$variant.txt: $!";
	my $plan = join '', <$file>;
	is($plan =~ /GpuSort/ ? 'on' : 'off', $variant, "--plans keeps EXPLAIN, $variant");
}
open my $file, '<', "$scratch/good.csv" or die $!;
my @csv = <$file>;
is(scalar(grep { /^good,/ } @csv), 7, 'the CSV has a line a query');
is(scalar(grep { /^# (?:date|command|cpu|gpu|postgresql|settings): ./ } @csv), 6, 'and the host');
is_deeply([ map { (split /,/)[5, 6, 7] } grep { /^good,sorted,/ } @csv ], [qw(yes yes GpuSort)], 'and what was found');

queries('bad',
	differs => "SELECT count(*), $on FROM t",
	fails => 'SELECT 1 / (id - 7) FROM t',
	fails_with => "SELECT 1 / CASE WHEN $on THEN id - 7 ELSE 1 END FROM t",
	lost => 'SELECT pg_terminate_backend(pg_backend_pid())',
	long => 'SELECT pg_sleep(60)',
	writes => 'WITH d AS (DELETE FROM t RETURNING id) SELECT count(*) FROM d',
	open => 'SELECT count(*) FROM t WHERE (few = 1',
	wrong => 'SELECT FROM nowhere');
given_times('bad', map { ($_ => [ 20000, 20000 ]) } qw(differs fails fails_with lost long writes open wrong));
($status, $output) = workload('bad', '-x', 'long');
is($status, 1, 'answers that differ end in an error') or diag $output;
is(line_of($output, 'differs'), 'same same DIFFERS DIFFERS', 'the one that differs') or diag $output;
like($output, qr/^DIFFER: differs$/m, 'is named');
like($output, qr/^fails .* error\n    off: division by zero$/m, 'an error on both sides');
like($output, qr/^fails_with .* ERROR\n    on: division by zero$/m, 'an error with gpusort only');
like($output, qr/^lost .* error\n    off: terminating connection/m, 'a session that is lost');
like($output, qr/^writes .* error\n    off: cannot execute .* in a read-only transaction$/m,
	'a query that writes does not');
like($output, qr/^wrong .* error\n(?:    \w+: relation "nowhere" does not exist\n)+/m,
	'a query that cannot be planned');
like($output, qr/^open .* error\n    off: a quote, a comment or a parenthesis is not closed$/m, 'half a query');
like($output, qr/^errors: fails, fails_with, lost, open, writes, wrong$/m, 'errors are named');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 20000, 'nothing was written');
(undef, $output) = workload('bad', '-q', 'long', '-t', 2);
like($output, qr/^long +>2000 .* skipped$/m, 'a query that takes too long') or diag $output;
($status, $output) = workload('bad', '-q', 'fails');
is($status, 0, 'an error on both sides is not gpusort\'s');

# by 10 % and 20 ms at least
my $few = 'SELECT max(few) FROM (SELECT * FROM t ORDER BY word COLLATE "C", id OFFSET 10) s';
queries('slow', slower => $few, near => $few, short => $few, faster => $few);
given_times('slow', slower => [ 120, 145 ], near => [ 20000, 21900 ], short => [ 12, 31 ], faster => [ 145, 120 ]);
($status, $output) = workload('slow', '-o', "$scratch/slow.csv");
is($status, 1, 'a slower query ends in an error') or diag $output;
like($output, qr/^slower: slower 120[.\d]*\/145[.\d]*$/m, 'is named, and no other') or diag $output;
is(line_of($output, $_->[0]), "changed same same $_->[1] GpuSort", $_->[0]) or diag $output
	for [ 'near', 'even' ], [ 'short', 'even' ], [ 'faster', 'faster' ];
open $file, '<', "$scratch/slow.csv" or die $!;
is((split /,/, (grep { /^slow,slower,/ } <$file>)[0])[12], 4, 'after three more turns');

# a plan that was not chosen, for want of force, and would have been much faster
queries('forgone', sort => $few);
given_times('forgone', sort => [ 1000, 1000, 300 ]);
($status, $output) = run_bench('bench/workload', qw(-k 2 -c gpusort.setup_cost=1e9 --also-forced --times),
	"$scratch/forgone.times", "$scratch/forgone");
is($status, 0, '--also-forced') or diag $output;
like($output, qr/^time forgone: sort [\d.]+\/[\d.]+$/m, 'tells time forgone') or diag $output;
like(line_of($output, 'sort'), qr/^same same same even forced: [\d.]+ ms, GpuSort$/, 'and by which plan')
	or diag $output;

($status, $output) = workload('good', '--explain-only', '-q', 'sorted,plain,nothing');
is($status, 2, 'a query that is not there is an error') or diag $output;
like($output, qr/^no such query: nothing$/m, 'and named');
($status, $output) = workload('good', '--explain-only', '-q', 'sorted,plain');
is($status, 0, '--explain-only') or diag $output;
like($output, qr/^2 of 2 queries: 1 plans changed$/m, 'compares plans alone');

given_times('typo', wrong => [ 20000, 20000 ]);
queries('typo', wrong => "SELEC 1; UPDATE t SET few = 1;\nSELECT few FROM t WHERE few = 3");
($status, $output) = workload('typo');
is($status, 0, 'a folder with a typo') or diag $output;
like($output,
	qr/^left out: 2 statements\n    wrong: SELEC 1: syntax error at or near "SELEC"\n    wrong: UPDATE .*: not a query$/m,
	'each statement that is left out has its reason') or diag $output;
unlike($output, qr/^unchanged: ratios/m, 'the ratio of one query is no span');

($status, $output) = run_bench(qw(bench/workload --statements));
is($status, 2, 'without pg_stat_statements') or diag $output;
like($output, qr/CREATE EXTENSION pg_stat_statements/, 'it is said what to do');
SKIP:
{
	skip 'there is no pg_stat_statements', 14 if $node->psql('postgres', 'CREATE EXTENSION pg_stat_statements') != 0;
	given_times('statements', map { sprintf('s%03d', $_) => [ 20000, 20000 ] } 1 .. 7);
	$node->safe_psql('postgres', 'SELECT pg_stat_statements_reset()');
	$node->safe_psql('postgres', $_) for 'SELECT few, count(*) FROM t GROUP BY few',
		'SELECT count(*) FROM t WHERE id < 100', 'CREATE TABLE v (i int)', 'SELECT max(word) FROM t',
		'SELECT few + 3 FROM t ORDER BY word COLLATE "C", id',
		q{SELECT id FROM t x WHERE x.few = 3 AND word = 'x' ORDER BY id LIMIT 10 OFFSET 5},
		q{SELECT count(*) FROM t WHERE now() > now() - interval '3 days'};
	my ($few, $word) = map { $node->safe_psql('postgres', "SELECT (most_common_vals::text::text[])[1] FROM pg_stats "
		. "WHERE tablename = 't' AND attname = '$_'") } qw(few word);
	my $counted = 'SELECT sum(calls) FROM pg_stat_statements';
	$node->safe_psql('postgres', $counted);
	my $before = $node->safe_psql('postgres', $counted);
	($status, $output) = run_bench(qw(bench/workload --statements -k 1 -v -c gpusort.force=on --times),
		"$scratch/statements.times");
	is($status, 0, '--statements') or diag $output;
	like($output, qr/^5 of 5 queries: /m, 'has the statements that read') or diag $output;
	like($output, qr/^    CREATE TABLE v \(i int\): not a query$/m, 'not the others');
	like($output, qr/^    SELECT .* interval \$1: syntax error /m, 'nor what cannot be planned with $1');
	like($output, qr/^    parameters: \$1 = 15000$/m, 'the end of a range is in the upper quarter');
	like($output, qr/^    parameters: \$1 = $few, \$2 = $word, \$3 = 1, \$4 = 0$/m,
		'other parameters are common values') or diag $output;
	like($output, qr/^(s\d+) .* changed same   - +GpuSort\n    no value for \$1\n(?:.*\n)*not run.*generic plans: \1$/m,
		'a parameter without a column: the generic plans are compared') or diag $output;
	is($node->safe_psql('postgres', $counted), $before + 1, 'pg_stat_statements counted nothing of it');
	queries('advised', counted => 'SELECT few + 7 FROM t ORDER BY word COLLATE "C", id',
		unknown => 'SELECT id FROM t ORDER BY word COLLATE "C"');
	given_times('advised', counted => [ 100, 100 ], unknown => [ 100, 100 ]);
	($status, $output) = workload('advised', '--advised');
	is($status, 2, '--advised without the extension') or diag $output;
	$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
	($status, $output) = workload('advised', '--advised', '-o', "$scratch/advised.csv");
	like($output, qr/^counted .*advised [0-9.]+$/m, 'the advised ratio of a query that was counted') or diag $output;
	like($output, qr/^unknown (?!.*advised).*\n(?:.*\n)*advised ratios: [01] of 2 within/m,
		'none of one that was not, which is a miss') or diag $output;
	like(PostgreSQL::Test::Utils::slurp_file("$scratch/advised.csv"), qr/,advised\nadvised,counted,.*,[0-9.]+\n/,
		'in the CSV, too');
	$node->safe_psql('postgres', 'CREATE ROLE plain LOGIN; GRANT pg_read_all_data, pg_read_all_stats TO plain');
	{
		local $ENV{PGUSER} = 'plain';
		($status, $output) = run_bench(qw(bench/workload --statements -k 1 -n 1));
	}
	is($status, 0, 'a role that may not set pg_stat_statements.track') or diag $output;
	like($output, qr/^pg_stat_statements counted what was run here: /m, 'is told so');
}

($status, $output) = run_bench(qw(bench/workload -d nowhere), "$scratch/good");
is($status, 2, 'no database') or diag $output;
($status, $output) = run_bench('bench/workload');
is($status, 2, 'no queries');
like($output, qr/^Options$/m, 'is told its use');

# where gpusort is not loaded it is; where it is not there, that is said
my $bare = PostgreSQL::Test::Cluster->new('bare', own_host => 1, port => 5432);
$bare->init(extra => [ '-U', 'postgres' ]);
$bare->append_conf('postgresql.conf', "listen_addresses = ''\ndynamic_library_path = '/nowhere'");
$bare->start;
{
	local $ENV{PGHOST} = $bare->host;
	($status, $output) = run_bench('bench/workload', "$scratch/good");
	is($status, 2, 'without gpusort') or diag $output;
	like($output, qr/^gpusort is not there: /m, 'that is said') or diag $output;
}
$bare->stop;

# the suite that needs no kit
($status, $output) = run_bench('bench/workloads', qw(star 0.001 -l C -d star -Q), "$scratch/star");
is($status, 0, 'bench/workloads star') or diag $output;
is(scalar(() = glob "$scratch/star/q*.sql"), 13, 'writes its queries');
($status, $output) = run_bench(qw(bench/workload -k 1 -d star), "$scratch/star");
like($output, qr/^13 of 13 queries: /m, 'which bench/workload runs') or diag $output;
unlike($output, qr/DIFFERS|ERROR/, 'with equal answers') or diag $output;
($status, $output) = run_bench(qw(bench/workloads tpch 1 -k), "$scratch/nowhere");
isnt($status, 0, 'no kit');
like($output, qr/^no folder tpch-kit in /m, 'that is said') or diag $output;

mkdir "$scratch/results";
$output = `bench/keep -o $scratch/results $scratch/good.csv $scratch/slow.csv 2>&1`;
is($?, 0, 'bench/keep') or diag $output;
like(slurp_file("$scratch/results/workload.csv"), qr/^workload,\w+ \w+,.*,[0-9.]+,[0-9.]+,,\d+,/m, 'keeps them');

done_testing;
