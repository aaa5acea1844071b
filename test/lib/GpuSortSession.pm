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

sub new
{
	my ($class, $command) = @_;
	my $self = bless { in => '', out => '', err => '', count => 0 }, $class;

	$self->{timer} = IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
	$self->{harness} = IPC::Run::start($command, '<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err}, $self->{timer});
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
