# An engine's call does not return, as one into a driver that hangs, and no cancel helps: its query
# ends by PostgreSQL's own sort or by an error, can be cancelled, and is in nobody's way; the service
# starts afresh, and the server can be stopped.
use strict;
use warnings;

use GpuSortNode;
use GpuSortStuck;
use Test::More;

# A call may take 10 seconds before the service gives itself up; the rest is for a busy machine.
my ($end_seconds, $other_seconds, $stop_seconds) = (120, 120, 120);

my @points = GpuSortStuck->servers([ 'hang_begin' ], [ 'hang_put', at => 2 ], [ 'hang_sort' ],
	[ 'hang_cut', query => 'shared' ], [ 'hang_emit', at => 2 ], [ 'hang_end' ]);

# What comes of the query in a session, asked for again where the service gave itself up while it gave out its rows.
sub comes_of
{
	my ($point) = @_;
	my $outcome = $point->sorts;

	return $outcome if $outcome ne '58000';
	$point->{node}->wait_service($point->{service});
	return $point->sorts;
}

# nothing is done about it; others sort meanwhile
ok($_->begin, "$_->{name}: the call hangs") for @points;
for my $point (@points)
{
	my $other = GpuSortStuck->beside($point);

	is(comes_of($other), 'right', "$point->{name}: another session sorts");
	cmp_ok($other->{seconds}, '<', $other_seconds, sprintf 'in %.1f seconds', $other->{seconds});
	$other->{session}->close;
}
for my $point (@points)
{
	like($point->outcome, qr/^(?:right|58000)$/, "$point->{name}: the query ends by itself");
	cmp_ok($point->{seconds}, '<', $end_seconds, sprintf 'in %.1f seconds', $point->{seconds});
}
for my $point (@points)
{
	$point->{service} = $point->{node}->wait_service($point->{service});
	is($point->sorts, 'right', "$point->{name}: another service sorts");
	ok($point->{node}->log_lines(qr/sort service: .*$point->{call}/), 'and the log tells of the call');
}

# the query is cancelled: the next ones are not slow, and nothing stays charged
for my $point (@points)
{
	# at once, before the service gives itself up
	ok($point->begin, "$point->{name}: the call hangs");
	$point->{node}->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $point->{session}->backend . ')');
}
for my $point (@points)
{
	like($point->outcome, $point->{name} eq 'hang_end' ? qr/^right$/ : qr/^57014$/,
		"$point->{name}: the query is cancelled");
	is(comes_of($point), 'right', 'the next one is right');
	cmp_ok($point->{seconds}, '<', $other_seconds, sprintf 'in %.1f seconds', $point->{seconds});
}
$_->{service} = $_->{node}->wait_service($_->{service}) for @points;

# the server is stopped
ok($_->begin, "$_->{name}: the call hangs") for @points;
$_->stop('fast') for @points;
ok($_->stopped($stop_seconds), "$_->{name}: fast stop") && note sprintf 'in %.1f seconds', $_->{seconds} for @points;
unlike($_->{node}->log_text, qr/PANIC|terminating any other active server processes/,
	"$_->{name}: no server process has crashed") for @points;

done_testing;
