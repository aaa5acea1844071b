# FuzzSession - a psql that stays, whose output goes to files.
package FuzzSession;

use strict;
use warnings;
no warnings 'nonchar';

use Carp;
use IO::Select;
use IPC::Open3;
use Time::HiRes qw(time);

# How long a statement may take, with gpusort and without it, and how long an answer may stay away, in
# seconds.  What PostgreSQL needs longer for is not looked at.
our $statement_seconds = 10;
our $native_seconds = 4;
our $answer_seconds = 90;

# What a session is told when a fault from outside ended its statement or itself, with the SQLSTATE: the
# service was lost after rows had been emitted, or somebody cancelled or terminated the session.  One that
# is terminated while it waits for its client to read is told nothing: PostgreSQL just closes.  That a
# process of the server has crashed shows in the server's log.
my $lost = qr/(58000): the sort service lost the rows/;
my $ended = qr/(57014): canceling statement due to user request|(57P01): terminating /;
our $disturbance = qr/\b(?:ERROR|FATAL):  (?:$lost|$ended)|^(server closed the connection) unexpectedly/m;

sub new
{
	my ($class, $node, $database, $scratch, $name) = @_;
	$name //= '';
	my $self = bless { out => "$scratch/out$name", err => "$scratch/err$name", count => 0, read => 0, disturbances => [] },
		$class;

	open my $err, '>', $self->{err} or croak "$self->{err}: $!";
	# by which script/soak knows whom it may disturb
	local $ENV{PGAPPNAME} = 'fuzz session';
	$self->{pid} = open3($self->{in}, $self->{answer}, '>&' . fileno $err, $node->psql_command($database),
						 qw(-P recordsep_zero -P fieldsep_zero), '-P', 'null=\N');
	$self->{in}->autoflush(1);
	binmode $self->{in}, ':utf8';
	my ($out, @error) = $self->run('SELECT pg_backend_pid()');
	($self->{backend}) = ($out // '') =~ /^(\d+)/ or croak "no session: @error";
	return $self;
}

# Runs SQL.  Returns its output, or undef if the session is gone or does not answer, and the lines
# of its messages.
sub run
{
	my ($self, $sql) = @_;
	return if $self->{gone};
	my $marker = 'end-' . ++$self->{count};
	my $answered = 0;
	my $end = time + $answer_seconds;

	print { $self->{in} } "\\o $self->{out}\n$sql;\n\\o\n\\echo $marker\n";
	while (!$answered)
	{
		my $line;
		last unless IO::Select->new($self->{answer})->can_read($end - time);
		last unless sysread $self->{answer}, $line, 4096;
		$self->{pending} .= $line;
		$answered = $self->{pending} =~ s/^.*\Q$marker\E\n//s;
	}
	open my $err, '<', $self->{err} or croak "$self->{err}: $!";
	seek $err, $self->{read}, 0;
	my @messages = <$err>;
	$self->{read} = tell $err;
	chomp @messages;
	my @states = map { /$disturbance/ ? $1 // $2 // $3 // $4 : () } @messages;
	my $told = grep { $_ eq '57P01' } @states;
	push @{ $self->{disturbances} }, grep { !$told || /^\d/ } @states;
	$self->{gone} = !$answered;
	return (undef, @messages, time > $end ? 'ERROR:  no answer' : ()) unless $answered;

	open my $file, '<', $self->{out} or croak "$self->{out}: $!";
	local $/;
	return (scalar <$file> // '', @messages);
}

# File descriptors of the backend that stand for a connection or memory shared with another process.
sub descriptors
{
	my ($self) = @_;
	return scalar grep { (readlink($_) // '') =~ /socket:|memfd|pipe:/ } glob "/proc/$self->{backend}/fd/*";
}

sub DESTROY
{
	my ($self) = @_;
	local ($?, $!);
	close $self->{in} if $self->{in};
	close $self->{answer} if $self->{answer};
	waitpid $self->{pid}, 0 if $self->{pid};
	return;
}

1;
