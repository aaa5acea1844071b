# WorkloadSession - a psql that stays, for bench/workload: each statement finds the same session, so
# that none pays for a connection and what a session has cached is the same for both sides.
#
#   my $session = WorkloadSession->new($database, [ 'SET work_mem = ...', ... ]);
#   my $answer = $session->run('SELECT 1');	# { lines => [...], error => undef }
#   my $answer = $session->timed($query, $file, $limit_ms);	# and { ms => ... }
#
# A session that is lost (a server that crashed, a connection that was cut) is opened again by the next
# call; the call that lost it returns an error.
#
# pg_stat_statements does not count what a session does whose role may say so; $session->{counted} is true where
# it may not.
package WorkloadSession;

use strict;
use warnings;

use IPC::Open3 ();

# $settings: statements for each new session
sub new
{
	my ($class, $database, $settings) = @_;
	my $self = bless { database => $database, settings => $settings, count => 0 }, $class;

	eval { $self->open; 1 } or do
	{
		$self->close;
		$self->{counted} = 1;
		$self->open;
	};
	return $self;
}

sub open
{
	my ($self) = @_;
	local @ENV{qw(LC_ALL PGCLIENTENCODING)} = ('C', 'UTF8');
	local $ENV{PGOPTIONS} = join ' ', $ENV{PGOPTIONS} // (), $self->{counted} ? () : '-c pg_stat_statements.track=none';

	$self->{pid} = IPC::Open3::open3($self->{in}, $self->{out}, undef,
		qw(psql -X -q -A -t -v VERBOSITY=default -v ON_ERROR_STOP=0),
		defined $self->{database} ? ('-d', $self->{database}) : ());
	binmode $self->{$_} for qw(in out);
	$self->{in}->autoflush(1);
	for my $statement (@{ $self->{settings} })
	{
		my $answer = $self->send("$statement;\n");
		die "$answer->{error}\n" if defined $answer->{error};
	}
	return;
}

# Sends text to psql and takes what comes back up to its end.
sub send
{
	my ($self, $text) = @_;
	my $end = 'gpusort-end-' . ++$self->{count};
	my (@lines, $error);
	local $SIG{PIPE} = 'IGNORE';

	print { $self->{in} } $text, "\\echo $end\n";
	while (defined(my $line = readline $self->{out}))
	{
		chomp $line;
		return { lines => \@lines, error => $error } if $line eq $end;
		$error //= $1 if $line =~ /^(?:psql:\S* )?(?:ERROR|FATAL|PANIC): +(.*)/ || $line =~ /^psql: error: (.*)/
			|| $line =~ /^(invalid command .*)/;
		push @lines, $line;
	}
	$self->close;
	$self->{lost} = 1;
	return { lines => \@lines, error => $error // 'the session was lost', lost => 1 };
}

sub run
{
	my ($self, $text) = @_;

	$self->open if !$self->{pid};
	return $self->send($text =~ /\n\z/ ? $text : "$text;\n");
}

# Runs a query with its rows going to a file, as COPY writes them; no longer than limit_ms.  The time is
# psql's: from the statement to its last row.
sub timed
{
	my ($self, $query, $file, $limit_ms) = @_;
	my $answer = $self->run(
		sprintf("SET statement_timeout = %d;\n\\o %s\n\\timing on\nCOPY (\n%s\n) TO STDOUT;\n\\timing off\n\\o\nRESET "
		. "statement_timeout;\n", $limit_ms, $file, $query));

	for (@{ $answer->{lines} })
	{
		$answer->{ms} = $1 if /^Time: ([\d.]+) ms/;
	}
	$answer->{timeout} = 1 if defined $answer->{error} && $answer->{error} =~ /statement timeout/;
	return $answer;
}

# Names and types of a query's columns, [name, type], ...; none if that cannot be told
sub columns
{
	my ($self, $query) = @_;
	my $answer = $self->run("$query\n\\gdesc\n");

	return defined $answer->{error} ? () : map { /(.*)\|(.*)/ ? [ $1, $2 ] : () } @{ $answer->{lines} };
}

# Has psql cancel what it runs, from a signal handler.
sub interrupt
{
	my ($self) = @_;
	kill 'INT', $self->{pid} if $self->{pid};
	return;
}

sub close
{
	my ($self) = @_;
	my $pid = delete $self->{pid} or return;

	close $self->{in};
	close $self->{out};
	waitpid $pid, 0;
	return;
}

1;
