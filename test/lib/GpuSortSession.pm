# GpuSortSession - a psql that stays, for what happens at the same time.
#
#   my $session = $node->session;
#   $session->send('SELECT pg_sleep(10)');
#   ...
#   my ($out, $err) = $session->result;
#
# PostgreSQL::Test::BackgroundPsql waits for each query and does not give its messages.
package GpuSortSession;

use strict;
use warnings;

use Carp;
use IPC::Run ();
use Time::HiRes qw(time);

sub new
{
	my ($class, $command) = @_;
	my $self = bless { in => '', out => '', err => '', count => 0 }, $class;

	$self->{timer} = IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
	$self->{harness} = IPC::Run::start($command, '<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err},
		$self->{timer});
	$self->{backend} = $self->run('SELECT pg_backend_pid()');
	return $self;
}

# The process id of the session's backend.
sub backend
{
	my ($self) = @_;
	return $self->{backend};
}

# Sends SQL and does not wait.
sub send
{
	my ($self, $sql) = @_;
	$self->{count}++;
	$self->{in} .= "$sql;\n\\echo end-$self->{count}\n\\warn end-$self->{count}\n";
	$self->{timer}->start;
	$self->{harness}->pump_nb;
	return;
}

# True if what was sent has been answered, or the session is gone: result does not wait then.
sub answered
{
	my ($self) = @_;
	my $end = "end-$self->{count}\n";

	return 1 unless $self->{harness}->pumpable;
	$self->{harness}->pump_nb;
	return !grep { length $_ < length $end || substr($_, -length $end) ne $end } @$self{qw(out err)};
}

# What came of what was sent: the output and the messages.  Dies when nothing comes in time; when the
# session is gone, returns what it said.
sub result
{
	my ($self) = @_;
	my $end = "end-$self->{count}\n";

	$self->{timer}->start;
	while (grep { length $_ < length $end || substr($_, -length $end) ne $end } @$self{qw(out err)})
	{
		last unless $self->{harness}->pumpable;
		eval { $self->{harness}->pump; 1 } or croak "no answer: $@ $self->{err}";
	}
	my ($out, $err) = @$self{qw(out err)};
	$self->{out} = $self->{err} = '';
	s/end-\d+\n//g for $out, $err;
	chomp $out;
	return ($out, $err);
}

# Runs SQL; returns its output.
sub run
{
	my ($self, $sql) = @_;
	$self->send($sql);
	my ($out) = $self->result;
	return $out;
}

# Cancels a query by statement_timeout at points of time all over it: the ends of its first $parts - 1
# parts.  Returns at how many of them it was cancelled, and in words, where it did not end soon, within 100 ms
# or, on a slow machine, a tenth of the whole, or in another way.  The machine may have other things to do: a
# point is tried again when the query was late, or was done before, and then a part is shorter from there on;
# and it may be late by as much as PostgreSQL's own plan of the query is, cancelled at the same time.
sub cancel_all_over
{
	my ($self, $query, $parts) = @_;
	my $whole;
	my ($points, @wrong) = (0);

	for my $try (1 .. 3)
	{
		my $start = time;
		$self->run($query);
		my $took = time - $start;
		$whole = $took if !defined $whole || $took < $whole;
	}
	for my $part (1 .. $parts - 1)
	{
		my $soon = $whole > 1 ? $whole / 10 : 0.1;
		my ($best, $allowed) = (undef, $soon);

		for (my ($tries, $done) = (0, 0); $tries < 30 && $done < 3; $tries++)
		{
			my ($late, $took, $err) = $self->_cancel_after($whole * $part / $parts, $query);
			if ($err eq '')
			{
				$whole = $took if $took < $whole;
				$done++;
				next;
			}
			push @wrong, $err unless $err =~ /ERROR:  57014:/;
			$best = $late if !defined $best || $late < $best;
			last if $best <= $allowed;
			$self->run('SET gpusort.enable = off');
			my ($own) = $self->_cancel_after($whole * $part / $parts, $query);
			$self->run('RESET gpusort.enable');
			$allowed = $soon + $own if $allowed < $soon + $own;
		}
		next unless defined $best;
		$points++;
		push @wrong, sprintf '%.0f ms late at %d/%d of %.1f s', 1000 * $best, $part, $parts, $whole if $best > $allowed;
	}
	return ($points, @wrong);
}

# Sets statement_timeout to what it was, or 0: one that is so short may end that, too.
sub end_timeout
{
	my ($self, $setting) = @_;

	$setting //= 0;
	for (1 .. 100)
	{
		$self->run("SET statement_timeout = '$setting'");
		return if $self->run('SHOW statement_timeout') eq $setting;
	}
	die "statement_timeout cannot be set to $setting";
}

# A query with a statement_timeout of so many seconds: how late it ended, what it took, and its errors.
sub _cancel_after
{
	my ($self, $timeout, $query) = @_;
	my $setting = $self->run('SHOW statement_timeout');

	$self->run(sprintf 'SET statement_timeout = %d', 1 + 1000 * $timeout);
	my $start = time;
	$self->send($query);
	my (undef, $err) = $self->result;
	my $took = time - $start;
	$self->end_timeout($setting);
	return ($took - $timeout, $took, $err);
}

# Ends psql as a client does that vanishes.
sub vanish
{
	my ($self) = @_;
	$self->{harness}->kill_kill;
	return;
}

sub close
{
	my ($self) = @_;
	$self->{in} .= "\\q\n";
	eval { $self->{harness}->finish };
	return;
}

1;
