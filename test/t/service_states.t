# What the supervisor makes of a service that hangs: it is killed and replaced, or left behind when it
# cannot be killed; nobody waits for it for long, not even a stop of the server.
use strict;
use warnings;

use GpuSortNode;
use POSIX ();
use Socket qw(:DEFAULT SOCK_NONBLOCK);
use Test::More;
use Time::HiRes qw(sleep time);

my $sort = q{SELECT md5(string_agg(id::text, ',')) FROM (SELECT * FROM t ORDER BY k, id) s};

my $node = GpuSortNode->new('main');
$node->init;
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, (i * 7919) % 300007 AS k FROM generate_series(1, 250000) i;
	ANALYZE t;
});
my $rows = $node->safe_psql('postgres', "SET gpusort.enable = off; $sort");

# a short pause is none; where the machine has made a long one of it, which is two seconds, it is tried again
for (1 .. 20)
{
	my $paused = time;
	kill 'STOP', $service;
	sleep 0.7;
	kill 'CONT', $service;
	last if time - $paused < 1.5;
	$service = $node->wait_service;
}
is($node->method, 'radix', 'a service that pauses goes on');
is(join(' ', $node->services), $service, 'and is the same');

# so many connect meanwhile that its queue is full, and who comes then tries again, many times; the supervisor is not to
# kill it meanwhile
my $late = $node->session;
$late->run('SET gpusort.force = on');
my ($supervisor) = $node->supervisors;
kill 'STOP', $supervisor, $service;
my ($path) = $node->sockets;
my (@others, $full);
while (!$full && @others < 10000)
{
	socket my $other, AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0 or die "socket: $!";
	$full = !connect $other, pack_sockaddr_un($path);
	push @others, $other;
}
$late->send('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM t ORDER BY k');
sleep 0.7;
kill 'CONT', $supervisor, $service;
like(($late->result)[0], qr/radix/, 'who finds its queue full is let in when it goes on');
ok($full, 'the queue was full');
$late->close;
undef @others;

# it hangs: killed and replaced, as the log tells in a line for each change
my $start = time;
my $ready = $node->log_lines(qr/LOG:.*sort service ready/);
kill 'STOP', $service;
ok(wait_until(sub { !grep { $_ == $service } $node->services }), 'an idle service that hangs is killed');
in_time($start, 'before long');
my $next = $node->wait_service($service);
is(scalar $node->log_lines(qr/LOG:.*sort service \(PID $service\) does not answer: it was killed/), 1, 'the log tells');
ok(wait_until(sub { $node->log_lines(qr/LOG:.*sort service ready/) == $ready + 1 }), 'and that there is another one')
	if $engine eq 'host';
is(scalar $node->log_lines(qr/terminated by signal/), 0, 'and nothing else');
is($node->safe_psql('postgres', "SET gpusort.force = on; $sort"), $rows, 'which sorts');

# it hangs while it is used, and nothing limits the query
$service = $next;
my $session = $node->session;
$session->run('SET gpusort.force = on; BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t ORDER BY k, id');
$session->run('FETCH c');
$start = time;
kill 'STOP', $service;
is($node->safe_psql('postgres', "SET gpusort.force = on; $sort"), $rows,
	'a sort that meets a service that hangs: the right answer');
in_time($start, 'in time');
# or the query has given it up before, and this comes
ok(wait_until(sub { $node->log_lines(qr/LOG:.*sort service \(PID $service\) does not answer: it was killed/) == 1 }),
	'for the service was killed meanwhile');
$session->send('FETCH ALL FROM c');
my (undef, $err) = $session->result;
like($err, qr/ERROR:.*HINT:/s, 'rows that it held are an error with a hint');
$session->run('ROLLBACK');
$service = $node->wait_service($service);
kill 'STOP', $service;
$start = time;
$session->send('SELECT count(*) FROM gpusort_devices');
my ($out, $warning) = $session->result;
ok($out eq '0' && $warning =~ /does not answer|ended or closed/, 'gpusort_devices gives up, too')
	or diag "$out $warning";
in_time($start, 'in time');
$service = $node->wait_service($service);

# service and supervisor hang: then a backend finds out by itself
kill 'STOP', $supervisor, $service;
$start = time;
is($node->safe_psql('postgres', "SET gpusort.force = on; SET gpusort.log_decisions = on; $sort"), $rows,
	'without a supervisor: the right answer');
in_time($start, 'in time');
ok($node->log_lines(qr/falling back to tuplesort: .*does not answer/), 'by PostgreSQL, as the service does not answer');
kill 'CONT', $supervisor, $service;
is($node->method, 'radix', 'who go on when both do');
is(join(' ', $node->services), $service, 'for the supervisor knows that it was late itself');

# a stop of the server does not wait for a service that hangs
($service) = $node->services;
kill 'STOP', $service;
$start = time;
ok($node->stop('fast'), 'a fast stop while the service hangs');
in_time($start, 'in time');
ok(wait_until(sub { !$node->processes }), 'no process is left');
is(join(' ', glob $node->data_dir . '/pg_stat_tmp/gpusort*'), '', 'nor a file');
$session->close;
$node->start;
kill 'STOP', $node->wait_service;
$start = time;
ok($node->stop('immediate'), 'an immediate stop while the service hangs');
in_time($start, 'in time');
ok(wait_until(sub { !$node->processes }), 'no process is left');

# one that was killed and does not end, as a process that hangs in the kernel: this one has a tracer,
# who hears first that it is dead, and keeps that to himself
my $stuck = GpuSortNode->new('stuck');
$stuck->init;
$stuck->start;
$service = $stuck->wait_service;
SKIP:
{
	my ($ptrace, $seize) = (101, 0x4206);
	skip 'ptrace is for x86_64 here, or not allowed', 8
		unless (POSIX::uname())[4] eq 'x86_64' && syscall($ptrace, $seize, $service + 0, 0, 0) == 0;
	$stuck->safe_psql('postgres', 'CREATE EXTENSION gpusort');
	$start = time;
	kill 'STOP', $service;
	ok(wait_until(sub {
		$stuck->log_lines(qr/sort service \(PID $service\) was killed and does not end: it is left behind/) }),
	   'a service that cannot be killed is left behind');
	in_time($start, 'before long');
	ok(wait_until(sub { $stuck->method eq 'radix' }), 'another one serves');
	is($stuck->safe_psql('postgres', 'SELECT state, leaving FROM gpusort_service'), 'ready|1', 'as gpusort_service shows');
	waitpid $service, 0;
	ok(wait_until(sub { $stuck->log_lines(qr/sort service \(PID $service\) that was left behind has ended/) }),
		'its end is told, too');
	ok(wait_until(sub { $stuck->ask('SELECT state, leaving FROM gpusort_service') eq 'ready|0' }), 'and it is gone');
	# the same while the server stops
	($service) = $stuck->services;
	syscall($ptrace, $seize, $service + 0, 0, 0) == 0 or die "ptrace: $!";
	kill 'STOP', $service;
	$start = time;
	ok($stuck->stop('fast'), 'a fast stop');
	in_time($start, 'in time');
	waitpid $service, 0;
}
$stuck->stop;

done_testing;
