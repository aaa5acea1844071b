# The service killed before, during and after a sort: the answer is right, or a clean error once
# rows were emitted; the service comes back; the server does not restart.
use strict;
use warnings;

use GpuSortNode;
use Test::More;
use Time::HiRes qw(sleep);

my $tables = q{
	CREATE TABLE t AS SELECT i AS id, (i * 7919) % 300007 AS k, 'row number ' || i || ' ' || repeat('x', i % 100) AS pad
		FROM generate_series(1, 250000) i;
	ANALYZE t;
} . gate_sql('STABLE') . q{
	CREATE FUNCTION gate_once(i int, at int) RETURNS int LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN gate(i, at); END';
};

my $node = GpuSortNode->new('main');
$node->init;
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', $tables);
my $rows = $node->safe_psql('postgres',
	q{SET gpusort.enable = off; SELECT md5(string_agg(id || pad, ',')) FROM (SELECT * FROM t ORDER BY k, id) s});
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
my $bystander = $node->session;
$bystander->run('SET gpusort.force = on');
my $holder = $node->session;
my $megabytes = 64;

# Delays grow with each service that ends by itself; one that follows a change of settings starts
# them anew.  Returns its process id.
sub without_delay
{
	$megabytes++;
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpusort.staging_memory = '${megabytes}MB'");
	$node->reload;
	return $node->wait_service($service);
}

# Ends a part: the server and its sessions lived through it.
sub lived
{
	is($bystander->run("SELECT md5(string_agg(id || pad, ',')) FROM (SELECT * FROM t ORDER BY k, id) s"), $rows,
		'another session lived through it all');
	is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'and so did the server');
	unlike($node->log_text, qr/PANIC|terminating any other active server processes/, 'without a restart of its processes');
	$service = without_delay;
	return;
}

# before: the next query does not find it
kill 'KILL', $service;
is($node->safe_psql('postgres',
	q{SET gpusort.force = on; SELECT md5(string_agg(id || pad, ',')) FROM (SELECT * FROM t ORDER BY k, id) s}), $rows,
   'killed before a sort: the right answer');
$service = $node->wait_service($service);

# stopped, not killed: while it hangs, queries can be cancelled
# the supervisor would kill it before long
my @stopped = ($node->supervisors, $service);
kill 'STOP', @stopped;
my ($status, $out, $err) = $node->psql('postgres',
	q{SET gpusort.force = on; SET statement_timeout = 500; SELECT count(*) FROM (SELECT * FROM t ORDER BY k OFFSET 0) s});
ok($status == 0 || $err =~ /statement timeout/, 'a service that hangs can be waited for or cancelled') or diag $err;
kill 'CONT', @stopped;
is($node->method, 'radix', 'and goes on');

# during ingest: few rows in, none sent yet; and many sent
for my $at (100, 200000)
{
	for my $function ('gate', 'gate_once')
	{
		my $session = $node->session;
		$session->run('SET gpusort.force = on');
		$holder->run('SELECT pg_advisory_lock(1)');
		# the filter keeps every row; it is there to stop in the middle of the table
		$session->send("SELECT count(*), md5(string_agg(id || pad, ',')) "
			. "FROM (SELECT id, pad FROM t WHERE $function(id, $at) > 0 ORDER BY k, id) s");
		ok(wait_until(sub { $node->ask(
			q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) == 1 }),
		   "$function: the sort waits at row $at");
		kill 'KILL', $service;
		ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'the service is gone');
		$holder->run('SELECT pg_advisory_unlock(1)');
		my ($out, $err) = $session->result;
		if ($function eq 'gate')
		{
			is($out, "250000|$rows", 'a sort that can be repeated gives the right answer') or diag $err;
		}
		else
		{
			# rows of a volatile child cannot be produced again: an error, or the right answer
			ok($err =~ /ERROR:.*HINT:/s || $out eq "250000|$rows", 'a volatile one an error with a hint, or the right answer')
				or diag "$out $err";
		}
		is($session->run('SELECT 1'), '1', 'and the session lives');
		$service = $node->wait_service($service);
		is($session->run("SELECT md5(string_agg(id || pad, ',')) FROM (SELECT * FROM t ORDER BY k, id) s"), $rows,
			'and sorts again');
		$session->close;
	}
	$service = without_delay;
}

lived;

# sorts below other nodes, and of statements that write
$node->safe_psql('postgres', 'CREATE TABLE w (id int, pad text) WITH (autovacuum_enabled = off)');
for ([ 'a window', 'md5(string_agg(id || \':\' || r, \',\'))',
	'(SELECT id, row_number() OVER (ORDER BY k, id) AS r FROM t WHERE gate(id, 200000) > 0) s' ],
	 [ 'DISTINCT', 'md5(string_agg(k::text, \',\'))',
		'(SELECT DISTINCT ON (k % 1000) k FROM t WHERE gate(id, 200000) > 0 ORDER BY k % 1000, k) s' ],
	 [ 'INSERT', undef, 'INSERT INTO w SELECT id, pad FROM t WHERE gate(id, 200000) > 0 ORDER BY k, id' ],
	 [ 'a merge join', 'sum(a.id::numeric * b.k)',
	't a JOIN (SELECT k FROM t WHERE gate(id, 200000) > 0 OFFSET 0) b USING (k)' ])
{
	my ($name, $result, $query) = @$_;
	my $statement = defined $result ? "SELECT $result FROM $query"
		: "TRUNCATE w; $query; SELECT md5(string_agg(id || pad, ',' ORDER BY ctid)) FROM w";
	my $session = $node->session;

	$session->run('SET enable_hashjoin = off; SET enable_nestloop = off; SET gpusort.enable = off');
	my $expected = $session->run($statement);
	$session->run('SET gpusort.enable = on; SET gpusort.force = on');
	$holder->run('SELECT pg_advisory_lock(1)');
	$session->send($statement);
	ok(wait_until(sub { $node->ask(
		q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) == 1 }), "$name: the sort waits");
	kill 'KILL', $service;
	ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'the service is gone');
	$holder->run('SELECT pg_advisory_unlock(1)');
	my ($out, $err) = $session->result;
	# the other side of a join has emitted rows already
	ok($out eq $expected || ($name eq 'a merge join' && $err =~ /ERROR:.*HINT:/s),
		'the right answer, or an error where rows were emitted') or diag "$out $err";
	$service = $node->wait_service($service);
	is($session->run($statement), $expected, 'and again the right one');
	$session->close;
}
lived;

# during emit
my $session = $node->session;
$session->run('SET gpusort.force = on');
$session->run('BEGIN');
$session->run('DECLARE c NO SCROLL CURSOR FOR SELECT id, pad FROM t ORDER BY k, id');
isnt($session->run('FETCH c'), '', 'a row of a cursor');
kill 'KILL', $service;
ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'the service is gone');
$session->send('FETCH ALL FROM c');
($out, $err) = $session->result;
like($err, qr/ERROR:/, 'the rest of the rows is an error');
like($err, qr/HINT:/, 'with a hint');
unlike($err, qr/XX000|PANIC|FATAL/, 'not one that should not happen');
is($session->run('ROLLBACK; SELECT 1'), '1', 'the session lives');
$service = $node->wait_service($service);
is($session->run("SELECT md5(string_agg(id || pad, ',')) FROM (SELECT * FROM t ORDER BY k, id) s"), $rows, 'and sorts');

# after: a cursor at its end does not need it any more
$session->run('BEGIN');
$session->run('DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t WHERE id <= 100 ORDER BY k');
is(scalar(split /\n/, $session->run('FETCH 1000 FROM c')), 100, 'all rows of a small sort');
kill 'KILL', $service;
ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'the service is gone');
($out, $err) = do { $session->send('FETCH c; COMMIT; SELECT 2'); $session->result };
is($out, '2', 'its end is no error') or diag $err;
$service = $node->wait_service($service);

lived;
$session->close;

# again and again while sorts run: each is right or fails cleanly
my @sessions = map { my $s = $node->session; $s->run('SET gpusort.force = on'); $s } 1 .. 4;
my ($right, $failed, $wrong) = (0, 0, 0);
for my $round (1 .. 3)
{
	$_->send("SELECT md5(string_agg(id || pad, ',')) FROM (SELECT * FROM t ORDER BY k, id) s") for @sessions;
	sleep(0.15 * $round);
	kill 'KILL', $node->services;
	for (@sessions)
	{
		my ($out, $err) = $_->result;
		$out eq $rows ? $right++ : $out eq '' && $err =~ /ERROR:.*HINT:/s ? $failed++ : do { $wrong++; diag "$out $err" };
	}
	ok($node->wait_service, "round $round: the service comes back");
}
is($wrong, 0, "killed again and again: $right right, $failed failed, none wrong");
is(scalar $node->services, 1, 'and is one');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_locks WHERE locktype = \'advisory\''), 0,
	'nobody is left waiting');

lived;
$_->close for @sessions;

done_testing;
