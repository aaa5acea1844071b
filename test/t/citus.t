# Citus, as doc/scale-out.md has it: a coordinator and two workers, gpusort preloaded after citus in each of them.
# Answers over distributed, reference, local and columnar tables are those without gpusort; so are tables that are
# written, and the shards' indexes; shards that are moved, copied and split keep their rows.  Skipped where the
# installation has no Citus.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

chomp(my $share = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --sharedir`);
plan skip_all => 'Citus is not installed' unless -e "$share/extension/citus.control";

my %node;
for my $name ('coordinator', 'one', 'two')
{
	my $node = $node{$name} = GpuSortNode->new($name);
	$node->init(conf => [ q{shared_preload_libraries = 'citus,gpusort'}, 'wal_level = logical', 'max_wal_senders = 10',
		'max_worker_processes = 32', 'max_connections = 100', q{citus.node_conninfo = 'sslmode=disable'},
		"citus.local_hostname = '" . $node->host . "'", 'citus.enable_statistics_collection = off',
		'citus.executor_slow_start_interval = 0', 'citus.shard_count = 8', 'citus.defer_shard_delete_interval = -1' ]);
}
my $main = $node{coordinator};

# Citus wants the planner's and the executor's hooks for itself.
my $last = $node{two};
$last->append_conf('postgresql.conf', q{shared_preload_libraries = 'gpusort,citus'});
ok(!$last->start(fail_ok => 1), 'a server does not start with gpusort before citus');
like($last->log_text, qr/Citus has to be loaded first/, 'and says why');
$last->append_conf('postgresql.conf', q{shared_preload_libraries = 'citus,gpusort'});

for my $name (sort keys %node)
{
	$node{$name}->start;
	$node{$name}->wait_service;
	$node{$name}->safe_psql('postgres', 'CREATE EXTENSION citus');
}
$main->safe_psql('postgres', sprintf q{SELECT citus_set_coordinator_host('%s', %d)}, $main->host, $main->port);
$main->safe_psql('postgres', sprintf q{SELECT citus_add_node('%s', %d)}, $node{$_}->host, $node{$_}->port)
	for 'one', 'two';
# which Citus brings to the workers
$main->safe_psql('postgres', 'CREATE EXTENSION gpusort; CREATE EXTENSION amcheck; CREATE EXTENSION citus_columnar');

# --- tables -----------------------------------------------------------------------------------------

my $columns = 'id int, g int, k int8, n numeric, f float8, s text COLLATE "C", d timestamptz';
my $rows = q{SELECT i AS id, i % 500 AS g, CASE WHEN i % 10 = 0 THEN NULL ELSE hashint8extended(i, 7) END AS k,
	(i * 7919 % 10007) / 7.0 AS n, CASE i % 1000 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' ELSE i % 331 / 3.0 END AS f,
	md5((i / 2)::text) AS s, timestamptz '2026-01-01 00:00+00' + i * 7919 % 30011 * interval '1 minute' AS d
		FROM generate_series(1, 30000) i};
$main->safe_psql('postgres', qq{
	CREATE TABLE t ($columns); SELECT create_distributed_table('t', 'g'); INSERT INTO t $rows;
	CREATE TABLE u (g int, id int, v int); SELECT create_distributed_table('u', 'g', colocate_with => 't');
	INSERT INTO u SELECT i % 700, i, i % 77 FROM generate_series(1, 5000) i;
	CREATE TABLE w (id int, k int8, v int); SELECT create_distributed_table('w', 'k', colocate_with => 'none');
	INSERT INTO w SELECT id, k, id % 99 FROM t WHERE k IS NOT NULL;
	CREATE TABLE r (v int PRIMARY KEY, name text COLLATE "C"); SELECT create_reference_table('r');
	INSERT INTO r SELECT i, md5(i::text) FROM generate_series(0, 499) i;
	CREATE TABLE l ($columns); INSERT INTO l SELECT * FROM t;
	CREATE TABLE c ($columns) USING columnar; SELECT create_distributed_table('c', 'g', colocate_with => 't');
	INSERT INTO c SELECT * FROM l;
	CREATE TABLE lc ($columns) USING columnar; INSERT INTO lc SELECT * FROM l;
	CREATE TABLE m ($columns); INSERT INTO m SELECT * FROM l; SELECT citus_add_local_table_to_metadata('m');
	CREATE TABLE p ($columns) PARTITION BY RANGE (d); SELECT create_distributed_table('p', 'g', colocate_with => 't');
	SELECT create_time_partitions('p', '1 week', '2026-02-01', '2025-12-29'); INSERT INTO p SELECT * FROM l;
	ANALYZE; });

# --- how gpusort is set in all nodes ------------------------------------------------------------------

my $parallel = [ 'max_parallel_workers_per_gather = 2', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0' ];
my @ways = (
	[ 'one process, forced', [ 'gpusort.force = on' ] ],
	[ 'several processes, forced', [ 'gpusort.force = on', @$parallel ] ],
	[ 'several processes, at no costs', [ 'gpusort.setup_cost = 0', 'gpusort.row_cost = 0', @$parallel ] ],
	[ 'several processes, sorts rather than hashes', [ 'gpusort.force = on', 'enable_hashagg = off',
		'enable_hashjoin = off', @$parallel ] ],
	[ 'nodes read by all processes, forced', [ 'gpusort.force = on', 'gpusort.shard_connections = 8', @$parallel ] ],
	[ 'nodes read by all processes, sorts rather than hashes', [ 'gpusort.force = on', 'gpusort.shard_connections = 3',
		'enable_hashagg = off', @$parallel ] ]);
my $native = [ 'gpusort.enable = off' ];

# Sets this for the sessions that begin now; Citus's own, in the workers, end with the one that asks.
sub in_all_nodes
{
	my ($settings) = @_;

	for my $name (sort keys %node)
	{
		$node{$name}->safe_psql('postgres', join ';', 'SET citus.enable_ddl_propagation = off',
			'ALTER DATABASE postgres RESET ALL', map { "ALTER DATABASE postgres SET $_" } @$settings);
	}
	return;
}

sub sorts_of
{
	my ($name) = @_;
	return $node{$name}->safe_psql('postgres', 'SELECT sorts FROM gpusort_stats');
}

# --- answers ----------------------------------------------------------------------------------------

my $repartition = 'SET citus.enable_repartition_joins = on;';
my %queries = (
	'ORDER BY' => 'SELECT * FROM t ORDER BY k, id',
	'ORDER BY, of columnar tables' => 'SELECT * FROM c ORDER BY k DESC, id',
	'ORDER BY, of a local columnar table' => 'SELECT id, s FROM lc ORDER BY s, id',
	'ORDER BY, of partitions' => 'SELECT id, d FROM p ORDER BY d, id',
	'ORDER BY, of a local table' => 'SELECT * FROM l ORDER BY f, id',
	'ORDER BY, of a reference table' => 'SELECT * FROM r ORDER BY name',
	'NULLS FIRST' => 'SELECT * FROM t ORDER BY k NULLS FIRST, id DESC',
	numerics => 'SELECT id, n FROM t ORDER BY n DESC, id',
	floats => 'SELECT id, f FROM t ORDER BY f, id',
	times => 'SELECT id, d FROM t ORDER BY d, id',
	text => 'SELECT id, s FROM t ORDER BY s, id',
	'an expression' => 'SELECT id, g FROM t ORDER BY id % 1000, id',
	'a row' => 'SELECT id FROM t ORDER BY row(g, n), id',
	'the first rows' => 'SELECT * FROM t ORDER BY k, id LIMIT 100',
	'many first rows' => 'SELECT * FROM t ORDER BY s, id LIMIT 20000',
	OFFSET => 'SELECT * FROM t ORDER BY k, id LIMIT 100 OFFSET 20000',
	'WITH TIES' => 'SELECT n FROM t ORDER BY n FETCH FIRST 50 ROWS WITH TIES',
	'one shard' => 'SELECT * FROM t WHERE g = 7 ORDER BY k, id',
	'DISTINCT' => 'SELECT DISTINCT n, f FROM t ORDER BY n, f',
	'DISTINCT of the distribution column' => 'SELECT DISTINCT g, f FROM t ORDER BY 1, 2',
	'DISTINCT ON' => 'SELECT DISTINCT ON (g) * FROM t ORDER BY g, k, id',
	'DISTINCT ON another column' => 'SELECT DISTINCT ON (n) * FROM t ORDER BY n, k, id',
	'a window' => 'SELECT id, rank() OVER w, sum(n) OVER w FROM t WINDOW w AS (PARTITION BY g ORDER BY k, id) ORDER BY id',
	'a window by another column' => 'SELECT id, row_number() OVER w, lag(id) OVER w FROM t '
		. 'WINDOW w AS (PARTITION BY n ORDER BY k, id) ORDER BY id',
	'a window over all' => 'SELECT id, ntile(7) OVER (ORDER BY k, id), sum(id) OVER (ORDER BY d, id ROWS 3 PRECEDING) '
		. 'FROM t ORDER BY id',
	'first rows of each group' => 'SELECT * FROM (SELECT id, g, k, row_number() OVER (PARTITION BY g ORDER BY k, id) r '
		. 'FROM t) q WHERE r <= 2 ORDER BY g, r',
	'a window of columnar tables' => 'SELECT id, rank() OVER (PARTITION BY g ORDER BY k, id) FROM c ORDER BY id',
	'GROUP BY' => 'SELECT g, count(*), sum(n), min(s), max(d), avg(k) FROM t GROUP BY g ORDER BY g',
	'GROUP BY another column' => 'SELECT n, count(*), sum(n), min(s), max(d), avg(k), bool_and(g > 3) FROM t '
		. 'GROUP BY n HAVING count(*) > 1 ORDER BY n',
	'GROUP BY of partitions' => 'SELECT s, count(*), max(d) FROM p GROUP BY s ORDER BY s',
	'groups in order' => q{SELECT g, string_agg(s, ',' ORDER BY s, id), array_agg(id ORDER BY k, id) FROM t GROUP BY g }
		. 'ORDER BY g',
	'grouping sets' => 'SELECT n, f, count(*), grouping(n, f) FROM (SELECT * FROM t OFFSET 0) q GROUP BY CUBE (n, f) '
		. 'ORDER BY n, f, 4',
	'count(DISTINCT)' => 'SELECT count(DISTINCT s), count(DISTINCT n), count(DISTINCT g), sum(DISTINCT n) FROM t',
	'count(DISTINCT) by group' => 'SELECT g, count(DISTINCT s), count(DISTINCT f) FROM t GROUP BY g ORDER BY g',
	'count(DISTINCT) by another column' => 'SELECT n, count(DISTINCT s), count(DISTINCT g) FROM t GROUP BY n ORDER BY n',
	percentiles => 'SELECT g, percentile_cont(0.3) WITHIN GROUP (ORDER BY f), percentile_disc(0.5) WITHIN GROUP '
		. '(ORDER BY d), mode() WITHIN GROUP (ORDER BY f) FROM t GROUP BY g ORDER BY g',
	'percentiles of all' => 'SELECT percentile_cont(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY n::float8), '
		. 'percentile_disc(0.5) WITHIN GROUP (ORDER BY s), mode() WITHIN GROUP (ORDER BY n) FROM t',
	'HAVING alone' => "SELECT 'a' FROM t HAVING count(DISTINCT s) > 1",
	'HAVING alone, of percentiles' => "SELECT 'a', 1 FROM t HAVING percentile_disc(0.5) WITHIN GROUP (ORDER BY n) > 1",
	'HAVING alone, of mode()' => "SELECT 'a' FROM t HAVING mode() WITHIN GROUP (ORDER BY n) >= 0",
	'percentiles by another column' => 'SELECT f, percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM t '
		. 'GROUP BY f ORDER BY f',
	'a co-located join' => 'SELECT t.id, u.id, u.v FROM t JOIN u ON t.g = u.g WHERE t.id < 3000 ORDER BY t.k, t.id, u.id',
	'a co-located outer join' => 'SELECT u.id, t.id FROM u LEFT JOIN t ON t.g = u.g AND t.id = u.id ORDER BY u.id, t.id',
	'a join of heap and columnar tables' => 'SELECT t.id, c.s FROM t JOIN c ON t.g = c.g AND t.id = c.id '
		. 'ORDER BY c.s, t.id',
	'a reference join' => 'SELECT t.id, r.name FROM t JOIN r ON t.id % 500 = r.v ORDER BY r.name, t.id',
	'a repartitioned join' => "${repartition}SELECT t.id, w.v FROM t JOIN w ON t.k = w.k ORDER BY t.n, t.id",
	'a join, both repartitioned' => "${repartition}SELECT t.n, w.v FROM t JOIN w ON t.id = w.id ORDER BY t.n, t.id",
	'groups over a repartitioned join' => "${repartition}SELECT w.v, count(*), count(DISTINCT t.s), max(t.n) FROM t "
		. 'JOIN w ON t.k = w.k GROUP BY w.v ORDER BY w.v',
	'a join with a local table' => 'SELECT t.id, l.s FROM t JOIN l ON t.id = l.id ORDER BY l.s, l.id',
	UNION => 'SELECT g, f FROM t UNION SELECT g, v FROM u ORDER BY 1, 2',
	'UNION of what workers cannot' => 'SELECT n FROM t UNION SELECT v FROM r ORDER BY 1',
	INTERSECT => 'SELECT id FROM t INTERSECT SELECT id FROM u ORDER BY 1',
	EXCEPT => 'SELECT id, g FROM t EXCEPT SELECT id, g FROM c WHERE id % 3 = 0 ORDER BY 1',
	'a CTE' => 'WITH q AS MATERIALIZED (SELECT * FROM t ORDER BY s, id LIMIT 5000) '
		. 'SELECT q.id, u.v FROM q JOIN u ON q.id = u.id ORDER BY q.s, u.id',
	'a subquery' => 'SELECT id FROM t WHERE g IN (SELECT g FROM u GROUP BY g HAVING count(DISTINCT v) > 7) ORDER BY s, id',
	'a subquery that is pulled' => 'SELECT id FROM t WHERE k IN (SELECT k FROM w ORDER BY v, id LIMIT 777) ORDER BY n, id',
	LATERAL => 'SELECT u.id, q.id FROM u, LATERAL (SELECT id FROM t WHERE t.g = u.g ORDER BY k, id LIMIT 3) q '
		. 'WHERE u.id < 50 ORDER BY 1, 2',
	'a subquery in the select list' => 'SELECT u.id, (SELECT t.id FROM t WHERE t.g = u.g ORDER BY t.k, t.id LIMIT 1) '
		. 'FROM u ORDER BY 1');
for my $name ('ORDER BY', 'the first rows', 'many first rows', 'DISTINCT', 'DISTINCT ON another column',
	'a window by another column', 'a window over all', 'GROUP BY another column', 'groups in order', 'count(DISTINCT)',
	'count(DISTINCT) by another column', 'percentiles', 'percentiles of all', 'HAVING alone')
{
	$queries{"$name, of a shard that is here"} = $queries{$name} =~ s/FROM t\b/FROM m/gr;
}
my %right;

sub plainly
{
	my ($name) = @_;
	my (undef, $out, $err) = $main->psql('postgres', $queries{$name});
	return $err ne '' ? "ERROR: $err" : $out;
}

# Compares all answers with those that were given without gpusort.
sub all_right
{
	my ($way) = @_;
	my @wrong;

	for my $name (sort keys %queries)
	{
		my $answer = plainly($name);
		push @wrong, "$name: " . substr($answer, 0, 300) if $answer ne $right{$name};
	}
	is(join("\n", @wrong), '', "$way: all answers");
	return;
}

# --- what is written --------------------------------------------------------------------------------

# Statements that write, and what reads it then.  Each begins without the tables named.
my @writes = (
	[ 'INSERT ... SELECT in the workers', 'INSERT INTO into_t SELECT * FROM t ORDER BY k', 'into_t' ],
	[ 'INSERT ... SELECT of groups in the workers', 'INSERT INTO into_t (g, id, s) SELECT g, count(DISTINCT s), max(s) '
		. 'FROM t GROUP BY g', 'into_t' ],
	[ 'INSERT ... SELECT with rows between workers', 'INSERT INTO into_t (g, id, n) SELECT id, min(g), n FROM t '
		. 'GROUP BY id, n', 'into_t' ],
	[ 'INSERT ... SELECT by the coordinator', 'INSERT INTO into_t SELECT * FROM t ORDER BY s, id LIMIT 7000', 'into_t' ],
	[ 'INSERT ... SELECT of a window by the coordinator', 'INSERT INTO into_t (g, id) SELECT row_number() OVER '
		. '(ORDER BY k, id), id FROM t', 'into_t' ],
	[ 'INSERT ... SELECT into columnar tables', 'INSERT INTO into_c SELECT * FROM t ORDER BY k, id', 'into_c' ],
	[ 'INSERT ... SELECT into a local table', 'INSERT INTO into_l SELECT * FROM t ORDER BY n, id', 'into_l' ],
	[ 'INSERT ... SELECT into a local columnar table', 'INSERT INTO into_lc SELECT * FROM l ORDER BY n, id', 'into_lc' ],
	[ 'INSERT ... ON CONFLICT', 'CREATE UNIQUE INDEX into_t_key ON into_t (g); INSERT INTO into_t (g, id) '
		. 'SELECT DISTINCT ON (g) g, id FROM t ORDER BY g, id DESC; INSERT INTO into_t (g, id) SELECT g, count(*) FROM u '
		. 'GROUP BY g ON CONFLICT (g) DO UPDATE SET n = excluded.id', 'into_t' ],
	[ 'UPDATE', 'INSERT INTO into_t SELECT * FROM t; UPDATE into_t SET n = q.r FROM (SELECT id, g, rank() OVER '
		. '(PARTITION BY g ORDER BY k, id) r FROM t) q WHERE q.id = into_t.id AND q.g = into_t.g', 'into_t' ],
	[ 'DELETE', 'INSERT INTO into_t SELECT * FROM t; DELETE FROM into_t WHERE id IN (SELECT id FROM t ORDER BY k, id '
		. 'LIMIT 20000)', 'into_t' ],
	[ 'MERGE', 'INSERT INTO into_t SELECT * FROM t WHERE g < 300; MERGE INTO into_t USING (SELECT g, max(id) AS id FROM u '
		. 'GROUP BY g) q ON into_t.g = q.g WHEN MATCHED AND into_t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET '
		. 'n = q.id WHEN NOT MATCHED THEN INSERT (g, id) VALUES (q.g, q.id)', 'into_t' ],
	[ 'CREATE TABLE AS', 'CREATE TABLE made AS SELECT * FROM t ORDER BY s, id', 'made' ],
	# in parallel Citus's columnar tables cannot, with gpusort or without
	[ 'CREATE TABLE AS, columnar', 'SET max_parallel_workers_per_gather = 0; CREATE TABLE made USING columnar AS '
		. 'SELECT * FROM l ORDER BY s, id', 'made' ],
	[ 'a distributed table of one that is there', q{CREATE TABLE made AS SELECT * FROM l ORDER BY k, id; }
		. q{SELECT create_distributed_table('made', 's')}, 'made' ],
	[ 'a materialized view', 'CREATE MATERIALIZED VIEW made_view AS SELECT g, count(DISTINCT s) FROM t GROUP BY g '
		. 'ORDER BY g; REFRESH MATERIALIZED VIEW made_view; CREATE TABLE made AS SELECT * FROM made_view '
		. 'ORDER BY g', 'made' ],
	[ 'a loop', q{DO $$ DECLARE q record; BEGIN CREATE TABLE made (id int, k int8); FOR q IN SELECT id, k FROM t ORDER BY }
		. q{k, id LOOP IF q.id % 100 = 0 THEN INSERT INTO made VALUES (q.id, q.k); END IF; END LOOP; END $$}, 'made' ],
	[ 'a cursor', 'BEGIN; DECLARE c CURSOR FOR SELECT id, k FROM t ORDER BY k, id; MOVE 12345 IN c; FETCH 3 FROM c; '
		. 'COMMIT; CREATE TABLE made AS SELECT 1', 'made' ],
	[ 'a cursor WITH HOLD', 'BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT DISTINCT ON (n) id, k FROM t ORDER BY n, id; '
		. 'COMMIT; FETCH 3 FROM c; MOVE 500 IN c; FETCH 3 FROM c; CREATE TABLE made AS SELECT 1', 'made' ],
	[ 'COPY', q{COPY (SELECT id, k, s FROM t ORDER BY s DESC, id) TO STDOUT; COPY (SELECT n, count(DISTINCT s) FROM t }
		. q{GROUP BY n ORDER BY n) TO STDOUT (FORMAT csv); CREATE TABLE made AS SELECT 1}, 'made' ],
	[ 'a prepared statement', 'PREPARE q AS SELECT id FROM t WHERE g > $1 ORDER BY k, id LIMIT $2; '
		. join('', map { "EXECUTE q($_, 50);" } 1 .. 7) . 'CREATE TABLE made AS SELECT 1', 'made' ],
	[ 'other shards', q{INSERT INTO into_t SELECT * FROM t; SELECT alter_distributed_table('into_t', shard_count => 3, }
		. q{cascade_to_colocated => false)}, 'into_t' ],
	[ 'another access method', q{INSERT INTO into_t SELECT * FROM t ORDER BY k; SELECT alter_table_set_access_method(}
		. q{'into_t', 'columnar')}, 'into_t' ],
	[ 'a table that is not distributed any more', q{INSERT INTO into_t SELECT * FROM t; SELECT undistribute_table(}
		. q{'into_t')}, 'into_t' ]);
my %written;

sub written
{
	my ($statements, $table) = @{ $_[0] }[ 1, 2 ];
	$main->safe_psql('postgres', qq{SET client_min_messages = error;
		DROP MATERIALIZED VIEW IF EXISTS made_view; DROP TABLE IF EXISTS made, into_t, into_c, into_l, into_lc;
		CREATE TABLE into_t ($columns); SELECT create_distributed_table('into_t', 'g', colocate_with => 't');
		CREATE TABLE into_c ($columns) USING columnar; SELECT create_distributed_table('into_c', 'g', colocate_with => 't');
		CREATE TABLE into_l ($columns); CREATE TABLE into_lc ($columns) USING columnar});
	my (undef, $out, $err) = $main->psql('postgres', "SET client_min_messages = warning; $statements");
	my $rows = $main->safe_psql('postgres', 'SELECT count(*), md5(string_agg(q::text, \',\' ORDER BY q::text '
		. qq{COLLATE "C")) FROM (SELECT * FROM $table OFFSET 0) q});

	# of a table that is made in order, its order
	$rows .= $main->safe_psql('postgres', 'SET max_parallel_workers_per_gather = 0; '
		. "SELECT md5(string_agg(q::text, ',')) FROM $table q")
		if $table =~ /^(?:into_lc?|made)$/ && $statements !~ /create_distributed/;
	return "$out\n$rows\n$err";
}

sub all_written
{
	my ($way) = @_;
	my @wrong;

	for my $write (@writes)
	{
		my $answer = written($write);
		push @wrong, "$write->[0]: " . substr($answer, -500) if $answer ne $written{ $write->[0] };
	}
	is(join("\n", @wrong), '', "$way: all that is written");
	return;
}

in_all_nodes($native);
for my $name (sort keys %queries)
{
	$right{$name} = plainly($name);
	unlike($right{$name}, qr/^ERROR/, "without gpusort: $name");
}
for my $write (@writes)
{
	$written{ $write->[0] } = written($write);
	unlike($written{ $write->[0] }, qr/ERROR/, "without gpusort: $write->[0]");
}
for my $way (@ways)
{
	my ($name, $settings) = @$way;
	my %before = map { $_ => sorts_of($_) } keys %node;

	in_all_nodes($settings);
	all_right($name);
	all_written($name);
	cmp_ok(sorts_of($_), '>', $before{$_} + 20, "$name: gpusort sorts in $_") for sort keys %node;
}

is($main->safe_psql('postgres', q{SELECT severity FROM gpusort_check() WHERE subject = 'hooks'}), 'ok',
	'gpusort_check() knows Citus');

# --- what is shown ------------------------------------------------------------------------------------

# Citus shows subplans that it has run, by plans that it does not run.
in_all_nodes([ 'gpusort.force = on' ]);
my %shown = (
	'of which the first rows are wanted' => 'SELECT g, count(*) c FROM t GROUP BY g ORDER BY c, g LIMIT 10',
	'of all rows' => 'SELECT id, k FROM t ORDER BY k, id',
	'of rows that are there once' => 'SELECT DISTINCT ON (n) n, id FROM t ORDER BY n, id',
	'of a window' => 'SELECT id, rank() OVER (PARTITION BY n ORDER BY k) FROM t');
for my $settings ('', join(';', map { "SET $_" } @$parallel) . ';')
{
	for my $name (sort keys %shown)
	{
		my $query = "WITH q AS MATERIALIZED ($shown{$name}) SELECT count(*) FROM q";
		my (undef, $plan, $error) = $main->psql('postgres', "${settings}EXPLAIN (ANALYZE) $query");

		is($error, '', "EXPLAIN (ANALYZE) of a subplan $name");
		like($plan, qr/Distributed Subplan.*GpuSort.*Task Count/s, 'which has a GpuSort');
		is($main->safe_psql('postgres', "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; "
			. "SET auto_explain.log_analyze = on; $settings$query"),
			$main->safe_psql('postgres', "SET gpusort.enable = off; $query"), 'and auto_explain shows it, too');
	}
}

# --- what all processes read ------------------------------------------------------------------------

in_all_nodes([ 'gpusort.force = on', 'gpusort.shard_connections = 8', @$parallel ]);
my $counted = 'SELECT count(DISTINCT s), count(*) FROM t';

sub plan_of
{
	my ($query, $before) = @_;
	return $main->safe_psql('postgres', ($before // '') . "EXPLAIN (COSTS OFF) $query");
}

for my $name ('ORDER BY', 'ORDER BY, of columnar tables', 'ORDER BY, of partitions', 'NULLS FIRST',
	'the first rows', 'many first rows', 'DISTINCT ON another column', 'a window by another column', 'a window over all',
	'GROUP BY another column', 'count(DISTINCT)', 'count(DISTINCT) by another column', 'percentiles of all',
	'a reference join', 'a co-located outer join')
{
	like(plan_of($queries{$name}), qr/GpuSortTaskScan\)\s*\n\s*Tasks: \d/, "all processes read: $name");
}
for my $name ('one shard', 'a row', 'a CTE', 'UNION', 'a join with a local table', 'ORDER BY, of a reference table',
	'ORDER BY, of a local table', 'a subquery that is pulled')
{
	unlike(plan_of($queries{$name}), qr/GpuSortTaskScan/, "Citus reads: $name");
}
unlike(plan_of('SELECT w.v, count(DISTINCT t.s) FROM t JOIN w ON t.k = w.k GROUP BY w.v', $repartition),
	qr/GpuSortTaskScan/, 'Citus reads what it repartitions');
unlike(plan_of('SELECT * FROM t WHERE random() < 2 ORDER BY k'), qr/GpuSortTaskScan/, 'and what a volatile function');
for my $setting ('gpusort.shard_connections = 1', 'max_parallel_workers_per_gather = 0',
	q{citus.propagate_set_commands = 'local'}, 'citus.enable_binary_protocol = off', q{client_encoding = 'LATIN1'},
	'gpusort.enable = off')
{
	unlike(plan_of($counted, "SET $setting;"), qr/GpuSortTaskScan/, "$setting leaves it to Citus");
}
$main->safe_psql('postgres', 'CREATE ROLE somebody; '
	. q{INSERT INTO pg_dist_authinfo VALUES (0, 'somebody', 'password=secret')});
unlike(plan_of($counted), qr/GpuSortTaskScan/, 'so do passwords of its own');
$main->safe_psql('postgres', 'DELETE FROM pg_dist_authinfo');

# A statement has to be the first of its transaction.
my %first = (
	'nothing' => [ 'BEGIN;', 1 ],
	'a setting' => [ 'BEGIN; SET LOCAL work_mem = 100000;', 1 ],
	'a statement' => [ 'BEGIN; SELECT 1;', 0 ],
	'an INSERT' => [ q{BEGIN; INSERT INTO t (g, id) VALUES (1, -1);}, 0 ],
	'a lock' => [ 'BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE;', 0 ],
	'an index' => [ 'BEGIN; CREATE INDEX none ON t (n);', 0 ],
	'COPY of a query' => [ 'BEGIN; COPY (SELECT 1) TO STDOUT;', 0 ],
	'a snapshot for the whole transaction' => [ 'BEGIN ISOLATION LEVEL REPEATABLE READ;', 0 ]);
for my $name (sort keys %first)
{
	my ($before, $all) = @{ $first{$name} };
	my $plan = plan_of($counted, $before);
	is($plan =~ /GpuSortTaskScan/ ? 1 : 0, $all, "after $name: " . ($all ? 'by all processes' : 'by Citus'));
}
my $none = $main->safe_psql('postgres', $counted);
my ($strings, $all) = split /\|/, $none;
my $more = ($strings + 1) . '|' . ($all + 2);
my $add = q{INSERT INTO t (g, id, s) VALUES (1, -1, 'one'), (2, -2, 'one')};
is($main->safe_psql('postgres', "SET plan_cache_mode = force_generic_plan; PREPARE q AS $counted; EXECUTE q; "
	. "BEGIN; $add; EXECUTE q; ROLLBACK; EXECUTE q; BEGIN; EXECUTE q; $add; EXECUTE q; ROLLBACK"),
	join("\n", $none, $more, $none, $none, $more), 'a prepared statement sees what its transaction has done');
like($main->safe_psql('postgres', "PREPARE q AS $counted; EXECUTE q; BEGIN; $add; EXPLAIN (ANALYZE) EXECUTE q"),
	qr/Workers Launched: 0.*GpuSortTaskScan.*Read Alone: the statement is not the first of its transaction/s,
	'which Citus reads then');
like($main->safe_psql('postgres', "PREPARE q AS $counted; EXECUTE q; SET client_encoding = 'LATIN1'; "
	. 'EXPLAIN (ANALYZE) EXECUTE q'), qr/Read Alone: the client's encoding is not the database's/, 'so is what is text');
my $into = 'SELECT count(DISTINCT s), count(*) INTO a, b FROM t';
is($main->safe_psql('postgres', qq{DO \$\$ DECLARE a int; b int; BEGIN $add; $into; ASSERT a = $strings + 1 }
	. qq{AND b = $all + 2; ROLLBACK; $into; ASSERT a = $strings AND b = $all; END \$\$; SELECT 'so it was'}), 'so it was',
	'and so does a block of PL/pgSQL');
my ($analyzed) = $main->safe_psql('postgres', "EXPLAIN (ANALYZE, VERBOSE) $counted") =~
	/GpuSortTaskScan.*?(Tasks: 8\s+First Task: SELECT \N* FROM public\.t_\d+\N*\s+Node \N*:\d+\s+Connections: 8)/s;
ok($analyzed, 'EXPLAIN shows tasks, a node and connections');
is($main->safe_psql('postgres', "COPY ($queries{'ORDER BY'}) TO STDOUT"),
	$main->safe_psql('postgres', "SET gpusort.enable = off; COPY ($queries{'ORDER BY'}) TO STDOUT"), 'COPY of a query');


# A portal that is read in parts, as by drivers with a fetch size: PostgreSQL runs it without workers, Citus reads.
my $portal = $main->wire;
for my $query ('SELECT id FROM t ORDER BY k, id', 'SELECT count(*), n FROM t GROUP BY n ORDER BY n',
	'SELECT id, rank() OVER (ORDER BY n, id) FROM t')
{
	my @lines;
	like(plan_of($query), qr/GpuSortTaskScan/, 'planned for all processes');
	$portal->simple('BEGIN');
	$portal->send_extended($query, rows => 7);
	$portal->answer(lines => \@lines);
	is(scalar @lines, 7, 'as many rows as the client has asked for');
	$portal->send_execute(1000);
	$portal->answer(lines => \@lines);
	$portal->send_execute(0);
	$portal->answer(lines => \@lines);
	$portal->simple('COMMIT');
	is(join("\n", sort @lines), join("\n", sort split /\n/,
		$main->safe_psql('postgres', "SET gpusort.enable = off; $query")), 'and then all others');
}
undef $portal;

# What nodes compute they compute with settings of their own.
$node{$_}->safe_psql('postgres', q{SET citus.enable_ddl_propagation = off;
	ALTER DATABASE postgres SET timezone = 'Asia/Tokyo';
	ALTER DATABASE postgres SET datestyle = 'SQL, DMY'; ALTER DATABASE postgres SET extra_float_digits = -5})
	for 'one', 'two';
my $zoned = q{SELECT date_trunc('day', d) AS day, max(d::text), max(f::text), count(DISTINCT s) FROM t }
	. 'GROUP BY 1 ORDER BY 1';
is($main->safe_psql('postgres', "SET timezone = 'UTC'; $zoned"),
	$main->safe_psql('postgres', "SET gpusort.enable = off; SET timezone = 'UTC'; $zoned"), 'time zones of the nodes');
like(plan_of($zoned), qr/GpuSortTaskScan/, 'which all processes read');

# Values whose binary form is known in one server alone come by Citus.
$main->safe_psql('postgres', q{CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TYPE pair AS (a int, b text);
	CREATE DOMAIN odd AS int CHECK (value % 2 = 1);
	CREATE TABLE y (id int, m mood, ms mood[], p pair, o odd, i int[], j jsonb, r int4range, ts tsvector, i2 inet,
		x money);
	SELECT create_distributed_table('y', 'id'); INSERT INTO y SELECT i, (ARRAY['sad', 'glad'])[i % 2 + 1]::mood,
		ARRAY['sad']::mood[], (i, i::text)::pair, 2 * i + 1, ARRAY[[i, NULL]], jsonb_build_object('a', i),
		int4range(i, i + 3), to_tsvector('simple', 'a b ' || i), '10.0.0.1', i FROM generate_series(1, 1000) i});
for my $type ([ 'm', 1 ], [ 'ms', 0 ], [ 'p', 0 ], [ 'o', 0 ], [ 'i, j, r, ts, i2, x', 1 ])
{
	my ($columns, $all) = @$type;
	my $query = "SELECT id, $columns FROM y ORDER BY id % 10, id";
	is(plan_of($query) =~ /GpuSortTaskScan/ ? 1 : 0, $all, "columns $columns: " . ($all ? 'all processes' : 'Citus'));
	is($main->safe_psql('postgres', $query), $main->safe_psql('postgres', "SET gpusort.enable = off; $query"), 'the rows');
}

# Replicated shards are Citus's: it tries other nodes.
$main->safe_psql('postgres', q{SET citus.shard_replication_factor = 2; CREATE TABLE twice (g int, k int8);
	SELECT create_distributed_table('twice', 'g', colocate_with => 'none'); INSERT INTO twice SELECT g, k FROM t});
unlike(plan_of('SELECT * FROM twice ORDER BY k'), qr/GpuSortTaskScan/, 'shards in two nodes');
$main->safe_psql('postgres', 'DROP TABLE twice');
# A task may not have distributed queries of its own, whoever reads it.
$main->safe_psql('postgres', q{CREATE FUNCTION asks(int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS
	'BEGIN RETURN (SELECT count(*) FROM u WHERE u.g = $1); END'});
my $asks = 'SELECT count(DISTINCT s), count(*) FROM t WHERE id < 100 AND asks(g) >= 0';
like(plan_of($asks), qr/GpuSortTaskScan/, 'a function that asks');
like(($main->psql('postgres', "SET gpusort.enable = off; $asks"))[2], qr/cannot execute a distributed query/,
	"is refused by Citus's nodes");
like(($main->psql('postgres', $asks))[2], qr/cannot execute a distributed query/, 'and as well if all processes read');

# Statements that are cancelled, and connections that are lost: nothing of them is left in the nodes.
sub connections_of
{
	my ($name) = @_;
	return $node{$name}->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity }
		. q{WHERE query LIKE 'COPY (SELECT%FORMAT binary)' AND backend_type = 'client backend'});
}
$main->safe_psql('postgres', q{CREATE FUNCTION slowly(int) RETURNS bool LANGUAGE plpgsql STABLE PARALLEL SAFE AS
	'BEGIN PERFORM pg_sleep(0.01); RETURN true; END'});
my $slow = 'SELECT count(DISTINCT s), count(*) FROM t WHERE slowly(id)';
my $reader = $main->session;
like(plan_of($slow), qr/GpuSortTaskScan/, 'all processes wait for slow nodes');
my ($points, @wrong) = $reader->cancel_all_over($counted, 10);
cmp_ok($points, '>=', 3, "$points points of time cancelled");
is(join("\n", @wrong), '', 'each ends soon');
is($reader->run($counted), $none, 'and the session goes on');
like(($main->psql('postgres', "SET statement_timeout = 200; $slow"))[2], qr/statement timeout/, 'a timeout');
ok(wait_until(sub { connections_of('one') + connections_of('two') == 0 }), 'no connection is left in the nodes');
like($reader->run("PREPARE slow AS $slow; EXPLAIN EXECUTE slow; SET max_parallel_workers = 0"), qr/GpuSortTaskScan/,
	'a plan that has workers');
$reader->send('EXECUTE slow');
ok(wait_until(sub { connections_of('one') + connections_of('two') == 8 }),
	'without workers the leader has all connections');
$main->safe_psql('postgres', "SELECT pg_cancel_backend(@{[ $reader->backend ]})");
like(($reader->result)[1], qr/canceling statement/, 'and ends as well');
$reader->run('RESET max_parallel_workers');
$reader->send($slow);
ok(wait_until(sub { connections_of('two') > 0 }), 'nodes are read again');
$node{two}->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity }
	. q{WHERE query LIKE 'COPY (SELECT%FORMAT binary)' AND backend_type = 'client backend'});
my $why = qr/terminating connection due to administrator command|connection .* lost|server closed/;
like(($reader->result)[1], qr/$why.*while executing command on \S+:@{[ $node{two}->port ]}\n/s,
	'a connection that ends ends the statement');
ok(wait_until(sub { connections_of('one') + connections_of('two') == 0 }), 'no connection is left in the nodes');
is($reader->run($counted), $none, 'and the session goes on');
is($reader->run(q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name ILIKE 'gpusort%' }
	. q{AND name ~* 'task|estimate'}), 0, 'no memory of it is left');
undef $reader;
$node{$_}->safe_psql('postgres', q{SET citus.enable_ddl_propagation = off; ALTER DATABASE postgres RESET ALL})
	for 'one', 'two';

# --- indexes of shards ------------------------------------------------------------------------------

# Checks all btrees of all nodes, shards' included.
sub indexes_right
{
	my ($name) = @_;
	for my $where (sort keys %node)
	{
		my (undef, $count, $err) = $node{$where}->psql('postgres', q{SET citus.override_table_visibility = off;
			SELECT count(bt_index_parent_check(indexrelid, true)) FROM pg_index i JOIN pg_class c ON c.oid = indexrelid
				JOIN pg_class t ON t.oid = indrelid JOIN pg_am a ON a.oid = c.relam
				WHERE amname = 'btree' AND indisvalid AND c.relkind = 'i' AND c.relnamespace = 'public'::regnamespace
					AND t.relam = (SELECT oid FROM pg_am WHERE amname = 'heap')});
		ok($err eq '' && $count > 5, "$name: $count btrees of $where are right") or diag $err;
	}
	return;
}

in_all_nodes([ 'gpusort.force = on', 'gpusort.index_builds = on', 'gpusort.min_rows = 0', @$parallel,
	'max_parallel_maintenance_workers = 2' ]);
my %builds = map { $_ => $node{$_}->safe_psql('postgres', 'SELECT index_builds FROM gpusort_stats') } 'one', 'two';
$main->safe_psql('postgres', q{CREATE INDEX t_s ON t (s); CREATE INDEX t_k ON t (k DESC, id) INCLUDE (n);
	CREATE UNIQUE INDEX t_id ON t (g, id); CREATE INDEX p_n ON p (n) WHERE id % 2 = 0; CREATE INDEX r_name ON r (name);
	CREATE INDEX c_s ON c (s); CREATE INDEX lc_s ON lc (s)});
$main->safe_psql('postgres', 'CREATE INDEX CONCURRENTLY t_d ON t (d)');
$main->safe_psql('postgres', 'REINDEX TABLE t');
cmp_ok($node{$_}->safe_psql('postgres', 'SELECT index_builds FROM gpusort_stats'), '>', $builds{$_} + 10,
	"gpusort builds indexes of shards in $_") for 'one', 'two';
indexes_right('built');
like(($main->psql('postgres', 'CREATE UNIQUE INDEX t_f ON t (g, f)'))[2], qr/could not create unique index/,
	'rows that are there twice are found');

# --- shards that move -------------------------------------------------------------------------------

$main->safe_psql('postgres', sprintf q{SELECT citus_drain_node('%s', %d, shard_transfer_mode => 'block_writes')},
	$node{one}->host, $node{one}->port);
is($node{one}->safe_psql('postgres', q{SET citus.override_table_visibility = off; SELECT count(*) FROM pg_class
	WHERE relname ~ '^t_[0-9]+$' AND relkind = 'r' AND EXISTS (SELECT FROM pg_dist_placement p JOIN pg_dist_node n
		USING (groupid) WHERE nodename = current_setting('citus.local_hostname')
			AND shardid = substring(relname FROM 3)::int8)}), 0, 'a node is drained');
$main->safe_psql('postgres', sprintf q{SELECT citus_set_node_property('%s', %d, 'shouldhaveshards', true);
	SELECT rebalance_table_shards(shard_transfer_mode => 'block_writes')}, $node{one}->host, $node{one}->port);
all_right('rebalanced');
indexes_right('rebalanced');
my (undef, undef, $err) = $main->psql('postgres', sprintf q{
	SELECT citus_move_shard_placement(shardid, nodename, nodeport, other.host, other.port, 'force_logical')
		FROM (SELECT * FROM citus_shards WHERE table_name = 't'::regclass ORDER BY shardid LIMIT 1) s,
			(VALUES ('%s', %d), ('%s', %d)) other (host, port) WHERE other.host <> nodename},
	map { ($node{$_}->host, $node{$_}->port) } 'one', 'two');
is($err, '', 'a shard is moved by logical replication');
(undef, undef, $err) = $main->psql('postgres', q{
	SELECT citus_split_shard_by_split_points(shardid, ARRAY[((shardminvalue::int8 + shardmaxvalue::int8) / 2)::text],
		ARRAY[n, n], 'block_writes') FROM pg_dist_shard JOIN pg_dist_placement USING (shardid),
			LATERAL (SELECT nodeid::int n FROM pg_dist_node WHERE pg_dist_node.groupid = pg_dist_placement.groupid) q
		WHERE logicalrelid = 't'::regclass ORDER BY shardid LIMIT 1});
is($err, '', 'a shard is split');
all_right('moved and split');
indexes_right('moved and split');

# --- what ends ----------------------------------------------------------------------------------------

# Statements that are cancelled all over their time, whose sorts are the workers' or the coordinator's
my $session = $main->session;
for my $query ('SELECT count(*) FROM (SELECT * FROM t ORDER BY k, s OFFSET 0) q',
	'SELECT count(DISTINCT s), count(DISTINCT n) FROM t')
{
	my $whole = $session->run($query);
	my ($points, @wrong) = $session->cancel_all_over($query, 10);
	cmp_ok($points, '>=', 4, "$points points of time cancelled");
	is(join("\n", @wrong), '', 'each ends soon');
	is($session->run($query), $whole, 'and the session goes on');
}
# and a service that is killed
kill 'KILL', $node{one}->safe_psql('postgres', 'SELECT pid FROM gpusort_service');
all_right("without a worker's service");
$node{one}->wait_service;

# A worker that ends while it sorts
my $jobs = sub { my ($name) = @_; return $node{$name}->safe_psql('postgres', 'SELECT count(*) FROM gpusort_jobs') };
in_all_nodes([ 'gpusort.force = on' ]);
$session = $main->session;
$session->send('SELECT count(r) FROM (SELECT rank() OVER (PARTITION BY g ORDER BY k) r FROM t '
	. 'WHERE pg_sleep(0.01) IS NOT NULL OFFSET 0) q');
ok(wait_until(sub { $jobs->('one') > 0 && $jobs->('two') > 0 }), 'both workers sort');
$node{two}->stop('immediate');
like(($session->result)[1], qr/ERROR/, 'the statement ends with an error');
ok(wait_until(sub { $jobs->('one') == 0 }), "and so does the other worker's sort");
$node{two}->start;
$node{two}->wait_service;
all_right('with the worker again');
ok(wait_until(sub { !grep { $node{$_}->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity }
	. q{WHERE backend_type = 'parallel worker'}) } keys %node }), 'no parallel worker is left');
for my $name (sort keys %node)
{
	is(join("\n", $node{$name}->log_lines(qr/TRAP:|process .*terminated by signal|PANIC:|leak: |was not closed/)), '',
		"no trouble in the log of $name");
	is($node{$name}->safe_psql('postgres', 'SELECT count(*) FROM gpusort_jobs'), 0, "no sort is left in $name");
}

done_testing();
