# How long a query waits for a service that says nothing: not for ever, whatever that is stuck in and whatever else
# wakes the query's process meanwhile; and once, not once for each sort.
use strict;
use warnings;

use GpuSortNode;
use GpuSortStuck;
use Test::More;
use Time::HiRes qw(sleep);

# Runs are read from files, a MB at a time.
my @in_runs = (
	conf => [ "gpusort.host_memory = '16MB'", "gpusort.device_memory = '16MB'", 'gpusort.log_decisions = on' ]);
my ($stuck, $woken, $still) = GpuSortStuck->servers([ 'hang_read', @in_runs ],
	[ 'skip_chunk', at => 5 ], [ 'stop_connect' ]);
my $owes = qr/the sort service has not answered for \d+ seconds/;

# This one takes half a minute: it begins here, and ends below.
ok($stuck->begin, 'a read of a run does not return');

# A process that is woken more often than it looks at the service sees that nothing comes all the same: ten times
# as often as it has to look.
ok($woken->begin, 'a chunk is not sent to a process that is woken all the time');
my $wakes = 0;
for (; !$woken->{session}->answered && $wakes < 1000; $wakes++)
{
	kill 'HUP', $woken->{session}->backend;
	sleep 0.1;
}
cmp_ok($wakes, '<', 1000, "its query ends, after $wakes wakes");
$woken->{node}->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $woken->{session}->backend . ')') if $wakes == 1000;
is($woken->outcome, '58000', 'with an error');
like($woken->{node}->log_text, $owes, 'as the log tells');

# Service and supervisor stand still: the first sort of a query waits for their pulse, the others know.
my ($supervisor) = $still->{node}->supervisors;
my $sort = 'SELECT count(DISTINCT i %% %d) '
	. 'FROM (SELECT i FROM generate_series(1, 10000) i ORDER BY i %% %1$d OFFSET 0) s';
my $query = 'SELECT ' . join ', ', map { sprintf "($sort)", $_ } 7, 11, 13;
kill 'STOP', $supervisor;
@$still{qw(query right)} = ("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query", '');
ok($still->begin, 'service and supervisor stop');
my ($plan) = $still->{session}->result;
my $lost = () = $plan =~ /Fallback Reason: service lost: the sort service does not answer/g;
my $known = () = $plan =~ /Fallback Reason: service unavailable: the sort service does not answer/g;
my $sorts = () = $plan =~ /Custom Scan \(GpuSort\)/g;
cmp_ok($sorts, '>=', 3, 'a query of several sorts ends');
is("$lost, $known", '1, ' . ($sorts - 1), 'one of them has waited') or diag $plan;
my $native = $still->{session}->run("SET gpusort.enable = off; $query; RESET gpusort.enable");
is($still->{session}->run($query), $native, 'PostgreSQL sorts');
kill 'CONT', $_ for $still->{node}->services, $supervisor;
ok(wait_until(sub { $still->{session}->run($still->{query}) !~ /Fallback/ }), 'the service is used when they go on');

is($stuck->outcome, 'right', 'a query that waits for a read that does not return is sorted by PostgreSQL');
like($stuck->{node}->log_text, qr/falling back to tuplesort: $owes/, 'as the log tells');

unlike($_->{node}->log_text, qr/PANIC|terminating any other active server processes/,
	"$_->{name}: no server process has crashed") for $stuck, $woken, $still;

done_testing;
