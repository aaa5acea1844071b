# GpuSortStuck - servers whose sort service comes to a stop at a point of a query, one server for each
# point, for test/t.
#
#   my @points = GpuSortStuck->servers([ 'stop_sort' ], [ 'stop_emit', at => 2 ]);
#   $_->begin for @points;		# the query runs until the fault happens, and waits then
#   like($_->outcome, qr/58000/) for @points;
#   cmp_ok($_->{seconds}, '<', 8) for @points;
#
# Points are those of src/service/fault.h.  What takes time happens on all servers at once.
package GpuSortStuck;

use strict;
use warnings;

use GpuSortNode;
use PostgreSQL::Test::Utils qw(slurp_file);
use Time::HiRes qw(time);

# Five chunks, which the service sees the client put, and read, one by one.
my $rows = q{SELECT i AS id, repeat('x', 1900) AS pad FROM generate_series(1, 10000) i ORDER BY i % 7919, i OFFSET 0};
my $digest = "SELECT count(*) || md5(string_agg(id || ' ' || hashtext(pad), ',')) FROM (%s) s";
my %queries = (
	once => sprintf($digest, $rows),
	# every process reads them
	shared => sprintf($digest, 'SELECT id, pad || sum(id) OVER (PARTITION BY id / 10 ORDER BY id) AS pad FROM stuck '
		. 'ORDER BY id / 10, id OFFSET 0'),
	rewind => sprintf($digest, "SELECT o, s.* FROM generate_series(1, 2) o LEFT JOIN LATERAL ($rows) s ON s.id >= o - 2"));

# Starts them: [ POINT, name => 'POINT', at => N, query => 'once', 'rewind' or 'shared', conf => [ SETTING, ... ] ], ...
sub servers
{
	my ($class, @points) = @_;
	my @self;

	for (@points)
	{
		my ($fault, %options) = @$_;
		my $node = GpuSortNode->new($options{name} // $fault);
		$node->init(conf => [ 'enable_material = off', "gpusort.staging_memory = '16MB'", @{ $options{conf} // [] } ]);
		my $module = $node->own_module(gpusortd => $fault_service) . '/gpusort';
		$node->start;
		$node->safe_psql('postgres', "CREATE TABLE stuck AS $rows; ANALYZE stuck") if ($options{query} // '') eq 'shared';
		push @self, bless {
			name => $fault, call => $fault =~ s/.*_//r, fault => "$fault " . ($options{at} // 1), node => $node,
				module => $module,
			query => $queries{ $options{query} // 'once' } }, $class;
	}
	for my $self (@self)
	{
		$self->{service} = $self->{node}->wait_service;
		$self->{right} = $self->{node}->safe_psql('postgres', "SET gpusort.enable = off; $self->{query}");
		$self->new_session;
	}
	return @self;
}

sub new_session
{
	my ($self) = @_;
	$self->{session}->close if defined $self->{session};
	$self->{session} = $self->{node}->session;
	$self->{session}->run('SET gpusort.force = on; SET max_parallel_workers_per_gather = 2; '
		. 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0');
	return;
}

# Another session of the same server, with the same query.
sub beside
{
	my ($class, $point) = @_;
	my $self = bless { %$point, session => undef }, $class;

	$self->new_session;
	return $self;
}

# Begins the query and waits until the fault has happened; true if it has, false if the query has ended without.
sub begin
{
	my ($self) = @_;
	my $node = $self->{node};

	$node->choose_fault($self->{fault});
	$self->{session}->send($self->{query});
	$self->{start} = time;
	wait_until(sub { $self->{session}->answered
		|| $node->fault_happened && ($self->{name} !~ /stop/ || grep { is_stopped($_) } $node->services) });
	return $node->fault_happened;
}

# What came of the query that was begun: 'right', the code of its error, or what it said.  It took
# {seconds}: as the server has it, because the test may have had other things to do since, or up to now
# where the session is gone.
sub outcome
{
	my ($self) = @_;
	my ($out, $err) = $self->{session}->result;
	my $seconds = $self->{node}->safe_psql('postgres',
		q{SELECT extract(epoch FROM state_change - query_start) FROM pg_stat_activity WHERE state = 'idle' AND pid = }
			. $self->{session}->backend);

	$self->{seconds} = $seconds ne '' ? $seconds : time - $self->{start};
	return $out eq $self->{right} ? 'right' : $err =~ /(?:ERROR|FATAL):  (\w+):/ ? $1 : "$out $err";
}

# The query's answer without a fault.
sub sorts
{
	my ($self) = @_;
	$self->{start} = time;
	$self->{session}->send($self->{query});
	return $self->outcome;
}

# Asks the server to stop, as pg_ctl does, and does not wait.
sub stop
{
	my ($self, $mode) = @_;
	my ($postmaster) = split /\n/, slurp_file($self->{node}->data_dir . '/postmaster.pid');

	$self->{start} = time;
	kill $mode eq 'fast' ? 'INT' : 'QUIT', $postmaster;
	return;
}

# Waits until no process of the server is left, so many seconds at most; true if so.
sub stopped
{
	my ($self, $seconds) = @_;
	my $gone = wait_until(sub { !$self->{node}->processes }, $seconds);

	$self->{seconds} = time - $self->{start};
	$self->{node}->_update_pid(0);
	return $gone;
}

# Starts the server again.
sub restart
{
	my ($self) = @_;
	unlink $self->{node}->data_dir . '/postmaster.pid';
	$self->{node}->start;
	$self->{service} = $self->{node}->wait_service;
	$self->new_session;
	return;
}

1;
