# Sorts larger than gpusort.host_memory, in runs that are merged: rows are PostgreSQL's own, in its order;
# EXPLAIN and statistics tell of runs and files, files are where PostgreSQL has them and none is left.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

plan skip_all => 'the memory that the host engine sorts in' if $engine ne 'host';

my @conf = ('gpusort.host_memory = 24MB', 'gpusort.force = on', 'work_mem = 256MB', 'log_temp_files = 0',
			'max_worker_processes = 16', 'max_parallel_workers = 8', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
			'min_parallel_table_scan_size = 0', 'gpusort.setup_cost = 0', 'gpusort.row_cost = 0');
my $rows = 300000;

my $node = GpuSortNode->new('main');
$node->init(conf => \@conf);
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS
	SELECT i AS id, hashint4(i) AS h, CASE WHEN i % 5 = 0 THEN NULL ELSE i % 40 END AS few, i % 9001 AS g,
		   'a common beginning ' || hashint4(i) % 50000 AS s
	FROM generate_series(1, $rows) i;
	CREATE TABLE wide AS
	SELECT i AS id, hashint4(i) AS h, (SELECT string_agg(md5((i * 100 + j)::text), '')
		FROM generate_series(1, CASE WHEN i % 25 = 0 THEN 40000 ELSE 200 END) j) AS w
	FROM generate_series(1, 100) i;
	INSERT INTO wide SELECT i * 1000 + j, hashint4(i * 1000 + j), substr(w, j, 3000)
		FROM (SELECT i, w FROM wide, LATERAL (SELECT id AS i) x WHERE id % 25 <> 0) y, generate_series(1, 100) j;
	ANALYZE t, wide});

my $digest = q{SELECT count(*) || ' ' || md5(string_agg(hashtextextended(q::text, 0)::text, ',')) FROM (%s) q};
my $sum = q{SELECT count(*) || ' ' || sum(hashtextextended(q::text, 0)::numeric) FROM (%s OFFSET 0) q};
my $session = $node->session;

# Runs and fallbacks so far.
sub figures
{
	return split /\|/, $session->run('SELECT runs, fallbacks FROM gpusort_stats()');
}

# A statement does what it does with PostgreSQL's sort, in two runs at least; how many it had.
sub same
{
	my ($name, $statement) = @_;

	my $right = $session->run("SET gpusort.enable = off; $statement; RESET gpusort.enable");
	my ($runs, $fallbacks) = figures;
	$session->send($statement);
	my ($out, $err) = $session->result;
	my ($runs_after, $fallbacks_after) = figures;

	is($out, $right, $name) or diag $err;
	cmp_ok($runs_after - $runs, '>=', 2, "$name: in runs");
	is($fallbacks_after - $fallbacks, 0, "$name: by the service");
	return $runs_after - $runs;
}

sub files_left
{
	return map { glob "$_/pgsql_tmp/*" } $node->data_dir . '/base', glob $node->data_dir . '/pg_tblspc/*/PG_*';
}

# what is told of a sort
my $query = 'SELECT * FROM t ORDER BY h, id';
my $plan = $session->run("EXPLAIN (ANALYZE, COSTS OFF) $query");
like($plan, qr/^ *Runs: (?:[2-9]|\d\d)$/m, 'EXPLAIN tells how many runs there were');
like($plan, qr/^ *Run Storage: disk$/m, 'where they were');
like($plan, qr/^ *Disk: \d+kB$/m, 'and how much');
my ($disk) = $plan =~ /Disk: (\d+)kB/;
cmp_ok($disk // 0, '>', 1000, 'which is not little');
$plan = $session->run('EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM t WHERE id <= 5000 ORDER BY h, id');
like($plan, qr/cpu radix/, 'a small sort is done by the service');
unlike($plan, qr/Run Storage|Disk/, 'in memory');
my $plan_off = $session->run("SET gpusort.spill = off; EXPLAIN SELECT *, s || s AS longer FROM t ORDER BY h, id");
unlike($plan_off, qr/GpuSort/, 'with gpusort.spill = off none is planned that does not fit');
# one whose size the planner does not know
$plan_off = $session->run("EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM (SELECT id, h, s || repeat('y', 50) AS s FROM t "
	. "WHERE id % 7 < 7 OFFSET 0) q ORDER BY h, id");
like($plan_off, qr/fallback: tuplesort/, 'and PostgreSQL sorts one that was thought to fit');
is($session->run(sprintf $digest,
	"SELECT * FROM (SELECT id, h, s || repeat('y', 50) AS s FROM t WHERE id % 7 < 7 OFFSET 0) q ORDER BY h, id"),
   $session->run('SET gpusort.enable = off; ' . sprintf($digest,
"SELECT id, h, s || repeat('y', 50) AS s FROM t ORDER BY h, id") . '; RESET gpusort.enable; RESET gpusort.spill'),
'which is right');

# files are counted as any
$session->run(q{SELECT pg_stat_reset()});
same('by an integer', sprintf $digest, $query);
my @logged = $node->log_text =~ /temporary file: path "base\/pgsql_tmp\/[^"]+", size (\d+)/g;
ok(@logged, 'log_temp_files tells of the file');
ok(wait_until(sub { $session->run(q{SELECT temp_bytes > 1000000 AND temp_files > 0 FROM pg_stat_database }
	. q{WHERE datname = current_database()}) eq 't' }),
   'pg_stat_database tells of its bytes');
is(join(' ', files_left), '', 'and it is gone');

# keys
same("by $_", sprintf $digest, "SELECT * FROM t ORDER BY $_")
	for 's, id', 'few DESC NULLS LAST, s DESC, h', 'few NULLS FIRST, g DESC, id';
same('long ties', sprintf $digest,
	"SELECT id, s FROM (SELECT id, h, repeat('z', 120) || g % 7 AS s FROM t WHERE id <= 150000 OFFSET 0) q "
	. "ORDER BY s, id");
same('all keys equal, in the order in which they came', sprintf $digest,
	'SELECT one, id, s FROM (SELECT 1 AS one, * FROM t OFFSET 0) q ORDER BY one');
same('wide rows', sprintf $digest, q{SELECT * FROM (SELECT id, h, w || '' AS w FROM wide OFFSET 0) q ORDER BY h, id});

# parallel
$session->run('SET max_parallel_workers_per_gather = 2');
like($session->run("EXPLAIN $query"), qr/GpuSortIngest|GpuSortOutput/, 'a plan with workers');
same('rows from workers', sprintf $digest, $query);
same('rows that workers form', $query);
same('rows in a table', "CREATE TEMP TABLE made AS $query; "
	. q{SELECT md5(string_agg(m::text, '' ORDER BY ctid)) FROM made m; DROP TABLE made});
same('texts from workers', sprintf $digest, 'SELECT s, id FROM t ORDER BY s DESC, id');
$session->run('SET enable_hashagg = off; SET enable_hashjoin = off; SET enable_nestloop = off');
for ([ 'a window', 'SELECT g, id, s, sum(id) OVER (PARTITION BY g ORDER BY id), lag(s) OVER (PARTITION BY g '
	. 'ORDER BY id) FROM t' ],
	 [ 'DISTINCT', 'SELECT DISTINCT s, h, few FROM t' ],
	 [ 'a merge join', 'SELECT a.id, a.s, b.id AS other FROM t a FULL JOIN (SELECT id, h, s FROM t '
	. 'WHERE g < 4000) b ON a.h = b.h AND a.s = b.s' ])
{
	my ($name, $statement) = @$_;
	like($session->run("EXPLAIN $statement"), qr/GpuSortExchange/, "$name in every process");
	same("$name in every process", sprintf $sum, $statement);
}
$session->run('SET gpusort.parallel_output = off');
same('a window above a sort of workers', sprintf $sum,
	'SELECT g, id, s, sum(id) OVER (PARTITION BY g ORDER BY id), lag(s) OVER (PARTITION BY g ORDER BY id) FROM t');
$session->run("RESET $_")
	for qw(gpusort.parallel_output max_parallel_workers_per_gather enable_hashagg enable_hashjoin enable_nestloop);

# rescans, LIMIT
$session->run('SET enable_material = off');
same('other rows each time', sprintf $digest,
	'SELECT x, q.* FROM (VALUES (1), (2)) v (x), LATERAL (SELECT id, s, x + id AS y FROM t WHERE id > x '
		. 'ORDER BY h, id) q');
same('bounds', sprintf $digest, "SELECT * FROM (SELECT id, s FROM t ORDER BY s, id LIMIT 290000 OFFSET 50000) q");
my $limit = sprintf $digest, "$query LIMIT 1000";
is($session->run($limit), $session->run("SET gpusort.enable = off; $limit; RESET gpusort.enable"), 'the first rows');
$session->run('RESET enable_material');

# statements that write
for my $on ('off', 'on')
{
	$session->run("SET gpusort.enable = $on; CREATE TABLE made_$on AS $query");
}
is($session->run('SELECT count(*) FROM made_on a JOIN made_off b ON a.ctid = b.ctid AND a IS NOT DISTINCT FROM b'),
	$rows, 'CREATE TABLE AS');
$session->run('DROP TABLE made_on, made_off');

# cursors
my %read;
for my $on ('off', 'on')
{
	$session->run("SET gpusort.enable = $on; BEGIN; DECLARE s SCROLL CURSOR FOR $query; "
		. "DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT id, s FROM t ORDER BY s, id");
	my @fetches = map { $session->run("FETCH $_ FROM s") } 'ABSOLUTE 200000', 'BACKWARD 5', 'RELATIVE 30', 'FORWARD 2000',
		'FIRST', 'LAST', 'RELATIVE -77';
	$session->run('COMMIT');
	$read{$on} = join "\n", @fetches, map { $session->run("FETCH $_ FROM h") } 'FORWARD 100', 'ABSOLUTE 150000',
		'BACKWARD 3', 'LAST';
	$session->run('CLOSE h');
}
cmp_ok(length $read{on}, '>', 10000, 'cursors have rows');
ok($read{on} eq $read{off}, 'SCROLL and WITH HOLD');
# two that are open, of which one is left
$session->run("SET gpusort.enable = on; BEGIN; DECLARE a CURSOR FOR $query; DECLARE b CURSOR FOR SELECT id FROM t "
	. "ORDER BY s, id");
isnt($session->run('FETCH a; FETCH b'), '', 'two cursors');
ok(scalar(files_left) > 0, 'their files are there');
$session->run('CLOSE a');
is($session->run('MOVE ALL IN b; SELECT 1'), '1', 'one goes on when the other is closed');
$session->run('COMMIT');
is(join(' ', files_left), '', 'no file is left');

# temp_tablespaces
my $directory = $node->basedir . '/space';
mkdir $directory or die "$directory: $!";
$node->safe_psql('postgres', "CREATE TABLESPACE space LOCATION '$directory'");
$session->run("SET temp_tablespaces = 'space'; BEGIN; DECLARE a CURSOR FOR $query; MOVE 10 IN a");
is(scalar(grep { m{/pg_tblspc/} } files_left), 1, 'temp_tablespaces says where the file is');
is(scalar(grep { m{/base/} } files_left), 0, 'and it is there alone');
$session->run('COMMIT; RESET temp_tablespaces');
is(join(' ', files_left), '', 'no file is left there');

is(join(' ', $node->services), $service, 'the service is the same');
ok(wait_until(sub { $node->ask('SELECT (SELECT count(*) FROM gpusort_jobs()), (SELECT sum(memory_used) '
	. 'FROM gpusort_devices())') eq '0|0' }), 'and holds nothing');
$session->close;
done_testing();
