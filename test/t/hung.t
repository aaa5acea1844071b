# The service stops (SIGSTOP) when a client connects, puts rows, asks for their order, reads them, has
# them again, and when many processes have them cut and read them: left alone, its queries end by
# PostgreSQL's own sort or by an error, and they can be cancelled, terminated, timed out, and the server
# stopped.  So do queries of one that lives and owes an answer.
use strict;
use warnings;

use GpuSortNode;
use GpuSortStuck;
use Test::More;

# Guards against waits without end, which a busy machine keeps, too: how long each wait is, waits.t counts in
# looks at the service.
my ($end_seconds, $stop_seconds) = (120, 120);

my @points = GpuSortStuck->servers([ 'stop_connect' ], [ 'stop_ingest', at => 3 ], [ 'stop_sort' ],
	[ 'stop_emit', at => 2 ], [ 'stop_rewind', query => 'rewind' ],
	[ 'stop_cut', query => 'shared' ], [ 'stop_read', at => 2, query => 'shared' ]);
is($_->sorts, 'right', "$_->{name}: the right answer") for @points;

# of rows in memory, and of rows in runs, which are merged as they are read
# (of runs of a device, in more chunks, not the last one would be missing)
my @silent = GpuSortStuck->servers([ 'skip_chunk', at => 5 ],
	$engine ne 'host' ? () : [ 'skip_chunk', name => 'skip_chunk_of_runs', at => 5,
		conf => [ "gpusort.host_memory = '16MB'" ] ]);
ok($_->begin, "$_->{name}: the last chunk is not sent") for @silent;
for my $silent (@silent)
{
	is($silent->outcome, '58000', 'a query whose last rows do not come ends by itself');
	like($silent->{node}->log_text, qr/the sort service has not answered for \d+ seconds/, 'as the log tells');
	is($silent->sorts, 'right', 'and the next one sorts');
}
like($_->{node}->safe_psql('postgres', q{SET gpusort.force = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) }
	. $_->{query}), qr/Runs: /, 'which is done in runs') for grep { $_->{name} =~ /runs/ } @silent;

# nothing is done about it
ok($_->begin, "$_->{name}: the service stops") for @points;
for my $point (@points)
{
	like($point->outcome, qr/^(?:right|58000)$/, "$point->{name}: the query ends by itself");
	cmp_ok($point->{seconds}, '<', $end_seconds, sprintf 'in %.1f seconds', $point->{seconds});
	is($point->{session}->run('SELECT 1'), '1', 'and its session lives');
}
for my $point (@points)
{
	$point->{node}->wait_service($point->{service});
	is($point->sorts, 'right', "$point->{name}: another service sorts");
	is(scalar $point->{node}->services, 1, 'which is the only one');
}

# the query is ended, and the service goes on
for my $how ('cancel', 'timeout', 'terminate')
{
	for my $point (@points)
	{
		my $node = $point->{node};
		my $expected = $how eq 'terminate' ? '57P01' : '57014';
		my ($timeout, $begun, $outcome) = (1000);

		# again if the time is over before the service stops, or the supervisor kills it before the query ends
		for (1 .. 10)
		{
			my $from = length $node->log_text;

			$node->ask('SELECT 1');
			$point->{session}->run("SET statement_timeout = $timeout") if $how eq 'timeout';
			$begun = $point->begin;
			$node->ask("SELECT pg_${how}_backend(" . $point->{session}->backend . ')') if $begun && $how ne 'timeout';
			$outcome = $point->outcome;
			last if $begun && ($outcome eq $expected || substr($node->log_text, $from) !~ /does not answer: it was killed/);
			$node->choose_fault;
			$timeout *= 2;
			$node->wait_service;
			$point->new_session;
		}
		ok($begun, "$point->{name}: the service stops");
		is($outcome, $expected, "$how ends the query");
		kill 'CONT', $node->services;
		cmp_ok($point->{seconds}, '<', $end_seconds, sprintf 'in %.1f seconds', $point->{seconds});
		$point->new_session;
		is($point->sorts, 'right', 'and the service goes on');
	}
}

# the server is stopped
for my $mode ('fast', 'immediate')
{
	ok($_->begin, "$_->{name}: the service stops") for @points;
	$_->stop($mode) for @points;
	ok($_->stopped($stop_seconds), "$_->{name}: $mode stop") && note sprintf 'in %.1f seconds', $_->{seconds} for @points;
	$_->restart for @points;
	is($_->sorts, 'right', "$_->{name}: sorts go on") for @points;
}

# devices are asked for
my $point = $points[0];
$point->{node}->safe_psql('postgres',
	qq{CREATE FUNCTION devices(OUT engine text, OUT ordinal int, OUT name text, OUT detail text, OUT memory_total int8,
	OUT memory_limit int8, OUT memory_used int8, OUT jobs int) RETURNS SETOF record
		LANGUAGE c STRICT AS '$point->{module}', 'gpusort_show_devices'});
@$point{qw(fault query right)} = ('stop_status', 'SELECT count(*) FROM devices()', 0);
ok($point->begin, 'status: the service stops');
is($point->outcome, 'right', 'gpusort_devices ends by itself, with no device');
cmp_ok($point->{seconds}, '<', $end_seconds, sprintf 'in %.1f seconds', $point->{seconds});

unlike($_->{node}->log_text, qr/PANIC|terminating any other active server processes/,
	"$_->{name}: no server process has crashed") for @points, @silent;

done_testing;
