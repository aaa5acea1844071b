# A service that is to make way for other settings leaves when its sorts have ended and keeps nobody
# waiting; one that is never ready is not waited for twice.
use strict;
use warnings;

use GpuSortNode;
use Test::More;
use Time::HiRes qw(time);

my $sort = q{SELECT md5(string_agg(id::text, ',')) FROM (SELECT * FROM t ORDER BY k, id) s};
my $table = 'CREATE TABLE t AS SELECT i AS id, (i * 7919) % 300007 AS k FROM generate_series(1, 250000) i; ANALYZE t';

my $node = GpuSortNode->new('main');
$node->init;
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', "CREATE EXTENSION gpusort; $table");
my $rows = $node->safe_psql('postgres', "SET gpusort.enable = off; $sort");
my $session = $node->session;
$session->run('SET gpusort.force = on');

# other settings while a cursor is open: sorts go to the next service at once, the cursor to its end
$session->run('BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t ORDER BY k, id');
$session->run('FETCH c');
$node->safe_psql('postgres', q{ALTER SYSTEM SET gpusort.staging_memory = '72MB'});
$node->reload;
ok(wait_until(sub { scalar $node->services == 2 }), 'the next service starts beside the one that has a cursor');
my $next = (grep { $_ != $service } $node->services)[0];
ok(wait_until(sub { $node->method eq 'radix' }), 'and sorts');
is(join(' ', map { $node->method } 1 .. 5), join(' ', ('radix') x 5), 'all of them');
# by the next service, while its own does not leave; with none it would wait for that, and PostgreSQL would sort
my $plan = $session->run('EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM t ORDER BY k DESC, id');
like($plan, qr/Sort Method: (?:cpu|gpu) radix/, 'also for the session that has the cursor');
unlike($plan, qr/Queue Wait/, 'without waiting');
is($node->safe_psql('postgres', 'SELECT state, pid, leaving FROM gpusort_service'), "ready|$next|1",
	'gpusort_service shows both');
is(scalar(split /\n/, $session->run('FETCH ALL FROM c')), 249999, 'the cursor goes on to its end');
$session->run('COMMIT');
ok(wait_until(sub { join(' ', $node->services) eq $next }), 'and its service ends with it');
is(scalar $node->log_lines(qr/(?:exited with exit code|terminated by signal)/), 0, 'in order');

# again and again: so many services leave at once, and the change after that waits
my @cursors;
for my $i (1 .. 5)
{
	my $cursor = $node->session;
	$cursor->run('SET gpusort.force = on; BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t ORDER BY k, id');
	isnt($cursor->run('FETCH c'), '', "cursor $i");
	push @cursors, $cursor;
	my $before = scalar $node->services;
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpusort.staging_memory = '" . (72 + 4 * $i) . "MB'");
	$node->reload;
	$i <= 4 ? ok(wait_until(sub { $node->services == $before + 1 && $node->method eq 'radix' }), "change $i is applied")
		: ok(wait_until(sub { $node->log_lines(qr/settings have changed, but 4 sort services/) }), "change $i waits");
}
is($node->method, 'radix', 'sorts go on');
is(scalar $node->services, 5, 'as they did');
is(scalar(split /\n/, $_->run('FETCH ALL FROM c')), 249999, 'the rows of a cursor') for @cursors;
$cursors[0]->run('COMMIT');
my $argument = sprintf "--staging-memory\0%d\0", 92 << 20;
ok(wait_until(sub { grep { index(command_line($_), $argument) > 0 } $node->services }),
   'when a service has left, the change is applied');
$_->run('COMMIT') for @cursors;
ok(wait_until(sub { scalar $node->services == 1 }), 'one service is left');
is($node->method, 'radix', 'and sorts');
$_->close for @cursors;
is(scalar $node->log_lines(qr/settings have changed, but/), 1, 'the log tells once that a change waits');

$session->close;
$node->stop;

# a service that is never ready: the first sort waits a little, those after it do not
my $idle = GpuSortNode->new('idle');
$idle->init;
my $script = $idle->basedir . '/never-ready';
open my $file, '>', $script or die "$script: $!";
print $file "#!/bin/sh\nexec sleep 1000\n";
close $file;
$idle->own_module(gpusortd => $script);
$idle->start;
my $decisions = 'SET gpusort.force = on; SET gpusort.log_decisions = on';
my $not_waited = qr/not used: the sort service is not (?:ready yet|running)/;
$idle->safe_psql('postgres', "$decisions; SELECT i FROM generate_series(1, 1000) i ORDER BY i DESC") for 1 .. 6;
# one has waited, unless it came late
cmp_ok($idle->waits_in_vain, '<=', 1, 'sorts wait for a service that starts, but not long');
cmp_ok(scalar $idle->log_lines($not_waited), '>=', 5, 'the others know that they need not');
ok(wait_until(sub { $idle->log_lines(qr/LOG:.*is not ready after 10 seconds/) }), 'the log tells that it is not ready');
ok(!$node->log_lines(qr/is not ready after/), 'and of none that was ready soon');
$idle->safe_psql('postgres', $table);
my $session2 = $idle->session;
$session2->run($decisions);
# a service that is never ready is given up after half a minute, and one sort may meet the next one that starts
my $waited = $idle->waits_in_vain;
my $before = $idle->log_lines($not_waited);
is($session2->run('SELECT count(*) FROM (SELECT i FROM generate_series(1, 1000) i ORDER BY i DESC OFFSET 0) s'), '1000',
	'a sort') for 1 .. 10;
cmp_ok($idle->waits_in_vain - $waited, '<=', 1, 'ten sorts do not wait for it');
cmp_ok($idle->log_lines($not_waited) - $before, '>=', 9, 'and know that');
is($session2->run($sort), $rows, 'PostgreSQL sorts');
my @late = map { /PID (\d+)/ } $idle->log_lines(qr/LOG:  sort service .* is not ready after 10 seconds/);
my %late = map { $_ => 1 } @late;
is(scalar @late, scalar keys %late, 'one line in the log for a service');
is(join("\n", grep { !/LOG:  gpusort: |is not ready after 10 seconds|was killed: it was not ready/ }
	$idle->log_lines(qr/(?:LOG|WARNING):.*sort service/)), '', 'and no others');
$session2->close;
# the service would sleep for a quarter of an hour
my $start = time;
ok($idle->stop('fast'), 'a fast stop');
in_time($start, 'in time');
ok(wait_until(sub { !$idle->processes }), 'no process is left');

done_testing;
