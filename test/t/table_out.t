# Pages of new tables that all processes write: CREATE TABLE AS, SELECT INTO, materialized views.  A table has the
# tuples of PostgreSQL's, byte for byte and in the same order, and is good by amcheck: after a crash, on a standby, and
# after what is done to it later.  What is not for it is PostgreSQL's; errors, cancels and crashes leave no table.
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
	CREATE FUNCTION slow(int) RETURNS int STABLE PARALLEL SAFE LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_sleep(0.001); RETURN $1; END';
	CREATE DOMAIN positive AS int CHECK (value > 0);
	VACUUM ANALYZE;
};

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

my $has_worker = q{SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'parallel worker'};

# Files of relations
sub files
{
	my @files = glob $node->data_dir . '/base/*/*';
	return scalar @files;
}

sub formed
{
	return $node->safe_psql('postgres', 'SELECT coalesce(sum(formed_rows), 0) FROM gpusort_stats');
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

# The tuples of a table, in their order: how many, and a digest; plain: of their bytes, else of their values
sub tuples
{
	my ($table, $on) = @_;
	return ($on // $node)->safe_psql('postgres', qq{
		SELECT count(*), md5(string_agg(r, ' ' ORDER BY c)) FROM (SELECT o::text AS r, ctid AS c FROM $table o) x});
}

sub tuple_bytes
{
	my ($table) = @_;
	return $node->safe_psql('postgres', qq{
		SELECT count(*), count(DISTINCT t_xmin::text), count(DISTINCT t_field3),
			count(*) FILTER (WHERE t_ctid <> ('(' || b || ',' || lp || ')')::tid),
			md5(string_agg(concat_ws(' ', lp_len, t_infomask, t_infomask2, t_hoff, t_bits, t_data), ' ' ORDER BY b, lp))
		FROM generate_series(0, pg_relation_size('$table') / 8192 - 1) b, heap_page_items(get_raw_page('$table', b::int))});
}

sub is_good
{
	my ($table, $what, $on) = @_;
	is(($on // $node)->safe_psql('postgres', "SELECT * FROM verify_heapam('$table', check_toast => true)"), '',
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

		$node->safe_psql('postgres', 'DROP TABLE IF EXISTS o; DROP MATERIALIZED VIEW IF EXISTS om');
		$said{$setting} = says($setting, $sql);
		my $table = $node->safe_psql('postgres', q{SELECT relname FROM pg_class WHERE relname IN ('o', 'om')});
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
		$bytes{$setting} = $how{toasted} ? '' : tuple_bytes($table);
		$has{$setting} = tuples($table) . "\n" . $node->safe_psql('postgres',
			"SELECT reltuples, relallvisible, relkind, relpersistence FROM pg_class WHERE oid = '$table'::regclass");
		$pages{$setting} = $node->safe_psql('postgres', "SELECT pg_relation_size('$table') / 8192");
		is_good($table, $what) if $setting eq 'on' && !$how{temporary};
		$how{then}->($table) if $setting eq 'on' && $how{then};
	}
	is($said{on}, $said{off}, "$what: says the same");
	is($has{on}, $has{off}, "$what: the same rows in the same order");
	is($bytes{on}, $bytes{off}, "$what: the same bytes");
	cmp_ok($pages{on}, '<=', $pages{off} * 1.01 + 12, "$what: as many pages") if defined $pages{on};
	return;
}

makes_same("CREATE TABLE o AS $wide", 'CREATE TABLE AS', then => sub {
	my ($table) = @_;
	my ($error, $out);

	is($node->safe_psql('postgres', "SELECT n_tup_ins, n_live_tup FROM pg_stat_user_tables WHERE relname = '$table'"),
		'30000|30000', 'counted');
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
for my $case ([ "SELECT id, i8, $window", 'without a TOAST table' ],
	[ $wide, 'with one' ])
{
	my ($query, $what) = @$case;
	my %has;

	for my $setting ('off', 'on')
	{
		my $before = formed();
		$has{$setting} = says($setting, "CREATE TEMP TABLE o AS $query;
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
$node->safe_psql('postgres', 'DROP TABLE IF EXISTS o; CHECKPOINT');
my $files = files();
for my $case ([ 'cancel', q{SELECT pg_cancel_backend(%d)}, qr/canceling statement due to user request/ ],
	[ 'a worker terminated',
		q{SELECT pg_terminate_backend(min(pid)) FROM pg_stat_activity WHERE backend_type = 'parallel worker'},
		qr/terminating background worker|parallel worker|terminating connection/ ],
	[ 'the leader terminated', q{SELECT pg_terminate_backend(%d)},
		qr/terminating connection due to administrator command/ ])
{
	my ($what, $sql, $error) = @$case;
	my $maker = $node->session;

	$maker->run('SET gpusort.min_rows = 0');
	$maker->send($slow);
	ok($node->poll_query_until('postgres', $has_worker), "$what: it runs");
	sleep 1;
	$node->safe_psql('postgres', sprintf($sql, $maker->backend));
	like(($maker->result)[1], $error, "$what: it ends");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'o'}), 0, "$what: no table");
	ok(wait_until(sub { $node->safe_psql('postgres', 'CHECKPOINT'); files() <= $files }, 20), "$what: no file");
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
		$node->safe_psql('postgres', 'CHECKPOINT');
		sleep 0.1;
	}
	like(join(' ', $maker->result), qr//, 'a table is made while there are checkpoints');
}
$node->safe_psql('postgres', "CREATE TABLE a AS $wide; CREATE TABLE l AS $toasted;
	CREATE MATERIALIZED VIEW m AS $wide; REFRESH MATERIALIZED VIEW m; CREATE UNLOGGED TABLE un AS $wide");
my %had = map { $_ => tuples($_) } 'o', 'a', 'l', 'm';
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

	$node->wait_service;
	$maker->send($slow =~ s/TABLE o/TABLE killed/r);
	$node->poll_query_until('postgres', $has_worker);
	sleep 0.7;
	kill 'KILL', $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = '$who' AND query LIKE 'CREATE TABLE killed%' LIMIT 1");
	ok(wait_until(sub { $maker->result; eval { $node->safe_psql('postgres', 'SELECT 1'); 1 } }, 60), "a $who is killed");
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
		CREATE MATERIALIZED VIEW m AS $wide; REFRESH MATERIALIZED VIEW m");
	cmp_ok($minimal->safe_psql('postgres', 'SELECT sum(formed_rows) FROM gpusort_stats'), '>', 0, 'by pages');
	my %before = map { $_ => tuples($_, $minimal) } 'o', 'l', 'm';
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
	skip 'no test_decoding', 4
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
	my %count = (errors => 0, tables => 0);

	$faulty->init(conf => [ @conf, 'gpusort.verify_rows = on' ]);
	$faulty->own_module(gpusortd => $fault_service);
	$faulty->start;
	$faulty->wait_service;
	$faulty->safe_psql('postgres', "CREATE EXTENSION amcheck; $source");
	$faulty->safe_psql('postgres', "SET gpusort.enable = off; CREATE TABLE right_one AS $wide");
	my $right = tuples('right_one', $faulty);
	for my $fault ('exit_service', 'drop_row', 'skip_chunk', 'send_twice', 'duplicate_row')
	{
		for my $at (1, 2, 5, 9, 14)
		{
			my $error;

			$faulty->choose_fault("$fault $at $at");
			$faulty->psql('postgres', "CREATE TABLE o AS $wide", stderr => \$error);
			$faulty->choose_fault(undef);
			wait_until(sub { $faulty->method eq 'radix' }, 60);
			my $found = $faulty->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname = 'o'});
			is($found, $error =~ /ERROR/ ? 0 : 1, "$fault $at: a table, or an error") or diag($error);
			$count{$found ? 'tables' : 'errors'}++;
			next unless $found;
			is(tuples('o', $faulty), $right, "$fault $at: a right one");
			is_good('o', "$fault $at", $faulty);
			$faulty->safe_psql('postgres', 'DROP TABLE o');
		}
	}
	cmp_ok($count{errors}, '>', 0, 'some are errors');
	cmp_ok($count{tables}, '>', 0, 'some are tables');
	like($faulty->log_text, qr/falling back to tuplesort/, 'some by PostgreSQL\'s sort');
	$faulty->stop;
}

done_testing();
