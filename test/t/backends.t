# Backends that come and go: many at once, terminated, killed; what they held comes back.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

# a pool that is small for the sessions there will be
my $node = GpuSortNode->new('main');
$node->init(conf => ['gpusort.staging_memory = 32MB', 'gpusort.host_memory = 512MB']);
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, (i * 7919) % 300007 AS k, md5(i::text) COLLATE "C" AS m, repeat('x', i % 100) AS pad
		FROM generate_series(1, 100000) i;
	ANALYZE t;
});
my %answer;
my @orders = ('k, id', 'm', 'k % 100 DESC, m DESC', 'pad, id DESC', '-id');
$answer{$_} = $node->safe_psql('postgres',
	"SET gpusort.enable = off; SELECT md5(string_agg(id || m, ',')) FROM (SELECT * FROM t ORDER BY $_) s") for @orders;

sub sorted_rightly
{
	my ($name) = @_;
	is($node->safe_psql('postgres', "SET gpusort.force = on; SELECT md5(string_agg(id || m, ',')) "
		. "FROM (SELECT * FROM t ORDER BY $orders[0]) s"), $answer{ $orders[0] }, "$name: the right answer");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM gpusort_jobs'), 0, "$name: no sort is left running");
	return;
}

# twenty sessions at once, twice
my @sessions = map { my $s = $node->session; $s->run('SET gpusort.force = on'); $s } 1 .. 20;
for my $round (1 .. 2)
{
	my $wrong = 0;
	for my $i (0 .. 19)
	{
		$sessions[$i]->send("SELECT md5(string_agg(id || m, ',')) FROM (SELECT * FROM t ORDER BY $orders[$i % 5]) s");
	}
	for my $i (0 .. 19)
	{
		my ($out, $err) = $sessions[$i]->result;
		next if $out eq $answer{ $orders[ $i % 5 ] };
		$wrong++;
		diag "session $i: $out $err";
	}
	is($wrong, 0, "twenty sessions at once, round $round: every answer is right");
}
# twenty cursors open at once: more than the pool can serve
$_->run('BEGIN; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY k, id') for @sessions;
is(join(' ', map { scalar(split /\n/, $_->run('FETCH 500 FROM c')) } @sessions), join(' ', (500) x 20),
	'twenty cursors open: each gives its rows');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM gpusort_jobs'), '>', 0, 'gpusort_jobs shows sorts');
is(join(' ', map { scalar(split /\n/, $_->run('FETCH ALL FROM c')) } @sessions), join(' ', (99500) x 20),
	'and the rest of them');
$_->run('COMMIT') for @sessions;
$_->close for @sessions;
sorted_rightly('after twenty sessions');

# terminated while they hold chunks: ingesting, waiting, emitting
@sessions = map { my $s = $node->session; $s->run('SET gpusort.force = on'); $s } 1 .. 6;
for my $i (0 .. 5)
{
	$i < 3
	  ? $sessions[$i]->run('BEGIN; DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k, id; FETCH c')
	  : $sessions[$i]->send('SELECT count(*) FROM (SELECT a.* FROM t a, generate_series(1, 50) ORDER BY a.m OFFSET 0) s');
}
ok(wait_until(sub { $node->ask('SELECT count(*) FROM gpusort_jobs') > 0 }), 'sorts are running');
is($node->safe_psql('postgres', 'SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid IN ('
	. join(', ', map { $_->backend } @sessions) . ')'), 6, 'their backends are terminated');
ok(wait_until(sub { $node->ask('SELECT count(*) FROM pg_stat_activity WHERE pid IN ('
	. join(', ', map { $_->backend } @sessions) . ')') == 0 }), 'and gone');
sorted_rightly('after terminated backends');
is(join(' ', $node->services), $service, 'the service is the same');

# clients that vanish
@sessions = map { my $s = $node->session; $s->run('SET gpusort.force = on; BEGIN; DECLARE c CURSOR FOR SELECT * '
	. 'FROM t ORDER BY m; FETCH c'); $s } 1 .. 4;
$_->vanish for @sessions;
ok(wait_until(sub { $node->ask('SELECT count(*) FROM gpusort_jobs') == 0 }),
	'the sorts of clients that vanish end');
sorted_rightly('after clients that vanished');

# killed: PostgreSQL restarts its processes, and with them the supervisor and the service
my $victim = $node->session;
$victim->run('SET gpusort.force = on; BEGIN; DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k, id; FETCH c');
kill 'KILL', $victim->backend;
ok($node->wait_crash && $node->poll_query_until('postgres', 'SELECT true'),
	'the server recovers from a killed backend');
$service = $node->wait_service;
ok(wait_until(sub { $node->services == 1 }), 'there is one service');
sorted_rightly('after a killed backend');

# the supervisor terminated
my ($supervisor) = $node->supervisors;
kill 'TERM', $supervisor;
ok(wait_until(sub { my ($pid) = $node->supervisors; defined $pid && $pid != $supervisor }),
	'a supervisor that is terminated is followed by another');
$node->wait_service;
ok(wait_until(sub { $node->services == 1 }), 'there is one service');
sorted_rightly('after a terminated supervisor');

done_testing;
