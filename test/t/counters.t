# What gpusort_jobs and the statistics tell of whose sorts they are, and of temporary files.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'compute_query_id = on', q{gpusort.host_memory = '16MB'}, 'gpusort.engine = host',
	'max_parallel_workers_per_gather = 0' ]);
$node->start;
$node->wait_service;
my $table = q{CREATE TABLE t AS SELECT i AS id, (i * 7919::bigint) % 300007 AS k, md5(i::text) AS m }
	. q{FROM generate_series(1, 400000) i; ANALYZE t};
$node->safe_psql('postgres',
	"CREATE EXTENSION gpusort; CREATE ROLE alice LOGIN; CREATE DATABASE other; $table; GRANT SELECT ON t TO alice");
$node->safe_psql('other', $table);
$node->safe_psql('postgres', 'SELECT gpusort_stats_reset()');

# a running sort that is larger than memory
my $session = $node->session;
$session->run('SET ROLE alice; SET gpusort.force = on; BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT * FROM t '
	. 'ORDER BY k; MOVE 10 IN c');
my $pid = $session->run('SELECT pg_backend_pid()');
is($node->safe_psql('postgres', "SELECT datname, usename, phase, rows_in, sort_start < now() FROM gpusort_jobs "
	. "WHERE pid = $pid"), 'postgres|alice|emit|400000|t', 'whose sort it is');
my $estimated = $node->safe_psql('postgres', "SELECT estimated_rows FROM gpusort_jobs WHERE pid = $pid");
ok($estimated > 380000 && $estimated < 420000, 'how many rows are expected') or diag $estimated;
my $written = $node->safe_psql('postgres', "SELECT temp_bytes FROM gpusort_jobs WHERE pid = $pid");
cmp_ok($written, '>', 1000000, 'what it has in temporary files');
my $size = $node->safe_psql('postgres', 'SELECT sum(size) FROM pg_ls_tmpdir()');
ok($size > 0.5 * $written && $size <= $written, 'of which the service has written most') or diag "$size of $written";
$session->run('COMMIT');
my $counted = $node->safe_psql('postgres', 'SELECT temp_bytes FROM gpusort_stats');
ok($counted > 1000000 && $counted <= $written, 'it is counted when it has ended') or diag "$counted of $written";

# by its statement
$session->run('BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT * FROM t ORDER BY k');
$session->run('MOVE 10 IN c');
is($node->safe_psql('postgres', "SELECT j.queryid = a.query_id FROM gpusort_jobs j JOIN pg_stat_activity a USING (pid) "
	. "WHERE pid = $pid"), 't', 'queryid is that of pg_stat_activity');
$session->run('COMMIT');
$node->append_conf('postgresql.conf', 'compute_query_id = off');
$node->reload;
$session->close;
$session = $node->session;
$session->run('SET gpusort.force = on; BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT * FROM t ORDER BY k; MOVE 10 IN c');
is($node->safe_psql('postgres', 'SELECT count(*), count(queryid) FROM gpusort_jobs'), '1|0',
	'or unknown where PostgreSQL does not compute it');
$session->close;
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM gpusort_jobs'), 'no sort is left');

# by database, one of which is dropped
$node->safe_psql('postgres', 'SELECT gpusort_stats_reset()');
my $sort = 'SET gpusort.force = on; SELECT count(*) FROM (SELECT * FROM t ORDER BY k OFFSET 0) s';
$node->safe_psql('postgres', $sort);
$node->safe_psql('other', $sort) for 1 .. 2;
is($node->safe_psql('postgres', 'SELECT datname, sorts, rows, temp_bytes > 0, fallbacks '
	. 'FROM gpusort_stats_database ORDER BY datname'), "other|2|800000|t|0\npostgres|1|400000|t|0",
	'each database has its own');
is($node->safe_psql('postgres', 'SELECT (SELECT sorts FROM gpusort_stats), sum(sorts), (SELECT temp_bytes '
	. 'FROM gpusort_stats) - sum(temp_bytes) FROM gpusort_stats_database'), '3|3|0', 'together they are all');
$node->safe_psql('postgres', 'DROP DATABASE other');
is($node->safe_psql('postgres', 'SELECT sorts FROM gpusort_stats_database WHERE datname IS NULL'), '2',
	'what was done in a database that is dropped stays counted');

# more databases than are counted apart share an entry
my $many = 64;
$node->safe_psql('postgres', "CREATE DATABASE d$_") for 1 .. $many;
$node->safe_psql("d$_", 'SET gpusort.force = on; SELECT i FROM generate_series(1, 10) i ORDER BY -i') for 1 .. $many;
is($node->safe_psql('postgres', 'SELECT count(*), count(datid), sum(sorts) FROM gpusort_stats_database'),
	'65|64|' . (3 + $many), 'databases beyond the first 64 are counted together');
$node->stop;

done_testing;
