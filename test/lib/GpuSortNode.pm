# GpuSortNode - a PostgreSQL::Test::Cluster whose server has gpusort, for test/t and test/fuzz.
#
#   my $node = GpuSortNode->new('main');
#   $node->init(conf => ['work_mem = 1MB']);
#   $node->start;
#   $node->wait_service;
#   $node->safe_psql('postgres', 'SELECT 1');
#   $node->ask('SELECT 1');	# the same, in a session that stays
#   my $session = $node->session;	# a psql that stays: GpuSortSession
#
# Here is what PostgreSQL's own class lacks: gpusort's settings, the processes of
# a server, the sort service among them, a module of its own, and how a sort is
# done.  Its modules belong to the server's development package and are found by
# PG_CONFIG.
#
# What a test makes lies in TESTDIR or, where that is not set, in a temporary
# directory that goes when the test ends, in whatever way, unless PG_TEST_NOCLEAN
# is set.  Servers have a UNIX socket each and no TCP port.  They do not run as
# root, nor do the tests.  GPUSORT_TEST_ENGINE (host) is the engine under test,
# PG_TEST_TIMEOUT_DEFAULT the longest that a test waits for anything, in seconds.
package GpuSortNode;

use strict;
use warnings;

use Carp;
use Cwd qw(realpath);
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);
use File::Temp ();
use GpuSortSession;
use GpuSortWire;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(command_line in_time is_stopped wait_until $engine $fault_service gate_sql);
our $engine = $ENV{GPUSORT_TEST_ENGINE} || 'host';
# the service with fault points: make gpusortd-faults
our $fault_service = realpath(dirname(__FILE__) . '/../..') . '/build-faults/gpusortd';

# The environment as it was: PostgreSQL::Test::Utils takes variables away.
our %environment;
my ($own_directory, $owner, @nodes);

# As PostgreSQL's makefiles do it before they run tests, where nobody has.
BEGIN
{
	die "PostgreSQL does not run as root: run the tests as another user\n" if $> == 0;
	%environment = %ENV;
	my ($bindir, $pgxs) = split /\n/, `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --bindir --pgxs`;
	die "no pg_config\n" unless defined $pgxs;
	$pgxs =~ s{/makefiles/pgxs\.mk$}{};
	die "no PostgreSQL::Test::Cluster in $pgxs: it comes with the server's development package\n"
		unless -d "$pgxs/test/perl";
	unshift @INC, "$pgxs/test/perl";
	$ENV{PATH} = "$bindir:$ENV{PATH}";
	$ENV{PG_REGRESS} //= "$pgxs/test/regress/pg_regress";
}

# Runs before that of PostgreSQL::Test::Utils: therefore it stands before it.
INIT
{
	# short, because the service's socket lies below it and such a path holds 107 bytes
	$own_directory = File::Temp::tempdir('gpusort-XXXXXX', TMPDIR => 1) unless $ENV{TESTDIR};
	$owner = $$;
	$ENV{TESTDIR} = realpath($ENV{TESTDIR} || $own_directory);
	$ENV{TMPDIR} = $ENV{TESTDIR};
	$ENV{TESTDATADIR} = "$ENV{TESTDIR}/tmp_check";
	$ENV{TESTLOGDIR} = "$ENV{TESTDATADIR}/log";
	# pg_ctl waits as long as tests do
	$ENV{PGCTLTIMEOUT} //= $PostgreSQL::Test::Utils::timeout_default;
	make_path($ENV{TESTLOGDIR});
	# PostgreSQL::Test::Utils of 17 and later does so: IPC::Run then learns at once that a process has ended
	$SIG{CHLD} = sub { } unless defined $SIG{CHLD};
	# a test that is stopped cleans up
	$SIG{$_} = sub { exit 1 } for qw(HUP INT TERM);
}

# Runs after PostgreSQL::Test::Cluster's, which stops the servers: for the same reason.  A failed
# test leaves the ends of its logs to be read.
END
{
	return unless defined $owner;
	my $status = $?;
	my @own = grep { $_->{_owner} == $$ } @nodes;

	if ($status != 0 && $owner == $$)
	{
		_show_end($_) for $PostgreSQL::Test::Utils::test_logfile, map { $_->logfile } @own;
	}
	for my $node (@own)
	{
		kill 'KILL', $node->processes;
		$node->clean_node unless $ENV{PG_TEST_NOCLEAN};
	}
	remove_tree($own_directory) if defined $own_directory && $owner == $$ && !$ENV{PG_TEST_NOCLEAN};
	$? = $status;
}

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @ISA = qw(PostgreSQL::Test::Cluster);
$ENV{PGUSER} = 'postgres';

# The settings of every server; those that a test names come after them.  Statistics, and with them plans, change when
# a test says so.
my @settings = (
	'restart_after_crash = on', 'log_statement = none', "log_line_prefix = '%m [%p] %b '", 'fsync = off',
	'wal_level = minimal', 'max_wal_senders = 0', 'shared_buffers = 32MB', 'max_wal_size = 256MB', 'max_connections = 60',
	"listen_addresses = ''", 'jit = off', 'autovacuum = off', 'max_parallel_workers_per_gather = 0',
	"shared_preload_libraries = 'gpusort'",
	"gpusort.engine = '$engine'", 'gpusort.staging_memory = 64MB', 'gpusort.min_rows = 0', 'gpusort.verify_rows = on');

# A node with a socket directory, so that no port has to be looked for.
sub new
{
	my ($class, $name, %params) = @_;
	my $self = $class->SUPER::new($name, own_host => 1, port => 5432, %params);

	# a process that is forked later leaves it alone
	$self->{_owner} = $$;
	push @nodes, $self;
	return $self;
}

# Makes the data directory, of the C locale and UTF8: conf => [lines] for postgresql.conf.  Other
# parameters are those of PostgreSQL::Test::Cluster: extra => [options of initdb] makes another one.
sub init
{
	my ($self, %params) = @_;
	my $conf = delete $params{conf} || [];

	if (defined $params{extra})
	{
		$self->SUPER::init(%params, extra => [ '-U', 'postgres', @{ $params{extra} } ]);
	}
	else
	{
		$self->init_from_backup(GpuSortTemplate->new, 'pgdata', %params);
	}
	$self->append_conf('postgresql.conf', join "\n", @settings, @$conf);
	return;
}

# Gives the server a module of its own: copies of what is installed in a directory of the node's,
# before its start.  Named files are taken in their place: gpusortd => path.  Returns the directory.
# The extension's functions are of the installed module, so the server cannot have both.
sub own_module
{
	my ($self, %files) = @_;
	my $directory = $self->basedir . '/module';
	chomp(my $installed = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --pkglibdir`);

	make_path($directory);
	for my $name ('gpusort.so', 'gpusortd', 'gpusort_cuda.so')
	{
		my $from = $files{$name} || "$installed/$name";
		next unless -e $from || $files{$name};
		copy($from, "$directory/$name") or croak "$from: $!";
		chmod 0755, "$directory/$name";
	}
	$self->append_conf('postgresql.conf', "shared_preload_libraries = '$directory/gpusort'\n");
	return $directory;
}

# Chooses a fault point of src/service/fault.h, for the service with fault points, or none.
sub choose_fault
{
	my ($self, $fault) = @_;
	my $file = $self->data_dir . '/gpusort.fault';

	unlink $file;
	return unless defined $fault;
	append_to_file("$file.new", "$fault\n");
	rename "$file.new", $file or croak "$file: $!";
	return;
}

# Returns true if the fault chosen last, which was to happen once, has happened.
sub fault_happened
{
	my ($self) = @_;
	return !-e $self->data_dir . '/gpusort.fault';
}

# Kills the postmaster and waits until its processes are gone; true if they go within 5 seconds.
sub kill_postmaster
{
	my ($self) = @_;

	$self->kill9;
	my $gone = wait_until(sub { !$self->processes });
	# where nobody collects the dead process, its lock files would keep the next server from starting
	unlink $self->data_dir . '/postmaster.pid', glob($self->host . '/.s.PGSQL.*') if $gone;
	return $gone;
}

# Stops the server, if it runs, and removes its data.
sub remove
{
	my ($self) = @_;
	$self->teardown_node;
	kill 'KILL', $self->processes;
	$self->clean_node;
	return;
}

# The command of a psql for the server; to be followed by further options.
sub psql_command
{
	my ($self, $database) = @_;
	return ($self->installed_command('psql'), '-XAtq', '-d', $self->connstr($database || 'postgres'), '-v',
		'VERBOSITY=verbose');
}

# A psql that stays.  It goes on after errors, which the test reads.
sub session
{
	my ($self) = @_;
	return GpuSortSession->new([ $self->psql_command ]);
}

# A client that speaks the protocol: GpuSortWire, with these parameters.
sub wire
{
	my ($self, @parameters) = @_;
	return GpuSortWire->new($self->host . '/.s.PGSQL.' . $self->port, @parameters);
}

# The rows of SQL as safe_psql returns them, but by a session that stays, because a psql is slow to start.  Several
# statements are one transaction; settings end with it.
sub ask
{
	my ($self, $sql) = @_;

	$self->{_asker} = $self->wire if !defined $self->{_asker} || $self->{_asker}->has_ended;
	my $rows = $self->{_asker}->ask($sql);
	$self->{_asker}->ask('RESET ALL') if $sql =~ /\bSET\b/;
	return $rows;
}

# The process ids of parallel workers.
sub parallel_workers
{
	my ($self) = @_;
	return split /\n/, $self->ask(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker'});
}

# Waits until there are no parallel workers, sorts and temporary files any more; true if that comes.
sub nothing_left
{
	my ($self) = @_;
	return wait_until(sub {
		!$self->parallel_workers && $self->ask('SELECT count(*) FROM gpusort_jobs') eq '0'
			&& !(() = glob $self->data_dir . '/base/pgsql_tmp/*');
	});
}

sub log_text
{
	my ($self) = @_;
	return -e $self->logfile ? slurp_file($self->logfile) : '';
}

# Waits until PostgreSQL begins to start its processes again, as the log tells, from so many bytes on.
sub wait_crash
{
	my ($self, $from) = @_;
	return wait_until(sub { substr($self->log_text, $from // 0) =~ /all server processes terminated; reinitializing/ });
}

# Lines of the server's log that match.
sub log_lines
{
	my ($self, $pattern) = @_;
	return grep { /$pattern/ } split /\n/, $self->log_text;
}

# In how many queries that ran with gpusort.log_decisions a sort waited for a service until that was no use any more.
sub waits_in_vain
{
	my ($self) = @_;
	return scalar $self->log_lines(qr/falling back to tuplesort: the sort service did not become ready in time/);
}

# Process ids of those whose working directory is the data directory: the server's processes and the
# sort service.  With a name, those of that program only.
sub processes
{
	my ($self, $name) = @_;
	my @found;

	for my $dir (glob '/proc/[0-9]*')
	{
		my $cwd = readlink "$dir/cwd";
		next unless defined $cwd && $cwd eq $self->data_dir;
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

# The sockets that services listen on, or have left.
sub sockets
{
	my ($self) = @_;
	return glob $self->data_dir . '/pg_stat_tmp/gpusort.*.sock';
}

# The supervisor's process ids, by its title: it has no database, so pg_stat_activity does not show it.
sub supervisors
{
	my ($self) = @_;
	return grep { command_line($_) =~ /gpusort supervisor/ } $self->processes('postgres');
}

# The arguments of a process, each with a NUL behind it; nothing if it has ended.
sub command_line
{
	my ($pid) = @_;
	open my $file, '<', "/proc/$pid/cmdline" or return '';
	return <$file> // '';
}

# Whether a process has been stopped by a signal; not if it has ended.
sub is_stopped
{
	my ($pid) = @_;
	open my $file, '<', "/proc/$pid/stat" or return 0;
	return (<$file> // '') =~ /\) [Tt] /;
}

# Whether the service sorts.  After a crash the server lets nobody in for a while.
sub _sorts
{
	my ($self) = @_;
	return (eval { $self->method } // '') eq 'radix';
}

# Waits until there is a service, other than the one given, that does sort.  Returns its process id.
sub wait_service
{
	my ($self, $other) = @_;
	my $pid;

	# a sort that is tried before may wait in vain, and count as one that has fallen back
	wait_until(sub { scalar(() = $self->sockets) });
	wait_until(sub {
		($pid) = $self->services;
		return defined $pid && (!defined $other || $pid != $other) && $self->_sorts;
	}) or croak 'the sort service does not come back';
	return $pid;
}

# Waits until the only service is one with this option, and does sort: others may have been asked to leave, and do so
# in their time.  Returns its process id.
sub wait_service_with
{
	my ($self, $option, $value) = @_;
	my $pid;

	wait_until(sub {
		($pid, my @others) = $self->services;
		return defined $pid && !@others && index(command_line($pid), "\0--$option\0$value\0") > 0 && $self->_sorts;
	}) or croak "there is no sort service with --$option $value, or not alone";
	return $pid;
}

# How an index is checked by amcheck, as thoroughly as its version knows: a format for the index.
sub check_index
{
	my ($self) = @_;
	my $unique = $self->safe_psql('postgres',
		q{SELECT count(*) FROM pg_proc WHERE proname = 'bt_index_parent_check' AND 'checkunique' = ANY (proargnames)});
	return 'bt_index_parent_check(%s, true, true' . ($unique > 0 ? ', true' : '') . ')';
}

# How a small sort is done now: 'radix' (by the engine that the server asks for, or else that under test),
# 'fallback', or 'native'.  Takes the parameters of psql.
sub method
{
	my ($self, %params) = @_;
	my $sql = 'SHOW gpusort.engine; SET gpusort.force = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) '
		. 'SELECT i FROM generate_series(1, 1000) i ORDER BY i DESC';
	my $text = %params ? $self->safe_psql('postgres', $sql, %params) : $self->wire->ask($sql);
	my $radix = $engine eq 'cuda' && $text !~ /^host$/m ? 'gpu radix' : 'cpu radix';
	return $text !~ /GpuSort/ ? 'native' : $text =~ /Sort Method: $radix/ ? 'radix' : $text =~ /fallback/ ? 'fallback'
		: $text;
}

# A guard against hanging, and nothing else: a machine that is ten times slower keeps it.  What is to be quick is
# told by what only the quick way gives.
sub in_time
{
	my ($start, $name) = @_;
	return Test::More::cmp_ok(time - $start, '<', $PostgreSQL::Test::Utils::timeout_default, $name);
}

# Makes the function gate(i, at), with such properties: at one row it waits until nobody holds advisory lock 1.
sub gate_sql
{
	my ($properties) = @_;

	# who is ended between the two keeps the lock: a session that goes on has to give it back
	return "CREATE FUNCTION gate(i int, at int) RETURNS int LANGUAGE plpgsql $properties AS " . q{$$
		BEGIN
			IF i = at THEN
				PERFORM pg_advisory_lock_shared(1);
				PERFORM pg_advisory_unlock_shared(1);
			END IF;
			RETURN i;
		END $$;
	};
}

# Polls a condition that comes true in time; returns its last value.
sub wait_until
{
	my ($condition, $seconds) = @_;
	my $end = time + ($seconds || $PostgreSQL::Test::Utils::timeout_default);
	my $value;

	until ($value = $condition->())
	{
		return $value if time > $end;
		sleep 0.02;
	}
	return $value;
}

sub _show_end
{
	my ($name) = @_;
	return unless -e $name;
	my @lines = split /\n/, slurp_file($name);
	splice @lines, 0, -60 if @lines > 60;
	print { Test::More->builder->failure_output } map { "# $_\n" } "the end of $name:", @lines;
	return;
}

# GpuSortTemplate - what init_from_backup copies: the data directory that initdb makes, once for all
# tests that share TESTDIR.
package GpuSortTemplate;

use Fcntl qw(:flock);

sub new
{
	my $self = bless {}, shift;
	my $directory = $self->backup_dir;

	mkdir $directory;
	open my $lock, '>', "$directory/lock" or die "$directory/lock: $!";
	flock $lock, LOCK_EX or die "$directory/lock: $!";
	if (!-d "$directory/pgdata")
	{
		PostgreSQL::Test::Utils::system_or_bail('initdb', '-D', "$directory/new",
			qw(-U postgres -A trust -N --no-locale -E UTF8));
		rename "$directory/new", "$directory/pgdata" or die "$directory/pgdata: $!";
	}
	return $self;
}

sub name
{
	return 'template';
}

sub backup_dir
{
	return "$ENV{TESTDATADIR}/template";
}

1;
