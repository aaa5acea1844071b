# Pages of new tables that all processes write: CREATE TABLE AS, SELECT INTO, materialized views, INSERT.  A table has
# the tuples of PostgreSQL's, byte for byte and in the same order, and is good by amcheck: after a crash, on a standby,
# and after what is done to it later.  What is not for it is PostgreSQL's; errors, cancels and crashes leave no table.
use strict;
use warnings;

use GpuSortNode;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my @conf = ('max_parallel_workers_per_gather = 2', 'max_parallel_workers = 8', 'max_worker_processes = 12',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'gpusort.force = on',
	'gpusort.setup_cost = 0', 'gpusort.row_cost = 0', 'gpusort.log_decisions = on', 'autovacuum = off',
	'wal_level = replica', 'max_wal_senders = 4', 'enable_hashagg = off');
my $source = q{
	CREATE TABLE t AS SELECT i AS id, i * 7919 % 1009 AS g, i * 10000000000 AS i8, i / 3.0::float8 AS f8,
			CASE WHEN i % 7 <> 0 THEN i / 7.0 END AS n, CASE WHEN i % 3 <> 0 THEN 'row ' || i || repeat('x', i % 50) END AS v,
			i % 2 = 0 AS b, ARRAY[i, NULL, -i] AS ia, '2020-01-01'::timestamptz + i * interval '1 h' AS tz, i::int2 AS i2,
			'c'::"char" AS ch, md5(i::text)::uuid AS u
		FROM generate_series(1, 30000) i;
	CREATE TABLE long AS SELECT i AS id, i % 50 AS g,
			(SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, CASE WHEN i % 10 = 0 THEN 300 ELSE 3 END) j) AS v,
			repeat('compressible ', i % 500) AS c
		FROM generate_series(1, 4000) i;
	ALTER TABLE long ADD w text;
	ALTER TABLE long ALTER w SET STORAGE external;
	UPDATE long SET w = v;
	CREATE FUNCTION slow(int) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_sleep(0.001); RETURN $1; END';
	CREATE FUNCTION stable(int) RETURNS int STABLE PARALLEL SAFE LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
	CREATE AGGREGATE own_sum(bigint) (SFUNC = int8pl, STYPE = bigint, INITCOND = 0, PARALLEL = SAFE);
	CREATE FUNCTION stable_pl(bigint, bigint) RETURNS bigint STABLE PARALLEL SAFE LANGUAGE plpgsql AS
		'BEGIN RETURN $1 + $2; END';
	CREATE AGGREGATE stable_sum(bigint) (SFUNC = stable_pl, STYPE = bigint, INITCOND = 0, PARALLEL = SAFE);
	CREATE FUNCTION rows_of_o(int) RETURNS bigint STABLE PARALLEL SAFE LANGUAGE plpgsql AS
		'BEGIN RETURN $1 + (SELECT count(*) FROM o); END';
	CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE DOMAIN positive AS int CHECK (value > 0);
	VACUUM ANALYZE;
} . gate_sql('IMMUTABLE PARALLEL SAFE');

my $node = GpuSortNode->new('main');
$node->init(conf => \@conf, has_archiving => 0, extra => [ qw(-A trust -N --no-locale -E UTF8 -k) ]);
$node->start;
$node->wait_service;
plan skip_all => 'no amcheck and pageinspect'
	unless eval { $node->safe_psql('postgres', 'CREATE EXTENSION amcheck; CREATE EXTENSION pageinspect'); 1 };
$node->safe_psql('postgres', "CREATE EXTENSION gpusort; $source");

my $sum = 'sum(id) OVER (PARTITION BY g ORDER BY id) AS s';
my $window = "$sum FROM t";
my $wide = "SELECT *, $window";
my $narrow = "SELECT id, $window";
my $toasted = "SELECT *, $sum FROM long";

# A session that holds lock 1, for which a process waits that calls gate.
sub gatekeeper
{
	my $session = $node->session;

	$session->run('SELECT pg_advisory_lock(1)');
	return $session;
}

# A process waits there, and the workers wait there, or for the pages before theirs: so they stay.
sub waits_at_gate
{
	return wait_until(sub { $node->ask(q{SELECT count(*) > 0
			AND bool_and(coalesce(wait_event_type IN ('Lock', 'Extension'), false))
			AND EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)
		FROM pg_stat_activity WHERE backend_type = 'parallel worker'}) eq 't' });
}

# Files of relations
sub files
{
	my @files = glob $node->data_dir . '/base/*/*';
	return scalar @files;
}

sub formed
{
	return $node->ask('SELECT coalesce(sum(formed_rows), 0) FROM gpusort_stats');
}

# Runs SQL in a session of its own, with gpusort or without; returns what it says and its errors.
sub says
{
	my ($setting, $sql) = @_;
	my ($out, $err);

	$node->psql('postgres', $sql, stdout => \$out, stderr => \$err, extra_params => [ '-a' ],
		connstr => $node->connstr('postgres') . " options='-c gpusort.enable=$setting -c client_min_messages=warning'");
	$err =~ s/^psql:<stdin>:\d+: //mg;
	$err =~ s/^(?:CONTEXT|LOCATION|LOG):.*\n?//mg;
	return "$out\n$err" =~ s{\s+\z}{}r;
}

# The tuples of a table, in their order, or by value: how many, and a digest; of their bytes, else of their values
sub tuples
{
	my ($table, $on, $by_value) = @_;
	my $order = $by_value ? 'r' : 'c';
	return ($on // $node)->ask(qq{
		SELECT count(*), md5(string_agg(r, ' ' ORDER BY $order)) FROM (SELECT o::text AS r, ctid AS c FROM $table o) x});
}

sub tuple_bytes
{
	my ($table, $by_value) = @_;
	my $order = $by_value ? 't_data, t_bits' : 'b, lp';
	return $node->ask(qq{
		SELECT count(*), count(DISTINCT t_xmin::text), count(DISTINCT t_field3),
			count(*) FILTER (WHERE t_ctid <> ('(' || b || ',' || lp || ')')::tid),
			md5(string_agg(concat_ws(' ', lp_len, t_infomask, t_infomask2, t_hoff, t_bits, t_data), ' ' ORDER BY $order))
		FROM generate_series(0, pg_relation_size('$table') / 8192 - 1) b, heap_page_items(get_raw_page('$table', b::int))});
}

sub is_good
{
	my ($table, $what, $on) = @_;
	is(($on // $node)->ask("SELECT * FROM verify_heapam('$table', check_toast => true)"), '',
		"$what: verify_heapam");
	return;
}

# A statement that makes a table "o" makes the same one with gpusort, by pages, or not by pages.
sub makes_same
{
	my ($sql, $what, %how) = @_;
	my (%said, %has, %pages, %bytes);

	for my $setting ('off', 'on')
	{
		my $before = formed();
		my $table;

		$node->ask('DROP TABLE IF EXISTS o; DROP MATERIALIZED VIEW IF EXISTS om');
		$said{$setting} = says($setting, $sql);
		$table = $node->ask(q{SELECT relname FROM pg_class WHERE relname IN ('o', 'om')});
		if ($table eq '')
		{
			$has{$setting} = 'no table';
			next;
		}
		if ($setting eq 'on' && !$how{small})
		{
			my $rows = formed() - $before;
			$how{not} ? is($rows, 0, "$what: not by pages") : cmp_ok($rows, '>', 0, "$what: by pages");
		}
		$bytes{$setting} = $how{toasted} ? '' : tuple_bytes($table, $how{inserted});
		$has{$setting} = tuples($table, $node, $how{inserted}) . "\n" . $node->ask(
			"SELECT reltuples, relallvisible, relkind, relpersistence FROM pg_class WHERE oid = '$table'::regclass");
		$pages{$setting} = $node->ask("SELECT pg_relation_size('$table') / 8192");
		is_good($table, $what) if $setting eq 'on' && !$how{temporary};
		$how{then}->($table) if $setting eq 'on' && $how{then};
	}
	is($said{on}, $said{off}, "$what: says the same");
	is($has{on}, $has{off}, "$what: the same rows in the same order");
	is($bytes{on}, $bytes{off}, "$what: the same bytes");
	cmp_ok($pages{on}, '<=', $pages{off} * ($how{inserted} ? 1.1 : 1.01) + 12, "$what: as many pages")
		if defined $pages{on};
	return;
}

# The same for an INSERT: PostgreSQL's puts rows that fit into what is left of earlier pages.
sub inserts_same
{
	my ($sql, $what, %how) = @_;
	makes_same($sql, $what, inserted => 1, %how);
	return;
}

makes_same("CREATE TABLE o AS $wide", 'CREATE TABLE AS', then => sub {
	my ($table) = @_;
	my ($error, $out);

	ok($node->poll_query_until('postgres',
		"SELECT n_tup_ins, n_live_tup FROM pg_stat_user_tables WHERE relname = '$table'", '30000|30000'), 'counted');
	$node->safe_psql('postgres', "CREATE INDEX ON $table (id); UPDATE $table SET id = id WHERE id % 100 = 0;
		DELETE FROM $table WHERE id % 7 = 0; VACUUM $table; INSERT INTO $table SELECT * FROM $table WHERE id < 100");
	is($node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off;
		SET enable_indexonlyscan = off; SELECT count(*) FROM $table WHERE id > 0;
		RESET ALL; SET enable_seqscan = off; SELECT count(*) FROM $table WHERE id > 0"),
		"25800\n25800", 'and can be changed, vacuumed, read by an index');
	is_good($table, 'after changes');
});
makes_same("SELECT *, $sum INTO o FROM t", 'SELECT INTO');
makes_same("CREATE UNLOGGED TABLE o AS $wide", 'unlogged');
makes_same("CREATE TABLE o WITH (fillfactor = 40) AS $wide", 'fillfactor');
makes_same("CREATE TABLE o AS $toasted", 'toasted', toasted => 1, then => sub {
	my ($table) = @_;
	is($node->safe_psql('postgres', "SELECT count(*) FROM $table o JOIN long USING (id)
		WHERE (o.v, o.c, o.w) = (long.v, long.c, long.w)"), 4000, 'values are those of the query');
	is_good($node->safe_psql('postgres',
		"SELECT reltoastrelid::regclass FROM pg_class WHERE relname = '$table'"), 'its TOAST table');
});
makes_same("SET default_toast_compression = lz4; CREATE TABLE o AS $toasted", 'lz4', toasted => 1)
	if $node->safe_psql('postgres',
		q{SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'}) eq 't';
makes_same("CREATE TABLE o AS SELECT id, repeat('x', 3000 + id % 900) AS p, $window",
	'rows that are compressed alone');
makes_same("CREATE MATERIALIZED VIEW om AS $wide", 'CREATE MATERIALIZED VIEW');
makes_same("CREATE MATERIALIZED VIEW om AS $wide; REFRESH MATERIALIZED VIEW om", 'REFRESH');
makes_same("CREATE MATERIALIZED VIEW om AS $toasted; REFRESH MATERIALIZED VIEW om", 'REFRESH, toasted',
	toasted => 1);
makes_same("CREATE MATERIALIZED VIEW om AS $wide WITH NO DATA; REFRESH MATERIALIZED VIEW om",
	'REFRESH of one without data');
makes_same("CREATE MATERIALIZED VIEW om AS $narrow; CREATE UNIQUE INDEX ON om (id);
	REFRESH MATERIALIZED VIEW CONCURRENTLY om",
	'REFRESH CONCURRENTLY', small => 1);
makes_same("CREATE TABLE o AS SELECT id::positive AS p, ROW(id, g) AS r, $window", 'a domain and a row', small => 1);
makes_same('CREATE TABLE o AS SELECT * FROM t ORDER BY n, id', 'a sort alone');
makes_same('CREATE TABLE o AS SELECT id, v, n FROM t ORDER BY u DESC, b', 'a sort by columns that the table has not');
makes_same('CREATE MATERIALIZED VIEW om AS SELECT * FROM long ORDER BY v, id', 'a sort of long rows', toasted => 1);
makes_same("CREATE TABLE o (a, c) AS $narrow", 'names of columns');
makes_same("CREATE TABLE o AS $wide WHERE id < 0", 'no rows', small => 1);
makes_same("CREATE TABLE o AS $wide WHERE id = 7", 'one row', small => 1);
makes_same("CREATE TABLE o AS SELECT g, count(*) AS c, max(v) AS m FROM t GROUP BY g", 'groups', small => 1);
makes_same("CREATE TABLE o AS SELECT DISTINCT g, i2, b FROM t", 'DISTINCT', small => 1);
makes_same("CREATE TABLE o AS $wide WITH NO DATA", 'WITH NO DATA', small => 1);
makes_same("CREATE TABLE o (a int); CREATE TABLE IF NOT EXISTS o AS $wide", 'IF NOT EXISTS', small => 1);
makes_same("PREPARE p AS $wide; CREATE TABLE o AS EXECUTE p", 'EXECUTE');
makes_same("DO 'BEGIN CREATE TABLE o AS $wide; END'", 'PL/pgSQL');
makes_same("BEGIN; SAVEPOINT a; CREATE TABLE o AS $wide; RELEASE a; SELECT count(*) FROM o; COMMIT",
	'a subtransaction');
makes_same("BEGIN; SAVEPOINT a; CREATE TABLE o AS $toasted; ROLLBACK TO a; CREATE TABLE o AS $toasted; COMMIT",
	'a subtransaction that is rolled back', toasted => 1);
makes_same("BEGIN; CREATE TABLE o AS $wide; ROLLBACK", 'a transaction that is rolled back');
makes_same("BEGIN; CREATE TABLE o AS $wide; INSERT INTO o SELECT * FROM o WHERE id < 100; SELECT count(*) FROM o;
	COMMIT",
	'rows behind it', small => 1);
makes_same("BEGIN ISOLATION LEVEL SERIALIZABLE; CREATE TABLE o AS $toasted; COMMIT", 'SERIALIZABLE', toasted => 1);
makes_same("SET max_parallel_workers = 0; CREATE TABLE o AS $wide", 'no workers', small => 1);
makes_same("SET gpusort.parallel_output = off; CREATE TABLE o AS $wide", 'gpusort.parallel_output', not => 1);
makes_same("CREATE TABLE o AS SELECT id, 30 / (20000 - id) AS q, $window", 'an error in the middle');
like(says('on', "CREATE TABLE o AS SELECT id, 30 / (20000 - id) AS q, $window"), qr/division by zero/, 'the error');
makes_same("DO \$\$ BEGIN
	BEGIN CREATE TABLE o AS SELECT 30 / (20000 - id) AS q, $window; EXCEPTION WHEN division_by_zero THEN NULL; END;
	CREATE TABLE o AS $wide; END \$\$", 'an error that is caught');

# INSERT into a table that is new in the transaction
my $by_n = 'SELECT * FROM t ORDER BY n, id';
my $like_t = 'BEGIN; CREATE TABLE o (LIKE t)';
inserts_same("BEGIN; CREATE TABLE o (LIKE t, s bigint); INSERT INTO o $wide; \\echo :ROW_COUNT
	SELECT count(*), sum(s) FROM o; COMMIT", 'INSERT', then => sub {
	is(tuples('o'), $node->safe_psql('postgres', qq{
		SELECT count(*), md5(string_agg(r::text, ' ' ORDER BY g, id)) FROM ($wide) r}), 'the order is that of the query');
});
inserts_same("$like_t; INSERT INTO o $by_n; \\echo :ROW_COUNT
	COMMIT", 'INSERT of a sort alone', then => sub {
	is(tuples('o'), $node->safe_psql('postgres', q{
		SELECT count(*), md5(string_agg(t::text, ' ' ORDER BY n, id)) FROM t}), 'the order is that of the query');
});
inserts_same("$like_t; INSERT INTO o SELECT * FROM t WHERE id < 100; INSERT INTO o $by_n; INSERT INTO o SELECT * FROM t
	ORDER BY g, id; INSERT INTO o SELECT * FROM t WHERE id = 8; COMMIT",
	'INSERT behind rows', then => sub {
	my ($table) = @_;
	$node->safe_psql('postgres', "UPDATE $table SET v = v || 'y' WHERE id % 5 = 0; DELETE FROM $table WHERE id % 7 = 0;
		VACUUM $table; CREATE INDEX ON $table (id)");
	is_good($table, 'after changes');
});
# pages are written past the buffers, through which a function would read the table; those of REFRESH nobody can name
my $own_sum = 'sum(id) OVER (PARTITION BY g ORDER BY id) AS s FROM t';
makes_same('CREATE TABLE o AS SELECT id, v, CASE WHEN n % 3000 = 0 THEN rows_of_o(n::int) END AS r
	FROM (SELECT id, v, row_number() OVER (ORDER BY g, id) AS n FROM t) s', 'a function reads the new table', not => 1);
makes_same("CREATE TABLE o AS SELECT id, stable_$own_sum", 'an aggregate that may read tables', not => 1);
makes_same("CREATE TABLE o AS SELECT id, own_$own_sum", 'an aggregate that reads none');
makes_same("CREATE TABLE o AS SELECT id, CASE WHEN id % 3000 = 0 THEN slow(id) END AS z, $window",
	'a function that reads none');
makes_same("CREATE MATERIALIZED VIEW om AS SELECT id, stable(g), $window WITH NO DATA; REFRESH MATERIALIZED VIEW om",
	'REFRESH with a function that may read tables');
# a later range is often ready before the first, whose place is the end of what was inserted before
inserts_same("$like_t; " . "INSERT INTO o (id, n) SELECT id, CASE WHEN id < 60 THEN slow(id) END FROM t
	ORDER BY id; " x 10 . 'COMMIT', 'INSERT behind pages, the first range late');
inserts_same("CREATE TABLE o (LIKE t); INSERT INTO o SELECT * FROM t; BEGIN; TRUNCATE o; INSERT INTO o $by_n; COMMIT",
	'INSERT after TRUNCATE');
inserts_same("BEGIN; CREATE TABLE o (x text, id bigint, d int DEFAULT 5, n numeric(10, 2),
		w date DEFAULT current_date, u uuid);
	INSERT INTO o (n, id, x) SELECT n, id, v FROM t ORDER BY f8; COMMIT", 'INSERT with defaults and casts');
inserts_same("BEGIN; CREATE UNLOGGED TABLE o (LIKE t) WITH (fillfactor = 40); INSERT INTO o $by_n; COMMIT",
	'INSERT, unlogged, fillfactor');
inserts_same("BEGIN; CREATE TABLE o (LIKE long); INSERT INTO o SELECT * FROM long ORDER BY v, id;
	INSERT INTO o SELECT * FROM long ORDER BY g, id; COMMIT", 'INSERT, toasted', toasted => 1);
inserts_same("CREATE TABLE o (LIKE long); INSERT INTO o SELECT * FROM long; BEGIN; TRUNCATE o;
	INSERT INTO o SELECT * FROM long ORDER BY v, id; COMMIT", 'INSERT after TRUNCATE, toasted', toasted => 1);
inserts_same("BEGIN; CREATE TABLE o (id int NOT NULL, n numeric, b bool NOT NULL);
	INSERT INTO o SELECT id, n, b FROM t ORDER BY n, id; COMMIT", 'INSERT, NOT NULL');
inserts_same("BEGIN; CREATE TABLE o (id int, v int NOT NULL); SAVEPOINT a; INSERT INTO o
	SELECT id, nullif(id, 20000) FROM t ORDER BY n, id; ROLLBACK TO a;
	INSERT INTO o SELECT id, id FROM t ORDER BY n, id; COMMIT",
	'INSERT of a NULL');
like(says('on', "BEGIN; CREATE TABLE o (id int, v int NOT NULL); INSERT INTO o
	SELECT id, nullif(id, 20000) FROM t ORDER BY n, id"),
	qr/null value in column "v" of relation "o" violates.*Failing row contains \(20000, null\)/s, 'the error');
inserts_same("$like_t; SAVEPOINT a; INSERT INTO o $by_n; ROLLBACK TO a; SELECT count(*) FROM o; INSERT INTO o $by_n;
	SAVEPOINT b; INSERT INTO o SELECT * FROM t ORDER BY g, id; RELEASE b; SELECT count(*) FROM o; COMMIT",
	'INSERT in subtransactions', toasted => 1);
inserts_same("$like_t; SAVEPOINT a; INSERT INTO o SELECT t.* FROM t ORDER BY 30 / (20000 - id), id; ROLLBACK TO a;
	INSERT INTO o SELECT id, g, i8, f8, n, v, b, ia, tz, 300 / (20001 - id), ch, u FROM t ORDER BY n, id; ROLLBACK TO a;
	INSERT INTO o $by_n; COMMIT", 'INSERT with an error in the middle');
inserts_same("DO \$\$ DECLARE n bigint; BEGIN CREATE TABLE o (LIKE t); INSERT INTO o $by_n;
	GET DIAGNOSTICS n = ROW_COUNT; RAISE WARNING '%', n; END \$\$", 'INSERT in PL/pgSQL');
inserts_same("CREATE TABLE o (LIKE t); PREPARE p AS INSERT INTO o $by_n; BEGIN; TRUNCATE o; EXECUTE p; EXECUTE p;
	COMMIT; EXECUTE p; \\echo :ROW_COUNT
	BEGIN; TRUNCATE o; EXECUTE p; ROLLBACK; EXECUTE p", 'INSERT, prepared');
inserts_same("BEGIN ISOLATION LEVEL SERIALIZABLE; CREATE TABLE o (LIKE t); INSERT INTO o $by_n; COMMIT",
	'INSERT, SERIALIZABLE');
inserts_same("$like_t; INSERT INTO o VALUES (1); DECLARE c CURSOR FOR SELECT id FROM o; INSERT INTO o $by_n;
	FETCH ALL c; COMMIT",
	'INSERT behind what a cursor reads');
inserts_same("$like_t; INSERT INTO o SELECT * FROM t WHERE id < 0 ORDER BY n, id; \\echo :ROW_COUNT
	INSERT INTO o SELECT * FROM t WHERE id = 9 ORDER BY n, id; COMMIT", 'INSERT of no row and of one', small => 1);
inserts_same("$like_t; INSERT INTO o SELECT * FROM t WHERE id > (SELECT max(i) FROM generate_series(1, 100) i)
	ORDER BY n, id; COMMIT", 'INSERT with an initPlan');
inserts_same("$like_t; INSERT INTO o (id, i8) SELECT id, (SELECT max(i) FROM generate_series(1, t.g % 9 + 1) i) FROM t
	ORDER BY n, id; COMMIT", 'INSERT with a subquery for each row', small => 1);
inserts_same("SET max_parallel_workers = 0; $like_t; INSERT INTO o $by_n; COMMIT", 'INSERT without workers',
	small => 1);
inserts_same("$like_t; CREATE VIEW ov AS SELECT * FROM o; INSERT INTO ov $by_n; DROP VIEW ov; COMMIT",
	'INSERT into a view', small => 1);
{
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS o');
	my $explained = $node->safe_psql('postgres', "$like_t; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
		INSERT INTO o $by_n; SELECT count(*) || ' rows' FROM o; ROLLBACK");

	like($explained, qr/^Insert on o \(actual rows=0(?:\.00)? loops=1\)/m, 'EXPLAIN ANALYZE has ModifyTable as ever');
	like($explained, qr/GpuSortExchange\) \(actual rows=30000(?:\.00)? loops=1\).*^30000 rows/ms, 'and the rows');
	$node->safe_psql('postgres', "$like_t; INSERT INTO o $by_n; COMMIT");
	ok($node->poll_query_until('postgres', q{SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'o'}, 30000),
		'inserted rows are counted');
	$node->safe_psql('postgres', 'DROP TABLE o');
}

# What has something to be looked at for each row, or may be read meanwhile, is PostgreSQL's.
for my $case (
	[ 'CREATE INDEX ON o (id)', 'an index' ],
	[ 'CREATE TRIGGER w BEFORE INSERT ON o FOR EACH ROW EXECUTE FUNCTION watch()', 'a trigger' ],
	[ 'CREATE TRIGGER w AFTER INSERT ON o EXECUTE FUNCTION watch()', 'a trigger of statements' ],
	[ 'ALTER TABLE o ADD CHECK (id > 0)', 'a constraint' ],
	[ 'ALTER TABLE o ADD x int GENERATED ALWAYS AS (id + 1) STORED', 'a generated column' ],
	[ 'ALTER TABLE o ADD x serial', 'a sequence' ],
	[ 'ALTER TABLE o ADD x int GENERATED ALWAYS AS IDENTITY', 'an identity' ],
	[ 'ALTER TABLE o ADD x positive', 'a domain' ],
	[ 'ALTER TABLE o ADD x int; ALTER TABLE o DROP x', 'a dropped column' ],
	[ 'CREATE TABLE IF NOT EXISTS op (LIKE t); ALTER TABLE o INHERIT op', 'a parent' ],
	[ 'DROP TABLE IF EXISTS op; CREATE TABLE op () INHERITS (o)',
		'a child', "INSERT INTO o $by_n; DROP TABLE op" ],
	[ '', 'RETURNING', "INSERT INTO o $by_n RETURNING id" ],
	[ '', 'ON CONFLICT', "INSERT INTO o $by_n ON CONFLICT DO NOTHING" ],
	[ '', 'a CTE', "WITH c AS (SELECT * FROM t) INSERT INTO o SELECT * FROM c ORDER BY n, id" ],
	[ 'CREATE VIEW ov AS SELECT * FROM o WHERE id > 0 WITH CHECK OPTION', 'a CHECK OPTION',
		"INSERT INTO ov $by_n; DROP VIEW ov" ],
	[ '', 'a volatile function', 'INSERT INTO o (id, f8) SELECT id, random() * 0 FROM t ORDER BY n, id' ],
	[ '', 'a query of the table', 'INSERT INTO o SELECT * FROM t WHERE id > (SELECT count(*) FROM o) ORDER BY n, id' ],
	[ '', 'a function that may read the table', 'INSERT INTO o (id, i8) SELECT id, rows_of_o(id) FROM t
		WHERE id < 20 ORDER BY n, id' ],
	[ '', 'an aggregate that may read the table', 'INSERT INTO o (id, i8) SELECT g, stable_sum(id) FROM t
		GROUP BY g ORDER BY 1' ],
	[ 'COMMIT; BEGIN', 'a table that is there' ],
	[ 'COMMIT; BEGIN; SAVEPOINT a; TRUNCATE o; ROLLBACK TO a', 'a TRUNCATE that was rolled back' ],
	[ 'SET gpusort.parallel_output = off', 'gpusort.parallel_output' ],
	[ 'SET gpusort.parallel_cursors = off', 'gpusort.parallel_cursors' ])
{
	my ($before, $what, $insert) = @$case;

	$insert //= "INSERT INTO o $by_n";
	inserts_same("$like_t; $before; $insert; COMMIT", "INSERT, $what", not => 1,
		toasted => $what =~ /dropped/ ? 1 : 0);
}
inserts_same("BEGIN; CREATE TABLE op (LIKE t) PARTITION BY RANGE (id); CREATE TABLE o PARTITION OF op DEFAULT;
	INSERT INTO op $by_n; INSERT INTO o $by_n; ALTER TABLE op DETACH PARTITION o; DROP TABLE op; COMMIT",
	'INSERT into a partition', not => 1);
{
	my $explain = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)';

	like($node->safe_psql('postgres', "$explain CREATE TABLE explained AS $wide"),
		qr/GpuSortExchange\) \(actual rows=30000(?:\.00)? loops=1\)/, 'EXPLAIN ANALYZE has the rows');
	is(tuples('explained'), $node->safe_psql('postgres', qq{
		SELECT count(*), md5(string_agg(r::text, ' ' ORDER BY g, id)) FROM ($wide) r}), 'the order is that of the query');
	like($node->safe_psql('postgres', "$explain CREATE TABLE nothing AS $wide WITH NO DATA;
		SELECT pg_relation_size('nothing')"), qr/^0$/m, 'EXPLAIN ANALYZE WITH NO DATA');
}

# Temporary ones: with a TOAST table they are PostgreSQL's
for my $case ([ "CREATE TEMP TABLE o AS SELECT id, i8, $window", 'without a TOAST table' ],
	[ "CREATE TEMP TABLE o AS $wide", 'with one' ],
	[ "CREATE TEMP TABLE o (id int, f8 float8); INSERT INTO o SELECT id, f8 FROM t ORDER BY g, id; INSERT INTO o
		SELECT id, f8 FROM t ORDER BY n, id", 'INSERT, without a TOAST table' ],
	[ "CREATE TEMP TABLE o (LIKE t); INSERT INTO o $by_n", 'INSERT, with one' ],
	[ "BEGIN; CREATE TEMP TABLE o (id int) ON COMMIT DELETE ROWS; INSERT INTO o SELECT id FROM t ORDER BY g, id;
		SELECT count(*), sum(id) FROM o; COMMIT; INSERT INTO o VALUES (1)", 'INSERT, ON COMMIT, without a TOAST table' ])
{
	my ($query, $what) = @$case;
	my %has;

	for my $setting ('off', 'on')
	{
		my $before = formed();
		$has{$setting} = says($setting, "$query;
			SELECT count(*), md5(string_agg(o::text, ' ' ORDER BY ctid)) FROM o;
			UPDATE o SET id = id; SELECT count(*), sum(id) FROM o");
		next if $setting eq 'off';
		my $rows = formed() - $before;
		$what =~ /without/ ? cmp_ok($rows, '>', 0, "temporary, $what: by pages")
			: is($rows, 0, "temporary, $what: not by pages");
	}
	is($has{on}, $has{off}, "temporary, $what: the same");
}

# A tablespace
my $place = $node->basedir . '/space';
mkdir $place;
$node->safe_psql('postgres', "CREATE TABLESPACE space LOCATION '$place'");
makes_same("CREATE TABLE o TABLESPACE space AS $wide", 'a tablespace');
$node->safe_psql('postgres', 'DROP TABLE o; DROP TABLESPACE space');

# Ends: cancels, processes terminated; no table, no file
my $slow = "CREATE TABLE o AS SELECT id, CASE WHEN id > 20000 THEN slow(id) END AS z, v, $window";
my $gated = $slow =~ s/slow\(id\)/gate(id, 25000)/r;
my $end_workers = q{SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
	WHERE backend_type = 'parallel worker'};
$node->safe_psql('postgres', 'DROP TABLE IF EXISTS o; CHECKPOINT');
my $files = files();
for my $case ([ 'cancel', q{SELECT pg_cancel_backend(%d)}, qr/canceling statement due to user request/ ],
	[ 'workers terminated', $end_workers, qr/terminating background worker|parallel worker|terminating connection/ ],
	[ 'the leader terminated', q{SELECT pg_terminate_backend(%d)},
		qr/terminating connection due to administrator command/ ])
{
	my ($what, $sql, $error) = @$case;
	my $maker = $node->session;
	my $gatekeeper = gatekeeper();

	$maker->run('SET gpusort.min_rows = 0');
	$maker->send($gated);
	ok(waits_at_gate(), "$what: it runs");
	$node->safe_psql('postgres', sprintf($sql, $maker->backend));
	$gatekeeper->close;
	like(($maker->result)[1], $error, "$what: it ends");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'o'}), 0, "$what: no table");
	ok(wait_until(sub { $node->ask('CHECKPOINT'); files() <= $files }), "$what: no file");
}

# An INSERT that ends so leaves the table as it was
for my $case ([ 'cancel', q{SELECT pg_cancel_backend(%d)} ],
	[ 'workers terminated', $end_workers ])
{
	my ($what, $sql) = @$case;
	my $maker = $node->session;
	my $gatekeeper = gatekeeper();

	$maker->run("SET gpusort.min_rows = 0; DROP TABLE IF EXISTS o; $like_t; INSERT INTO o VALUES (0); SAVEPOINT a");
	$maker->send('INSERT INTO o (id, i8, v) SELECT id, CASE WHEN id > 20000 THEN gate(id, 25000) END, v FROM t
		ORDER BY g, id');
	ok(waits_at_gate(), "INSERT, $what: it runs");
	$node->safe_psql('postgres', sprintf($sql, $maker->backend));
	$gatekeeper->close;
	like(($maker->result)[1], qr/canceling statement|terminating|parallel worker/, "INSERT, $what: it ends");
	$maker->run("ROLLBACK TO a; INSERT INTO o $by_n; COMMIT");
	is(tuples('o'), $node->safe_psql('postgres', q{
		SELECT count(*), md5(string_agg(r, ' ' ORDER BY i)) FROM (SELECT 1 AS i, '(0,,,,,,,,,,,)' AS r UNION ALL
			(SELECT 1 + row_number() OVER (ORDER BY n, id), t::text FROM t)) x}), "INSERT, $what: the next one");
	is_good('o', "INSERT, $what");
	$node->safe_psql('postgres', 'DROP TABLE o');
}

# A standby; a crash right after, and after a checkpoint in the middle
$node->backup('backup');
my $standby = GpuSortNode->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'gpusort.allowed = off');
$standby->start;
{
	my $maker = $node->session;

	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS o, explained, nothing; DROP MATERIALIZED VIEW IF EXISTS om');
	$maker->send("$slow WHERE id <= 21500");
	for (1 .. 12)
	{
		$node->ask('CHECKPOINT');
		sleep 0.1;
	}
	like(join(' ', $maker->result), qr//, 'a table is made while there are checkpoints');
}
$node->safe_psql('postgres', "CREATE TABLE a AS $wide; CREATE TABLE l AS $toasted;
	CREATE MATERIALIZED VIEW m AS $wide; REFRESH MATERIALIZED VIEW m; CREATE UNLOGGED TABLE un AS $wide;
	BEGIN; CREATE TABLE i (LIKE t); INSERT INTO i VALUES (0); INSERT INTO i $by_n; SAVEPOINT a; INSERT INTO i $by_n;
	ROLLBACK TO a; INSERT INTO i VALUES (1); COMMIT;
	CREATE TABLE il (LIKE long); INSERT INTO il SELECT * FROM long; BEGIN; TRUNCATE il;
	INSERT INTO il SELECT * FROM long ORDER BY v, id; COMMIT");
my %had = map { $_ => tuples($_) } 'o', 'a', 'l', 'm', 'i', 'il';
$node->wait_for_catchup($standby);
for my $table (sort keys %had)
{
	is(tuples($table, $standby), $had{$table}, "a standby has the same rows of $table");
	is_good($table, "$table on a standby", $standby);
}
$standby->stop;
$node->stop('immediate');
$node->start;
for my $table (sort keys %had)
{
	is(tuples($table), $had{$table}, "after a crash there are the same rows of $table");
	is_good($table, "$table after a crash");
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM un'), 0, 'an unlogged table is empty after a crash');
$node->wait_service;
$node->safe_psql('postgres', "CREATE TABLE again AS $wide");
%had = map { $_ => tuples($_) } 'a', 'again';
$node->safe_psql('postgres', "DROP TABLE un; CREATE UNLOGGED TABLE un AS $wide");
$node->restart;
is(tuples('un'), $had{a}, 'an unlogged table has its rows after a restart');

# A process killed: the server starts again, and there is no table
for my $who ('parallel worker', 'client backend')
{
	my $maker = $node->session;
	my $gatekeeper = gatekeeper();
	my $log = -s $node->logfile;

	$node->wait_service;
	$maker->send($gated =~ s/TABLE o/TABLE killed/r);
	ok(waits_at_gate(), "a table is made before a $who is killed");
	kill 'KILL', $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = '$who' AND query LIKE 'CREATE TABLE killed%' LIMIT 1");
	$maker->result;
	ok($node->wait_crash($log), "a $who is killed");
	ok($node->poll_query_until('postgres', 'SELECT true'), 'the server starts again');
	$gatekeeper->close;
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'killed'}), 0, 'no table');
	is(tuples('again'), $had{again}, 'another is as it was');
}
$node->wait_service;
$node->stop;
is(system_log('pg_checksums', '--check', '-D', $node->data_dir), 0, 'all checksums are right');

# Nothing is logged in the transaction that makes a table: it is flushed at the end, or logged if it is small
for my $threshold (0, '1GB')
{
	my $minimal = GpuSortNode->new('minimal' . length $threshold);

	$minimal->init(conf => [ @conf, 'wal_level = minimal', 'max_wal_senders = 0', "wal_skip_threshold = $threshold" ]);
	$minimal->start;
	$minimal->wait_service;
	$minimal->safe_psql('postgres', "CREATE EXTENSION gpusort; CREATE EXTENSION amcheck; $source");
	$minimal->safe_psql('postgres', "CREATE TABLE o AS $wide; CREATE TABLE l AS $toasted;
		CREATE MATERIALIZED VIEW m AS $wide; REFRESH MATERIALIZED VIEW m;
		BEGIN; CREATE TABLE i (LIKE t); INSERT INTO i VALUES (0); INSERT INTO i $by_n; INSERT INTO i VALUES (1); COMMIT;
		CREATE TABLE il (LIKE long); INSERT INTO il SELECT * FROM long; BEGIN; TRUNCATE il; SAVEPOINT a;
		INSERT INTO il SELECT * FROM long ORDER BY v, id; COMMIT");
	cmp_ok($minimal->safe_psql('postgres', 'SELECT sum(formed_rows) FROM gpusort_stats'), '>', 0, 'by pages');
	my %before = map { $_ => tuples($_, $minimal) } 'o', 'l', 'm', 'i', 'il';
	$minimal->stop('immediate');
	$minimal->start;
	for my $table (sort keys %before)
	{
		is(tuples($table, $minimal), $before{$table},
			"wal_level = minimal, wal_skip_threshold = $threshold: $table after a crash");
		is_good($table, $table, $minimal);
	}
	$minimal->stop;
}

# Logical decoding: rows are PostgreSQL's to write, but those of a table that is rewritten
my $logical = GpuSortNode->new('logical');
$logical->init(conf => [ @conf, 'wal_level = logical', 'max_replication_slots = 4' ]);
$logical->start;
$logical->wait_service;
$logical->safe_psql('postgres', "CREATE EXTENSION gpusort; $source; CREATE MATERIALIZED VIEW m AS $narrow");
SKIP:
{
	skip 'no test_decoding', 6
		unless eval {
			$logical->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('s', 'test_decoding')});
			1;
		};
	my $formed = 'SELECT coalesce(sum(formed_rows), 0) FROM gpusort_stats';
	my $before = $logical->safe_psql('postgres', $formed);
	$logical->safe_psql('postgres', "CREATE TABLE o AS $wide");
	is($logical->safe_psql('postgres', $formed), $before, 'wal_level = logical: not by pages');
	my $changes = q{SELECT count(*) FROM pg_logical_slot_get_changes('s', NULL, NULL) WHERE data LIKE '%INSERT%'};
	is($logical->safe_psql('postgres', $changes), 30000, 'all rows are decoded');
	$logical->safe_psql('postgres', "BEGIN; CREATE TABLE i (LIKE t); INSERT INTO i $by_n; COMMIT");
	is($logical->safe_psql('postgres', $formed), $before, 'wal_level = logical: INSERT is not by pages');
	is($logical->safe_psql('postgres', $changes), 30000, 'and all its rows are decoded');
	$logical->safe_psql('postgres', 'REFRESH MATERIALIZED VIEW m');
	cmp_ok($logical->safe_psql('postgres', $formed), '>', $before, 'REFRESH is by pages');
	is($logical->safe_psql('postgres', $changes), 0, 'and no row of it is decoded');
}
$logical->stop;

# A service that lies, or goes, somewhere among the rows: an error and no table; or a right one, by PostgreSQL's sort
# where nothing was written
SKIP:
{
	skip 'no service with fault points: make gpusortd-faults', 1 unless -x $fault_service;
	my $faulty = GpuSortNode->new('faulty');
	my %count = (errors => 0, tables => 0, undone => 0, inserted => 0);

	$faulty->init(conf => [ @conf, 'gpusort.verify_rows = on' ]);
	$faulty->own_module(gpusortd => $fault_service);
	$faulty->start;
	$faulty->wait_service;
	$faulty->safe_psql('postgres', "CREATE EXTENSION amcheck; $source");
	$faulty->safe_psql('postgres', "SET gpusort.enable = off; CREATE TABLE right_one AS $wide");
	my $right = tuples('right_one', $faulty);
	my $right_by_value = tuples('right_one', $faulty, 1);
	for my $fault ('exit_service', 'drop_row', 'skip_chunk', 'send_twice', 'duplicate_row')
	{
		for my $at (1, 2, 9)
		{
			my $error;

			$faulty->choose_fault("$fault $at $at");
			$faulty->psql('postgres', "CREATE TABLE o AS $wide", stderr => \$error);
			$faulty->choose_fault(undef);
			wait_until(sub { $faulty->method eq 'radix' }, 60);
			my $found = $faulty->ask(q{SELECT count(*) FROM pg_class WHERE relname = 'o'});
			is($found, $error =~ /ERROR/ ? 0 : 1, "$fault $at: a table, or an error") or diag($error);
			$count{$found ? 'tables' : 'errors'}++;
			if ($found)
			{
				is(tuples('o', $faulty), $right, "$fault $at: a right one");
				is_good('o', "$fault $at", $faulty);
				$faulty->ask('DROP TABLE o');
			}

			# an INSERT is an error, or right
			my ($said, $log) = ('', -s $faulty->logfile);
			$faulty->choose_fault("$fault $at $at");
			$faulty->psql('postgres', "BEGIN; CREATE TABLE i (LIKE right_one); SAVEPOINT a; INSERT INTO i $wide;
				\\if :ERROR
				ROLLBACK TO a; SET gpusort.enable = off; INSERT INTO i $wide;
				\\endif
				\\echo :ROW_COUNT
				COMMIT", stdout => \$said, stderr => \$error, on_error_stop => 0);
			$faulty->choose_fault(undef);
			wait_until(sub { $faulty->method eq 'radix' }, 60);
			is($said, 30000, "$fault $at: INSERT tells of all rows");
			is(tuples('i', $faulty, 1), $right_by_value, "$fault $at: INSERT, as it was or right");
			is_good('i', "$fault $at, INSERT", $faulty);
			if ($error =~ /ERROR/)
			{
				$count{undone}++;
			}
			elsif (slurp_file($faulty->logfile, $log) =~ /falling back to tuplesort/)
			{
				$count{inserted}++;
			}
			$faulty->ask('DROP TABLE i');
		}
	}
	cmp_ok($count{errors}, '>', 0, 'some are errors');
	cmp_ok($count{tables}, '>', 0, 'some are tables');
	cmp_ok($count{undone}, '>', 0, 'some INSERTs are errors');
	cmp_ok($count{inserted}, '>', 0, 'some INSERTs fall back to PostgreSQL\'s sort');
	like($faulty->log_text, qr/falling back to tuplesort/, 'some by PostgreSQL\'s sort');
	$faulty->stop;
}

done_testing();
