# Sorts over three clusters by postgres_fdw, as doc/scale-out.md has them: a coordinator with a part of the rows and two
# shards.  Answers are those of one table without gpusort, plans are the documented ones at the coordinator and in the
# shards, which are asked for groups and first rows; a shard's service that is killed, a cancel, and a shard without
# gpusort change no answer.
use strict;
use warnings;

use File::Temp qw(tempdir);
use GpuSortNode;
use IPC::Run ();
use Test::More;

# A locale of the C library's, which the machine need not have; PostgreSQL looks for it where we say.
my $directory = tempdir(CLEANUP => 1);
chmod 0755, $directory;
my $locale = eval {
	IPC::Run::run([ 'localedef', '-i', 'de_DE', '-f', 'UTF-8', "$directory/de_DE.utf8" ], '>', '/dev/null', '2>&1');
	-d "$directory/de_DE.utf8";
};
$ENV{LOCPATH} = $directory if $locale;
my $german = $locale ? 'german' : '"C"';

my %node;
for my $name ('main', 'one', 'two')
{
	$node{$name} = GpuSortNode->new($name);
	$node{$name}->init(conf => [ 'gpusort.min_rows = 2000', 'gpusort.setup_cost = 20', 'gpusort.staging_memory = 32MB',
		'autovacuum = off' ]);
	$node{$name}->start;
}
my $main = $node{main};
my @shards = @node{ 'one', 'two' };
my %service;
for my $name (sort keys %node)
{
	$service{$name} = $node{$name}->wait_service;
	$node{$name}->safe_psql('postgres', 'CREATE EXTENSION gpusort');
	$node{$name}->safe_psql('postgres', q{CREATE COLLATION german (provider = libc, locale = 'de_DE.utf8')}) if $locale;
}

my $columns = qq{id int, g int, k int8, n numeric, s text COLLATE "C", w text COLLATE $german};
my $rows = q{SELECT i AS id, i % 500 AS g, CASE WHEN i % 10 = 0 THEN NULL ELSE hashint8extended(i, 7) END AS k,
	(i * 7919 % 10007) / 7.0 AS n, md5(i::text) AS s,
	(ARRAY['Apfel', 'Äpfel', 'apfel', 'Apfel-', 'co-op', 'coop'])[1 + i % 6] || i % 977 AS w
		FROM generate_series(1, 30000) i};
$_->safe_psql('postgres', "CREATE TABLE part ($columns); CREATE TABLE parted ($columns) PARTITION BY HASH (g)")
	for values %node;
$main->safe_psql('postgres',
	"CREATE EXTENSION postgres_fdw; CREATE TABLE whole ($columns); INSERT INTO whole $rows; ANALYZE whole");
for my $i (0 .. 2)
{
	my $node = (@node{ 'main', 'one', 'two' })[$i];
	$node->safe_psql('postgres',
		"INSERT INTO part SELECT * FROM ($rows) r WHERE satisfies_hash_partition('parted'::regclass, 3, $i, g); "
		. "ANALYZE part");
	if ($i == 0)
	{
		$node->safe_psql('postgres', 'ALTER TABLE parted ATTACH PARTITION part FOR VALUES WITH (MODULUS 3, REMAINDER 0)');
		next;
	}
	$main->safe_psql('postgres', sprintf q{
		CREATE SERVER shard%1$d FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%2$s', port '%3$d', dbname 'postgres',
			async_capable 'true', fetch_size '1000', options '-c cursor_tuple_fraction=1');
		CREATE USER MAPPING FOR postgres SERVER shard%1$d OPTIONS (user 'postgres');
		CREATE FOREIGN TABLE part%1$d PARTITION OF parted FOR VALUES WITH (MODULUS 3, REMAINDER %1$d) SERVER shard%1$d
			OPTIONS (table_name 'part');
		ANALYZE part%1$d;
	}, $i, $node->host, $node->port);
}

# --- answers --------------------------------------------------------------------------------------

my %queries = (
	ascending => 'SELECT * FROM %s ORDER BY k, id',
	descending => 'SELECT * FROM %s ORDER BY k DESC, id',
	'nulls first' => 'SELECT * FROM %s ORDER BY k NULLS FIRST, id DESC',
	numeric => 'SELECT id, n FROM %s ORDER BY n, id',
	'text under "C"' => 'SELECT id, s FROM %s ORDER BY s',
	'text in German' => 'SELECT id, w FROM %s ORDER BY w, id',
	'an expression' => 'SELECT id, g FROM %s ORDER BY id %% 1000, id',
	'the first rows' => 'SELECT * FROM %s ORDER BY k, id LIMIT 100',
	'OFFSET' => 'SELECT * FROM %s ORDER BY k, id LIMIT 100 OFFSET 20000',
	'DISTINCT ON' => 'SELECT DISTINCT ON (g) * FROM %s ORDER BY g, k, id',
	'a window' => 'SELECT id, rank() OVER w, sum(n) OVER w FROM %s WINDOW w AS (PARTITION BY g ORDER BY k, id) '
	. 'ORDER BY g, k, id',
	'GROUP BY' => 'SELECT g, count(*), sum(n), min(s) FROM %s GROUP BY g ORDER BY g',
	'groups that each shard has' => 'SELECT id %% 7 AS r, count(*), count(k), sum(id), sum(k), sum(n), avg(id), avg(k), '
	. 'avg(n), min(k), max(id), bool_and(id > 10), bool_or(g = 3), every(k IS NULL) FROM %s GROUP BY 1 ORDER BY 1',
	'conditions on groups' => 'SELECT g %% 50 + 1 AS r, count(*) FILTER (WHERE k > 0) AS c, avg(n) FILTER (WHERE id < 90) '
	. 'FROM %s WHERE id > 3 GROUP BY g %% 50 HAVING sum(id) > 3000000 AND max(g) > 453 ORDER BY c DESC, r LIMIT 20',
	'all rows' => 'SELECT count(*), count(k), sum(id), avg(n), max(k) / 2 - min(k) / 2, 1 FROM %s',
	'no rows' => 'SELECT count(*), sum(id), avg(n), count(DISTINCT g), bool_or(true) FROM %s WHERE id < 0',
	'groups of no rows' => 'SELECT g, count(*) FROM %s WHERE id < 0 GROUP BY g',
	'aggregates by the partition key' => 'SELECT g, count(DISTINCT k), max(n), percentile_disc(0.3) WITHIN GROUP '
	. '(ORDER BY n) FROM %s GROUP BY g ORDER BY g',
	'DISTINCT' => 'SELECT DISTINCT g %% 9, k IS NULL, g %% 9 + 1 FROM %s ORDER BY 1, 2',
	'DISTINCT of groups' => 'SELECT DISTINCT count(*) > 50 FROM %s GROUP BY g %% 77 ORDER BY 1',
	'count(DISTINCT)' => 'SELECT count(DISTINCT g), count(*), sum(g), avg(n) FROM %s',
	'count(DISTINCT) of groups' => 'SELECT id %% 3, count(DISTINCT g %% 20), max(id) FROM %s GROUP BY 1 ORDER BY 1',
	'two of them' => 'SELECT count(DISTINCT g), count(DISTINCT id %% 5) FROM %s',
	'a window of groups' => 'SELECT g %% 10, sum(count(*)) OVER (ORDER BY g %% 10) FROM %s GROUP BY 1 ORDER BY 1',
	'groups below a join' => 'SELECT a.r, a.c, b.id FROM (SELECT g %% 40 AS r, count(*) AS c FROM %1$s GROUP BY 1) a '
	. 'JOIN (SELECT id, k FROM %1$s ORDER BY k NULLS FIRST, id LIMIT 30) b ON b.id %% 40 = a.r ORDER BY b.id',
	'groups in WITH' => 'WITH a AS MATERIALIZED (SELECT g %% 40 AS r, sum(n) FROM %s GROUP BY 1) '
	. 'SELECT * FROM a ORDER BY r',
	'first rows by an expression' => 'SELECT g, abs(id - 15000) AS far, s FROM %s WHERE k IS NOT NULL '
	. 'ORDER BY abs(id - 15000) DESC, id + 1 LIMIT 50 OFFSET 7',
	'LIMIT 0' => 'SELECT * FROM %s ORDER BY id LIMIT 0',
	'GROUP BY of another column' => 'SELECT n, count(*) FROM %s GROUP BY n ORDER BY n',
	'sorts that are run again' => q{SELECT x, (SELECT string_agg(id::text, ',') FROM (SELECT id FROM %s WHERE g > x * 100 }
		. q{ORDER BY k, id OFFSET 5) s) FROM generate_series(1, 3) x},
	'a join' => 'SELECT a.id, b.id FROM %1$s a JOIN %1$s b ON a.k = b.k ORDER BY a.k, a.id, b.id');
my $digest = q{WITH q AS MATERIALIZED (%s) SELECT count(*) || ' ' || md5(string_agg(q::text, ',')) FROM q};
my %right;

sub digest
{
	my ($name, $table) = @_;
	return sprintf $digest, sprintf $queries{$name}, $table;
}

# Compares all answers with those of the one table.
sub all_right
{
	my ($name, $settings) = @_;
	my @wrong;

	for my $query (sort keys %queries)
	{
		$right{$query} //= $main->safe_psql('postgres', 'SET gpusort.enable = off; ' . digest($query, 'whole'));
		my $answer = $main->safe_psql('postgres', ($settings || '') . digest($query, 'parted'));
		push @wrong, "$query: $answer" if $answer ne $right{$query};
	}
	is(join("\n", @wrong), '', "$name: all answers");
	return;
}

all_right('as planned');
all_right('gpusort forced', 'SET gpusort.force = on; ');
all_right('merge joins', 'SET enable_hashjoin = off; SET enable_nestloop = off; SET gpusort.force = on; ');
all_right('without gpusort at the coordinator', 'SET gpusort.enable = off; ');
all_right('one shard after the other, no hashing',
	'SET enable_async_append = off; SET enable_hashagg = off; SET enable_hashjoin = off; ');
all_right('partitionwise', 'SET enable_partitionwise_aggregate = on; SET enable_partitionwise_join = on; ');
$main->safe_psql('postgres', "ALTER SERVER shard$_ OPTIONS (ADD use_remote_estimate 'true')") for 1, 2;
all_right('with remote estimates');
$main->safe_psql('postgres', "ALTER SERVER shard$_ OPTIONS (DROP use_remote_estimate)") for 1, 2;
my $by_all = 'SET gpusort.shard_connections = 3; SET max_parallel_workers_per_gather = 2; SET gpusort.force = on; '
	. 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; ';
all_right('by all processes', $by_all);

# what a shard's cursor returns is computed by all processes of the shard
my $in_parallel = join ' ', map { "-c $_" } qw(gpusort.force=on max_parallel_workers_per_gather=2 parallel_setup_cost=0
	parallel_tuple_cost=0 min_parallel_table_scan_size=0);
$main->safe_psql('postgres', "ALTER SERVER shard$_ OPTIONS (SET options '-c cursor_tuple_fraction=1 $in_parallel')")
	for 1, 2;
all_right('by all processes of the shards', 'SET enable_partitionwise_aggregate = on; ');
$main->safe_psql('postgres', "ALTER SERVER shard$_ OPTIONS (SET options '-c cursor_tuple_fraction=1')") for 1, 2;

# --- plans ----------------------------------------------------------------------------------------

sub plan_of
{
	my ($query, $settings) = @_;
	return $main->safe_psql('postgres', ($settings || '') . "EXPLAIN (VERBOSE, COSTS OFF) $query");
}

# The plans that shards make of the cursors that a plan has postgres_fdw open, in one string each.
sub remote_plans
{
	my ($plan, $settings) = @_;
	my @plans;

	while ($plan =~ /Remote SQL: (.*)/g)
	{
		push @plans, $shards[ @plans % 2 ]->safe_psql('postgres',
			"SET search_path = pg_catalog; SET cursor_tuple_fraction = 1; @{[ $settings || '' ]}"
				. "EXPLAIN (COSTS OFF) DECLARE c CURSOR FOR $1");
	}
	return @plans;
}

# All shards at once, sorted here
my $async = qr/->  Async Foreign Scan on public\./;
my $scans = qr/->  Seq Scan on public\.part .*${async}part1 .*${async}part2 /s;
my $at_once = qr/Custom Scan \(GpuSort\)\n.*->  Append\n.*$scans/s;
for my $case ([ 'ORDER BY', 'SELECT * FROM parted ORDER BY k', qr/^/ ],
	[ 'text', 'SELECT id FROM parted ORDER BY s', qr/^/ ],
	[ 'DISTINCT ON', 'SELECT DISTINCT ON (g) * FROM parted ORDER BY g, k DESC', qr/^Unique\n.*/s ],
	[ 'a window', 'SELECT id, rank() OVER (PARTITION BY g ORDER BY k) FROM parted', qr/^WindowAgg\n.*/s ],
	[ 'groups in order', q{SELECT g, string_agg(s, ',' ORDER BY s) FROM parted GROUP BY g}, qr/^GroupAggregate\n.*/s ])
{
	my ($name, $query, $above) = @$case;
	like(plan_of($query), qr/$above$at_once/, "$name: a GpuSort reads all shards at once");
}

# One after the other, each sorted there: where the first rows are wanted, or shards cannot be read at once
my $local = qr/->  (?:Sort|Custom Scan \(GpuSort\))\n.*->  Seq Scan on public\.part /s;
my $ordered = qr/->  Foreign Scan on public\.part1 .*Remote SQL: [^\n]* ORDER BY [^\n]*\n/s;
my $merge = qr/Merge Append\n.*$local.*$ordered.*->  Foreign Scan on public\.part2 /s;
my $serial = 'SET enable_async_append = off; SET gpusort.row_cost = 1; ';
my @remote;
for my $case ([ 'LIMIT', 'SELECT * FROM parted ORDER BY k LIMIT 20000', qr/^Limit\n.*/s, $serial ],
	[ 'ORDER BY', 'SELECT * FROM parted ORDER BY k', qr/^/, $serial ],
	[ 'DISTINCT ON', 'SELECT DISTINCT ON (g) * FROM parted ORDER BY g, k DESC', qr/^Unique\n.*/s, $serial ],
	[ 'a window', 'SELECT id, rank() OVER (PARTITION BY g ORDER BY k) FROM parted', qr/^WindowAgg\n.*/s, $serial ],
	[ 'text', 'SELECT id FROM parted ORDER BY s', qr/^/, $serial ],
	[ 'text in German', 'SELECT id FROM parted ORDER BY w', qr/^/, $serial ])
{
	my ($name, $query, $above, $settings) = @$case;
	my $plan = plan_of($query, $settings);
	like($plan, qr/$above$merge/, "$name: sorted shards are merged");
	@remote = remote_plans($plan);
	is(scalar(grep { /^Custom Scan \(GpuSort\)/ } @remote), 2, "$name: each sorts by GpuSort") or diag $plan, @remote;
}
is(scalar(() = plan_of('SELECT * FROM parted ORDER BY k', 'SET enable_async_append = off; ') =~ /Async/g), 0,
	'nothing is read at once where that is off');
my $foreign = '(SELECT * FROM part1 UNION ALL SELECT * FROM part2) s';
unlike(plan_of("SELECT count(DISTINCT k), count(DISTINCT g) FROM $_"), qr/Nested Loop/,
	"what may differ from scan to scan is read once: $_") for $foreign, 'part1', 'parted';
for my $query ("SELECT * FROM $foreign ORDER BY k", "SELECT DISTINCT ON (g) * FROM $foreign ORDER BY g, k DESC")
{
	like(plan_of($query), qr/Custom Scan \(GpuSort\)/, "foreign tables alone are sorted here: $query");
	unlike(plan_of($query, 'SET enable_sort = off; '), qr/GpuSort/, 'but not where sorting is off, since the shards can');
}

like(plan_of('SELECT * FROM parted ORDER BY k, id', $by_all), qr/Gather.*GpuSortShardScan/s,
	'shards are read by all processes');

my $union = 'SELECT * FROM ((SELECT * FROM part ORDER BY k, id LIMIT 100) UNION ALL (SELECT * FROM part1 '
	. 'ORDER BY k, id LIMIT 100) UNION ALL (SELECT * FROM part2 ORDER BY k, id LIMIT 100) OFFSET 0) s ORDER BY k, id '
	. 'LIMIT 100';
is(scalar(() = plan_of($union) =~ /Async Foreign Scan.*\n.*\n.*Remote SQL: [^\n]* LIMIT 100::bigint/g), 2,
	'branches of a UNION ALL have their LIMIT in the shards, at once');
is($main->safe_psql('postgres', sprintf $digest, $union), $right{'the first rows'}, 'and the first rows are right');

my $plan = plan_of('SELECT g, count(*), sum(n) FROM parted GROUP BY g', 'SET enable_partitionwise_aggregate = on; ');
is(scalar(() = $plan =~ /Async Foreign Scan\n.*\n.*\n.*Remote SQL: [^\n]* GROUP BY 1/g), 2,
	'groups by the partition key are made in the shards') or diag $plan;
$plan = plan_of('SELECT g, count(DISTINCT k) FROM parted GROUP BY g', 'SET enable_partitionwise_aggregate = on; ');
@remote = remote_plans($plan, join ' ', map { "SET $_;" } grep { !/^-c/ } split ' ', $in_parallel);
is(scalar(grep { /^Custom Scan \(GpuSortExchange\).*GroupAggregate/s } @remote), 2, 'by all processes of the shards')
	or diag $plan, @remote;
unlike(plan_of('SELECT id FROM parted ORDER BY s COLLATE "POSIX"'), qr/Remote SQL: [^\n]* ORDER BY/,
	'a collation in ORDER BY is not sent');

my ($out, $err);

# --- what shards are asked for ------------------------------------------------------------------------

# How many shards are asked for groups, or for first rows, of how many that are asked at once
sub asked
{
	my ($plan) = @_;
	my @remote = $plan =~ /Async Foreign Scan.*\n(?:(?!.*->).*\n)*?.*Remote SQL: (.*)/g;

	return grep({ / GROUP BY | LIMIT |^SELECT (?:count|sum)\(/ } @remote) . ' of ' . @remote;
}

for my $query ('groups that each shard has', 'conditions on groups', 'all rows', 'DISTINCT', 'DISTINCT of groups',
	'count(DISTINCT)', 'count(DISTINCT) of groups', 'a window of groups', 'groups in WITH', 'the first rows',
	'first rows by an expression')
{
	my $plan = plan_of(sprintf $queries{$query}, 'parted');
	is(asked($plan), '2 of 2', "shards are asked at once: $query") or diag $plan;
}
is(asked(plan_of(sprintf $queries{'groups below a join'}, 'parted')), '4 of 4', 'in each subquery');
for my $case ([ 'an aggregate that is of floats', 'SELECT g % 7, avg(n::float8) FROM parted GROUP BY 1' ],
	[ 'one in an order', q{SELECT g % 7, string_agg(s, '' ORDER BY s) FROM parted GROUP BY 1} ],
	[ 'the greatest of numerics that may look different', 'SELECT g % 7, max(n) FROM parted GROUP BY 1' ],
	[ 'two of DISTINCT', 'SELECT count(DISTINCT g), count(DISTINCT id % 7) FROM parted' ],
	[ 'as many groups as rows', 'SELECT id, count(*) FROM parted GROUP BY id' ],
	[ 'a column of the system', 'SELECT tableoid, count(*) FROM parted GROUP BY 1' ],
	[ 'a whole row', 'SELECT count(DISTINCT parted) FROM parted' ],
	[ 'a subquery', 'SELECT (SELECT 1) + g % 7, count(*) FROM parted GROUP BY 1' ],
	[ 'a volatile function', 'SELECT g % 7, count(random()) FROM parted GROUP BY 1' ],
	[ 'WITH TIES', 'SELECT * FROM parted ORDER BY g FETCH FIRST 10 ROWS WITH TIES' ],
	[ 'many first rows', 'SELECT * FROM parted ORDER BY k LIMIT 9990 OFFSET 11' ],
	[ 'rows that are locked', 'SELECT * FROM parted ORDER BY k LIMIT 10 FOR UPDATE' ])
{
	my ($name, $query) = @$case;
	like(asked(plan_of($query)), qr/^0 of /, "not for $name");
}
for my $query ('SELECT g % 7 AS r, count(*) FROM parted GROUP BY 1 HAVING g % 7 = 3',
	'SELECT * FROM (SELECT g % 7 AS r, count(*) FROM parted GROUP BY 1) s WHERE r = 3')
{
	my $plan = plan_of($query, 'SET gpusort.force = on; ');
	is(scalar(() = $plan =~ /Remote SQL: [^\n]* WHERE [^\n]* GROUP BY/g), 2, "conditions reach them: $query")
		or diag $plan;
}
$main->safe_psql('postgres', q{CREATE TABLE ranged (LIKE parted) PARTITION BY RANGE (id)} . join '', map { qq{;
	CREATE FOREIGN TABLE ranged$_ PARTITION OF ranged FOR VALUES FROM ($_) TO ($_ + 1) SERVER shard$_
		OPTIONS (table_name 'part'); ANALYZE ranged$_} } 1, 2);
for my $case ([ 'where an index of a shard may have the first groups soon', 'SELECT k, count(*) FROM parted GROUP BY k '
		. 'ORDER BY k LIMIT 5' ],
	[ 'where the first of them may have all rows', 'SELECT * FROM ranged ORDER BY id LIMIT 5' ],
	[ 'what they would not group themselves', q{SELECT date_trunc('day', now() + g * interval '1 day') IS NULL, count(*) }
		. 'FROM parted GROUP BY 1' ])
{
	my ($name, $query) = @$case;
	like(asked(plan_of($query)), qr/^0 of /, "not asked: $name");
}
is(asked(plan_of('SELECT g % 7, count(*) FROM parted GROUP BY 1', 'SET gpusort.enable = off; ')), '0 of 2',
	'not without gpusort');
is($main->safe_psql('postgres', q{
	PREPARE q (int, int) AS SELECT g % 3, count(*) FROM parted WHERE id > $1 GROUP BY 1 ORDER BY 1 LIMIT $2;
	SET plan_cache_mode = force_custom_plan; EXECUTE q (29990, 5); EXECUTE q (29996, 2);
	SET plan_cache_mode = force_generic_plan; EXECUTE q (29990, 5); EXECUTE q (29996, 2)}),
	$main->safe_psql('postgres', q{
	PREPARE q (int, int) AS SELECT g % 3, count(*) FROM whole WHERE id > $1 GROUP BY 1 ORDER BY 1 LIMIT $2;
	SET gpusort.enable = off; EXECUTE q (29990, 5); EXECUTE q (29996, 2); EXECUTE q (29990, 5); EXECUTE q (29996, 2)}),
	'a prepared statement, planned for its parameters or for all');
# A table of as many columns as can be, two of each for averages
my @numbers = (1 .. 900);
my $wide = 'CREATE TABLE wide (' . join(', ', map { "c$_ int" } @numbers) . ')';
$main->safe_psql('postgres', "$wide PARTITION BY LIST (c1)");
$shards[0]->safe_psql('postgres', "$wide; "
	. 'INSERT INTO wide (c1, c900) SELECT 1, i FROM generate_series(1, 10) i');
$main->safe_psql('postgres', q{CREATE FOREIGN TABLE wide1 PARTITION OF wide FOR VALUES IN (1) SERVER shard1
	OPTIONS (table_name 'wide')});
is($main->safe_psql('postgres', 'SET gpusort.force = on; SELECT a900 FROM (SELECT '
	. join(', ', map { "avg(c$_) AS a$_" } @numbers) . ' FROM wide OFFSET 0) s'), '5.5000000000000000',
	'more columns than a query can have are not asked for');

# Who may read the table and not its partitions gets what PostgreSQL reads for him, in cached plans, too.
$main->safe_psql('postgres', q{
	CREATE ROLE reader; CREATE ROLE reader_of_all; GRANT SELECT ON parted TO reader, reader_of_all;
	GRANT SELECT ON part, part1, part2 TO reader_of_all;
	CREATE USER MAPPING FOR PUBLIC SERVER shard1 OPTIONS (user 'postgres', password_required 'false');
	CREATE USER MAPPING FOR PUBLIC SERVER shard2 OPTIONS (user 'postgres', password_required 'false');
	CREATE VIEW of_owner AS SELECT g % 7 AS r, count(*) FROM parted GROUP BY 1; GRANT SELECT ON of_owner TO reader});
my $groups = 'SELECT g % 7 AS r, count(*) FROM parted GROUP BY 1 ORDER BY 1';
my $right_groups = $main->safe_psql('postgres', 'SET gpusort.enable = off; ' . $groups =~ s/parted/whole/r);
is(asked(plan_of($groups, 'SET ROLE reader_of_all; ')), '2 of 2', 'shards are asked for who may read them');
is(asked(plan_of($groups, 'SET ROLE reader; ')), '0 of 2', 'and not for who may not');
is($main->safe_psql('postgres', "SET ROLE reader; $groups"), $right_groups, 'who gets the answer');
is(asked(plan_of('SELECT * FROM of_owner', 'SET ROLE reader; ')), '0 of 2', "nor through somebody else's view");
is(asked(plan_of('SELECT * FROM of_owner')), '2 of 2', 'but through an own one');
is($main->safe_psql('postgres', "SET plan_cache_mode = force_generic_plan; PREPARE q AS $groups; "
	. 'SET ROLE reader_of_all; EXECUTE q; SET ROLE reader; EXECUTE q; RESET ROLE; '
	. 'REVOKE SELECT ON part1 FROM reader_of_all; SET ROLE reader_of_all; EXECUTE q'),
	join("\n", ($right_groups) x 3), 'a prepared statement of several roles');
$main->psql('postgres', 'REVOKE SELECT ON parted FROM reader_of_all; GRANT SELECT ON part1 TO reader_of_all');
isnt($main->psql('postgres', "SET ROLE reader_of_all; $groups", stderr => \$err), 0, 'who may read partitions alone');
like($err, qr/permission denied for table parted/, 'may not read the table');

# --- views of functions: all processes of each shard ------------------------------------------------

for my $i (1, 2)
{
	my $shard = $shards[ $i - 1 ];
	$shard->append_conf('postgresql.conf', join "\n", 'max_worker_processes = 12', 'gpusort.force = on',
		'max_parallel_workers_per_gather = 2', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
		'min_parallel_table_scan_size = 0',
		"session_preload_libraries = 'auto_explain'", 'auto_explain.log_min_duration = 0', 'auto_explain.log_analyze = on',
			'auto_explain.log_timing = off', 'auto_explain.log_nested_statements = on', '');
	$shard->restart;
	$shard->wait_service;
	$shard->safe_psql('postgres', gate_sql('STABLE') . q{
		CREATE FUNCTION first_of_part() RETURNS SETOF part STABLE
			LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT DISTINCT ON (g) * FROM public.part ORDER BY g, k, id; END';
		CREATE VIEW first_view AS SELECT * FROM first_of_part();
		CREATE VIEW gated AS SELECT i AS id FROM generate_series(1, 1000) i WHERE gate(i, 500) > 0;
		CREATE VIEW slow AS SELECT i AS id FROM generate_series(1, 100000) i WHERE pg_sleep(0.01) IS NOT NULL});
	$main->safe_psql('postgres', "CREATE TABLE first ($columns) PARTITION BY HASH (g)") if $i == 1;
	$main->safe_psql('postgres',
		"CREATE FOREIGN TABLE first$i PARTITION OF first FOR VALUES WITH (MODULUS 3, REMAINDER $i) SERVER shard$i "
		. "OPTIONS (table_name 'first_view'); "
		. "CREATE FOREIGN TABLE gated$i (id int) SERVER shard$i OPTIONS (table_name 'gated', fetch_size '100'); "
		. "CREATE FOREIGN TABLE slow$i (id int) SERVER shard$i OPTIONS (table_name 'slow')");
}
$main->safe_psql('postgres', q{
	CREATE VIEW first_view AS SELECT DISTINCT ON (g) * FROM part ORDER BY g, k, id;
	CREATE SERVER itself FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '} . $main->host . q{', port '} . $main->port
		. q{', dbname 'postgres', async_capable 'true');
	CREATE USER MAPPING FOR postgres SERVER itself;
	CREATE FOREIGN TABLE first0 PARTITION OF first FOR VALUES WITH (MODULUS 3, REMAINDER 0) SERVER itself
		OPTIONS (table_name 'first_view')});
my $first = 'SELECT * FROM (SELECT * FROM first OFFSET 0) s ORDER BY g';
is(scalar(() = plan_of($first) =~ /Async Foreign Scan/g), 3, 'views of functions are read at once');
is($main->safe_psql('postgres', sprintf $digest, $first), $right{'DISTINCT ON'}, 'and give the answer');
for my $shard (@shards)
{
	my $plan_lines = qr/(?:\t[^\n]*\n)*?/;
	my $first_line = qr/Query Text: SELECT DISTINCT ON[^\n]*\n/;
	like($shard->log_text,
		qr/$first_line$plan_lines[^\n]*GpuSort[^\n]*\n$plan_lines\s+Workers Launched: [12]\n/,
		'made by several processes of the shard');
}

# --- what changes meanwhile -------------------------------------------------------------------------

# Each shard's rows are those of its own snapshot, taken when its cursor is opened, and stay so to the end.
my $session = $main->session;
$session->run('BEGIN; DECLARE c CURSOR FOR SELECT id, k FROM parted ORDER BY k, id');
$session->run('FETCH 10 FROM c');
$main->safe_psql('postgres',
	'UPDATE parted SET k = -k WHERE k IS NOT NULL; UPDATE whole SET k = -k WHERE k IS NOT NULL');
my @rest = split /\n/, $session->run('FETCH ALL FROM c');
is(scalar @rest, 29990, 'rows of a cursor are there once each while others are changed');
$session->run('COMMIT');
%right = ();
all_right('after an UPDATE');
$main->safe_psql('postgres',
	'UPDATE parted SET k = -k WHERE k IS NOT NULL; UPDATE whole SET k = -k WHERE k IS NOT NULL');
%right = ();

# A shard's service is killed: before, and while its rows are read.
my ($one) = $shards[0]->services;
kill 'KILL', $one;
all_right("a shard's service was killed");
$one = $shards[0]->wait_service($one);
$session->run('BEGIN; DECLARE c CURSOR FOR SELECT * FROM parted ORDER BY k, id');
$session->run('FETCH 10 FROM c');
kill 'KILL', $one;
ok(wait_until(sub { !grep { $_ == $one } $shards[0]->services }), "a shard's service is gone while its rows are read");
$session->send('FETCH ALL FROM c');
($out, $err) = $session->result;
my @rows = split /\n/, $out;
ok(@rows == 29990 || $err =~ /the sort service lost the rows of a running sort/, 'all rows, or an error that says so')
	or diag scalar(@rows), " rows, $err";
$session->run('ROLLBACK');
$one = $shards[0]->wait_service($one);
all_right('when it is back');

# The coordinator's is killed while it takes rows in from all shards: they are read again.
my ($service) = $main->services;
$session->run('SET gpusort.force = on; SET gpusort.min_rows = 0');
$_->ask('SELECT pg_advisory_lock(1)') for @shards;
$session->send(q{SELECT string_agg(id::text, ',') }
	. q{FROM (SELECT id FROM (SELECT id FROM gated1 UNION ALL SELECT id FROM gated2) u ORDER BY id) s});
ok(wait_until(sub { $main->ask('SELECT count(*) FROM gpusort_jobs') == 1 }),
	'the coordinator takes rows in');
kill 'KILL', $service;
ok(wait_until(sub { !grep { $_ == $service } $main->services }), 'its service is gone');
$_->ask('SELECT pg_advisory_unlock(1)') for @shards;
($out, $err) = $session->result;
is($out, join(',', map { ($_, $_) } 1 .. 1000), 'and reads them again when its service is killed') or diag $err;
$main->wait_service($service);

# A cancel at the coordinator ends the sort in the shard.
for my $setting ('SET gpusort.force = off', 'SET gpusort.force = on')
{
	$session->run($setting);
	$session->send('SELECT * FROM slow1 ORDER BY id');
	ok(wait_until(sub { $shards[0]->ask(
		q{SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'FETCH%'}) eq '1' }),
		'a shard is at work');
	$main->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $session->backend . ')');
	($out, $err) = $session->result;
	like($err, qr/57014/, 'the query is cancelled');
	ok(wait_until(sub { $shards[0]->ask(
		q{SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'FETCH%'}) eq '0' }),
		'in the shard, too');
	is($shards[0]->safe_psql('postgres', 'SELECT count(*) FROM gpusort_jobs'), '0', 'and no sort is left');
}
$session->run('SET gpusort.force = off');
like($session->run('SELECT count(*) FROM parted'), qr/^30000$/, 'the session goes on');

# One shard without gpusort
$shards[1]->append_conf('postgresql.conf', 'gpusort.allowed = off');
$shards[1]->reload;
ok($shards[1]->poll_query_until('postgres', 'SHOW gpusort.allowed', 'off'), 'gpusort is not allowed in a shard');
@remote = remote_plans(plan_of('SELECT * FROM parted ORDER BY k', $serial));
like($remote[0], qr/^Custom Scan \(GpuSort\)/, 'one shard sorts by GpuSort');
like($remote[1], qr/^(?:Sort|Gather Merge)/, 'the other as PostgreSQL does');
all_right('one shard without gpusort');

done_testing;
