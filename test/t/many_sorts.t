# More sorts at once than the service has room for: they wait for each other, and all answers are
# right.  One session with many open cursors leaves room for the others.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my $sorts = 40;
my $node = GpuSortNode->new('main');
$node->init(conf => [ 'max_connections = 60', 'gpusort.staging_memory = 16MB', 'gpusort.host_memory = 1GB',
	'gpusort.force = on', 'max_parallel_workers_per_gather = 0' ]);
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, hashint8extended(i, 7) AS k, 'row number ' || i AS pad
		FROM generate_series(1, 200000) i;
	ANALYZE t;
});
my $sort = 'SELECT * FROM t ORDER BY k';
my $digest = "SELECT count(*) || md5(string_agg(id || pad, ',')) FROM ($sort) s";
my $right = $node->safe_psql('postgres', "SET gpusort.enable = off; $digest");
my @sessions = map { $node->session } 1 .. $sorts;
$_->run('SELECT 1') for @sessions;

# Has all sessions do a query at once; returns whether any was seen to wait, and what they print.
sub all_at_once
{
	my ($query) = @_;

	$_->send($query) for @sessions;
	my $queued = wait_until(sub { $node->ask(
		q{SELECT count(*) FROM gpusort_jobs WHERE phase = 'queue'}) || (grep { !$_->answered } @sessions) == 0 && 'none' });
	my @answers = map { my ($out, $err) = $_->result; $err . $out } @sessions;
	return ($queued ne 'none', @answers);
}

for my $memory ('1GB', '64MB')
{
	if ($memory ne '1GB')
	{
		$node->append_conf('postgresql.conf', "gpusort.host_memory = $memory");
		$node->reload;
		$service = $node->wait_service($service);
	}
	my ($queued, @answers);
	# on a busy machine all may be done before anybody looks
	for my $try (1 .. 20)
	{
		$node->safe_psql('postgres', 'SELECT gpusort_stats_reset()');
		($queued, @answers) = all_at_once($digest);
		last if $queued || $memory ne '1GB' || grep { $_ ne $right } @answers;
	}
	is(scalar(grep { $_ eq $right } @answers), $sorts, "$memory: all of $sorts answers are right");
	my $taken = $node->safe_psql('postgres', 'SELECT sorts FROM gpusort_stats');
	diag("$memory: $taken of $sorts sorts in the service");
	next if $memory ne '1GB';
	ok($queued, 'gpusort_jobs shows those that wait');

	# as many as there is room for, and those that come in their turn: nobody waits for more than five seconds, in which
	# a busy machine does a few of them
	cmp_ok($taken, '>=', 2, 'they are done by the service');
	# where a busy machine stops all for 250 ms nobody waits any longer, nor does who comes then (session_queue.c)
	my $kept_out = qr/Fallback Reason: .*(?:after a wait of \d{3,} ms|: other sorts use)/;
	my (@plans, @others);
	for my $try (1 .. 20)
	{
		(undef, @plans) = all_at_once("EXPLAIN (ANALYZE, COSTS OFF) $sort");
		push @others, grep { !/Sort Method: (?:cpu|gpu) radix|$kept_out/ } @plans;
		last if grep { /Queue Wait/ } @plans;
	}
	is(join("\n", @others), '', 'all of them, but for those that others keep out');
	ok((grep { /Queue Wait: [\d.]+ ms/ } @plans) > 0, 'EXPLAIN tells how long a sort has waited');
	cmp_ok($node->safe_psql('postgres', 'SELECT queue_time FROM gpusort_stats'), '>', 0, 'and so does gpusort_stats');
}

# 32 cursors of one session
$node->append_conf('postgresql.conf', "gpusort.staging_memory = 256MB\ngpusort.host_memory = 2GB");
$node->reload;
$service = $node->wait_service($service);
my $session = shift @sessions;
$session->run('BEGIN');
for my $i (1 .. 32)
{
	my ($out, $err) = $session->run("DECLARE c$i CURSOR FOR $sort; FETCH 1 FROM c$i");
	is($err, '', "cursor $i") if $err ne '';
}
my $held = $node->safe_psql('postgres', 'SELECT count(*) FROM gpusort_jobs');
is($held, 16, 'a session with 32 open cursors has as many in the service as half of the pool guarantees');
for my $other (@sessions[0 .. 3])
{
	my ($plan) = $other->run("EXPLAIN (ANALYZE, COSTS OFF) $sort");
	like($plan, qr/(?:gpu|cpu) radix/, 'and others find room');
}
$session->run('COMMIT');

# 8 cursors of one role, in a session each, leave room for other roles' sorts
$node->append_conf('postgresql.conf', 'gpusort.staging_memory = 64MB');
$node->reload;
$service = $node->wait_service($service);
$node->safe_psql('postgres', q{
	CREATE ROLE greedy; CREATE ROLE modest;
	GRANT SELECT ON t TO greedy, modest;
	CREATE TABLE small AS SELECT * FROM t LIMIT 4000; ANALYZE small; GRANT SELECT ON small TO modest;
});
my @greedy = splice @sessions, 0, 8;
for my $holder (@greedy)
{
	my ($out, $err) = $holder->run("SET SESSION AUTHORIZATION greedy; BEGIN; DECLARE c CURSOR FOR $sort; FETCH 1 FROM c");
	is($err, '', 'a cursor of a role') if $err ne '';
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpusort_jobs'),
	6, 'a role with a cursor in each of 8 sessions has as many in the service as three quarters of the pool guarantee');
my $modest = shift @sessions;
$modest->run('SET SESSION AUTHORIZATION modest; SET gpusort.min_rows = 0');
for my $table ('t', 'small')
{
	my ($plan) = $modest->run("EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM $table ORDER BY k");
	like($plan, qr/(?:gpu|cpu) radix/, "a sort of another role is done by the service ($table)");
	unlike($plan, qr/Queue Wait/, 'and does not wait');
}
$_->run('COMMIT') for @greedy;

done_testing;
