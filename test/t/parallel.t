# Sorts whose rows parallel workers ingest, under stress: the service killed, its memory full,
# its pool too small, queries cancelled, workers terminated.  Answers are right or errors clean.
use strict;
use warnings;

use GpuSortNode;
use Test::More;
use Time::HiRes qw(sleep time);

my @parallel = ('gpusort.parallel_output = off', 'max_parallel_workers_per_gather = 3', 'max_parallel_workers = 12',
				'max_worker_processes = 16',
				'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'gpusort.force = on');
my $tables = q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, (i * 7919) % 300007 AS k, 'row number ' || i || ' ' || repeat('x', i % 100) AS pad
		FROM generate_series(1, 250000) i;
	ANALYZE t;
} . gate_sql('STABLE PARALLEL SAFE');
my $digest = q{SELECT count(*) || md5(string_agg(id || pad, ',')) FROM (SELECT id, pad FROM t WHERE %s }
	. q{ORDER BY k, id) s};
my $all = sprintf $digest, 'true';
my $gated = sprintf $digest, 'gate(id, 200000) > 0';
my $right;

sub new_node
{
	my ($name, @conf) = @_;
	my $node = GpuSortNode->new($name);
	$node->init(conf => [ @parallel, @conf ]);
	$node->start;
	$node->wait_service;
	$node->safe_psql('postgres', $tables);
	$right = $node->safe_psql('postgres', "SET gpusort.enable = off; $all");
	return $node;
}

# The parallel workers that are there now.
sub waits_at_gate
{
	my ($node) = @_;
	return wait_until(sub { $node->ask(
		q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) == 1 });
}

my $node = new_node('main');
my ($service) = $node->services;
like($node->safe_psql('postgres', "EXPLAIN $all"), qr/GpuSortIngest/, 'the plan ingests rows with workers');
is($node->safe_psql('postgres', $all), $right, 'the right answer');
my $text = $node->safe_psql('postgres', 'EXPLAIN (ANALYZE, VERBOSE) SELECT id, pad FROM t ORDER BY k, id');
like($text, qr/Workers Launched: 3/, 'three workers');
like($text, qr/Rows Ingested: 250000/, 'which ingest all rows');

my $session = $node->session;
my $holder = $node->session;

# the service killed while all processes ingest rows: once with the leader at the gate or a
# worker, whoever comes there, once with workers only
for my $leader ('on', 'off')
{
	$session->run("SET parallel_leader_participation = $leader");
	$holder->run('SELECT pg_advisory_lock(1)');
	$session->send($gated);
	ok(waits_at_gate($node), "leader $leader: the sort waits in the middle");
	ok(wait_until(sub { $node->ask('SELECT sum(rows_in) FROM gpusort_jobs') > 50000 }),
		'gpusort_jobs counts what all processes ingest');
	kill 'KILL', $service;
	ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'the service is gone');
	$holder->run('SELECT pg_advisory_unlock(1)');
	my ($out, $err) = $session->result;
	is($out, $right, 'the right answer without it') or diag $err;
	$service = $node->wait_service($service);
	is($session->run($all), $right, 'and with the next one');
}
$session->run('RESET parallel_leader_participation');

# a process that waits, ended: the query fails, the session and the service live
for my $round (1 .. 3)
{
	$holder->run('SELECT pg_advisory_lock(1)');
	$session->run('SET parallel_leader_participation = off');
	$session->send($gated);
	ok(waits_at_gate($node), "round $round: a worker waits in the middle");
	my ($pid) = split /\n/, $node->safe_psql('postgres',
		q{SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
	if ($round == 1)
	{
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	}
	elsif ($round == 2)
	{
		$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $session->backend . ')');
	}
	else
	{
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	}
	my $start = time;
	my ($out, $err) = $session->result;
	like($err, qr/57P01|57014/, 'ended: an error of PostgreSQL\'s');
	in_time($start, 'at once');
	$holder->run('SELECT pg_advisory_unlock(1)');
	ok(wait_until(sub { !$node->parallel_workers }), 'no worker is left');
	is($session->run('SELECT count(*) FROM gpusort_jobs'), '0', 'no sort is left');
	$session->run('RESET parallel_leader_participation');
	is($session->run($all), $right, 'the session sorts again');
}
is(join(' ', $node->services), $service, 'the service is the same');

# killed again and again while sorts run
my @sessions = map { $node->session } 1 .. 2;
my $wrong = 0;
for my $round (1 .. 3)
{
	$_->send($all) for @sessions;
	sleep 0.15 * $round;
	kill 'KILL', $node->services;
	for (@sessions)
	{
		my ($out, $err) = $_->result;
		next if $out eq $right || $out eq '' && $err =~ /ERROR:.*HINT:/s;
		$wrong++;
		diag "$out $err";
	}
	ok($node->wait_service, "round $round: the service comes back");
}
is($wrong, 0, 'killed again and again: no wrong answer');
$_->close for @sessions;

# cancelled at all times: soon, like a serial sort
$session->run('CREATE TABLE big AS SELECT id + 250000 * i AS id, k, pad FROM t, generate_series(0, 3) i; ANALYZE big');
my $count = 'SELECT count(*) FROM (SELECT * FROM big ORDER BY k, id OFFSET 0) s';
my ($points, @wrong) = $session->cancel_all_over($count, 10);
cmp_ok($points, '>=', 4, "$points points of time cancelled");
is(scalar @wrong, 0, 'each ends soon') or diag join "\n", @wrong;
is($session->run('SELECT count(*) FROM gpusort_jobs'), '0', 'no sort is left');
ok(wait_until(sub { !$node->parallel_workers }), 'no worker is left');
$_->close for $session, $holder;
unlike($node->log_text, qr/PANIC|terminating any other active server processes/, 'the server lived through it all');
$node->remove;

# memory for a part of the rows only: what the service has comes back, the rest goes to tuplesort
SKIP:
{
	skip 'the memory of the host engine', 7 if $engine ne 'host';
	$node = new_node('memory', 'gpusort.host_memory = 48MB', 'gpusort.spill = off');
	# the estimate must not tell that it will not fit
	$node->safe_psql('postgres', q{CREATE TABLE grown (LIKE t); INSERT INTO grown SELECT * FROM t WHERE id <= 40000; }
		. q{ANALYZE grown; ALTER TABLE grown SET (autovacuum_enabled = off); INSERT INTO grown SELECT * FROM t }
		. q{WHERE id > 40000});
	for my $leader ('on', 'off')
	{
		my $query = "SET parallel_leader_participation = $leader; ";
		(my $grown = $all) =~ s/FROM t /FROM grown /;
		like($node->safe_psql('postgres', "$query EXPLAIN (ANALYZE, VERBOSE) SELECT id, pad FROM grown ORDER BY k, id"),
			 qr/fallback: tuplesort.*memory limit.*GpuSortIngest/s,
				"leader $leader: the memory fills up while workers ingest rows");
		is($node->safe_psql('postgres', "$query $grown"), $right, 'the right answer');
		$node->safe_psql('postgres',
			"$query DROP TABLE IF EXISTS made; CREATE TABLE made AS SELECT id, pad FROM grown ORDER BY k, id");
		is($node->safe_psql('postgres', q{SELECT count(*) || md5(string_agg(id || pad, ',' ORDER BY ctid)) FROM made}),
			$right, 'and with a resjunk key');
	}
	is($node->method, 'radix', 'and small sorts go on');
	$node->remove;
}

# a pool that has no chunks for all: the others put their rows, the rest goes through Gather
$node = new_node('pool', 'gpusort.staging_memory = 16MB');
my @many = map { $node->session } 1 .. 4;
for my $round (1 .. 2)
{
	$_->send($all) for @many;
	is(join(' ', map { ($_->result)[0] } @many), join(' ', ($right) x 4),
		"round $round: four parallel sorts with chunks for two processes");
}
$_->close for @many;

# no service to begin with
# the supervisor would kill the service before long
my @stopped = ($node->supervisors, $node->services);
kill 'STOP', @stopped;
my (undef, undef, $err) = $node->psql('postgres', "SET statement_timeout = 1000; $all");
like($err, qr/statement timeout/, 'a service that hangs: the query is cancelled');
kill 'CONT', @stopped;
is($node->safe_psql('postgres', $all), $right, 'and right when it goes on');
$node->remove;

# workers load the module when the session has
$node = GpuSortNode->new('loading');
$node->init(conf => [ "shared_preload_libraries = ''", @parallel ]);
$node->start;
$node->safe_psql('postgres', "LOAD 'gpusort'; $tables");
# a sort waits for two seconds for the service that it starts
wait_until(sub {
	$text = $node->safe_psql('postgres', q{
		LOAD 'gpusort';
		SET parallel_leader_participation = off;
		EXPLAIN (ANALYZE, VERBOSE) SELECT id, pad FROM t ORDER BY k, id});
	return $text =~ /radix/;
});
like($text, qr/Workers Launched: 3.*Rows Ingested: 250000\n.*worker \d [1-9]/s, 'loaded by LOAD: workers ingest rows');

done_testing;
