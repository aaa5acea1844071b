# Ranges of sorted rows as a partial plan's (GpuSortOutput below joins and aggregates of all processes), under
# stress: processes that come late, wait, fail or end; cancels; the service killed, refusing, not there.
# Answers are right or errors clean, and nothing is left behind.
use strict;
use warnings;

use GpuSortNode;
use IO::Socket::UNIX;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'max_parallel_workers_per_gather = 3', 'max_parallel_workers = 12', 'max_worker_processes = 16',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0', 'gpusort.min_rows = 0', 'gpusort.setup_cost = 0', 'gpusort.row_cost = 0',
		'enable_nestloop = off' ]);
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE a AS SELECT i AS id, (i * 7919) % 8009 AS k, 'row ' || i AS pad FROM generate_series(1, 60000) i;
	CREATE TABLE b AS SELECT i AS id, i * 31 % 8000 AS k FROM generate_series(1, 30000) i;
	ALTER TABLE a SET (parallel_workers = 3);
	ALTER TABLE b SET (parallel_workers = 3);
	ANALYZE a, b;
} . gate_sql('STABLE PARALLEL SAFE'));
my $sum = q{SELECT count(*) || ' ' || sum(hashtextextended(q::text, 0)::numeric) FROM (%s) q};
my %queries = (
	join => sprintf($sum, 'SELECT a.id, b.id AS o FROM a JOIN b USING (k)'),
	rows => sprintf($sum, 'SELECT * FROM (SELECT a.id, a.pad, b.id AS o FROM a JOIN b USING (k) OFFSET 0) s'),
	twice => sprintf($sum, 'SELECT a.id, b.id AS o FROM a JOIN b USING (k) UNION ALL SELECT a.id, b.id FROM a '
	. 'JOIN b ON a.id = b.id'),
	nested => sprintf($sum, 'SELECT a.id, x.o FROM a JOIN (SELECT a.id, b.id AS o FROM a JOIN b USING (k)) x USING (id)'));
my %gates = (
	ingest => sprintf($sum, 'SELECT a.id, b.id AS o FROM a JOIN b USING (k) WHERE gate(a.id, 50000) > 0'),
	first => sprintf($sum, 'SELECT gate(a.id, 8009) AS id, b.id AS o FROM a JOIN b USING (k)'),
	middle => sprintf($sum, 'SELECT gate(a.id, 30000) AS id, b.id AS o FROM a JOIN b USING (k)'));
my $session = $node->session;
my $holder = $node->session;
my $user = $node->safe_psql('postgres', 'SELECT current_user');
my %right = map { $_ => $node->safe_psql('postgres', "SET gpusort.enable = off; $queries{$_}") } keys %queries;
$session->run(q{SET statement_timeout = '150s'});

sub waits_at_gate
{
	return wait_until(sub { $node->ask(
		q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) > 0 }, 30);
}

# Returns how many rows a client gets that asks for so many at a time, as drivers with a fetch size do, and of them
# how many are different.  Between two requests the executor is at rest, and Gather has no workers.
sub fetched
{
	my ($query, $at_a_time) = @_;
	my $socket = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) or die "no connection: $!";
	my ($finished, %seen);
	my $rows = 0;
	my $send = sub { my ($type, $body) = @_; $socket->syswrite($type . pack('N', 4 + length $body) . $body) };
	my $read = sub {
		my ($wanted) = @_;
		my ($type, $body);

		do
		{
			read($socket, my $head, 5) == 5 or die 'the connection was lost';
			($type, my $bytes) = unpack 'aN', $head;
			read($socket, $body, $bytes - 4) == $bytes - 4 or die 'the connection was lost';
			die $body if $type eq 'E';
			if ($type eq 'D')
			{
				$rows++;
				$seen{$body} = 1;
			}
		} until $type =~ /[$wanted]/;
		return $type;
	};

	$send->('', pack('N', 196608) . join("\0", user => $user, database => 'postgres') . "\0\0");
	$read->('Z');
	$send->('Q', "BEGIN\0");
	$read->('Z');
	$send->('P', "\0$query\0" . pack('n', 0));
	$send->('B', "p\0\0" . pack('nnn', 0, 0, 0));
	until ($finished)
	{
		$send->('E', "p\0" . pack('N', $at_a_time));
		$send->('H', '');
		$finished = $read->('sC') eq 'C';
	}
	return $rows . ' rows, ' . keys(%seen) . ' different';
}

# --- answers --------------------------------------------------------------------------------------

for my $name (sort keys %queries)
{
	my $plan = $node->safe_psql('postgres', "EXPLAIN $queries{$name}");
	ok($plan =~ /Gather.*GpuSortOutput.*Merge Join/s && $plan !~ /GpuSortExchange/, "$name: the plan") or diag $plan;
	for my $workers (0, 1, 2, 12)
	{
		$session->run("SET max_parallel_workers = $workers");
		is($session->run($queries{$name}), $right{$name}, "$name: the right answer, $workers workers");
	}
	$session->run('RESET max_parallel_workers');
}
is(join(' ', map { $session->run($queries{join}) eq $right{join} ? 'right' : 'wrong' } 1 .. 20),
	join(' ', ('right') x 20), 'again and again');
$session->run('SET plan_cache_mode = force_generic_plan; PREPARE p AS ' . $queries{join}
	. '; EXECUTE p; SET parallel_leader_participation = off');
is($session->run('EXECUTE p'), $right{join}, 'the leader takes no part');
$session->run('RESET parallel_leader_participation; DEALLOCATE p; RESET plan_cache_mode');
ok($node->nothing_left, 'nothing is left');

# a few chunks for all: workers are refused, and leave their part to others
{
	my @sessions = map { $node->session } 1 .. 6;
	$_->run(q{SET statement_timeout = '150s'}) for @sessions;
	for my $name (sort keys %queries)
	{
		$_->send($queries{$name}) for @sessions;
		is(join("\n", map { ($_->result)[0] } @sessions), join("\n", ($right{$name}) x 6), "$name: six sessions at once");
	}
}

# --- early ends and errors --------------------------------------------------------------------------

is($session->run('SELECT count(*) FROM (SELECT a.id FROM a JOIN b USING (k) LIMIT 5) q'), '5', 'LIMIT');
$session->run('BEGIN; DECLARE c CURSOR FOR SELECT a.id FROM a JOIN b USING (k); MOVE 5 FROM c; CLOSE c; COMMIT');
ok($node->nothing_left, 'nothing is left of a cursor');
for my $row (1, 30000, 59999)
{
	for my $query ("SELECT sum(10 / (a.id - $row)) FROM a LEFT JOIN b USING (k)",
		"SELECT count(*) FROM a JOIN b USING (k) WHERE 10 / (a.id - $row) < 20")
	{
		$session->send($query);
		my ($out, $err) = $session->result;
		is(join(' ', $err =~ /(?:ERROR|WARNING|FATAL):  (\w+)/g), '22012', "division by zero at row $row");
	}
}
ok($node->nothing_left, 'nothing is left');

for my $stage (sort keys %gates)
{
	for my $how ('pg_cancel_backend', 'pg_terminate_backend')
	{
		$holder->run('SELECT pg_advisory_lock(1)');
		$session->send($gates{$stage});
		ok(waits_at_gate(), "$stage: a process waits");
		my ($pid) = $how eq 'pg_cancel_backend' ? $session->backend
			: grep { $_ != $session->backend } split /\n/,
				$node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker'});
		my $start = time;
		$node->safe_psql('postgres', "SELECT $how($pid)") if defined $pid;
		$holder->run('SELECT pg_advisory_unlock(1)') if $how eq 'pg_terminate_backend';
		my ($out, $err) = $session->result;
		ok($err =~ /ERROR:  (?:57P01|57014)/ || ($how eq 'pg_terminate_backend' && $out eq $right{join}),
			"$stage, $how: an error of PostgreSQL's") or diag "$out $err";
		unlike($err, qr/WARNING|XX000|58000/, 'and no other');
		in_time($start, 'at once');
		$holder->run('SELECT pg_advisory_unlock_all()');
		ok($node->nothing_left, 'nothing is left');
		$session->run('SELECT pg_advisory_unlock_all()');
		is($session->run($queries{join}), $right{join}, 'the session goes on');
	}
}
my ($points, @wrong) = $session->cancel_all_over($queries{rows}, 10);
is(scalar @wrong, 0, "cancelled at $points points of time: each ends soon") or diag join "\n", @wrong;
$session->run(q{SET statement_timeout = '150s'});
ok($node->nothing_left, 'nothing is left');

# --- the service ----------------------------------------------------------------------------------

for my $stage (sort keys %gates)
{
	$holder->run('SELECT pg_advisory_lock(1)');
	$session->send($gates{$stage});
	ok(waits_at_gate(), "$stage: a process waits");
	kill 'KILL', $service;
	ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'the service is gone');
	$holder->run('SELECT pg_advisory_unlock(1)');
	my ($out, $err) = $session->result;
	ok($out eq $right{join} || ($err =~ /ERROR:  58000.*HINT:/s && $err !~ /XX000|WARNING/ && $out eq ''),
		'the right answer or a clean error') or diag "$out $err";
	ok($node->nothing_left, 'nothing is left');
	$service = $node->wait_service($service);
	is($session->run($queries{join}), $right{join}, 'and with the next one');
}

# a client that fetches some rows at a time
$session->run('SET max_parallel_workers = 12');
for my $query ('SELECT a.id, b.id AS o FROM a JOIN b USING (k)',
	'SELECT id, rank() OVER (PARTITION BY k ORDER BY id) FROM a', 'SELECT id FROM a ORDER BY k')
{
	my $rows = $node->safe_psql('postgres', "SET gpusort.enable = off; SELECT count(*) FROM ($query) q");

	is(fetched($query, 7000), "$rows rows, $rows different", "fetched in parts: $query");
}

# not there, or not answering, when a query begins
kill 'STOP', $node->supervisors;
kill 'KILL', $service;
wait_until(sub { !grep { $_ == $service } $node->services });
for my $name (sort keys %queries)
{
	is($session->run($queries{$name}), $right{$name}, "$name: the right answer without a service");
}
kill 'CONT', $node->supervisors;
$service = $node->wait_service($service);
is($session->run($queries{$_}), $right{$_}, "$_: the right answer in the end") for sort keys %queries;
ok($node->nothing_left, 'nothing is left');

done_testing;
