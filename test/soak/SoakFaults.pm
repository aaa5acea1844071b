# SoakFaults - faults at random: what happens to a service, its settings and its users.
#
#   my $faults = SoakFaults->new($node, \%wanted_settings, \@other_programs);
#   $faults->step('storm');		# does what is due; to be called often
#   $faults->step('calm');		# leaves the service alone
#   $faults->undo;				# everything as it was, the service ready
#   $faults->{counts}{kill}, $faults->{problems}
#
# Those of the service follow each other when it has been ready for a while; those of its users at any
# time.
#
#	kill		SIGKILL
#	pause		SIGSTOP, and SIGCONT a little later
#	hang		SIGSTOP for good: the supervisor is to replace the service
#	reload		other settings, small limits among them
#	replace		another program in place of gpusortd, and a new start, for some seconds
#	cancel		pg_cancel_backend of a session of the fuzzer's, of one that sorts if there is one
#	terminate	pg_terminate_backend, likewise
#	vanish		a client that goes away in the midst of a sort
package SoakFaults;

use strict;
use warnings;

use Carp;
use File::Copy qw(copy);
use GpuSortNode;
use Time::HiRes qw(sleep time);

# What each fault is to be how often, of those that are possible.
my %of_service = (kill => 26, pause => 22, hang => 8, reload => 34, replace => 10);
my %of_users = (cancel => 60, terminate => 10, vanish => 30);

# The supervisor kills a service that hangs in a few seconds, one that hangs while it starts later.
my $replaced_seconds = 60;

# After so many that ended by themselves the supervisor's delays are long; a reload has them begin anew.
my $most_ended = 4;

my $hits = q{FROM (SELECT a.pid FROM pg_stat_activity a LEFT JOIN gpusort_jobs j USING (pid)
	WHERE a.application_name = 'fuzz session' AND a.state = 'active' ORDER BY j.pid IS NULL, random() LIMIT 1) s};
my $long_sort = 'SET gpusort.force = on; SELECT count(*) FROM (SELECT g, md5(g::text) '
	. 'FROM generate_series(1, 400000) g ORDER BY 2 OFFSET 0) s';

# settings: those of the service as they are without faults; programs: what can take the place of
# gpusortd, beside those made here.  directory: where the node's module and service are.
sub new
{
	my ($class, $node, %option) = @_;
	my $self = bless { node => $node, %option, counts => {}, problems => [], stopped => {}, ended => 0, probed => 0,
		ready_since => 0, next_of_users => time, wait => 1 }, $class;
	my $directory = $self->{directory};

	$self->{control} = $node->session;
	# one that ends at once, one that never becomes ready, and one that is none
	for (map { [ "other-$_->[0]", $_->[1] ] } [ 'ends', "#!/bin/sh\nexit 2\n" ], [ 'idles', "#!/bin/sh\nexec sleep 5\n" ],
		[ 'none', '' ])
	{
		my ($name, $text) = @$_;
		open my $file, '>', "$directory/$name" or croak "$name: $!";
		print $file $text;
		close $file;
		chmod 0755, "$directory/$name";
		push @{ $self->{programs} }, "$directory/$name";
	}
	return $self;
}

sub _count
{
	my ($self, $kind) = @_;
	$self->{counts}{$kind}++;
	return;
}

sub _pick
{
	my (%weights) = @_;
	my $sum = 0;
	$sum += $_ for values %weights;
	my $at = rand $sum;
	for (sort keys %weights)
	{
		return $_ if ($at -= $weights{$_}) < 0;
	}
	return (sort keys %weights)[-1];
}

# --- the service ----------------------------------------------------------------------------------

# Asks the service for its devices, time and again, and notes since when it answers.
sub _probe
{
	my ($self) = @_;
	my $control = $self->{control};

	if ($self->{probing})
	{
		return unless $control->answered;
		my ($out) = $control->result;
		$self->{probing} = 0;
		$self->{probed} = time;
		$self->{ready_since} = $out eq '' || $out eq '0' ? 0 : $self->{ready_since} || time;
	}
	elsif (time > $self->{probed} + 0.3)
	{
		$control->send('SELECT count(*) FROM gpusort_devices');
		$self->{probing} = 1;
	}
	return;
}

sub _stop
{
	my ($self, $pid, $seconds) = @_;
	return unless kill 'STOP', $pid;
	$self->{stopped}{$pid} = { since => time, until => defined $seconds ? time + $seconds : undef };
	return;
}

# Lets those go on whose time has come, and sees that those stopped for good are replaced.
sub _look_after_stopped
{
	my ($self) = @_;
	for my $pid (keys %{ $self->{stopped} })
	{
		my $stop = $self->{stopped}{$pid};
		my $for = time - $stop->{since};
		if (!grep { $_ == $pid } $self->{node}->services)
		{
			delete $self->{stopped}{$pid};
			$self->{ended}++;
			$self->{slowest} = $for if !defined $stop->{until} && $for > ($self->{slowest} // 0);
			next;
		}
		next if $for < $replaced_seconds && (!defined $stop->{until} || time < $stop->{until});
		push @{ $self->{problems} }, "service $pid was stopped and is still there after $replaced_seconds s"
			if !defined $stop->{until};
		kill 'CONT', $pid;
		delete $self->{stopped}{$pid};
	}
	return;
}

# The program at the service's place, by a rename as an installation does it.
sub _put_program
{
	my ($self, $program) = @_;
	my $place = "$self->{directory}/gpusortd";

	copy($program, "$place.new") or croak "$program: $!";
	chmod 0755, "$place.new";
	rename "$place.new", $place or croak "$place: $!";
	return;
}

sub _set
{
	my ($self, %settings) = @_;
	my $sql = join '; ', (map { "ALTER SYSTEM SET gpusort.$_ = '$settings{$_}'" } sort keys %settings),
		'SELECT pg_reload_conf()';
	$self->{control}->result if $self->{probing};
	$self->{probing} = 0;
	$self->{control}->run($sql);
	$self->{ended} = 0;
	return;
}

sub _random_settings
{
	my %all = (
		staging_memory => int(16 + rand 49) . 'MB',
		host_memory => (16, int(32 + rand 993), int(32 + rand 993))[ rand 3 ] . 'MB',
		host_threads => int rand 4,
		devices => (qw(all 0))[ rand 2 ],
		device_memory => (0, 64, 1024, 8192)[ rand 4 ] . 'MB');
	delete $all{device_memory} if $engine ne 'cuda';
	my @names = sort { rand() <=> 0.5 } keys %all;
	return map { $_ => $all{$_} } @names[ 0 .. rand 3 ];
}

sub _fault_of_service
{
	my ($self) = @_;
	my @services = $self->{node}->services or return;
	my $pid = $services[ rand @services ];
	my $kind = $self->{ended} >= $most_ended ? 'reload' : _pick(%of_service);

	return if $self->{stopped}{$pid};
	$self->_count($kind);
	if ($kind eq 'reload')
	{
		$self->_set(_random_settings());
	}
	elsif ($kind eq 'pause' || $kind eq 'hang')
	{
		$self->_stop($pid, $kind eq 'pause' ? 0.1 + 5.9 * rand() ** 2 : undef);
	}
	else
	{
		if ($kind eq 'replace')
		{
			$self->_put_program($self->{programs}[ rand @{ $self->{programs} } ]);
			$self->{back} = time + 1 + rand 4;
		}
		kill 'KILL', $pid;
		$self->{ended}++;
	}
	$self->{ready_since} = 0;
	$self->{wait} = 0.2 + 4 * rand() ** 2;
	return;
}

# --- its users ------------------------------------------------------------------------------------

sub _fault_of_users
{
	my ($self) = @_;
	my $kind = _pick(%of_users);

	if ($kind eq 'vanish')
	{
		my $session = $self->{node}->session;
		$session->send($long_sort);
		push @{ $self->{vanishing} }, { session => $session, at => time + rand 1.5 };
	}
	else
	{
		return if $self->{probing};
		return if $self->{control}->run("SELECT pg_${kind}_backend(pid) $hits") ne 't';
	}
	$self->_count($kind);
	return;
}

sub _let_vanish
{
	my ($self, $all) = @_;
	my @left;
	for (@{ $self->{vanishing} })
	{
		if ($all || time > $_->{at})
		{
			$_->{session}->vanish;
		}
		else
		{
			push @left, $_;
		}
	}
	$self->{vanishing} = \@left;
	return;
}

# --- steps ----------------------------------------------------------------------------------------

sub step
{
	my ($self, $weather) = @_;

	$self->_probe;
	$self->_look_after_stopped;
	$self->_let_vanish;
	if (defined $self->{back} && time > $self->{back})
	{
		$self->_put_program($self->{program});
		delete $self->{back};
	}
	if (time > $self->{next_of_users})
	{
		$self->_fault_of_users;
		$self->{next_of_users} = time + 0.1 + rand 2;
	}
	if ($weather eq 'storm' && $self->{ready_since} && time > $self->{ready_since} + $self->{wait}
		&& !defined $self->{back})
	{
		$self->_fault_of_service;
	}
	return;
}

# Ends the faults that last.
sub release
{
	my ($self) = @_;

	$self->_let_vanish(1);
	$self->_put_program($self->{program});
	delete $self->{back};
	$self->_look_after_stopped;
	kill 'CONT', keys %{ $self->{stopped} };
	$self->{stopped} = {};
	return;
}

# After release: waits for a service that does its work under the settings as they were.
sub undo
{
	my ($self) = @_;

	$self->_set(%{ $self->{settings} });
	# the service of before may still be ending its last sorts
	wait_until(sub { $self->{node}->services == 1 && $self->{node}->method eq 'radix' }, 120)
		or push @{ $self->{problems} }, 'no service, or more than one, two minutes after the last fault: '
			. join(' ', $self->{node}->services);
	return;
}

1;
