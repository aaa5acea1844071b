# The order of libc's keys is verified by strcoll: a library whose strcoll has another order than its tables is
# preloaded into servers.  Answers are what PostgreSQL's own sort gives with that library, the fallback is counted, and
# the collation is left alone from then on.
use strict;
use warnings;

use File::Temp qw(tempdir);
use GpuSortNode;
use IPC::Run ();
use Test::More;

# Locales of the C library's, which the machine need not have; PostgreSQL looks for them where we say.
my $directory = tempdir(CLEANUP => 1);
chmod 0755, $directory;
for my $locale ('en_US', 'de_DE')
{
	plan skip_all => "no locale $locale can be made" unless eval {
		IPC::Run::run([ 'localedef', '-i', $locale, '-f', 'UTF-8', "$directory/$locale.utf8" ], '>', '/dev/null', '2>&1');
		-d "$directory/$locale.utf8";
	};
}
plan skip_all => 'no gcc'
	unless eval { IPC::Run::run([ 'gcc', '-O2', '-shared', '-fPIC', '-o', "$directory/other_order.so",
		'test/lib/other_order.c', '-ldl' ]) };
$ENV{LOCPATH} = $directory;
$ENV{OTHER_ORDER} = "$directory/what";

# What the library does in processes that begin from now on.
sub be
{
	my ($what) = @_;
	open my $file, '>', $ENV{OTHER_ORDER} or die "$ENV{OTHER_ORDER}: $!";
	print $file $what;
	close $file or die;
	chmod 0644, $ENV{OTHER_ORDER};
	return;
}

my $tables = q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, i % 7 AS k, md5(i::text) AS m, CASE WHEN i % 11 = 0 THEN NULL
		ELSE (ARRAY['apple', 'Apple', 'co-op', 'coop', 'a b'])[1 + i % 5] || i % 5000 END AS w, 'co-op ' || i % 10 AS few
		FROM generate_series(1, 10000) i;
	CREATE TABLE other AS SELECT md5((i * 2)::text) AS m, i FROM generate_series(1, 2500) i;
	CREATE TABLE long AS SELECT i AS id, md5(i::text) || repeat('x', CASE WHEN i % 100 = 0 THEN 1200000 ELSE 10 END) AS m
		FROM generate_series(1, 1000) i;
	ANALYZE t, other, long;
	CREATE FUNCTION workers_come() RETURNS bool LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
	DECLARE
		most int := 0;
		now int;
		waiting int;
	BEGIN
		-- in a worker, and where rows are read again, when there are none to come
		IF EXISTS (SELECT FROM pg_stat_activity WHERE pid = pg_backend_pid() AND backend_type = 'parallel worker')
			OR EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) THEN
			RETURN true;
		END IF;
		PERFORM pg_advisory_lock(2);
		-- one that has done what it does first is gone, or waits for this process; all may come and go unseen
		FOR i IN 1 .. 500 LOOP
			SELECT count(*), count(*) FILTER (WHERE wait_event_type = 'IPC') INTO now, waiting
				FROM pg_stat_activity WHERE leader_pid = pg_backend_pid();
			EXIT WHEN now < most OR waiting > 0;
			most := greatest(most, now);
			PERFORM pg_stat_clear_snapshot(), pg_sleep(0.02);
		END LOOP;
		RETURN true;
	END $$;
};
my @settings = ('gpusort.force = on', 'gpusort.staging_memory = 256MB', 'gpusort.log_decisions = on',
	'enable_hashjoin = off', 'enable_hashagg = off', 'enable_nestloop = off', 'enable_incremental_sort = off',
	'max_parallel_workers = 8', 'max_worker_processes = 12', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
		'min_parallel_table_scan_size = 0');
my $parallel = 'SET max_parallel_workers_per_gather = 2';
my $digest = q{SELECT count(*) || ' ' || md5(string_agg(q::text, ',')) FROM (%s OFFSET 0) q};
my %queries = (
	text => 'SELECT id, m FROM t ORDER BY m',
	descending => 'SELECT id, w FROM t ORDER BY w DESC, id',
	few => 'SELECT id, few FROM t ORDER BY few DESC, id',
	second => 'SELECT id, k, w FROM t ORDER BY k, w NULLS FIRST, id',
	limit => 'SELECT id, m FROM t ORDER BY m LIMIT 7500',
	first => 'SELECT id, m FROM t ORDER BY m LIMIT 10',
	other => 'SELECT id, m FROM t ORDER BY m COLLATE "de_DE", id',
	window => 'SELECT m, row_number() OVER (PARTITION BY k, m ORDER BY id), sum(id) OVER (PARTITION BY k, m '
	. 'ORDER BY id) FROM t ORDER BY k, m',
	join => 'SELECT t.id, other.i FROM t JOIN other USING (m) ORDER BY t.m, i',
	long => 'SELECT id, m FROM long ORDER BY m');

# A server whose C library is the other one; each is new, so that it distrusts nothing.
sub new_node
{
	my ($name, @conf) = @_;
	my $node = GpuSortNode->new($name);

	$node->init(extra => [ '--locale=en_US.UTF-8', '--encoding=UTF8', '-A', 'trust' ], conf => [ @settings, @conf ]);
	$ENV{LD_PRELOAD} = "$directory/other_order.so";
	$node->start;
	delete $ENV{LD_PRELOAD};
	$node->wait_service;
	$node->safe_psql('postgres', $tables);
	says($node, 'SELECT gpusort_stats_reset()');
	says($node, q{CREATE COLLATION "de_DE" (provider = libc, locale = 'de_DE.utf8')})
		if says($node, q{SELECT count(*) FROM pg_collation WHERE collname = 'de_DE'}) eq '0';
	return $node;
}

my $databases = 0;

# What SQL gives in a new session, whose library does what was said last.
sub says
{
	my ($node, $sql, @parameters) = @_;
	return $node->wire(@parameters)->ask($sql);
}

# Starts a server again, with nothing distrusted and nothing counted.
sub restart
{
	my ($node) = @_;
	$ENV{LD_PRELOAD} = "$directory/other_order.so";
	$node->restart;
	delete $ENV{LD_PRELOAD};
	count_anew($node);
	return;
}

# Makes a database like the model, in which nothing is distrusted; returns its name.
sub new_database
{
	my ($node) = @_;
	my $name = 'database' . ++$databases;

	says($node, "CREATE DATABASE $name TEMPLATE model", database => 'template1');
	says($node, 'SELECT gpusort_stats_reset()');
	return $name;
}

# Waits for the service; what was sorted while there was none does not count.
sub count_anew
{
	my ($node) = @_;
	$node->wait_service;
	says($node, 'SELECT gpusort_stats_reset()');
	return;
}

sub reasons
{
	my ($node) = @_;
	return $node->ask('SELECT fallbacks, fallback_reasons FROM gpusort_stats');
}

# --- the order of the tables ----------------------------------------------------------------------

be('');
my $node = new_node('main');
my %right;
for my $name (sort keys %queries)
{
	my $query = sprintf $digest, $queries{$name};

	$right{$name} = says($node, "SET gpusort.enable = off; $query");
	is(says($node, $query), $right{$name}, "$name: the right answer");
	is(says($node, "$parallel; $query"), $right{$name}, "$name: the right answer of three processes");
}
is(reasons($node), '0|{}', 'no fallback');
like(says($node, "EXPLAIN (ANALYZE, COSTS OFF) $queries{text}"),
	qr/Verified: rows, 9999 pairs\n.*verify=\d/, 'EXPLAIN of one process');
like(says($node, "SET gpusort.verify_rows = off; EXPLAIN (ANALYZE, COSTS OFF) $queries{text}"),
	qr/Verified: 9999 pairs\n/, 'EXPLAIN without verify_rows');
like(says($node, "EXPLAIN (ANALYZE, FORMAT JSON) $queries{text}"),
	qr/"Verified Pairs": 9999,.*"Verify": \d/s, 'EXPLAIN as JSON');
my $plan = says($node,
	"$parallel; SET gpusort.parallel_output = off; EXPLAIN (ANALYZE, COSTS OFF) $queries{text}");
my $no_rows = qr/\([^)]*rows=0(\.00)?/;
like($plan,
	qr/Verified: rows, 9999 pairs\n.*\n +->  Gather $no_rows .*Workers Launched: 2\n.*GpuSortIngest\) $no_rows /s,
	'EXPLAIN of three processes');
like(says($node, "$parallel; EXPLAIN (ANALYZE, COSTS OFF) $queries{window}"),
	qr/GpuSortExchange.*Verified: rows, 9999 pairs/s, 'EXPLAIN of an exchange');
unlike(says($node, "SET gpusort.verify_collation = off; EXPLAIN (ANALYZE, COSTS OFF) $queries{text}"),
	qr/pairs|verify=/, 'EXPLAIN with verify_collation off');
unlike(says($node, q{EXPLAIN (ANALYZE, COSTS OFF) SELECT id, m FROM t ORDER BY m COLLATE "C"}),
	qr/pairs|verify=/, 'other collations are not verified');
# one query of each kind of plan
my @kinds = ('join', 'limit', 'long', 'text', 'window');
for my $case ([ 0, 'off' ], [ 1, 'on' ], [ 1, 'off' ])
{
	my ($workers, $leader) = @$case;
	is(says($node, join '; ', $parallel, "SET max_parallel_workers = $workers",
		"SET parallel_leader_participation = $leader", map { sprintf $digest, $queries{$_} } @kinds),
		join("\n", @right{@kinds}), "$workers workers, parallel_leader_participation $leader");
}
is(says($node, "$parallel; SET parallel_leader_participation = off; " . sprintf $digest,
	$queries{text}), $right{text}, 'two workers, parallel_leader_participation off');
says($node, q{
	BEGIN;
	DECLARE c SCROLL CURSOR FOR SELECT id, m FROM t ORDER BY m;
	FETCH 10 FROM c; FETCH BACKWARD 5 FROM c; MOVE ABSOLUTE 0 IN c; FETCH 3 FROM c;
	COMMIT});
my $rescans = q{SELECT x, (SELECT string_agg(m, ',') FROM (SELECT m FROM t WHERE id % 1000 = 0 OR x > 0 }
	. q{ORDER BY m OFFSET x LIMIT 3) s) FROM generate_series(1, 5) x};
is(says($node, $rescans), says($node, "SET gpusort.enable = off; $rescans"),
	'rescans');
$rescans = "$parallel; SET enable_material = off; SELECT x, m FROM generate_series(1, 3) x LEFT JOIN (SELECT m FROM t "
	. 'ORDER BY m LIMIT 30000) s ON true ORDER BY x, m';
like(says($node, $rescans =~ s/SELECT x, m/EXPLAIN (ANALYZE, COSTS OFF) SELECT x, m/r),
	qr/\(GpuSort\) [^\n]*loops=3\)\n.*GpuSortIngest/s, 'a sort of three processes is rescanned');
is(says($node, $rescans), says($node, "SET gpusort.enable = off; $rescans"),
	'and its rows');
is(reasons($node), '0|{}', 'no fallback by these');

# A query that is cancelled while rows are verified leaves nothing behind.
be('slow');
for my $settings ('SET max_parallel_workers_per_gather = 0', $parallel)
{
	for my $query ($queries{text}, $queries{window})
	{
		my $slow = $node->session;
		$slow->send("$settings; $query");
		ok(wait_until(sub { $node->ask(q{SELECT count(*) > 0 FROM gpusort_jobs WHERE phase = 'verify'}) eq 't' }),
			'rows are verified');
		says($node, 'SELECT pg_cancel_backend(' . $slow->backend . ')');
		like(($slow->result)[1], qr/canceling statement due to user request/, 'cancelled meanwhile');
		$slow->close;
	}
}
my $session = $node->session;
$session->send($queries{text});
ok(wait_until(sub { $node->ask(q{SELECT count(*) > 0 FROM gpusort_jobs WHERE phase = 'verify'}) eq 't' }),
	'gpusort_jobs has the phase');
says($node, 'SELECT pg_cancel_backend(' . $session->backend . ')');
like(($session->result)[1], qr/canceling statement due to user request/, 'cancelled');
ok(wait_until(sub { $node->ask('SELECT count(*) FROM gpusort_jobs') == 0 }), 'no sort is left');
be('');
is(says($node, "$parallel; " . sprintf $digest, $queries{text}), $right{text}, 'the next sort');

# The service is lost while rows are verified: the input is read again.
for my $name ('text', 'window')
{
	for my $settings ('SET max_parallel_workers_per_gather = 0', $parallel)
	{
		be('slow');
		my $slow = $node->session;
		$slow->send("$settings; SET gpusort.log_decisions = off; " . sprintf $digest, $queries{$name});
		ok(wait_until(sub { $node->ask(q{SELECT count(*) > 0 FROM gpusort_jobs WHERE phase = 'verify'}) eq 't' }),
			"$name: rows are verified");
		kill 'KILL', $node->services;
		be('');
		is(($slow->result)[0], $right{$name}, "$name: the right answer after the service was lost, $settings");
		$node->wait_service;
	}
}
like(reasons($node), qr/"service lost": 4/, 'four fallbacks by that');

# Workers that read the locale's files when these are others do not put keys.  The first row waits until a worker has
# done what it does first; one that comes when all rows have been put is nothing to the others.
be('key');
for my $name ('text', 'window')
{
	my $late = sprintf $digest, $queries{$name};
	my $early = $late =~ s/FROM t /FROM t WHERE id > 1 OR workers_come() /r;

	is(says($node, "SELECT gpusort_stats_reset(); $parallel; $early"), "\n$right{$name}",
		"$name: the right answer where workers have another locale");
	like(reasons($node), qr/^1\|\{"collation": 1\}$/, "$name: the fallback");
	is(says($node, "$parallel; $late"), $right{$name}, "$name: the right answer where they may come late")
		for 1 .. 3;
}
be('');
is(says($node, "SELECT gpusort_stats_reset(); " . sprintf $digest, $queries{text}), "\n$right{text}",
	'the next sort, after that');
is(reasons($node), '0|{}', 'and the collation is not distrusted');
$node->stop;

# --- little memory --------------------------------------------------------------------------------

# Memory that is full ends the ingest: workers that wait for the verification end, and PostgreSQL sorts.
SKIP: {
	skip 'the memory that the host engine sorts in', 7 if $engine ne 'host';
	$node = new_node('memory', 'gpusort.host_memory = 16MB', 'gpusort.spill = off');
	# the estimate must not tell that it will not fit
	my $many = sprintf $digest, 'SELECT id, m, repeat(m, 80) FROM t ORDER BY m, id';
	my $answer = says($node, "SET gpusort.enable = off; $many");
	for my $settings ('', "$parallel;", "$parallel; SET parallel_leader_participation = off;")
	{
		is(says($node, "$settings $many"), $answer, "the right answer with little memory, $settings");
		is(says($node, "$settings " . sprintf $digest, $queries{text}), $right{text},
			"and of what fits, $settings");
	}
	like(reasons($node), qr/^3\|\{"memory limit": 3\}$/, 'PostgreSQL has sorted three times');
	$node->stop;
}

# --- another order --------------------------------------------------------------------------------

my @cases = (
	[ 'serial', '', 'text' ], [ 'descending', '', 'descending' ], [ 'second column', '', 'second' ],
		[ 'LIMIT', '', 'limit' ], [ 'long rows', '', 'long' ], [ 'three processes', $parallel, 'text' ],
	[ 'two processes, one that reads', "$parallel; SET max_parallel_workers = 1; SET parallel_leader_participation = off",
	'text' ], [ 'no workers', "$parallel; SET max_parallel_workers = 0", 'text' ],
	[ 'parallel, DESC', $parallel, 'descending' ], [ 'window', $parallel, 'window' ],
	[ 'merge join', "$parallel; SET enable_material = off", 'join' ], [ 'parallel, long rows', $parallel, 'long' ]);
be('strings');
$node = new_node('turned');
says($node, 'CREATE DATABASE model TEMPLATE postgres', database => 'template1');

# The heap of the first rows goes by strcoll, and by what its tables say where strcoll says the same.
for my $settings ('SET max_parallel_workers_per_gather = 0', $parallel)
{
	my $query = sprintf $digest, $queries{first};
	my $native = says($node, "SET gpusort.enable = off; $query");

	isnt($native, $right{first}, 'the first rows: the library has another order');
	is(says($node, "$settings; $query"), $native, "the first rows: PostgreSQL's answer, $settings");
	is(reasons($node), '0|{}', 'the first rows: no fallback');
}
for my $case (@cases)
{
	my ($name, $settings, $which) = @$case;
	my $query = sprintf $digest, $queries{$which};

	my @new = (database => new_database($node));
	my $native = says($node, "SET gpusort.enable = off; $query", @new);
	isnt($native, $right{$which}, "$name: the library has another order") unless $which eq 'join';
	$plan = says($node, "$settings; EXPLAIN (COSTS OFF) $query", @new);
	like($plan, qr/GpuSort/, "$name: planned for gpusort");
	my ($first, $second) = split /\n/, says($node, "$settings; $query; $query", @new);
	is($first, $native, "$name: PostgreSQL's answer");
	is($second, $native, "$name: and once more");
	my $fallbacks = reasons($node);
	# below the join each process may sort for itself
	like($fallbacks, $which eq 'join' ? qr/^(\d)\|\{"collation": \g1\}$/ : qr/^1\|\{"collation": 1\}$/,
		"$name: one fallback");
	unlike(says($node, "$settings; EXPLAIN (COSTS OFF) $query", @new), qr/GpuSort/,
		"$name: the collation is left alone");
	is(says($node, "$settings; $query", @new), $native, "$name: in a new session");
	is(reasons($node), $fallbacks, "$name: no fallback more");
}

# Ranks of few values are made by comparing, so their order is the library's.
my @new = (database => new_database($node));
my $few = sprintf $digest, $queries{few};
my $native_few = says($node, "SET gpusort.enable = off; $few", @new);
isnt($native_few, $right{few}, 'few values: the library has another order');
is(says($node, "$_; $few", @new), $native_few, "few values: PostgreSQL's answer") for '', $parallel;
is(reasons($node), '0|{}', 'few values: by gpusort');

@new = (database => new_database($node));
says($node, $queries{text}, @new);
like(says($node, "EXPLAIN (COSTS OFF) $queries{other}", @new), qr/GpuSort/, 'other collations are used');
like(says($node, 'EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY k', @new), qr/GpuSort/,
	'other types are used');
is(says($node, q{SELECT severity, found FROM gpusort_check() WHERE subject = 'collations'}, @new),
	'warning|not used by gpusort: "default"', 'gpusort_check() tells');
like(PostgreSQL::Test::Utils::slurp_file($node->logfile),
	qr/gpusort leaves sorts under collation "default" to PostgreSQL until the server restarts/, 'the log says so');
like(PostgreSQL::Test::Utils::slurp_file($node->logfile),
	qr/gpusort: not used: a check found that the collation of sort key 1 does not order strings as their keys do/,
	'and why sorts are not taken');

# A plan that was made before falls back before it sorts; a cursor is one.
restart($node);
$session = $node->session;
$session->run("SET plan_cache_mode = force_generic_plan; PREPARE p AS $queries{text}; PREPARE w AS $queries{window}");
my $native = says($node, "SET gpusort.enable = off; $queries{text}");
is($session->run('EXECUTE p'), $native, 'a prepared statement');
like($session->run('EXPLAIN (ANALYZE, COSTS OFF) EXECUTE p'),
	qr/Fallback Reason: collation: a check found that the collation of sort key 1/,
	'falls back at once when it is run again');
is($session->run("BEGIN; DECLARE c CURSOR FOR $queries{text}; FETCH 5 FROM c"),
	join("\n", (split /\n/, $native)[0 .. 4]), 'a cursor');
$session->run('COMMIT');

# Without verification the keys' order is what comes.
is(says($node, 'SET gpusort.verify_collation = off; ' . (sprintf $digest, $queries{text}),
		database => new_database($node)),
	$right{text},
	'verify_collation off');
is(reasons($node), '0|{}', 'and no fallback');
$node->stop;
ok(!grep(/PANIC|TRAP/, PostgreSQL::Test::Utils::slurp_file($node->logfile)), 'no assertion has failed');
done_testing();
