# GpuSortCluster - throwaway PostgreSQL servers with gpusort, for the tests in test/t.
#
#   my $node = GpuSortCluster->new(conf => ['work_mem = 1MB']);	# initdb and start
#   $node->sql('SELECT 1');			# one psql; dies on an error
#   my ($out, $err) = $node->try('SELECT 1/0');
#   my $session = $node->session;	# a psql that stays
#   $session->send('SELECT pg_sleep(10)'); ... $session->result;
#
# Each cluster lives in a temporary directory with a UNIX socket of its own and
# no TCP port; it is stopped and removed when the object goes, or at the end of
# the test, however that ends.  PG_CONFIG names the installation.  As root, all
# of it runs as GPUSORT_TEST_USER (postgres).  GPUSORT_TEST_ENGINE (host) is
# the gpusort.engine of every cluster.
package GpuSortCluster;

use strict;
use warnings;

use Carp;
use Cwd qw(getcwd realpath);
use Exporter qw(import);
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use IPC::Run ();
use POSIX ();
use Time::HiRes qw(sleep time);

our @EXPORT = qw(wait_until $engine $patience);

# The engine under test, and the longest that a test waits for anything, in seconds.
our $engine = $ENV{GPUSORT_TEST_ENGINE} || 'host';
our $patience = $ENV{GPUSORT_TEST_TIMEOUT} || 60;

my $bindir = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --bindir`;
chomp $bindir;
croak 'no pg_config' if $bindir eq '';

my $test_user = $> == 0 ? ($ENV{GPUSORT_TEST_USER} || 'postgres') : undef;
my @clusters;

# A session whose server is gone shows that in what it answers.
$SIG{PIPE} = 'IGNORE';
# A test that is stopped cleans up: END below does it.
$SIG{$_} = sub { exit 1 } for qw(HUP INT TERM);

# Every test of a condition that comes true in time: polls it, returns its last value.
sub wait_until
{
	my ($condition, $seconds) = @_;
	my $end = time + ($seconds || $patience);
	my $value;

	until ($value = $condition->())
	{
		return $value if time > $end;
		sleep 0.05;
	}
	return $value;
}

# The command as the clusters' owner.
sub _owned
{
	my (@command) = @_;
	return defined $test_user ? ('setpriv', "--reuid=$test_user", "--regid=$test_user", '--init-groups', @command) : @command;
}

sub _run
{
	my (@command) = @_;
	my ($out, $cwd) = ('', getcwd());

	# the owner may not be able to read the directory that the test runs in
	chdir '/' or croak "chdir: $!";
	my $ok = IPC::Run::run([ _owned(@command) ], '<', '/dev/null', '>', \$out, '2>&1');
	chdir $cwd or croak "chdir: $!";
	return ($ok, $out);
}

# Options: conf => [lines], preload => 0 to leave gpusort out of shared_preload_libraries,
# start => 0 not to start it, locale => [options of initdb] in place of the C locale and UTF8.
sub new
{
	my ($class, %option) = @_;
	my $self = bless { pid => $$ }, $class;

	$self->{directory} = realpath(tempdir('gpusort-XXXXXXXX', TMPDIR => 1));
	$self->{data} = "$self->{directory}/data";
	$self->{log} = "$self->{directory}/log";
	if (defined $test_user)
	{
		my ($uid, $gid) = (getpwnam $test_user)[ 2, 3 ] or croak "no user $test_user";
		chown $uid, $gid, $self->{directory};
	}
	push @clusters, $self;

	my ($ok, $out) = _run("$bindir/initdb", '-D', $self->{data}, '-U', 'postgres', '-A', 'trust',
						  '-N', @{ $option{locale} || [ '--no-locale', '-E', 'UTF8' ] });
	croak "initdb: $out" unless $ok;
	my $preload = exists $option{preload} && !$option{preload} ? '' : 'gpusort';
	open my $conf, '>>', "$self->{data}/postgresql.conf" or croak "postgresql.conf: $!";
	print $conf map { "$_\n" } "listen_addresses = ''", "unix_socket_directories = '$self->{directory}'",
		'fsync = off', 'shared_buffers = 32MB', 'max_wal_size = 256MB', 'max_connections = 60',
		"log_line_prefix = '%m [%p] %b '", 'restart_after_crash = on',
		"shared_preload_libraries = '$preload'", "gpusort.engine = '$engine'",
		'gpusort.staging_memory = 64MB', 'gpusort.min_rows = 0', 'max_parallel_workers_per_gather = 0',
		@{ $option{conf} || [] };
	close $conf;
	$self->start unless exists $option{start} && !$option{start};
	return $self;
}

sub start
{
	my ($self) = @_;
	my ($ok, $out) = $self->try_start;
	croak "start: $out\n" . $self->log_text unless $ok;
	return;
}

sub try_start
{
	my ($self) = @_;
	my ($ok, $out) = _run("$bindir/pg_ctl", '-D', $self->{data}, '-l', $self->{log}, '-w', '-t', 60, 'start');
	$self->{postmaster} = $self->postmaster_pid if $ok;
	return ($ok, $out);
}

# Options: mode => fast, immediate or smart.
sub stop
{
	my ($self, %option) = @_;
	my ($ok, $out) = _run("$bindir/pg_ctl", '-D', $self->{data}, '-w', '-t', 60, '-m', $option{mode} || 'fast', 'stop');
	return $ok;
}

sub reload
{
	my ($self) = @_;
	my ($ok, $out) = _run("$bindir/pg_ctl", '-D', $self->{data}, 'reload');
	croak "reload: $out" unless $ok;
	return;
}

# Kills the postmaster and waits until its processes are gone; true if they go within 5 seconds.
sub kill_postmaster
{
	my ($self) = @_;

	kill 'KILL', $self->postmaster_pid;
	my $gone = wait_until(sub { !$self->processes }, 5);
	# where nobody collects the dead process, its lock files would keep the next server from starting
	unlink "$self->{data}/postmaster.pid", glob("$self->{directory}/.s.PGSQL.*") if $gone;
	return $gone;
}

sub postmaster_pid
{
	my ($self) = @_;
	open my $file, '<', "$self->{data}/postmaster.pid" or return;
	my $pid = <$file>;
	return int $pid;
}

sub _psql
{
	my ($self, %option) = @_;
	return ("$bindir/psql", '-X', '-q', '-A', '-t', '-h', $self->{directory}, '-U', $option{user} || 'postgres',
			'-d', $option{database} || 'postgres', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose');
}

# Runs SQL in a session of its own; returns its output, its messages, and psql's exit status.
sub try
{
	my ($self, $sql, %option) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ $self->_psql(%option) ], '<', \$sql, '>', \$out, '2>', \$err);
	my $status = $? >> 8;
	chomp $out;
	return ($out, $err, $status);
}

# The same, for SQL that is to succeed: returns the output.
sub sql
{
	my ($self, $sql, %option) = @_;
	my ($out, $err, $status) = $self->try($sql, %option);
	croak "psql failed ($status): $err\nin: $sql" if $status != 0;
	return $out;
}

sub session
{
	my ($self, %option) = @_;
	return GpuSortSession->new([ $self->_psql(%option) ]);
}

sub log_text
{
	my ($self) = @_;
	open my $file, '<', $self->{log} or return '';
	local $/;
	return scalar <$file>;
}

# Lines of the server's log that match.
sub log_lines
{
	my ($self, $pattern) = @_;
	return grep { /$pattern/ } split /\n/, $self->log_text;
}

# Process ids whose command line names the cluster's data directory, or whose working directory it
# is: the server's processes and the sort service.  With a name, those of that program only.
sub processes
{
	my ($self, $name) = @_;
	my @found;

	for my $dir (glob '/proc/[0-9]*')
	{
		my $cwd = readlink "$dir/cwd";
		next unless defined $cwd && $cwd eq $self->{data};
		open my $stat, '<', "$dir/stat" or next;
		my ($comm, $state) = (<$stat> // '') =~ /\((.*)\) (\S)/ or next;
		next if $state eq 'Z' || defined $name && $comm ne $name;
		push @found, $dir =~ /(\d+)$/;
	}
	return @found;
}

# The sort service's process ids: one, if all is well.
sub services
{
	my ($self) = @_;
	return $self->processes('gpusortd');
}

# The supervisor's process ids, by its title: it has no database, so pg_stat_activity does not show it.
sub supervisors
{
	my ($self) = @_;
	return grep {
		open my $file, '<', "/proc/$_/cmdline";
		defined $file && (<$file> // '') =~ /gpusort supervisor/;
	} $self->processes('postgres');
}

# Waits until there is a service, other than the one given, that does sort.  Returns its process id.
sub wait_service
{
	my ($self, $other) = @_;
	my $pid;

	wait_until(sub {
		($pid) = $self->services;
		return defined $pid && (!defined $other || $pid != $other) && $self->method eq 'radix';
	}) or croak "the sort service does not come back\n" . $self->log_text;
	return $pid;
}

# How a small sort is done now: 'radix' (by the engine under test), 'fallback', or 'native'.
sub method
{
	my ($self, %option) = @_;
	my $text = $self->sql('SET gpusort.force = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) '
						  . 'SELECT i FROM generate_series(1, 1000) i ORDER BY i DESC', %option);
	my $radix = $engine eq 'cuda' ? 'gpu radix' : 'cpu radix';
	return $text !~ /GpuSort/ ? 'native' : $text =~ /Sort Method: $radix/ ? 'radix' : $text =~ /fallback/ ? 'fallback' : $text;
}

# Kills what is left of the cluster and removes it.
sub remove
{
	my ($self) = @_;
	return if !defined $self->{directory} || $self->{pid} != $$;

	$self->stop(mode => 'immediate') if $self->postmaster_pid;
	kill 'KILL', $_ for $self->processes;
	remove_tree($self->{directory});
	delete $self->{directory};
	return;
}

# A failed test leaves its server's log to be read.
END
{
	my $status = $?;
	for my $cluster (@clusters)
	{
		next unless defined $cluster->{directory} && $cluster->{pid} == $$;
		if ($status != 0)
		{
			my @lines = split /\n/, $cluster->log_text;
			splice @lines, 0, -60 if @lines > 60;
			print STDERR map { "# $_\n" } @lines;
		}
		$cluster->remove;
	}
	$? = $status;
}

# GpuSortSession - a psql that stays, for what happens at the same time.
package GpuSortSession;

use strict;
use warnings;

use Carp;

sub new
{
	my ($class, $command) = @_;
	my $self = bless { in => '', out => '', err => '', count => 0 }, $class;

	# it goes on after errors, which the test reads
	$self->{harness} = IPC::Run::start([ @$command, '-v', 'ON_ERROR_STOP=0' ], '<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err},
		$self->{timer} = IPC::Run::timer(4 * $GpuSortCluster::patience));
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
	$self->{in} .= "$sql;\n\\echo end-$self->{count}\n";
	$self->{harness}->pump_nb;
	return;
}

# What came of what was sent: the output and the messages.  Dies when nothing comes in time.
sub result
{
	my ($self) = @_;
	my $end = "end-$self->{count}\n";

	$self->{timer}->start(4 * $GpuSortCluster::patience);
	while (length $self->{out} < length $end || substr($self->{out}, -length $end) ne $end)
	{
		last unless $self->{harness}->pumpable;
		eval { $self->{harness}->pump; 1 } or croak "no answer: $@ $self->{err}";
	}
	# messages are written before, but come by another pipe
	$self->{harness}->pump_nb;
	my ($out, $err) = ($self->{out}, $self->{err});
	$self->{out} = $self->{err} = '';
	$out =~ s/end-\d+\n//g;
	chomp $out;
	return ($out, $err);
}

sub run
{
	my ($self, $sql) = @_;
	$self->send($sql);
	my ($out, $err) = $self->result;
	return $out;
}

sub close
{
	my ($self) = @_;
	$self->{in} .= "\\q\n";
	eval { $self->{harness}->finish };
	return;
}

1;
