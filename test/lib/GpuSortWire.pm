# GpuSortWire - a client that speaks PostgreSQL's protocol and keeps every byte of an answer.
#
#   my $wire = GpuSortWire->new($node->host . '/.s.PGSQL.' . $node->port, client_encoding => 'LATIN1');
#   my $answer = $wire->simple('SELECT 1');
#   my $answer = $wire->extended('SELECT $1::int', formats => [1], values => ['1'], rows => 10);
#   print $answer->{bytes}, $answer->{rows}, $answer->{error};
#   print $wire->ask('SELECT 1');	# as psql -At prints it
#
# bytes has the messages as they came but those that differ from run to run or say where an error was found: of an
# error severity, code, message and detail are kept.  rows is the number of DataRow and CopyData messages, error
# "SQLSTATE message", or undef; gone is true if the server has closed the connection.
package GpuSortWire;

use strict;
use warnings;

use Carp;
use IO::Socket::UNIX;
use Time::HiRes qw(time sleep);

sub new
{
	my ($class, $path, %parameters) = @_;
	my $self = bless {
		path => $path,
		input => '',
		timeout => $ENV{PG_TEST_TIMEOUT_DEFAULT} || 180,
		socket => IO::Socket::UNIX->new(Peer => $path) || croak "$path: $!",
	}, $class;
	my $body = pack 'N', 196608;

	%parameters = (user => 'postgres', database => 'postgres', %parameters);
	$body .= "$_\0$parameters{$_}\0" for sort keys %parameters;
	$self->write(pack('N', length($body) + 5) . "$body\0");
	my $answer = $self->answer;
	croak "no session: $answer->{error}" if defined $answer->{error};
	($self->{backend}, $self->{key}) = @$answer{qw(backend key)};
	return $self;
}

sub backend
{
	my ($self) = @_;
	return $self->{backend};
}

sub write
{
	my ($self, $bytes) = @_;
	local $SIG{PIPE} = 'IGNORE';

	while (length $bytes)
	{
		my $written = syswrite $self->{socket}, $bytes;
		next if !defined $written && $!{EINTR};
		return unless defined $written;
		substr($bytes, 0, $written) = '';
	}
	return;
}

sub message
{
	my ($type, $body) = @_;
	return $type . pack('N', length($body) + 4) . $body;
}

# Sends a query and does not wait.
sub send_simple
{
	my ($self, $sql) = @_;
	$self->write(message('Q', "$sql\0"));
	return;
}

# The same by the extended protocol: formats of the columns, values of parameters as text, most rows at once.
sub send_extended
{
	my ($self, $sql, %how) = @_;
	my @formats = @{ $how{formats} || [] };
	my @values = @{ $how{values} || [] };
	my $bind = "\0\0" . pack('n', 0) . pack('n', scalar @values);

	$bind .= defined $_ ? pack('N', length) . $_ : pack('N', 0xffffffff) for @values;
	$bind .= pack('n*', scalar @formats, @formats);
	$self->write(message('P', "\0$sql\0" . pack('n', 0)) . message('B', $bind) . message('D', "P\0")
		. message('E', "\0" . pack('N', $how{rows} || 0)) . message('S', ''));
	return;
}

# Asks for the rest, or so many rows more, of an unnamed portal within a transaction.
sub send_execute
{
	my ($self, $rows) = @_;
	$self->write(message('E', "\0" . pack('N', $rows)) . message('S', ''));
	return;
}

# Reads what has come, up to so many bytes; false if that is the end.
sub read_some
{
	my ($self, $most) = @_;
	my $sockets = '';
	my $ready;

	vec($sockets, fileno $self->{socket}, 1) = 1;
	# the end of a child interrupts it
	do { $ready = select(my $read = $sockets, undef, undef, $self->{timeout}) } while $ready < 0 && $!{EINTR};
	$ready > 0 or croak 'no answer in time';
	my $read = sysread $self->{socket}, $self->{input}, $most || 1 << 20, length $self->{input};
	return defined $read && $read > 0;
}

# The values of a DataRow as a line.
sub _line
{
	my ($row) = @_;
	my ($at, @values) = (7);

	for (1 .. unpack 'x5 n', $row)
	{
		my $length = unpack "x$at N", $row;
		$at += 4;
		push @values, $length == 0xffffffff ? '' : substr $row, $at, $length;
		$at += $length if $length != 0xffffffff;
	}
	return join '|', @values;
}

# Reads to the end of an answer.  slow: seconds to wait between reads of 8 kB; lines: an array for the rows, as psql
# prints them.
sub answer
{
	my ($self, %how) = @_;
	my %answer = (bytes => '', rows => 0);

	for (;;)
	{
		while (length $self->{input} < 5 || length $self->{input} < 1 + unpack 'x N', $self->{input})
		{
			sleep $how{slow} if $how{slow};
			next if $self->read_some($how{slow} ? 8192 : 0);
			$answer{gone} = 1;
			return \%answer;
		}
		my $at = 0;
		while (length($self->{input}) - $at >= 5)
		{
			my ($type, $length) = unpack "x$at a N", $self->{input};

			last if length($self->{input}) - $at < 1 + $length;
			my $whole = substr $self->{input}, $at, 1 + $length;
			$at += 1 + $length;
			if ($type eq 'E' || $type eq 'N')
			{
				my %fields = map { (substr($_, 0, 1) => substr($_, 1)) } split /\0/, substr $whole, 5;
				$answer{bytes} .= join(' ', $type, grep { defined } @fields{qw(S C M D)}) . "\n";
				$answer{error} = "$fields{C} $fields{M}" if $type eq 'E';
			}
			elsif ($type eq 'K')
			{
				@answer{qw(backend key)} = unpack 'x5 N N', $whole;
			}
			elsif ($type ne 'S')
			{
				$answer{bytes} .= $whole;
				$answer{rows}++ if $type eq 'D' || $type eq 'd';
				push @{ $how{lines} }, _line($whole) if $how{lines} && $type eq 'D';
			}
			if ($type eq 'Z')
			{
				substr($self->{input}, 0, $at) = '';
				return \%answer;
			}
		}
		substr($self->{input}, 0, $at) = '';
	}
}

sub simple
{
	my ($self, $sql) = @_;
	$self->send_simple($sql);
	return $self->answer;
}

sub extended
{
	my ($self, $sql, %how) = @_;
	$self->send_extended($sql, %how);
	return $self->answer;
}

# The rows of a query, as psql -At prints them; dies of an error.
sub ask
{
	my ($self, $sql) = @_;
	my @lines;

	$self->send_simple($sql);
	my $answer = $self->answer(lines => \@lines);
	croak "$sql: " . ($answer->{error} // 'the session has ended')
		if $answer->{gone} || defined $answer->{error};
	return join "\n", @lines;
}

# True if an idle session has ended, or something has come that it has not asked for.
sub has_ended
{
	my ($self) = @_;
	my $read = '';

	vec($read, fileno $self->{socket}, 1) = 1;
	return select($read, undef, undef, 0) != 0;
}

# Cancels what the session does.
sub cancel
{
	my ($self) = @_;
	my $socket = IO::Socket::UNIX->new(Peer => $self->{path}) or croak "$self->{path}: $!";
	syswrite $socket, pack 'NNNN', 16, 80877102, $self->{backend}, $self->{key};
	# the server closes the connection when it has sent the signal; the end of a child interrupts the wait
	1 until defined sysread($socket, my $end, 1) || !$!{EINTR};
	return;
}

sub close
{
	my ($self) = @_;
	close $self->{socket};
	return;
}

1;
