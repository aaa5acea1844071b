# Plans whose upper part every process runs (GpuSortExchange), under stress: workers that are not to be
# had, that end or fail; cancels at every stage; queries that stop early; the service killed, stopped,
# without memory, with few chunks.  Answers are right or errors clean, and nothing is left behind.
use strict;
use warnings;

use GpuSortNode;
use Test::More;
use Time::HiRes qw(sleep time);

my @parallel = ('max_parallel_workers_per_gather = 3', 'max_parallel_workers = 12', 'max_worker_processes = 16',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
				'min_parallel_table_scan_size = 0', 'gpusort.force = on', 'gpusort.setup_cost = 0', 'gpusort.row_cost = 0',
					'enable_hashagg = off', 'enable_hashjoin = off', 'enable_nestloop = off');
my $tables = q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, (i * 7919) % 8009 AS g, 'row number ' || i || ' ' || repeat('x', i % 300) AS pad
		FROM generate_series(1, 60000) i;
	CREATE TABLE other AS SELECT i AS id, i * 31 % 12000 AS g FROM generate_series(1, 15000) i;
	CREATE TABLE few AS SELECT i AS id FROM generate_series(1, 4) i;
	ANALYZE t, other, few;
} . gate_sql('STABLE PARALLEL SAFE');

# Inside a query for its digest: what is in order, and what is not.
my $in_order = q{SELECT count(*) || ' ' || md5(string_agg(q::text, ',')) FROM (%s OFFSET 0) q};
my $sum = q{SELECT count(*) || ' ' || sum(hashtextextended(q::text, 0)::numeric) FROM (%s OFFSET 0) q};
# PostgreSQL's own full joins are of one process, where it may not hash: others stay in several as they are.
my %queries = (
	window => sprintf($in_order, 'SELECT g, id, sum(id) OVER (PARTITION BY g '
		. 'ORDER BY id), lag(pad) OVER (PARTITION BY g ORDER BY id) FROM t ORDER BY g, id'),
	first => sprintf($sum, 'SELECT * FROM (SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY id DESC) AS r '
	. 'FROM t) s WHERE r = 1'),
	group => sprintf($sum, q{SELECT g, count(DISTINCT id), string_agg(pad, ',' ORDER BY id) FROM t GROUP BY g}),
	distinct => sprintf($sum, 'SELECT DISTINCT ON (g) g, id, pad FROM t ORDER BY g, id'),
	join => sprintf($sum, 'SELECT t.id, other.id AS o FROM t FULL JOIN other USING (g)'),
	running => sprintf($in_order, 'SELECT g, id, sum(id) OVER (ORDER BY g, id) FROM t ORDER BY g, id'));
# Where a process waits: while rows are ingested, and while a window is computed, or what its ranges come to.
my $ingest_gate = sprintf($in_order, 'SELECT g, id, sum(id) OVER (PARTITION BY g '
. 'ORDER BY id), lag(pad) OVER (PARTITION BY g ORDER BY id) FROM t WHERE gate(id, 50000) > 0 ORDER BY g, id');
my $window_gate = sprintf($in_order, 'SELECT g, id, sum(gate(id, %d)) OVER (PARTITION BY g '
	. 'ORDER BY id), lag(pad) OVER (PARTITION BY g ORDER BY id) FROM t ORDER BY g, id');
my $running_gate = sprintf($in_order, 'SELECT g, id, sum(gate(id, %d)) OVER (ORDER BY g, id) FROM t ORDER BY g, id');
my %right;

sub new_node
{
	my ($name, @conf) = @_;
	my $node = GpuSortNode->new($name);
	$node->init(conf => [ @parallel, @conf ]);
	$node->start;
	$node->wait_service;
	$node->safe_psql('postgres', $tables);
	$right{$_} //= $node->safe_psql('postgres', "SET gpusort.enable = off; $queries{$_}") for sort keys %queries;
	return $node;
}

sub waits_at_gate
{
	my ($node) = @_;
	return wait_until(sub { $node->ask(
		q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) > 0 });
}

# Begins a query that waits at the gate, with a statement_timeout of so many milliseconds, or more if it has not come
# there by then; true if it waits.
sub begins_to_wait
{
	my ($node, $session, $query, $milliseconds) = @_;

	for (1 .. 6)
	{
		$session->run("SET statement_timeout = $milliseconds");
		$session->send($query);
		my $waits = wait_until(sub { $session->answered ? -1 : $node->ask(
			q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) });
		return 1 if $waits > 0;
		my (undef, $err) = $session->result;
		return 0 if $err !~ /57014/;
		$milliseconds *= 2;
	}
	return 0;
}

# Descriptors of a process that stand for a connection or shared memory.
sub descriptors
{
	my ($pid) = @_;
	return scalar grep { (readlink($_) // '') =~ /socket:|memfd|pipe:|pgsql_tmp/ } glob "/proc/$pid/fd/*";
}

# True when no worker, no sort and no connection to the service is left, and no temporary file.
sub nothing_left
{
	my ($node, $service, $before) = @_;
	return $node->nothing_left && (!defined $service || wait_until(sub { descriptors($service) <= $before }));
}

# --- answers --------------------------------------------------------------------------------------

my $node = new_node('main');
my ($service) = $node->services;
my $idle = descriptors($service);
my $session = $node->session;
my $holder = $node->session;

$session->run(q{SET statement_timeout = '170s'});
for my $name (sort keys %queries)
{
	like($node->ask("EXPLAIN $queries{$name}"), qr/GpuSortExchange/, "$name: the plan");
	is($session->run($queries{$name}), $right{$name}, "$name: the right answer");
}
my $text = $node->ask('EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) '
	. 'SELECT g, id, sum(id) OVER (PARTITION BY g ORDER BY id) FROM t');
like($text, qr/"Workers Launched": 3/, 'three workers');
like($text, qr/"Ranges": [1-9]\d*/, 'Ranges');
like($text, qr{"Range Key": \["t\.g", "t\.id"\],\s+"Across Ranges": "totals of those before"}, 'Range Key');
like($text, qr{"Passes": 1,}, 'whole partitions');

# fewer workers than planned, or none
for my $workers (0, 1, 2)
{
	for my $leader ('on', 'off')
	{
		$session->run("SET max_parallel_workers = $workers; SET parallel_leader_participation = $leader");
		is(join(' ', map { $session->run($queries{$_}) eq $right{$_} ? 'right' : $_ } sort keys %queries),
			join(' ', ('right') x keys %queries),
			"$workers workers, parallel_leader_participation $leader");
	}
}
$session->run('RESET max_parallel_workers; SET parallel_leader_participation = off');
is($session->run($queries{$_}), $right{$_}, "$_: parallel_leader_participation off, three workers")
	for sort keys %queries;
$session->run('RESET parallel_leader_participation');

# statements of all kinds
$session->run("SET plan_cache_mode = force_generic_plan; PREPARE p (int) AS SELECT g, id, sum(id) OVER (PARTITION BY g "
	. "ORDER BY id), lag(pad) OVER (PARTITION BY g ORDER BY id) FROM t WHERE id > \$1 ORDER BY g, id");
for my $statement ('CREATE TABLE again AS EXECUTE p(0)',
	"CREATE TABLE again AS SELECT g, id, sum(id) OVER (PARTITION BY g ORDER BY id), lag(pad) OVER (PARTITION BY g "
		. "ORDER BY id) FROM t ORDER BY g, id",
	'CREATE MATERIALIZED VIEW again AS SELECT g, id, sum(id) OVER (PARTITION BY g '
		. 'ORDER BY id), lag(pad) OVER (PARTITION BY g ORDER BY id) FROM t ORDER BY g, id')
{
	$session->run("$statement; SET gpusort.enable = off");
	is($session->run(sprintf $in_order, 'SELECT * FROM again ORDER BY g, id'), $right{window},
		$statement =~ s/ SELECT.*//r);
	$session->run('RESET gpusort.enable; DROP ' . ($statement =~ /MATERIALIZED/ ? 'MATERIALIZED VIEW' : 'TABLE')
		. ' again');
}
my $copied = $session->run('COPY (SELECT g, id, sum(id) OVER (PARTITION BY g ORDER BY id) FROM t '
	. 'ORDER BY g, id) TO STDOUT');
is($copied, $session->run('SET gpusort.enable = off; COPY (SELECT g, id, sum(id) OVER (PARTITION BY g ORDER BY id) '
	. 'FROM t ORDER BY g, id) TO STDOUT; RESET gpusort.enable'), 'COPY ... TO');
$session->run(q{
	CREATE FUNCTION rows(n int) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		r record;
		i int := 0;
	BEGIN
		FOR r IN SELECT g, id, sum(id) OVER (PARTITION BY g ORDER BY id) FROM t ORDER BY g, id LOOP
			i := i + 1;
			EXIT WHEN i = n;
		END LOOP;
		RETURN i || ' ' || r.g || ' ' || r.id || ' ' || r.sum;
	END $$});
my $loops = 'SELECT rows(10), rows(59999)';
is($session->run($loops), $session->run("SET gpusort.enable = off; $loops; RESET gpusort.enable"), 'loops in PL/pgSQL');
$session->run('DEALLOCATE p; RESET plan_cache_mode');
ok(nothing_left($node, $service, $idle), 'nothing is left');

# --- early ends -----------------------------------------------------------------------------------

my %early = (
	limit => ['SELECT g, id, sum(id) OVER (PARTITION BY g ORDER BY id) FROM t ORDER BY g, id LIMIT 10'],
	running => ['SELECT g, id, sum(id) OVER (ORDER BY g, id) FROM t ORDER BY g, id LIMIT 10'],
	none => ['SELECT g, id, sum(id) OVER (PARTITION BY g ORDER BY id) FROM t ORDER BY g, id LIMIT 0'],
	offset => ['SELECT g, id, sum(id) OVER (PARTITION BY g ORDER BY id) FROM t ORDER BY g, id OFFSET 30000 LIMIT 10'],
	join => ['SELECT count(*) FROM (SELECT t.id, other.id FROM t JOIN other USING (g) LIMIT 10) q'],
	exists => ['SELECT EXISTS (SELECT 1 FROM (SELECT id, count(*) OVER (PARTITION BY g) AS c FROM t) q WHERE c > 1)'],
	cursor => ['BEGIN; DECLARE c CURSOR FOR SELECT g, id, sum(id) OVER (PARTITION BY g ORDER BY id) FROM t '
	. 'ORDER BY g, id; FETCH 10 FROM c; CLOSE c; COMMIT'],
	parts => ['BEGIN; DECLARE c CURSOR FOR SELECT g, id, sum(id) OVER (PARTITION BY g ORDER BY id) FROM t '
	. 'ORDER BY g, id; FETCH 20000 FROM c; SELECT pg_sleep(0.2); FETCH 20000 FROM c; SELECT pg_sleep(0.2); FETCH 200 '
	. 'FROM c; ROLLBACK'],
	hold => ['BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT g, id, sum(id) OVER (PARTITION BY g ORDER BY id) FROM t '
	. 'ORDER BY g, id; FETCH 10 FROM c; COMMIT; FETCH 2000 FROM c; CLOSE c'],
	loop => ['SELECT rows(5)'],
	rescan => ['SELECT f.id, q.* FROM few f, LATERAL (SELECT g, id, sum(id + f.id) OVER (PARTITION BY g ORDER BY id) '
	. 'FROM t ORDER BY g, id LIMIT 30) q', 'enable_nestloop = on'],
	again => ['SELECT f.id, count(*), sum(q.s) FROM few f, LATERAL (SELECT id, sum(id) OVER (PARTITION BY g '
	. 'ORDER BY id) AS s FROM t WHERE t.id % 4 <> f.id % 4 OFFSET 0) q GROUP BY f.id ORDER BY f.id',
	'enable_nestloop = on'],
	correlated => ['SELECT f.id, (SELECT sum(c) FROM (SELECT count(DISTINCT id) AS c FROM t WHERE id % 5 = f.id '
	. 'GROUP BY g) q) FROM few f ORDER BY f.id'],
	inner => ['SELECT count(*), sum(q.s) FROM few f JOIN (SELECT g, sum(id) OVER (PARTITION BY g ORDER BY id) AS s '
	. 'FROM t OFFSET 0) q ON q.g % 4 >= f.id',
	'enable_nestloop = on; SET enable_material = off; SET enable_mergejoin = off'],
);
for my $name (sort keys %early)
{
	my ($query, $set) = @{ $early{$name} };
	$session->run("SET $set") if $set;
	$session->run('SET gpusort.enable = off');
	my $native = $session->run($query);
	$session->run('SET gpusort.enable = on');
	isnt($native, '', "$name: an answer") if $name ne 'none';
	is($session->run($query), $native, "$name: PostgreSQL's answer");
	ok(nothing_left($node, $service, $idle), "$name: nothing is left");
	$session->run('SET enable_nestloop = off; RESET enable_material; RESET enable_mergejoin') if $set;
}

# --- errors ---------------------------------------------------------------------------------------

for my $row (1, 30000, 59999)
{
	my %failing = (
		window => "SELECT sum(10 / (id - $row)) OVER (PARTITION BY g ORDER BY id) FROM t",
		running => "SELECT sum(10 / (id - $row)) OVER (ORDER BY g, id) FROM t",
		filter => "SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM t) s "
			. "WHERE 10 / (id - $row) < r",
		group => "SELECT count(DISTINCT 10 / (id - $row)) FROM t GROUP BY g",
		output => "SELECT t.id / (t.id - $row) FROM t JOIN other USING (g) UNION ALL SELECT 1 / (id - $row) FROM t",
		ingest => "SELECT sum(id) OVER (PARTITION BY g ORDER BY id) FROM t WHERE 10 / (id - $row) < 20",
		above => "SELECT 10 / (id - $row) FROM (SELECT id, sum(id) OVER (PARTITION BY g ORDER BY id) FROM t OFFSET 0) s");
	for my $name (sort keys %failing)
	{
		$session->send("SELECT count(*), sum(hashtext(q::text)) FROM ($failing{$name}) q");
		my ($out, $err) = $session->result;
		is(join(' ', $err =~ /(?:ERROR|WARNING|FATAL):  (\w+)/g), '22012', "division by zero at row $row, $name");
	}
	ok(nothing_left($node, $service, $idle), 'nothing is left');
}
is($session->run($queries{$_}), $right{$_}, "$_: right after errors") for sort keys %queries;

# processes that wait, ended or cancelled: while rows are ingested, at the first rows, in the middle
my $middle = $node->ask('SET gpusort.enable = off; SELECT id FROM t ORDER BY g, id OFFSET 30000 '
	. 'LIMIT 1');
my $begin = $node->ask('SET gpusort.enable = off; SELECT id FROM t ORDER BY g, id LIMIT 1');
my %gates = (ingest => $ingest_gate, begin => sprintf($window_gate, $begin), middle => sprintf($window_gate, $middle),
	totals => sprintf($running_gate, $middle));
my %answers = map { ($_ => $right{$_ eq 'totals' ? 'running' : 'window'}) } keys %gates;
for my $stage (sort keys %gates)
{
	for my $how ('terminate the process that waits', 'cancel the process that waits', 'cancel the query',
		'terminate a worker', 'statement_timeout')
	{
		$holder->run('SELECT pg_advisory_lock(1)');
		ok(begins_to_wait($node, $session, $gates{$stage}, $how eq 'statement_timeout' ? 1500 : 170000),
			"$stage: a process waits");
		# the first that waits may be the leader, which ends with its session
		my ($pid) = grep { $_ != $session->backend } split /\n/,
			$node->ask(q{SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
		my $function = $how =~ /^terminate/ ? 'pg_terminate_backend' : 'pg_cancel_backend';
		my $any_worker = $how eq 'terminate a worker' || ($how =~ /^terminate/ && !defined $pid);
		if ($any_worker)
		{
			($pid) = $node->ask(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker' LIMIT 1}) =~ /(\d+)/;
		}
		elsif ($how eq 'cancel the query' || !defined $pid)
		{
			$pid = $session->backend;
		}
		$node->ask("SELECT $function($pid)") if $how ne 'statement_timeout' && defined $pid;
		my $start = time;
		# a worker that has nothing more to do may be gone before, and one may not have come yet
		$holder->run('SELECT pg_advisory_unlock(1)') if !defined $pid || $any_worker;
		my ($out, $err) = $session->result;
		if ($any_worker)
		{
			ok($out eq $answers{$stage} || $err =~ /57P01|57014/,
				"$stage, $how: the right answer or an error of PostgreSQL's")
				or diag "$out $err";
		}
		else
		{
			like($err, qr/ERROR:  (?:57P01|57014)/, "$stage, $how: an error of PostgreSQL's") or diag $out;
		}
		unlike($err, qr/WARNING|XX000|58000/, 'and no other');
		# the gate is closed until here, so nothing else than that has ended the query
		in_time($start, 'at once');
		$holder->run('SELECT pg_advisory_unlock_all()');
		# a query that is cancelled may have got the lock just then
		$session->run("SELECT pg_advisory_unlock_all()");
		$session->run(q{SET statement_timeout = '170s'});
		ok(nothing_left($node, $service, $idle), 'nothing is left');
		is($session->run($queries{window}), $right{window}, 'the session goes on');
	}
}
is(join(' ', $node->services), $service, 'the service is the same');

# cancelled at all times: soon
for my $name ('window', 'join')
{
	my ($points, @wrong) = $session->cancel_all_over($queries{$name}, 6);
	cmp_ok($points, '>=', 3, "$name: $points points of time cancelled");
	is(scalar @wrong, 0, "$name: each ends soon") or diag join "\n", @wrong;
	ok(nothing_left($node, $service, $idle), "$name: nothing is left");
}

# --- nothing grows --------------------------------------------------------------------------------

my $measure = sub {
	my ($contexts) = $session->run(q{SELECT count(*) || ' ' || sum(total_bytes) FROM pg_backend_memory_contexts});
	return (split(/ /, $contexts), descriptors($session->backend), descriptors($service));
};
for (1 .. 2)
{
	$session->run($queries{$_}) for sort keys %queries;
	$session->run("BEGIN; $early{$_}[0]; COMMIT") for 'limit', 'join';
}
nothing_left($node, $service, $idle);
my @before = $measure->();
for (1 .. 5)
{
	$session->run($queries{$_}) for sort keys %queries;
	$session->run("BEGIN; $early{$_}[0]; COMMIT") for 'limit', 'join';
}
nothing_left($node, $service, $idle);
my @after = $measure->();
cmp_ok($after[0], '<=', $before[0] + 3, 'memory contexts after 40 queries');
cmp_ok($after[1], '<=', $before[1] * 1.05 + 65536, 'bytes in them');
cmp_ok($after[2], '<=', $before[2], 'descriptors of the session');
cmp_ok($after[3], '<=', $before[3], 'descriptors of the service');

# two sessions at once
my @sessions = map { $node->session } 1 .. 3;
$_->run(q{SET statement_timeout = '170s'}) for @sessions;
for my $name (sort keys %queries)
{
	$_->send($queries{$name}) for @sessions;
	is(join("\n", map { ($_->result)[0] } @sessions), join("\n", ($right{$name}) x 3), "$name: three sessions at once");
}

# --- the service ----------------------------------------------------------------------------------

# killed while rows are ingested, before the first row and after it
for my $stage (sort keys %gates)
{
	$holder->run('SELECT pg_advisory_lock(1)');
	$session->send($gates{$stage});
	ok(waits_at_gate($node), "$stage: a process waits");
	kill 'KILL', $service;
	ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'the service is gone');
	$holder->run('SELECT pg_advisory_unlock(1)');
	my ($out, $err) = $session->result;
	my $clean = $err =~ /ERROR:  58000.*HINT:/s && $err !~ /XX000|WARNING/ && $out eq '';
	$stage eq 'ingest' ? is($out, $answers{$stage}, 'the right answer without it')
		: ok($out eq $answers{$stage} || $clean, 'the right answer or a clean error')
		or diag "$out $err";
	ok(nothing_left($node), 'nothing is left');
	# the next one may take some seconds, the more the more of them were killed
	$service = $node->wait_service($service);
	is($session->run($queries{window}), $right{window}, 'and with the next one');
}

# killed again and again while queries run
my $wrong = 0;
for my $round (1 .. 2)
{
	my $name = (sort keys %queries)[ $round % keys %queries ];
	$_->send($queries{$name}) for @sessions;
	sleep 0.1 * $round;
	kill 'KILL', $node->services;
	for (@sessions)
	{
		my ($out, $err) = $_->result;
		next if $out eq $right{$name} || $out eq '' && $err =~ /ERROR:  58000.*HINT:/s;
		$wrong++;
		diag "$name: $out $err";
	}
	ok($node->wait_service, "round $round: the service comes back");
}
is($wrong, 0, 'killed again and again: no wrong answer');
($service) = $node->services;
ok(nothing_left($node), 'nothing is left');

# stopped, and going on; its supervisor would kill it before long
my ($supervisor) = $node->supervisors;
for my $stage (sort keys %gates)
{
	$holder->run('SELECT pg_advisory_lock(1)');
	$session->send($gates{$stage});
	ok(waits_at_gate($node), "$stage: a process waits");
	kill 'STOP', $supervisor, $service;
	$holder->run('SELECT pg_advisory_unlock(1)');
	sleep 0.5;
	kill 'CONT', $service, $supervisor;
	my ($out, $err) = $session->result;
	is($out, $answers{$stage}, 'right when a service that was stopped goes on') or diag $err;

	$holder->run('SELECT pg_advisory_lock(1)');
	$session->send($gates{$stage});
	ok(waits_at_gate($node), "$stage: a process waits");
	kill 'STOP', $supervisor, $service;
	$holder->run('SELECT pg_advisory_unlock(1)');
	# until all of its processes wait, or it needs the service no more
	my $pid = $session->backend;
	wait_until(sub { $session->answered || $node->ask("SELECT count(*) FROM pg_stat_activity
		WHERE $pid IN (pid, leader_pid) AND wait_event IS NULL") == 0 });
	$node->ask("SELECT pg_cancel_backend($pid)");
	my $start = time;
	($out, $err) = $session->result;
	ok($err =~ /57014/ || $out eq $answers{$stage}, 'with a service that is stopped the query can be cancelled')
		or diag "$out $err";
	in_time($start, 'in time');
	kill 'CONT', $service, $supervisor;
	ok(nothing_left($node), 'nothing is left');
}
$_->close for @sessions, $session, $holder;
unlike($node->log_text, qr/PANIC|TRAP|XX000|terminating any other active server processes|leak|still referenced/,
	'the server lived through it all');
$node->remove;

# --- little room ----------------------------------------------------------------------------------

# memory for a part of the rows only
SKIP:
{
	skip 'the memory of the host engine', 9 if $engine ne 'host';
	$node = new_node('memory', 'gpusort.host_memory = 16MB', 'gpusort.spill = off');
	# the estimate must not tell that it will not fit
	$node->safe_psql('postgres', q{CREATE TABLE grown (LIKE t); INSERT INTO grown SELECT * FROM t WHERE id <= 20000; }
		. q{ANALYZE grown; ALTER TABLE grown SET (autovacuum_enabled = off); INSERT INTO grown SELECT * FROM t }
		. q{WHERE id > 20000});
	for my $leader ('on', 'off')
	{
		my $set = "SET parallel_leader_participation = $leader; SET statement_timeout = '170s'; ";
		like($node->safe_psql('postgres',
			"$set EXPLAIN (ANALYZE, VERBOSE) SELECT g, id, pad, sum(id) OVER (PARTITION BY g ORDER BY id) FROM grown"),
			qr/GpuSortExchange.*fallback: tuplesort/s,
			"leader $leader: the memory fills up while workers ingest rows");
		for my $name ('window', 'group', 'distinct')
		{
			my $query = $queries{$name} =~ s/FROM t /FROM grown /r;
			is($node->safe_psql('postgres', "$set $query"), $right{$name}, "leader $leader, $name: the right answer");
		}
	}
	is($node->method, 'radix', 'and small sorts go on');
	$node->remove;
}

# a pool that has no chunks for all
$node = new_node('pool', 'gpusort.staging_memory = 16MB', 'max_parallel_workers_per_gather = 8',
	'max_worker_processes = 30', 'max_parallel_workers = 28');
$node->safe_psql('postgres', 'ALTER TABLE t SET (parallel_workers = 8)');
@sessions = map { $node->session } 1 .. 4;
$_->run(q{SET statement_timeout = '170s'}) for @sessions;
is($sessions[0]->run($queries{$_}), $right{$_}, "$_: eight workers and the smallest pool") for sort keys %queries;
for my $name (sort keys %queries)
{
	$_->send($queries{$name}) for @sessions;
	is(join("\n", map { my ($out, $err) = $_->result; diag $err if $err ne ''; $out } @sessions),
		join("\n", ($right{$name}) x 4), "$name: four at once");
}
# different ones at once, so that joins hold one sort and wait for the other
for my $round (1 .. 2)
{
	my @names = map { (sort keys %queries)[ ($_ + $round) % keys %queries ] } 0 .. 3;
	$sessions[$_]->send($queries{ $names[$_] }) for 0 .. 3;
	is(join("\n", map { my ($out, $err) = $_->result; diag $err if $err ne ''; $out } @sessions),
		join("\n", map { $right{$_} } @names), "round $round: @names at once");
}
ok(nothing_left($node), 'nothing is left');

# rows that are too long for a chunk are in files, which may become too large
$session = $sessions[0];
$session->run(q{CREATE TABLE long AS SELECT i AS id, i % 10 AS g, (SELECT string_agg(md5((i * j)::text), '') }
	. q{FROM generate_series(1, CASE WHEN i % 100 = 0 THEN 150000 ELSE 2 END) j) AS v FROM generate_series(1, 1000) i; }
	. q{ANALYZE long});
my $long = sprintf $sum,
	q{SELECT id, md5(v), length(lag(v) OVER (PARTITION BY g ORDER BY id)) FROM (SELECT id, g, v || '' AS v FROM long) l};
my $native = $session->run("SET gpusort.enable = off; $long; RESET gpusort.enable");
is($session->run($long), $native, 'rows of 5 MB');
$session->run(q{SET temp_file_limit = '6MB'});
$session->send($long);
my ($out, $err) = $session->result;
ok($out eq $native || $err =~ /53400/, 'no more than temp_file_limit') or diag "$out $err";
$session->run('RESET temp_file_limit');
ok(nothing_left($node), 'no file is left');
is($session->run($long), $native, 'rows of 5 MB again');
$_->close for @sessions;
unlike($node->log_text, qr/PANIC|TRAP|XX000|terminating any other active server processes|leak|still referenced/,
	'the server lived through it all');
$node->remove;

done_testing;
