# What pg_stat_activity shows that a session waits for: from PostgreSQL 17 on an event for each kind
# of wait, before that Extension for all.  Services stop, start slowly, or have no room; workers and
# the leader of a plan wait for each other at a gate.
use strict;
use warnings;

use GpuSortNode;
use GpuSortStuck;
use Test::More;

my $names;	# whether waits have events of their own

# Waits until a session that the condition chooses waits for the event, or until that is not to come any more;
# returns whether one does, and what they wait for.
sub shows
{
	my ($watcher, $condition, $event, $over) = @_;
	my $expected = 'Extension|' . ($names ? $event : 'Extension');
	my $seen;
	my $found = wait_until(sub {
		$seen = $watcher->run("SELECT DISTINCT wait_event_type, wait_event FROM pg_stat_activity WHERE $condition");
		return (grep { $_ eq $expected } split /\n/, $seen) ? 'found' : defined $over && $over->() && 'over';
	});

	return ($found eq 'found', $seen);
}

# --- the service stops ------------------------------------------------------------------------------

my %events = (
	stop_connect => 'GpusortConnect', stop_ingest => 'GpusortIngest', stop_sort => 'GpusortSort',
		stop_emit => 'GpusortEmit',
	stop_cut => 'GpusortSort', stop_read => 'GpusortEmit');
my @points = GpuSortStuck->servers([ 'stop_connect' ], [ 'stop_ingest', at => 3 ], [ 'stop_sort' ],
	[ 'stop_emit', at => 2 ],
	[ 'stop_cut', query => 'shared' ], [ 'stop_read', at => 2, query => 'shared' ]);
$names = $points[0]->{node}->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
for my $point (@points)
{
	my $watcher = $point->{node}->session;
	my @wanted = ([ $point->{name} eq 'stop_read' ? "backend_type IN ('client backend', 'parallel worker')" : 'leader',
		$events{ $point->{name} } ]);
	my @missed;

	push @wanted, [ "backend_type = 'parallel worker'", 'GpusortRanges' ] if $point->{name} eq 'stop_cut';
	# on a busy machine it may be missed, for a session gives a service that stands still up after four seconds
	for my $try (1 .. 10)
	{
		$point->new_session;
		# the supervisor would kill the service before long, and then nobody waits for it
		kill 'STOP', $point->{node}->supervisors;
		ok($point->begin, "$point->{name}: the service stops");
		@missed = ();
		for (@wanted)
		{
			my ($who, $event) = @$_;
			my $backend = $point->{session}->backend;
			my ($found, $seen) = shows($watcher, $who eq 'leader' ? "pid = $backend" : $who, $event,
				sub { $point->{session}->answered });
			push @missed, "$event: $seen" unless $found;
		}
		kill 'CONT', $point->{node}->services, $point->{node}->supervisors;
		is($point->outcome, 'right', 'it goes on, and the answer is right');
		last unless @missed;
	}
	is(join("\n", @missed), '', "$point->{name}: " . join ' ', map { $_->[1] } @wanted);
	$watcher->close;
}
$_->{session}->close, $_->{node}->remove for @points;

# --- it starts slowly, and has no room --------------------------------------------------------------

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'gpusort.force = on', 'gpusort.staging_memory = 16MB' ]);
my $directory = $node->own_module;
mkdir("$directory/real") && rename("$directory/gpusortd", "$directory/real/gpusortd") or die "$directory: $!";
PostgreSQL::Test::Utils::append_to_file("$directory/gpusortd",
	"#!/bin/sh\nsleep 3\nexec '$directory/real/gpusortd' \"\$@\"\n");
chmod 0755, "$directory/gpusortd" or die "$directory: $!";
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT i AS id, i % 1000 AS g, hashint8extended(i, 7) AS k, 'row number ' || i AS pad
		FROM generate_series(1, 200000) i;
	ANALYZE t;
	-- until lock 2 is free
	CREATE PROCEDURE sort_on() LANGUAGE plpgsql AS $$
	BEGIN
		WHILE NOT pg_try_advisory_lock(2) LOOP
			BEGIN
				EXECUTE 'SELECT count(id) FROM (SELECT id FROM generate_series(1, 1000) id ORDER BY id DESC OFFSET 0) s';
			EXCEPTION WHEN system_error THEN
				-- the service was killed while it gave out rows
			END;
		END LOOP;
		PERFORM pg_advisory_unlock(2);
	END $$;
	-- waits until nobody holds lock 1, in the processes of that kind; others give these time to come
	CREATE FUNCTION gate(i int, kind text) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
	BEGIN
		IF (SELECT backend_type FROM pg_stat_activity WHERE pid = pg_backend_pid()) = kind THEN
			PERFORM pg_advisory_lock_shared(1);
			PERFORM pg_advisory_unlock_shared(1);
		ELSE
			PERFORM pg_sleep(0.001);
		END IF;
		RETURN i;
	END $$;
	ALTER FUNCTION gate COST 100000;
	CREATE FUNCTION gate_alone(i int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$
	BEGIN
		PERFORM pg_advisory_lock_shared(1);
		PERFORM pg_advisory_unlock_shared(1);
		RETURN i;
	END $$;
});
my $watcher = $node->session;
my @sessions = map { $node->session } 1 .. 8;
my $session = $sessions[0];

# on a busy machine it may be missed, for a sort waits for two seconds at most
my ($found, $seen);
for my $try (1 .. 20)
{
	$watcher->run('SELECT pg_advisory_lock(2)');
	$session->send('CALL sort_on()');
	kill 'KILL', $service;
	($found, $seen) = shows($watcher, 'pid = ' . $session->backend, 'GpusortStart', sub {
		grep { $_ != $service && (readlink "/proc/$_/exe" // '') eq "$directory/real/gpusortd" } $node->services });
	$watcher->run('SELECT pg_advisory_unlock(2)');
	$session->result;
	$service = $node->wait_service($service);
	last if $found;
}
ok($found, 'a service that is starting: GpusortStart') or diag $seen;

my $sort = q{SELECT count(*) || md5(string_agg(id || pad, ',')) FROM (SELECT * FROM t ORDER BY k) s};
my $right = $node->safe_psql('postgres', "SET gpusort.enable = off; $sort");
my $queue = 'Extension|' . ($names ? 'GpusortQueue' : 'Extension');
my @wrong;
$seen = undef;
for my $try (1 .. 20)
{
	$_->send($sort) for @sessions;
	wait_until(sub {
		$seen ||= grep { $_ eq $queue } split /\n/,
			$watcher->run(q{SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE backend_type = 'client backend'});
		return $seen || !grep { !$_->answered } @sessions;
	});
	push @wrong, grep { $_ ne $right } map { ($_->result)[0] } @sessions;
	last if $seen;
}
ok($seen, 'many sorts at once: GpusortQueue');
is(scalar @wrong, 0, 'and their answers are right');

# --- processes wait for each other ------------------------------------------------------------------

# Runs a query while lock 1 is held and sees those wait that the condition chooses.
sub sees_at_gate
{
	my ($query, $condition, $event, $name) = @_;
	my $digest = "SELECT count(*) || ' ' || sum(hashtextextended(q::text, 0)::numeric) FROM ($query OFFSET 0) q";
	my $answer = $node->safe_psql('postgres',
		"SET gpusort.enable = off; SET max_parallel_workers_per_gather = 0; $digest");

	like($session->run("EXPLAIN $digest"), qr/GpuSortExchange/, "$name: the plan");
	# on a busy machine PostgreSQL may sort in place of the service
	my ($found, $seen);
	for my $try (1 .. 20)
	{
		$watcher->run('SELECT pg_advisory_lock(1)');
		$session->send($digest);
		($found, $seen) = shows($watcher, $condition, $event, sub { $session->answered });
		$watcher->run('SELECT pg_advisory_unlock(1)');
		is(($session->result)[0], $answer, 'it goes on, and the answer is right');
		last if $found;
	}
	ok($found, "$name: $event") or diag $seen;
	return;
}

$session->run(q{SET max_parallel_workers_per_gather = 1; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; }
	. q{SET min_parallel_table_scan_size = 0; SET work_mem = '64kB'});
my $leader = 'pid = ' . $session->backend;
my $worker = "backend_type = 'parallel worker'";
sees_at_gate(q{SELECT g, sum(id) OVER (PARTITION BY g ORDER BY id) FROM t }
	. q{WHERE id % 50 <> 0 OR gate(id, 'parallel worker') > 0}, $leader, 'GpusortWorkers',
	'a worker does not end its ingest');
sees_at_gate(q{SELECT g, CASE WHEN id % 50 = 0 THEN gate(id, 'parallel worker') END, sum(id) OVER (PARTITION BY g }
	. q{ORDER BY id) FROM t}, $leader, 'GpusortExchange', 'a worker does not give its rows');
sees_at_gate(q{SELECT gate_alone(g), pad, sum FROM (SELECT g, pad, sum(id) OVER (PARTITION BY g ORDER BY id) }
	. q{FROM t OFFSET 0) s}, $worker, 'GpusortExchangeRoom', 'the leader does not take rows');

if ($names)
{
	# as doc/views.md has them
	my ($table) = PostgreSQL::Test::Utils::slurp_file('doc/views.md') =~ /\| wait event \|.*?\n\|[-|]+\n(.*?)\n\n/s;
	my $documented = join "\n", sort map { /^\| `(\w+)`/ } split /\n/, $table;
	is($node->safe_psql('postgres', q{SELECT name FROM pg_wait_events WHERE type = 'Extension' AND name LIKE 'Gpusort%' }
		. q{ORDER BY name COLLATE "C"}), $documented, 'pg_wait_events has those that are documented');
}
$_->close for @sessions, $watcher;

done_testing;
