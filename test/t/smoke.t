# A server with gpusort preloaded: the service comes up with it, sorts, and goes with it.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init;
$node->start;
ok($node->wait_service, 'the service comes up with the server');
is(scalar $node->supervisors, 1, 'there is one supervisor');
is(scalar $node->services, 1, 'and one service');
my ($socket, @more) = $node->sockets;
ok(defined $socket && -S $socket && !@more, 'the socket is in the data directory');
is((stat $socket)[2] & 0777, 0600, 'and nobody else may connect to it');

# the extension's objects are not needed to sort
is($node->method, 'radix', 'a sort without CREATE EXTENSION');
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
is($node->method, 'radix', 'with it');
is($node->safe_psql('postgres', 'SELECT count(*) > 0 FROM gpusort_devices'), 't', 'gpusort_devices has a row');
$node->safe_psql('postgres', 'DROP EXTENSION gpusort');
is($node->method, 'radix', 'after DROP EXTENSION');

# one LOG line where there is no GPU, and no error
SKIP:
{
	skip 'there is a GPU', 1 if -e '/dev/nvidiactl';
	my @lines = $node->log_lines(qr/gpusort supervisor (?:LOG|WARNING|ERROR|FATAL): /);
	is(scalar @lines, 1, 'one LOG line about the missing GPU') or diag join "\n", @lines;
}
unlike($node->log_text, qr/ (?:ERROR|FATAL|PANIC):/, 'no error in the log');

ok($node->stop, 'the server stops');
ok(wait_until(sub { !$node->processes }), 'no process is left');
is(join(' ', glob $node->data_dir . '/pg_stat_tmp/gpusort*'), '', 'nor a file of theirs');

# a second server beside the first, and the first again
$node->start;
my $other = GpuSortNode->new('other');
$other->init;
$other->start;
ok($node->wait_service && $other->wait_service, 'two servers, each with a service');
is(join(' ', map { scalar $_->services } $node, $other), '1 1', 'of its own');
ok($node->stop('immediate'), 'one stops at once');
ok(wait_until(sub { !$node->processes }), 'with all of its processes');
is($other->method, 'radix', 'the other is not concerned');
$node->start;
ok($node->wait_service, 'the service comes up again after an immediate stop');

# the postmaster killed
ok($node->kill_postmaster, 'nothing outlives a postmaster that is killed');
$node->start;
ok($node->wait_service, 'and the service comes up with the next');
is(scalar $node->services, 1, 'one of it');
is(scalar(() = glob $node->data_dir . '/pg_stat_tmp/gpusort*'), 2,
	'with a socket and a lock, and nothing of the one that was killed');

done_testing;
