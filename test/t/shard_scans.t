# Foreign tables of postgres_fdw that all processes read, each by a connection of its own (gpusort.shard_connections):
# answers are those of postgres_fdw's own scans, of values that COPY has to escape, too, and of one snapshot; who has
# changed a table sees it; users connect as postgres_fdw lets them; what fails is told, and leaves nobody in the shards.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my %node;
for my $name ('main', 'one', 'two')
{
	$node{$name} = GpuSortNode->new($name);
	$node{$name}->init(conf => [ 'autovacuum = off', 'max_worker_processes = 12', 'max_connections = 40' ]);
	$node{$name}->start;
	$node{$name}->wait_service;
	$node{$name}->safe_psql('postgres', 'CREATE EXTENSION gpusort');
}
my $main = $node{main};
my @shards = @node{ 'one', 'two' };

# --- tables ---------------------------------------------------------------------------------------

my $columns = q{"Id" int8, g int4, k int8, n numeric, s text COLLATE "C", f float8, moment timestamptz, pair "Pair",
	list text[], raw bytea, mood mood, short char(5), span interval};
my $rows = q{SELECT i, i % 500 AS g, CASE WHEN i % 10 = 0 THEN NULL ELSE hashint8extended(i, 7) END,
	CASE WHEN i % 997 = 0 THEN 'NaN' ELSE (i * 7919 % 10007) / 7.0 END,
	(ARRAY[E'a\tb', E'\\\\N', E'\\\\', '', E'line\nline\r', E'\b\f\v', NULL, 'Ä', '\.'])[1 + i % 9] || repeat('x', i % 50),
	(ARRAY['-0', 'NaN', '-Infinity', '1e-300', '0.1']::float8[])[1 + i % 5] * 1,
	'epoch'::timestamptz + i * '1 hour'::interval, CASE WHEN i % 11 > 0 THEN ROW(i, E'c\t,"')::"Pair" END,
	ARRAY[E'\t', 'NULL', NULL, i::text], decode(md5(i::text), 'hex'),
	(ARRAY['glad', 'sad', 'so so']::mood[])[1 + i % 3], (i % 100)::text, i * '1 minute'::interval
		FROM generate_series(1, 40000) i};
my $types = q{CREATE TYPE "Pair" AS (a int8, b text); CREATE TYPE mood AS ENUM ('glad', 'so so', 'sad')};
$_->safe_psql('postgres', "$types; CREATE TABLE divided ($columns) PARTITION BY HASH (g)") for values %node;
$main->safe_psql('postgres', "CREATE EXTENSION postgres_fdw; CREATE TABLE whole ($columns); INSERT INTO whole $rows;"
	. 'ANALYZE whole');
for my $i (0, 1)
{
	my $shard = $shards[$i];
	$shard->safe_psql('postgres',
		qq{CREATE SCHEMA "Far ""off"; CREATE TABLE "Far ""off"."The 'rows'" ($columns); }
		. qq{ALTER TABLE "Far ""off"."The 'rows'" RENAME s TO "S t"; INSERT INTO "Far ""off"."The 'rows'" }
		. "SELECT * FROM ($rows) r WHERE satisfies_hash_partition('divided'::regclass, 2, $i, g); "
		. q{ANALYZE "Far ""off"."The 'rows'"});
	$main->safe_psql('postgres', sprintf q{
		CREATE SERVER shard%1$d FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%2$s', port '%3$d', dbname 'postgres',
			async_capable 'true', fetch_size '1000', connect_timeout '20');
		CREATE USER MAPPING FOR postgres SERVER shard%1$d OPTIONS (user 'postgres');
		CREATE FOREIGN TABLE part%1$d PARTITION OF divided FOR VALUES WITH (MODULUS 2, REMAINDER %1$d) SERVER shard%1$d
			OPTIONS (schema_name 'Far "off', table_name 'The ''rows''');
		ALTER FOREIGN TABLE part%1$d ALTER s OPTIONS (column_name 'S t');
		ANALYZE part%1$d;
	}, $i, $shard->host, $shard->port);
}

# --- answers --------------------------------------------------------------------------------------

my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; '
	. 'SET max_parallel_workers_per_gather = 2; ';
my $on = "$parallel SET gpusort.force = on; SET gpusort.shard_connections = 4; ";
my $alone = 'SET gpusort.enable = off; SET max_parallel_workers_per_gather = 0; ';
my $digest =
	q{WITH q AS MATERIALIZED (%s) SELECT count(*) || ' ' || coalesce(md5(string_agg(q::text, ',')), '') FROM q};

sub scans
{
	my ($query, $settings) = @_;
	my $plan = $main->safe_psql('postgres', ($settings // $on) . "EXPLAIN (COSTS OFF) $query");
	return scalar(() = $plan =~ /GpuSortShardScan/g);
}

# Compares an answer with that of the one table.
sub right
{
	my ($query, $name, $settings, $of_both) = @_;
	$of_both //= '';
	is($main->safe_psql('postgres', $of_both . ($settings // $on) . sprintf $digest, sprintf $query, 'divided'),
		$main->safe_psql('postgres', $of_both . $alone . sprintf $digest, sprintf $query, 'whole'), $name);
	return;
}

my %queries = (
	'all columns' => 'SELECT * FROM %s ORDER BY "Id"',
	'a row as one' => 'SELECT t FROM %s t ORDER BY s, "Id"',
	'no columns' => 'SELECT count(*) FROM %s',
	'what is sent' => 'SELECT "Id", s FROM %s WHERE g < 250 ORDER BY k, "Id"',
	'what is not sent' =>
		q{SELECT "Id" FROM %s WHERE to_char(moment, 'TMDay') <> 'x' AND s COLLATE "POSIX" > 'a' ORDER BY "Id"},
	'what looks like a row number' =>
		q{SELECT "Id" FROM %s WHERE s <> '(4294900001,60001)' AND s <> '(4294900002,60002)' ORDER BY "Id"},
	'a window' => 'SELECT "Id", sum(n) OVER (PARTITION BY g ORDER BY k, "Id") FROM %s ORDER BY 1',
	'DISTINCT ON' => 'SELECT DISTINCT ON (g) * FROM %s ORDER BY g, k DESC, "Id"',
	groups => q{SELECT g, count(*), sum(n), string_agg(s, ',' ORDER BY "Id") FROM %s GROUP BY g ORDER BY g},
	'first rows' => 'SELECT * FROM %s ORDER BY f, "Id" LIMIT 1000',
	'a join with itself' =>
		'SELECT count(*), sum(a."Id") FROM %1$s a JOIN %1$s b ON a.g = b.g AND a."Id" = b."Id" + 500',
	'a join with a table here' => 'SELECT count(*), sum(w.k) FROM %s d LEFT JOIN whole w ON w."Id" = d."Id" + 39000',
	'rows that are not there' =>
		'SELECT count(*) FROM %1$s a WHERE NOT EXISTS (SELECT FROM %1$s b WHERE b."Id" = a."Id" + 1)',
	'a subquery of each row' => 'SELECT "Id", (SELECT max(w.k) FROM whole w WHERE w."Id" = d."Id" + 1) FROM %s d '
		. 'WHERE g = 7 ORDER BY 1',
	'set operations' => '(SELECT g, s FROM %1$s EXCEPT SELECT g, s FROM %1$s WHERE k IS NULL) ORDER BY 1, 2');
right($queries{$_}, $_) for sort keys %queries;
right($queries{$_}, "$_, without a Parallel Append", "$on SET enable_parallel_append = off; ") for sort keys %queries;
right($queries{$_}, "$_, partitionwise",
	"$on SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on; ") for sort keys %queries;
right($queries{'all columns'}, 'other formats', $on, q{SET TimeZone = 'Asia/Kathmandu'; SET DateStyle = 'German'; }
	. q{SET IntervalStyle = 'iso_8601'; SET extra_float_digits = 0; SET client_encoding = 'LATIN1'; });

is(scans('SELECT * FROM divided ORDER BY k'), 2, 'each partition is read by all processes');
is(scans('SELECT * FROM part0 ORDER BY k'), 1, 'and one alone');
is(scans('SELECT * FROM divided ORDER BY k', "$on SET gpusort.force = off; "), 0, 'but not few rows');
is(scans('SELECT * FROM divided ORDER BY k', "$on SET gpusort.shard_connections = 1; "), 0, 'nor by one connection');
is(scans('SELECT * FROM divided ORDER BY k', "$on SET gpusort.enable = off; "), 0, 'nor without gpusort');
is(scans("SELECT $_ FROM part0 ORDER BY k"), 0, "nor where $_ is asked for") for 'ctid', 'xmin', 'tableoid';
is(scans('SELECT * FROM divided ORDER BY k', "BEGIN; $on $_; "), 0, "nor after $_ in the same transaction")
	for 'SELECT FROM part0 LIMIT 1', 'ANALYZE part0', 'UPDATE whole SET g = g WHERE g < 0',
	'CREATE TEMP TABLE made AS SELECT FROM part1';
is(scans("SELECT $_"), 0, 'nor where postgres_fdw reads another table of the server')
	for q{(SELECT sum(g) FROM part0 WHERE random() < 2), (SELECT count(*) FROM part0 WHERE ctid > '(0,0)')},
	q{count(*) FROM (SELECT g::text FROM part0 WHERE random() < 2 UNION ALL SELECT ctid::text FROM part0) s};
$main->safe_psql('postgres', q{CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS
	$$BEGIN RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query; END$$});
unlike($main->safe_psql('postgres', "$on SELECT plan_of('SELECT * FROM divided ORDER BY k')"), qr/GpuSortShardScan/,
	'nor in a statement that is part of another');
is(scans('SELECT * FROM part0 ORDER BY k', "BEGIN; ALTER $_ OPTIONS (ADD use_remote_estimate 'true'); $on"), 0,
	"nor with use_remote_estimate of $_") for 'SERVER shard0', 'FOREIGN TABLE part0';
is(scans('SELECT * FROM divided ORDER BY k', "BEGIN ISOLATION LEVEL REPEATABLE READ; $on"), 0,
	'nor in a transaction with one snapshot');
is(scans('SELECT * FROM divided ORDER BY k', "$on SET parallel_leader_participation = off; "), 0,
	'nor where the leader takes no part');

# So many rows for a table of several parts
my $plan = $main->safe_psql('postgres',
	"$on EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF) SELECT * FROM divided ORDER BY k");
like($plan, qr/GpuSortShardScan\).*part0 .*Remote SQL: SELECT "Id".*Parts: [2-9].*Connections: [123]\n/s,
	'EXPLAIN tells')
	or diag $plan;

# --- one snapshot ---------------------------------------------------------------------------------

# Rows move to other pages, and their sum stays, in each shard.
my $move = q{DO $$ BEGIN FOR i IN 1 .. 40 LOOP
	UPDATE "Far ""off"."The 'rows'" SET g = g + CASE "Id" % 2 WHEN 0 THEN 1 ELSE -1 END
		WHERE "Id" % 100 IN (i, i + 1) AND (SELECT count(*) FROM "Far ""off"."The 'rows'" b WHERE b."Id" % 100 = i) > 0;
	COMMIT; END LOOP; END $$};
my @movers = map { $_->session } @shards;
my $sum = 'SELECT count(*) FROM (SELECT "Id" FROM divided ORDER BY k) s';
my $twice = 'SELECT count(*), count(*) FILTER (WHERE a.g <> b.g) FROM (SELECT "Id", g FROM part0 OFFSET 0) a '
	. 'LEFT JOIN (SELECT "Id", g FROM again OFFSET 0) b USING ("Id")';
$main->safe_psql('postgres', q{CREATE FOREIGN TABLE again ("Id" int8, g int4) SERVER shard0
	OPTIONS (schema_name 'Far "off', table_name 'The ''rows'''); ANALYZE again});
my $rows0 = $main->safe_psql('postgres', 'SELECT count(*) FROM part0');
is(scans($twice, "$on SET enable_mergejoin = off; "), 2, 'a table that is read twice');
$_->send($move) for @movers;
my %sums;
$sums{ $main->safe_psql('postgres', "$on $sum") }++ for 1 .. 15;
is(join(',', keys %sums), '40000', 'all rows once, while they move');
%sums = ();
$sums{ $main->safe_psql('postgres', "$on SET enable_mergejoin = off; $twice") }++ for 1 .. 15;
is(join(',', keys %sums), "$rows0|0", 'the same values where a table is read twice');
$_->result for @movers;

# --- transactions ---------------------------------------------------------------------------------

my $count = 'SELECT count(*), count(*) FILTER (WHERE "Id" < 0) FROM (SELECT "Id" FROM divided ORDER BY k) s';
for my $case ([ 'an INSERT', 'INSERT INTO part0 ("Id", g) SELECT -1, g FROM part0 LIMIT 1' ],
	[ 'an INSERT in WITH',
		'WITH i AS (INSERT INTO part0 ("Id", g) SELECT -1, g FROM part0 LIMIT 1 RETURNING 1) SELECT FROM i' ],
	[ 'an INSERT in DO', 'DO $$ BEGIN INSERT INTO part0 ("Id", g) SELECT -1, g FROM part0 LIMIT 1; END $$' ],
	[ 'an INSERT by the parent', 'INSERT INTO divided ("Id", g) SELECT -1, g FROM part0 LIMIT 1' ],
	[ 'a COPY', q{COPY part0 ("Id", g) FROM PROGRAM 'echo -1 2' (DELIMITER ' ')} ])
{
	my ($name, $change) = @$case;
	is($main->safe_psql('postgres', "$on BEGIN; $change; $count; ROLLBACK"), '40001|1',
		"$name of the transaction is seen");
}
is($main->safe_psql('postgres', "$on SET plan_cache_mode = force_generic_plan; PREPARE q AS $count; EXECUTE q; BEGIN; "
	. 'INSERT INTO part0 ("Id", g) SELECT -1, g FROM part0 LIMIT 1; EXECUTE q; ROLLBACK; EXECUTE q'),
	"40000|0\n40001|1\n40000|0", 'by a prepared statement, too');
is($main->safe_psql('postgres', "$on SET plan_cache_mode = force_generic_plan; PREPARE q AS $count; EXECUTE q; "
	. 'SET parallel_leader_participation = off; EXECUTE q'), "40000|0\n40000|0",
	'one whose leader takes no part any more');
is($main->safe_psql('postgres',
	"$on BEGIN; DECLARE c CURSOR FOR SELECT \"Id\" FROM divided ORDER BY \"Id\"; FETCH 2 FROM c; "
	. 'MOVE FORWARD ALL FROM c; COMMIT'), "1\n2", 'a cursor');

# More workers than connections, since another table wants them
for (1 .. 5)
{
	is($main->safe_psql('postgres', "$on SET gpusort.shard_connections = 2; SET max_parallel_workers_per_gather = 3; "
		. 'SET gpusort.force = off; SELECT count(*) FROM (SELECT initcap(s) FROM part0 UNION ALL '
		. 'SELECT initcap(s) FROM whole) s'), $rows0 + 40000, 'more workers than connections');
}

# Statements whose GpuSorts start workers of their own
$main->safe_psql('postgres', 'CREATE TABLE taken (id int8, s text)');
for my $case ([ 'an INSERT', 'INSERT INTO taken SELECT "Id", s FROM divided ORDER BY s; SELECT count(*) FROM taken' ],
	[ 'a loop', 'DO $$DECLARE r record; n int := 0; BEGIN FOR r IN SELECT "Id" FROM divided ORDER BY initcap(s) LOOP '
			. q{n := n + 1; END LOOP; PERFORM set_config('x.n', n::text, false); END$$; SHOW x.n} ])
{
	my ($name, $sql) = @$case;
	is($main->safe_psql('postgres', "$on $sql"), '40000', "$name, with workers of its own");
}

# --- who may connect ------------------------------------------------------------------------------

$main->safe_psql('postgres', q{CREATE ROLE plain; CREATE ROLE trusted;
	GRANT SELECT ON divided, part0, part1, whole TO plain, trusted;
	CREATE VIEW of_owner AS SELECT * FROM divided; GRANT SELECT ON of_owner TO trusted;
	CREATE USER MAPPING FOR plain SERVER shard0 OPTIONS (user 'postgres');
	CREATE USER MAPPING FOR plain SERVER shard1 OPTIONS (user 'postgres', password 'unused');
	CREATE USER MAPPING FOR trusted SERVER shard0 OPTIONS (user 'postgres', password_required 'false');
	CREATE USER MAPPING FOR trusted SERVER shard1 OPTIONS (user 'postgres', password_required 'false')});
is(scans('SELECT * FROM part0 ORDER BY k', "$on SET ROLE plain; "), 0, 'no connection without a password');
my $err;
$main->psql('postgres', "$on SET ROLE plain; SELECT k FROM part1 ORDER BY k", stderr => \$err);
like($err, qr/password is required|password or GSSAPI/, 'nor by one that the shard does not ask for');
is(scans('SELECT * FROM divided ORDER BY k', "$on SET ROLE trusted; "), 2, 'but for whom an administrator lets');
is($main->safe_psql('postgres', "$on SET ROLE trusted; $count"), '40000|0', 'who gets the rows');
is(scans('SELECT * FROM of_owner ORDER BY k', "$on SET ROLE trusted; "), 0, "not through somebody else's view");
is($main->safe_psql('postgres', "$on SET plan_cache_mode = force_generic_plan; PREPARE q AS $count; EXECUTE q; "
	. 'SET ROLE trusted; EXECUTE q'), "40000|0\n40000|0", 'a prepared statement of two users');

# The user who has opened a cursor reads its rows.
is($main->safe_psql('postgres',
	"$on BEGIN; DECLARE c CURSOR FOR SELECT \"Id\" FROM divided ORDER BY \"Id\"; SET ROLE plain; FETCH 2 FROM c"),
	"1\n2", 'a cursor that another user fetches from');

# What workers may not check, and servers that one connection finds and another does not
$main->safe_psql('postgres', q{CREATE DOMAIN checked AS int4 CHECK (VALUE >= 0);
	CREATE TYPE checked_pair AS (a checked); CREATE FOREIGN TABLE checks (id int8, g checked, p checked_pair)
		SERVER shard0 OPTIONS (table_name 'whatever');
	CREATE SERVER several FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'a.example,b.example');
	CREATE USER MAPPING FOR postgres SERVER several; CREATE FOREIGN TABLE anywhere (id int8) SERVER several});
is(scans("SELECT $_ FROM checks c ORDER BY id"), 0, "no values of $_ in workers") for 'g', 'p', 'c';
is(scans('SELECT id FROM checks ORDER BY id'), 1, 'but other columns');
is(scans('SELECT id FROM anywhere ORDER BY id'), 0, 'nor a server of several hosts');

# --- what fails -----------------------------------------------------------------------------------

# No query of gpusort's runs in a shard any more.
sub nobody_left
{
	my ($name) = @_;
	ok($_->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'gpusort'}),
		"$name: nobody is left in shard " . $_->name) for @shards;
	return;
}

nobody_left('after all these');
for my $shard (@shards)
{
	$shard->safe_psql('postgres', q{CREATE ROLE few LOGIN CONNECTION LIMIT 1; CREATE ROLE nobody LOGIN CONNECTION LIMIT 0;
		GRANT USAGE ON SCHEMA "Far ""off" TO few, nobody; GRANT SELECT ON "Far ""off"."The 'rows'" TO few, nobody;
		CREATE VIEW failing AS SELECT i AS id, 1 / (30000 - i) AS k FROM generate_series(1, 40000) i;
		CREATE VIEW endless AS SELECT i AS id, 0 AS k FROM generate_series(1, 100000000) i WHERE i < 0;
		CREATE VIEW words AS SELECT i AS id, CASE i WHEN 20000 THEN 'word' ELSE '1' END AS k
			FROM generate_series(1, 40000) i});
}
for my $name ('failing', 'endless', 'words')
{
	$main->safe_psql('postgres',
		"CREATE FOREIGN TABLE $name (id int8, k int4) SERVER shard0 OPTIONS (table_name '$name')");
}
sub fails
{
	my ($query, $like, $name, $settings) = @_;
	my $failed;

	$main->psql('postgres', ($settings // $on) . $query, stderr => \$failed);
	like($failed, $like, $name);
	nobody_left($name);
	return;
}
is(scans("SELECT * FROM $_ ORDER BY k"), 1, "$_ is read by all processes") for 'failing', 'endless', 'words';
fails('SELECT * FROM failing ORDER BY k', qr/ERROR:  division by zero\n.*CONTEXT:  remote SQL command: COPY/s,
	'an error of a shard');
fails('SELECT * FROM words ORDER BY k',
	qr/ERROR:  invalid input syntax for type integer: "word"\nCONTEXT:  column "k" of foreign table "words"/,
	'a value of another type');
fails('SELECT * FROM endless ORDER BY k', qr/canceling statement due to statement timeout/, 'a timeout',
	"$on SET statement_timeout = '300ms'; ");
my $session = $main->session;
$session->run($_) for split /;\s*/, $on;
$session->send('SELECT * FROM endless ORDER BY k');
ok($shards[0]->poll_query_until('postgres',
	q{SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'gpusort' AND query LIKE 'COPY%'}),
	'a shard computes');
$main->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%endless%' AND
	pid <> pg_backend_pid() AND backend_type = 'client backend'});
like(($session->result)[1], qr/canceling statement due to user request/, 'a cancel');
nobody_left('a cancel');
is($session->run("SELECT count(*) FROM divided"), '40000', 'and the session goes on');

# With fewer connections than processes those that have one read all.
$main->safe_psql('postgres', "ALTER USER MAPPING FOR postgres SERVER shard$_ OPTIONS (SET user 'few')") for 0, 1;
is($main->safe_psql('postgres', "$on $_"), '40000|0', "a shard that takes one connection: $_")
	for ($count) x 5, 'SELECT count(*), 0 FROM (SELECT initcap(s) FROM divided) x',
	'SELECT count(*), 0 FROM divided a JOIN divided b USING ("Id", g)';
$main->safe_psql('postgres', "ALTER USER MAPPING FOR postgres SERVER shard$_ OPTIONS (SET user 'nobody')") for 0, 1;
fails($count, qr/too many connections for role "nobody"/, 'a shard that takes none');
$main->safe_psql('postgres', "ALTER USER MAPPING FOR postgres SERVER shard$_ OPTIONS (SET user 'postgres')") for 0, 1;
$plan = $main->safe_psql('postgres',
	"$on SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT * FROM divided ORDER BY k; "
	. 'BEGIN; SELECT FROM part0 LIMIT 1; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE q');
unlike($plan, qr/Connections/, 'no connection after other statements') or diag $plan;

# A shard ends.
$shards[1]->stop('immediate');
$main->psql('postgres', "$on $count", stderr => \$err);
like($err, qr/could not connect to server "shard1"/, 'a shard that is down');
$shards[1]->start;
is($main->safe_psql('postgres', "$on $count"), '40000|0', 'and is back');

done_testing();
