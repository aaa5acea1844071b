# Cancel and statement_timeout at every stage of a sort: the query ends soon after it, and
# everything goes on.
use strict;
use warnings;

use GpuSortNode;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = GpuSortNode->new('main');
$node->init(conf => ['gpusort.staging_memory = 256MB']);
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 * 104729) % 2000003 AS k,
		'a prefix that is long enough to tie as a key does not hold all of it, so the comparator has work ' || i % 1000 AS s
			FROM generate_series(1, 1500000) i;
	ANALYZE t;
});
my %query = (
	'an exact key' => 'SELECT count(*) FROM (SELECT * FROM t ORDER BY k, id OFFSET 0) s',
	'ties' => 'SELECT count(*) FROM (SELECT * FROM t ORDER BY s COLLATE "C", id OFFSET 0) s',
);

my $session = $node->session;
$session->run('SET gpusort.force = on');

for my $name (sort keys %query)
{
	like($node->safe_psql('postgres', "SET gpusort.force = on; EXPLAIN (COSTS OFF) $query{$name}"), qr/GpuSort/,
		"$name: goes through GpuSort");
	is($session->run($query{$name}), '1500000', "$name: the whole sort");

	# points of time all over the sort
	my ($points, @wrong) = $session->cancel_all_over($query{$name}, 20);
	cmp_ok($points, '>=', 8, "$name: $points points of time cancelled");
	is(scalar @wrong, 0, "$name: each ends soon") or diag join "\n", @wrong;
	is($session->run('SELECT count(*) FROM gpusort_jobs'), '0', "$name: no sort is left");
	is($session->run($query{$name}), '1500000', "$name: the whole sort again");
}

# pg_cancel_backend, while rows are ingested slowly and while a client does not fetch
$session->send('SELECT count(*) FROM (SELECT i, pg_sleep(0.01) FROM generate_series(1, 1000000) i '
	. 'ORDER BY i DESC OFFSET 0) s');
ok(wait_until(sub { $node->ask('SELECT count(*) FROM gpusort_jobs') == 1 }),
	'a slow sort is running');
sleep 0.3;
$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $session->backend . ')');
my $start = time;
my ($out, $err) = $session->result;
like($err, qr/57014/, 'it is cancelled');
in_time($start, 'at once');
$session->run('BEGIN; DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k');
$session->run('FETCH 10 FROM c');
$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $session->backend . ')');
is(scalar(split /\n/, $session->run('FETCH 10 FROM c')), 10, 'a cancel between queries is no matter to a cursor');
$session->run('COMMIT');

# a service that does not answer: the wait ends all the same; its supervisor would kill it before long
my ($supervisor) = $node->supervisors;
kill 'STOP', $supervisor, $service;
for my $timeout (0.3, 1)
{
	my $over;

	# as soon as it did once: a busy machine may be late, one that looks each second is so each time
	for (1 .. 30)
	{
		$session->run(sprintf 'SET statement_timeout = %d', 1000 * $timeout);
		$start = time;
		$session->send($query{'an exact key'});
		(undef, $err) = $session->result;
		$over = time - $start - $timeout;
		$session->run('SET statement_timeout = 0');
		last if $err !~ /57014/ || $over < 0.5;
	}
	ok($err =~ /57014/ && $over < 0.5, 'a wait for a service that hangs ends with the timeout') or diag "$over $err";
}
kill 'CONT', $supervisor, $service;
is($session->run($query{'an exact key'}), '1500000', 'the sort afterwards');
is($session->run('SELECT count(*) FROM gpusort_jobs'), '0', 'no sort is left');
is(join(' ', $node->services), $service, 'the service is the same');

$session->close;
done_testing;
