# CLUSTER by gpusort's sort, whose pages all processes write.  A table has the tuples of PostgreSQL's CLUSTER, byte for
# byte and in the same order, and is good by amcheck: after a crash, on a standby, and after what is done to it later.
# What is not for it is PostgreSQL's; errors, cancels and crashes leave the table as it was, and no file.
use strict;
use warnings;

use GpuSortNode;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my @conf = ('max_parallel_maintenance_workers = 2', 'max_parallel_workers = 8', 'max_worker_processes = 12',
	'min_parallel_table_scan_size = 0', 'maintenance_work_mem = 256MB', 'gpusort.force = on', 'gpusort.min_rows = 0',
	'gpusort.log_decisions = on', 'autovacuum = off', 'random_page_cost = 100000', 'wal_level = replica',
	'max_wal_senders = 4', 'wal_keep_size = 4GB');
my $source = q{
	CREATE TABLE t AS SELECT i AS id, i * 7919 % 1009 AS g, hashint4(i)::int8 * 1000000000 AS i8,
			CASE i % 5 WHEN 1 THEN 'NaN' ELSE i / 3.0 END::float8 AS f8, CASE WHEN i % 7 <> 0 THEN i / 7.0 END AS n,
			CASE WHEN i % 3 <> 0 THEN 'row ' || i || repeat('x', i % 50) END AS v, i % 2 = 0 AS b,
			'2020-01-01'::timestamptz + i * interval '1 h' AS tz, i::int2 AS i2, md5(i::text)::uuid AS u
		FROM generate_series(1, 12000) i;
	CREATE TABLE long AS SELECT i AS id, i % 50 AS g, md5(i::text) AS m,
			(SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, CASE WHEN i % 10 = 0 THEN 300 ELSE 3 END) j) AS v,
			repeat('compressible ', i % 500) AS c
		FROM generate_series(1, 4000) i;
	ALTER TABLE long ADD w text;
	ALTER TABLE long ALTER w SET STORAGE external;
	UPDATE long SET w = v;
	VACUUM ANALYZE;
};

my $node = GpuSortNode->new('main');
$node->init(conf => \@conf, has_archiving => 0, extra => [ qw(-A trust -N --no-locale -E UTF8 -k) ]);
$node->start;
$node->wait_service;
plan skip_all => 'no amcheck and pageinspect'
	unless eval { $node->safe_psql('postgres', 'CREATE EXTENSION amcheck; CREATE EXTENSION pageinspect'); 1 };
$node->safe_psql('postgres', "CREATE EXTENSION gpusort; $source");

my $copy = 'CREATE TABLE o AS SELECT * FROM t';
my $long = 'CREATE TABLE o (LIKE long INCLUDING ALL); INSERT INTO o SELECT * FROM long';

# Files of relations that no relation has
sub stray_files
{
	return $node->ask(q{
		SELECT string_agg(name, ' ')
			FROM (SELECT 'base/' || oid AS place FROM pg_database WHERE datname = current_database()) d,
				pg_ls_dir(place) name, pg_stat_file(place || '/' || name, true) f
			WHERE name ~ '^\d+(?:_|\.|$)' AND f.size > 0
				AND substring(name from '^\d+')::oid NOT IN (SELECT pg_relation_filenode(oid) FROM pg_class
					WHERE pg_relation_filenode(oid) IS NOT NULL)});
}

# Runs SQL in a session of its own, with gpusort or without; returns what it says, but for times and pages, and its
# log lines.
sub says
{
	my ($setting, $sql) = @_;
	my ($out, $err);

	$node->psql('postgres', $sql, stdout => \$out, stderr => \$err, on_error_stop => 0,
		connstr => $node->connstr('postgres') . " options='-c gpusort.enable=$setting -c client_min_messages=log'");
	my @logged = $err =~ /^.*LOG:  (gpusort: .*)$/mg;
	$err =~ s/^psql:<stdin>:\d+: //mg;
	$err =~ s/^(?:CONTEXT|LOCATION|LOG|CPU):?.*\n?//mg;
	$err =~ s/(row versions) in \d+ pages/$1/g;
	$err =~ s/pg_temp_\d+/pg_temp/g;
	return ("$out\n$err" =~ s{\s+\z}{}r, join "\n", @logged);
}

# The rows of a table, in their order: how many, and a digest of their values; of their tuples' bytes and transactions
sub rows
{
	my ($table, $on) = @_;
	return ($on // $node)->ask(qq{
		SELECT count(*), md5(string_agg(r, ' ' ORDER BY c)) FROM (SELECT o::text AS r, ctid AS c FROM $table o) x});
}

sub tuple_bytes
{
	my ($table) = @_;
	return $node->ask(qq{
		SELECT count(*), count(*) FILTER (WHERE t_ctid <> ('(' || b || ',' || lp || ')')::tid),
			md5(string_agg(concat_ws(' ', lp_len, x, t_xmax::text <> '0', t_field3, t_infomask, t_infomask2, t_hoff, t_bits,
				t_data), ' ' ORDER BY b, lp))
		FROM (SELECT *, dense_rank() OVER (ORDER BY t_xmin::text::int8) AS x
			FROM generate_series(0, pg_relation_size('$table') / 8192 - 1) b,
				heap_page_items(get_raw_page('$table', b::int))) y});
}

sub is_good
{
	my ($table, $what, $on) = @_;
	is(($on // $node)->ask("SELECT * FROM verify_heapam('$table', check_toast => true)"), '',
		"$what: verify_heapam");
	return;
}

# a psql that stays
my $maker = $node->session;

# Makes a table "o" and clusters it, with gpusort and without: all is the same.  by: 'pages', 'postgresql', after it has
# begun, or 'nobody', not even asked.
sub clusters_same
{
	my ($make, $cluster, $what, %how) = @_;
	my $by = $how{by} // 'pages';
	my (%said, %has, %bytes, %pages, %toast);

	for my $setting ('off', 'on')
	{
		my $logged;

		$maker->run("DROP TABLE IF EXISTS o; DROP MATERIALIZED VIEW IF EXISTS om; $make");
		($said{$setting}, $logged) = says($setting, $cluster);
		my $table = $how{table} // 'o';
		if ($setting eq 'on')
		{
			like($logged, qr/clustering table .*\n(?:.*\n)*.*is written in \d+ ranges/, "$what: by pages") if $by eq 'pages';
			like($logged, qr/PostgreSQL clusters table/, "$what: by PostgreSQL") if $by eq 'postgresql';
			unlike($logged, qr/cluster/, "$what: not asked") if $by eq 'nobody';
			is_good($table, $what);
		}
		$has{$setting} = rows($table) . "\n" . $node->ask(qq{
			SELECT reltuples, relpages > 0, relkind, relpersistence, age(relfrozenxid) < 200 FROM pg_class
				WHERE oid = '$table'::regclass});
		$bytes{$setting} = $how{values} ? '' : tuple_bytes($table);
		$pages{$setting} = $node->ask("SELECT pg_relation_size('$table') / 8192");
		$how{then}->() if $setting eq 'on' && $how{then};
	}
	is($said{on}, $said{off}, "$what: says the same");
	is($has{on}, $has{off}, "$what: the same rows in the same order");
	is($bytes{on}, $bytes{off}, "$what: the same bytes");
	cmp_ok($pages{on}, '<=', $pages{off} * 1.01 + 40, "$what: as many pages");
	return;
}

for my $index ('(id)', '(id DESC)', '(n, id)', '(n DESC NULLS LAST, id)', '(f8, i8, id)', '(v COLLATE "C", id)',
	'(i8)', '(u)', '(b, tz)', '(g, id) INCLUDE (v)', '(i2 NULLS FIRST, id DESC)')
{
	clusters_same("$copy; CREATE INDEX i ON o $index", 'CLUSTER VERBOSE o USING i', "by $index");
}
for my $collation ('en-US-x-icu', 'en_US', 'de_DE.utf8')
{
	next unless $node->ask(qq{SELECT count(*) FROM pg_collation WHERE collname = '$collation'});
	clusters_same(qq{$copy; CREATE INDEX i ON o (v COLLATE "$collation", id)}, 'CLUSTER VERBOSE o USING i',
		"by $collation");
}
clusters_same("CREATE TABLE o AS SELECT repeat('p', 200) || id % 5 || repeat('p', 200) || id AS p, t.* FROM t;
	CREATE INDEX i ON o (p COLLATE \"C\")", "SET work_mem = '64kB'; CLUSTER VERBOSE o USING i", 'long equal prefixes',
	by => 'any');
clusters_same("$copy; CREATE UNIQUE INDEX i ON o (id)", 'CLUSTER VERBOSE o USING i', 'unique', then => sub {
	$maker->run("UPDATE o SET id = -id WHERE id % 100 = 0; DELETE FROM o WHERE id % 7 = 0; VACUUM o;
		INSERT INTO o SELECT * FROM t WHERE id % 7 = 0");
	is_good('o', 'after changes');
	is($node->ask("SET enable_seqscan = off; SELECT count(*) FROM o WHERE id > 0"), 11897,
		'and can be read by an index');
});
clusters_same("$copy; CREATE INDEX i ON o (n, id); DELETE FROM o WHERE id % 3 = 0;
	UPDATE o SET n = 1 WHERE id % 20 = 1",
	'CLUSTER VERBOSE o USING i', 'dead rows');
clusters_same("$copy; CREATE INDEX i ON o (n, id); BEGIN; SAVEPOINT a; UPDATE o SET n = 2; ROLLBACK TO a;
	INSERT INTO o (id) VALUES (-1), (-2); COMMIT; BEGIN; DELETE FROM o; ROLLBACK",
	'CLUSTER VERBOSE o USING i', 'aborted ones');
clusters_same("$copy; CREATE INDEX i ON o (id); BEGIN;
	SELECT count(*) FROM (SELECT FROM o WHERE id % 2 = 0 FOR UPDATE) x;
	SAVEPOINT a; SELECT count(*) FROM (SELECT FROM o WHERE id % 3 = 0 FOR KEY SHARE) x; SAVEPOINT b;
	SELECT count(*) FROM (SELECT FROM o WHERE id % 3 = 0 FOR SHARE) x; SAVEPOINT c; UPDATE o SET n = 1 WHERE id % 9 = 0;
	ROLLBACK TO c; COMMIT", 'CLUSTER VERBOSE o USING i', 'locked ones');
clusters_same("$copy; ALTER TABLE o DROP g, ADD x int DEFAULT 5, ADD y text DEFAULT 'long' NOT NULL, DROP b;
	INSERT INTO o SELECT id, i8, f8, n, v, tz, i2, u, 7 FROM t WHERE id % 5 = 0; ALTER TABLE o ADD z int, DROP x;
	CREATE INDEX i ON o (y, id, f8)", 'CLUSTER VERBOSE o USING i', 'columns that come and go',
	values => 1);
clusters_same("$copy; ALTER TABLE o ADD x int DEFAULT 5; CREATE INDEX i ON o (x, id)", 'CLUSTER VERBOSE o USING i',
	'by a column that no row has');
clusters_same("$copy; ALTER TABLE o SET (fillfactor = 40); CREATE INDEX i ON o (id DESC)", 'CLUSTER VERBOSE o USING i',
	'fillfactor');
clusters_same("$long; CREATE INDEX i ON o (m)", 'CLUSTER VERBOSE o USING i', 'toasted', values => 1, then => sub {
	is($node->ask("SELECT count(*) FROM o JOIN long USING (id)
		WHERE (o.v, o.c, o.w) = (long.v, long.c, long.w)"), 4000, 'values are those of the table');
	is_good($node->ask("SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'o'"),
		'its TOAST table');
});
clusters_same("$long; CREATE INDEX i ON o (substr(v, 1, 9))", 'CLUSTER VERBOSE o USING i', 'an expression', values => 1,
	by => 'postgresql');
clusters_same("CREATE TABLE o AS SELECT * FROM t WHERE id < 0; CREATE INDEX i ON o (id)", 'CLUSTER VERBOSE o USING i',
	'no rows', by => 'any');
clusters_same("CREATE TABLE o AS SELECT * FROM t WHERE id = 7; CREATE INDEX i ON o (id)", 'CLUSTER VERBOSE o USING i',
	'one row');
clusters_same("$copy; CREATE INDEX i ON o (id); DELETE FROM o", 'CLUSTER VERBOSE o USING i', 'dead rows alone',
	by => 'any');
clusters_same("CREATE UNLOGGED TABLE o AS SELECT * FROM t; CREATE INDEX i ON o (i8)", 'CLUSTER VERBOSE o USING i',
	'unlogged');
clusters_same("$copy; CREATE INDEX i ON o (i8)", 'BEGIN; CLUSTER VERBOSE o USING i; SELECT sum(id) FROM o; COMMIT',
	'a transaction');
clusters_same("$copy; CREATE INDEX i ON o (i8); CREATE INDEX j ON o (id)",
	'BEGIN; CLUSTER VERBOSE o USING i; SAVEPOINT a; CLUSTER VERBOSE o USING j; ROLLBACK TO a; COMMIT', 'a subtransaction');
clusters_same("$copy; CREATE INDEX i ON o (i8)", 'BEGIN; CLUSTER VERBOSE o USING i; ROLLBACK', 'one rolled back');
clusters_same("$copy; CREATE INDEX i ON o (id, n)",
	'BEGIN; INSERT INTO o SELECT * FROM t WHERE id < 10; CLUSTER VERBOSE o USING i; SELECT count(*) FROM o; COMMIT',
	'own rows', by => 'postgresql', values => 1);
clusters_same("$copy; CREATE INDEX i ON o (id, n)",
	'BEGIN; UPDATE o SET n = 4 WHERE id % 99 = 0; CLUSTER VERBOSE o USING i; SELECT count(*) FROM o; COMMIT',
	'own changes', by => 'postgresql', values => 1);
clusters_same("CREATE MATERIALIZED VIEW om AS SELECT * FROM t; CREATE INDEX i ON om (i8)", 'CLUSTER VERBOSE om USING i',
	'a materialized view', table => 'om');
clusters_same("$copy; CREATE INDEX i ON o (id) WHERE id > 5", 'CLUSTER VERBOSE o USING i', 'a partial index',
	by => 'nobody');
clusters_same("$copy; CREATE INDEX i ON o USING hash (id)", 'CLUSTER VERBOSE o USING i', 'a hash index',
	by => 'nobody');
clusters_same("CREATE TABLE o AS SELECT id, point(id * 7919 % 1009, id) AS p FROM t;
	CREATE INDEX i ON o USING gist (p)",
	'CLUSTER VERBOSE o USING i', 'a GiST index', by => 'nobody');
clusters_same("$copy; CREATE INDEX i ON o (i8)", 'SET enable_indexscan = off; CLUSTER VERBOSE o USING i',
	'no index scans', by => 'nobody');
clusters_same("$copy; CREATE INDEX i ON o (i8)", 'SET gpusort.index_builds = off; CLUSTER VERBOSE o USING i',
	'gpusort.index_builds', by => 'nobody');
clusters_same("$copy; CREATE INDEX i ON o (i8)", 'SET max_parallel_maintenance_workers = 0; CLUSTER VERBOSE o USING i',
	'no workers');
clusters_same("$copy; CREATE INDEX i ON o (i8)", 'VACUUM FULL o', 'VACUUM FULL', by => 'nobody');

# Equal keys, whose rows have no order
$maker->run("DROP TABLE IF EXISTS o; $copy; CREATE INDEX i ON o (g); CREATE INDEX j ON o (b)");
for my $index ('i', 'j')
{
	my $column = $index eq 'i' ? 'g' : 'b';

	like((says('on', "CLUSTER o USING $index"))[1], qr/is written in/, "equal keys, $column: by pages");
	is($node->ask(qq{SELECT count(*), sum(id), count(*) FILTER (WHERE $column < p)
		FROM (SELECT id, $column, lag($column) OVER (ORDER BY ctid) AS p FROM o) x}), '12000|72006000|0',
		"equal keys, $column: in order");
	is_good('o', "equal keys, $column");
}

# By a catalog's index; by more than one table
is((says('on', 'CLUSTER pg_type USING pg_type_oid_index'))[1] =~ /table/ ? 'told' : '', '',
	'a catalog is PostgreSQL\'s');
{
	my $make = q{DROP TABLE IF EXISTS o;
		CREATE TABLE p (id int, g int, v text) PARTITION BY RANGE (g);
		CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (500);
		CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (500) TO (2000);
		CREATE INDEX pi ON p (id);
		INSERT INTO p SELECT id, g, v FROM t ORDER BY i8};
	my (%said, %has, $logged);

	for my $setting ('off', 'on')
	{
		$maker->run($make);
		($said{$setting}, $logged) = says($setting, 'CLUSTER p USING pi; CLUSTER VERBOSE p1 USING p1_id_idx; CLUSTER');
		$has{$setting} = rows('p1') . rows('p2');
		is_good($_, 'a partition') for 'p1', 'p2';
		$maker->run('DROP TABLE p');
	}
	is($said{on}, $said{off}, 'partitions: says the same');
	is($has{on}, $has{off}, 'partitions: the same');
	like($logged, qr/clustering table "p1"\n(?:.*\n)*.*clustering table "p2"/, 'partitions: by pages');
}

# Temporary tables
{
	my %has;

	for my $setting ('off', 'on')
	{
		($has{$setting}, my $logged) = says($setting, "CREATE TEMP TABLE o AS SELECT * FROM long; ANALYZE o;
			CREATE INDEX i ON o (m); CLUSTER VERBOSE o USING i;
			SELECT count(*), md5(string_agg(o::text, ' ' ORDER BY ctid)) FROM o;
			UPDATE o SET id = id; SELECT count(*), sum(id), sum(length(v)) FROM o");
		like($logged, qr/is written in 1 ranges/, 'temporary: by pages') if $setting eq 'on';
	}
	is($has{on}, $has{off}, 'temporary: the same');
}

# Rows that others still see
{
	my $reader = $node->session;
	my %has;

	for my $setting ('off', 'on')
	{
		$maker->run("DROP TABLE IF EXISTS o; $copy; CREATE INDEX i ON o (n, id)");
		$reader->run('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
		$maker->run('UPDATE o SET n = n + 1 WHERE id % 10 = 0; DELETE FROM o WHERE id % 17 = 0');
		my ($said, $logged) = says($setting, 'CLUSTER VERBOSE o USING i');
		like($logged, qr/PostgreSQL clusters table "o": there are rows/, 'rows that others see: by PostgreSQL')
			if $setting eq 'on';
		$has{$setting} = join "\n", $said, $reader->run('SELECT count(*), sum(n) FROM o'), rows('o'), tuple_bytes('o');
		is_good('o', 'rows that others see');
		$reader->run('COMMIT');
	}
	is($has{on}, $has{off}, 'rows that others see: the same');
	$reader->close;
}

# Another snapshot alone is no reason
{
	my $reader = $node->session;

	$maker->run("DROP TABLE IF EXISTS o; $copy; CREATE INDEX i ON o (n, id);
		DELETE FROM o WHERE id % 2 = 0");
	$reader->run('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
	$maker->run('INSERT INTO o SELECT * FROM t WHERE id < 1000');
	like((says('on', 'CLUSTER VERBOSE o USING i'))[1], qr/is written in/, 'new rows: by pages');
	is($node->ask('SELECT count(*) FROM o'), 6999, 'new rows: all are there');
	is($reader->run('SELECT count(*) FROM o'), 6000, 'new rows: not for who is older');
	is_good('o', 'new rows');
	$reader->close;
}

# Statistics, progress
$maker->run("DROP TABLE IF EXISTS o; $copy; CREATE INDEX i ON o (id)");
is($maker->run(q{CLUSTER o USING i; SELECT relname FROM pg_stat_progress_cluster p
	JOIN pg_class c ON c.oid = p.relid}), '', 'no progress is left');

# Ends: cancels, processes terminated: the table is as it was, can be read, and there is no file more
$node->safe_psql('postgres', 'DROP TABLE o; CREATE TABLE big AS SELECT t.* FROM t, generate_series(1, 30) ORDER BY i8;
	CREATE INDEX b ON big (v COLLATE "C", id); VACUUM ANALYZE big; CHECKPOINT');
my $had = rows('big');
my $ended = 0;
for my $ms (1, 10, 20, 50, 80, 120, 200, 300, 400, 600)
{
	my ($said) = says('on', "SET statement_timeout = $ms; CLUSTER VERBOSE big USING b");
	last if $said !~ /canceling statement/;
	$ended++;
	is($node->ask('SELECT count(*) FROM big'), 360000, "cancelled after $ms ms: the table can be read");
}
cmp_ok($ended, '>', 3, 'some are cancelled');
{
	my $session = $node->session;

	$session->send("BEGIN; SAVEPOINT a; SET LOCAL statement_timeout = 20; CLUSTER big USING b");
	$session->result;
	is($session->run('ROLLBACK TO a; SELECT count(*) FROM big; COMMIT'), 360000, 'a subtransaction can go on');
	$session->close;
}
is(stray_files(), '', 'cancelled: no file is left');

# A standby, a crash right after, and after checkpoints in the middle
$node->backup('backup');
my $standby = GpuSortNode->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'gpusort.allowed = off');
$standby->start;
{
	my $maker = $node->session;

	$maker->send('CLUSTER big USING b');
	until ($maker->answered)
	{
		$node->safe_psql('postgres', 'CHECKPOINT');
		sleep 0.05;
	}
	is(($maker->result)[1] =~ /ERROR/ ? 'error' : '', '', 'a table is clustered while there are checkpoints');
}
$node->safe_psql('postgres', "$long; CREATE INDEX i ON o (m); CLUSTER o USING i;
	CREATE UNLOGGED TABLE un AS SELECT * FROM t;
	CREATE INDEX u ON un (i8); CLUSTER un USING u");
my %had = map { $_ => rows($_) } 'o', 'big';
$node->wait_for_catchup($standby);
for my $table (sort keys %had)
{
	is(rows($table, $standby), $had{$table}, "a standby has the same rows of $table");
	is_good($table, "$table on a standby", $standby);
}
$standby->stop;
$node->stop('immediate');
$node->start;
for my $table (sort keys %had)
{
	is(rows($table), $had{$table}, "after a crash there are the same rows of $table");
	is_good($table, "$table after a crash");
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM un'), 0, 'an unlogged table is empty after a crash');
$node->wait_service;
$node->safe_psql('postgres', 'INSERT INTO un SELECT * FROM t; CLUSTER un');
$had = rows('un');
$node->restart;
is(rows('un'), $had, 'an unlogged table has its rows after a restart');
$node->stop;
is(system_log('pg_checksums', '--check', '-D', $node->data_dir), 0, 'all checksums are right');

# Nothing is logged: the file is flushed at the end, or logged if it is small
for my $threshold (0, '1GB')
{
	my $minimal = GpuSortNode->new('minimal' . length $threshold);

	$minimal->init(conf => [ @conf, 'wal_level = minimal', 'max_wal_senders = 0', 'wal_keep_size = 0',
		"wal_skip_threshold = $threshold" ]);
	$minimal->start;
	$minimal->wait_service;
	$minimal->safe_psql('postgres', "CREATE EXTENSION amcheck; $source
		CREATE INDEX i ON t (i8); CREATE INDEX l ON long (m);
		CLUSTER t USING i; CLUSTER long USING l");
	like($minimal->log_text, qr/table "long" is written in/, 'by pages');
	my %before = map { $_ => rows($_, $minimal) } 't', 'long';
	$minimal->stop('immediate');
	$minimal->start;
	for my $table (sort keys %before)
	{
		is(rows($table, $minimal), $before{$table},
			"wal_level = minimal, wal_skip_threshold = $threshold: $table after a crash");
		is_good($table, $table, $minimal);
	}
	$minimal->stop;
}

# Logical decoding sees none of it
my $logical = GpuSortNode->new('logical');
$logical->init(conf => [ @conf, 'wal_level = logical', 'max_replication_slots = 4' ]);
$logical->start;
$logical->wait_service;
$logical->safe_psql('postgres', "$source CREATE INDEX l ON long (m)");
SKIP:
{
	skip 'no test_decoding', 2
		unless eval {
			$logical->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('s', 'test_decoding')});
			1;
		};
	$logical->safe_psql('postgres', 'CLUSTER long USING l');
	like($logical->log_text, qr/table "long" is written in/, 'wal_level = logical: by pages');
	is($logical->safe_psql('postgres',
		q{SELECT count(*) FROM pg_logical_slot_get_changes('s', NULL, NULL) WHERE data LIKE '%INSERT%'}), 0,
		'and no row of it is decoded');
}
$logical->stop;

# A service that lies, or goes, somewhere among the rows: an error and the table as it was; or a right one
SKIP:
{
	skip 'no service with fault points: make gpusortd-faults', 1 unless -x $fault_service;
	my $faulty = GpuSortNode->new('faulty');
	my %count = (errors => 0, tables => 0);

	$faulty->init(conf => [ @conf, 'gpusort.verify_rows = off' ]);
	$faulty->own_module(gpusortd => $fault_service);
	$faulty->start;
	$faulty->wait_service;
	$faulty->safe_psql('postgres', "CREATE EXTENSION amcheck; $source CREATE INDEX i ON t (i8); CREATE INDEX j ON t (id);
		SET gpusort.enable = off; CREATE TABLE a AS SELECT * FROM t ORDER BY i8;
		CREATE TABLE b AS SELECT * FROM t ORDER BY id");
	my %right = (i => rows('a', $faulty), j => rows('b', $faulty));
	my $order = 'j';
	for my $fault ('exit_service', 'drop_row', 'skip_chunk', 'send_twice', 'duplicate_row', 'swap_rows', 'flip_bit')
	{
		for my $at (1, 3)
		{
			my $index = $order eq 'i' ? 'j' : 'i';
			my $error;

			$faulty->choose_fault("$fault $at $at");
			$faulty->psql('postgres', "CLUSTER t USING $index", stderr => \$error);
			$faulty->choose_fault(undef);
			wait_until(sub { $faulty->method eq 'radix' }, 60);
			$order = $index if $error !~ /ERROR/;
			$count{ $error =~ /ERROR/ ? 'errors' : 'tables' }++;
			is(rows('t', $faulty), $right{$order}, "$fault $at: a right table, or the one before") or diag($error);
			is_good('t', "$fault $at", $faulty);
		}
	}
	cmp_ok($count{errors}, '>', 0, 'some are errors');
	cmp_ok($count{tables}, '>', 0, 'some are tables');
	$faulty->stop;
}

done_testing();
