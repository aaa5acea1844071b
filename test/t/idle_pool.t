# The staging pool that a backend has mapped: kept for its next sort, given back when there is none for a
# while, so that idle sessions do not hold on to the pools of services that have ended.
use strict;
use warnings;

use GpuSortNode;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

my $node = GpuSortNode->new('main');
$node->init;
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', 'CREATE TABLE t AS SELECT i AS id, (i * 7919) % 30011 AS k '
	. 'FROM generate_series(1, 30000) i; ANALYZE t');

# How many pools a process has mapped.
sub pools
{
	my ($session) = @_;
	my $maps = slurp_file('/proc/' . $session->backend . '/maps');
	my @found = $maps =~ /memfd:gpusort-pool/g;
	return scalar @found;
}

my $sort = 'SELECT id FROM t ORDER BY k, id OFFSET 29999';
my ($idle, $busy, $cursor, $failed, $off) = map { $node->session } 1 .. 5;
$_->run('SET gpusort.force = on') for $idle, $busy, $cursor, $failed, $off;
my $last = $idle->run($sort);
is(pools($idle), 1, 'a session that has sorted keeps the pool');
is($idle->run($sort), $last, 'for the next sort');
is(pools($idle), 1, 'which uses the same');
$busy->run($sort);
# an error that ends all timeouts, in the sort and after it
$failed->run('BEGIN');
$failed->run($sort);
$failed->send('SELECT 1 / 0');
like(($failed->result)[1], qr/division by zero/, 'an error in the same transaction');
$failed->run('ROLLBACK');
$off->send('SELECT 1 / (id - 29999) FROM (SELECT id FROM t ORDER BY id) s');
like(($off->result)[1], qr/division by zero/, 'an error while rows are given out');
is(pools($_), 1, 'a session that had an error has it still') for $failed, $off;

# services that come after each other
for my $round (1 .. 2)
{
	is($cursor->run($sort), $last, 'a sort');
	kill 'KILL', $service;
	$service = $node->wait_service($service);
}
cmp_ok(pools($_), '<=', 1, 'a session keeps one pool at most, of a service that has ended too') for $idle, $cursor;
$cursor->run("BEGIN; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY k, id; MOVE 10 IN c");
is(pools($cursor), 1, 'a cursor has the pool of the present one');

# they give it back, one within a statement that sorts nothing
$busy->send('SELECT pg_sleep(3600)');
ok(wait_until(sub { pools($idle) == 0 }), 'an idle session gives the pool back');
ok(wait_until(sub { pools($busy) == 0 }), 'one that does other things does');
ok(!$busy->answered, 'while it does them');
$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $busy->backend . ')');
like(($busy->result)[1], qr/57014/, 'and is cancelled');
ok(wait_until(sub { pools($_) == 0 }), 'one that had an error does') for $failed, $off;
is(pools($cursor), 1, 'one with a cursor does not');
is($cursor->run('FETCH 1 FROM c') . $cursor->run('MOVE 29988 IN c') . $cursor->run('FETCH 1 FROM c'),
	$node->safe_psql('postgres', 'SET gpusort.enable = off; SELECT id FROM t ORDER BY k, id OFFSET 10 LIMIT 1') . $last,
   'and goes on');
is($idle->run($sort), $last, 'they sort again');
like($idle->run('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM t ORDER BY k'), qr/radix/, 'in the service');
is(pools($idle), 1, 'with the pool mapped anew');
$_->close for $idle, $busy, $cursor, $failed, $off;

done_testing;
