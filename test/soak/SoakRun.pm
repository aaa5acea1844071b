# SoakRun - a server under random faults for some minutes, and what it has lost in the end.
#
#   my $run = SoakRun->new(seconds => 600, processes => 4, report => sub { print @_ });
#   $run->run;		# true if nothing was wrong
#   $run->rows;		# [kind, name, value, unit], of all that was counted
#   $run->{problems}
#
# The fuzzer (test/fuzz) runs in some processes on one server, witnesses (SoakWitness) beside it, and
# SoakFaults does what it does.  There are three parts, each of which ends with an idle server that is
# measured (SoakWatch):
#
#	warm-up		a tenth of the time, with all faults
#	storm		the most of it.  Postmaster, supervisor and witnesses hold no more than after the warm-up
#	calm		a quarter, with faults of users only: one service lives through it, and holds no more
#				than before
#
# In the end the service admits as many sorts as at first, so that no chunk is missing, and nothing is
# left when the server has stopped.  Wrong is: another answer than PostgreSQL's, an error that no fault
# explains, no answer, a server that restarts its processes, a service that crashes or is not replaced,
# and what has grown or is left over.
package SoakRun;

use strict;
use warnings;

use Carp;
use Cwd qw(realpath);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path);
use FuzzRun;
use GpuSortNode;
use JSON::PP ();
use POSIX ();
use SoakFaults;
use SoakWatch;
use SoakWitness;
use Time::HiRes qw(sleep time);

my $fuzz = realpath(dirname(__FILE__) . '/../fuzz/fuzz');

# The server has these, and has them again when it is measured.
my %settings = (staging_memory => '64MB', host_memory => '512MB', host_threads => 0, devices => 'all',
device_memory => 0);

# kB that resident memory may have grown by: what caches of a process that does the same thing again take.
# The service keeps the memory of sorts until it has not needed it for a while: then it has none of it, but
# a short run does not wait for that.  A CUDA context grows as kernels are used for the first time.
my %allowed_memory = (postmaster => 2048, supervisor => 1024, witness => 16384,
service => $engine eq 'cuda' ? 131072 : 16384);
my $settled_seconds = 65;
my $short_seconds = 300;

# A guard against hanging: for so many seconds the fuzzer may be busy with its last queries.
my $last_seconds = 600;

# The service of a server that it ended with: what the log may say because of faults.
my $of_faults = qr/sort service \(PID \d+\) was terminated by signal 9\b/;

# Options: seconds; processes of the fuzzer; seed; programs: other builds of gpusortd; report: called with text.
sub new
{
	my ($class, %option) = @_;
	my $self = bless { seconds => 60, processes => 2, seed => int time, programs => [], report => sub { print @_ },
		%option, problems => [], sums => {}, by_name => {} }, $class;

	srand $self->{seed};
	return $self;
}

sub _say
{
	my ($self, $format, @values) = @_;
	$self->{report}->(sprintf "%6.1f s  $format\n", time - $self->{start}, @values);
	return;
}

sub _wrong
{
	my ($self, @what) = @_;
	for (@what)
	{
		push @{ $self->{problems} }, $_;
		$self->_say('WRONG: %s', $_);
	}
	return;
}

# --- the server -----------------------------------------------------------------------------------

# A server whose module stands in a directory of its own, with a service that can be replaced.
sub _start_server
{
	my ($self) = @_;
	my $node = $self->{node} = GpuSortNode->new('soak');
	my $installed = $node->config_data('--pkglibdir');
	my $directory = "$ENV{TESTDIR}/module";

	make_path($directory);
	# links, so that PostgreSQL takes it for the module that the extension's functions name
	symlink "$installed/$_", "$directory/$_" for grep { -e "$installed/$_" } qw(gpusort.so gpusort_cuda.so);
	copy("$installed/gpusortd", "$directory/$_") && chmod 0755, "$directory/$_" or croak "$directory/$_: $!"
		for qw(gpusortd gpusortd.own);
	$node->init(conf => [ "shared_preload_libraries = '$directory/gpusort'", 'max_connections = 200',
		'max_worker_processes = 32', 'max_parallel_workers = 16',
			'log_error_verbosity = verbose', 'autovacuum = off', 'jit = off',
				map { "gpusort.$_ = '$settings{$_}'" } sort keys %settings ]);
	$node->start;
	$node->wait_service;
	# what sessions are told they compare; the log is for what nobody is told
	$node->safe_psql('postgres', 'ALTER ROLE postgres SET log_min_messages = fatal');
	SoakWitness::tables($node);
	$self->{started} = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
	$self->{faults} = SoakFaults->new($node, settings => \%settings, directory => $directory,
		program => "$directory/gpusortd.own", programs => [ @{ $self->{programs} } ]);
	$self->{witnesses} = [ map { SoakWitness->new($node, $_) } qw(sorts workers windows cursors cursors devices) ];
	return;
}

# How many small sorts the service admits at once: each holds the chunks that it is guaranteed.
sub _admitted
{
	my ($self) = @_;
	my @sessions = map { $self->{node}->session } 1 .. 12;
	my $cursor = 'SET gpusort.force = on; BEGIN; DECLARE c CURSOR FOR SELECT g FROM generate_series(1, 3000) g '
		. 'ORDER BY g DESC; FETCH 1 FROM c';

	$_->send($cursor) for @sessions;
	$_->result for @sessions;
	my $admitted = $self->{node}->safe_psql('postgres', 'SELECT count(*) FROM gpusort_jobs');
	$_->close for @sessions;
	return $admitted;
}

# --- measuring ------------------------------------------------------------------------------------

# Ends all faults and waits until nothing sorts; returns what processes hold then, by name.  With
# settle, the service gives back what it kept.
sub _measure
{
	my ($self, $settle) = @_;
	my $node = $self->{node};
	my $busy = q{SELECT concat_ws(', ', (SELECT 'sorts of ' || string_agg(pid::text, ' ') FROM gpusort_jobs),
		(SELECT string_agg(format('%s: %s jobs, %s bytes', name, jobs, memory_used), ', ') FROM gpusort_devices
			WHERE jobs > 0 OR memory_used > 0))};

	$self->{faults}->release;
	$_->rest for @{ $self->{witnesses} };
	$self->{faults}->undo;
	$_->exercise for @{ $self->{witnesses} };
	wait_until(sub { $node->safe_psql('postgres', $busy) eq '' })
		or $self->_wrong('nothing should sort: ' . $node->safe_psql('postgres', $busy));
	sleep($settle && $self->{seconds} >= $short_seconds ? $settled_seconds : 1);

	my ($service) = $node->services;
	my ($supervisor) = $node->supervisors;
	my ($postmaster) = $node->{_pid};
	my %pids = (postmaster => $postmaster, supervisor => $supervisor, service => $service);
	my %found = map { $_ => defined $pids{$_} ? scalar measure($pids{$_}) : undef } keys %pids;
	my $number = 0;
	for (@{ $self->{witnesses} })
	{
		my $name = 'witness ' . ++$number . " ($_->{kind})";
		my $contexts = $_->contexts;
		my $held = measure($_->backend) or next;
		$found{$name} = { %$held, contexts => $contexts };
	}
	my @files = service_files($node);
	$self->_say('idle: %s', join '; ', map { my $held = $found{$_}; "$_ "
		. ($held ? join ', ', map { "$_ $held->{$_}" } grep { $_ ne 'what' } sort keys %$held : 'gone') } sort keys %found);
	return { processes => \%found, service => $service, files => \@files, admitted => $self->_admitted };
}

sub _compare
{
	my ($self, $first, $last, $pattern) = @_;
	for my $name (sort grep { /$pattern/ } keys %{ $first->{processes} })
	{
		my ($kind) = $name =~ /^(\w+)/;
		my $allowed = $kind eq 'service' && $self->{seconds} < $short_seconds ? 1 << 20 : $allowed_memory{$kind};
		$self->_wrong(grown($name, $first->{processes}{$name}, $last->{processes}{$name}, $allowed));
	}
	$self->_wrong("the service admits $last->{admitted} sorts at once, $first->{admitted} at first")
		if $last->{admitted} != $first->{admitted};
	$self->_wrong('files of services that are gone: ' . join ' ', @{ $last->{files} })
		if @{ $last->{files} } > @{ $first->{files} };
	return;
}

# --- parts ----------------------------------------------------------------------------------------

# Starts the fuzzer in a process of its own; its results will be in a directory.
sub _start_fuzz
{
	my ($self, $part, $seconds) = @_;
	my $directory = "$ENV{TESTDIR}/$part";
	my @command = ($^X, $fuzz, qw(--server --tolerate-loss --failures 5 --rows 20000), '--seed', $self->{seed} + ord $part,
		'-j', $self->{processes}, '--seconds', int $seconds, '--save', $directory);

	make_path($directory);
	my $pid = fork // croak "fork: $!";
	return ($pid, $directory) if $pid;
	local @ENV{qw(PGHOST PGPORT PGUSER)} = ($self->{node}->host, $self->{node}->port, 'postgres');
	open STDIN, '<', '/dev/null';
	open STDOUT, '>', "$directory/fuzz.log";
	open STDERR, '>&', \*STDOUT;
	exec @command or POSIX::_exit(127);
}

sub _text
{
	my ($name) = @_;
	open my $file, '<', $name or return '';
	local $/;
	return scalar <$file> // '';
}

# Adds up what the fuzzer's processes did, and tells its failures.
sub _take_fuzz
{
	my ($self, $directory, $status) = @_;
	my $before = $self->{sums}{queries} // 0;

	for (glob "$directory/process-*.json")
	{
		my $result = JSON::PP->new->decode(_text($_) || '{}');
		$self->{sums}{$_} += $result->{$_} // 0 for qw(rounds_done queries skipped runs failures);
		$self->{sums}{'runs with GpuSortExchange'} += $result->{nodes}{exchange_runs} // 0;
		$self->{by_name}{errors}{$_} += $result->{disturbances}{$_} for keys %{ $result->{disturbances} };
	}
	$self->_say('fuzzer: %d queries', $self->{sums}{queries} - $before);
	return if $status == 0;
	my @failures = glob "$directory/failure-*.sql";
	for (@failures ? @failures : "$directory/fuzz.log")
	{
		my @lines = split /\n/, _text($_);
		splice @lines, 40 if @lines > 40;
		$self->_wrong(join "\n", "the fuzzer, $_:", @lines);
		# kept beside the summary when the directory goes
		copy($_, $self->{save}) if defined $self->{save};
	}
	return;
}

sub _part
{
	my ($self, $part, $seconds, $weather) = @_;
	my ($pid, $directory) = $self->_start_fuzz($part, $seconds);
	my $end = time + $seconds + $last_seconds;
	my $next_line = time + 60;

	$self->_say('%s: %.0f s', $part, $seconds);
	until (waitpid($pid, POSIX::WNOHANG()) == $pid)
	{
		if (time > $end)
		{
			$self->_wrong('the fuzzer does not end');
			kill 'TERM', $pid;
			waitpid $pid, 0;
			last;
		}
		$_->step for @{ $self->{witnesses} };
		$self->{faults}->step($weather);
		if (time > $next_line)
		{
			$next_line += 60;
			my $counts = $self->{faults}{counts};
			$self->_say('faults: %s', join ', ', map { "$_ $counts->{$_}" } sort keys %$counts);
		}
		sleep 0.03;
	}
	$self->_take_fuzz($directory, $?);
	return;
}

# Stops the server; nothing of it may be left.
sub _stop_server
{
	my ($self) = @_;
	my $node = $self->{node};

	my ($sorts, $fallbacks, $reasons) = split /\|/,
		$node->safe_psql('postgres', 'SELECT sorts, fallbacks, fallback_reasons FROM gpusort_stats');
	@{ $self->{sums} }{qw(sorts fallbacks)} = ($sorts, $fallbacks);
	$self->{by_name}{fallbacks}{$1} = $2 while $reasons =~ /"([^"]+)": (\d+)/g;
	$self->{restarts} = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()') eq $self->{started} ? 0 : 1;
	$_->{session}->close for @{ $self->{witnesses} };
	$self->_wrong('temporary files: ' . join ' ', temporary_files($node)) if temporary_files($node);
	my $start = time;
	$node->stop('fast', fail_ok => 1) or $self->_wrong('the server does not stop');
	$self->{stop_seconds} = time - $start;
	wait_until(sub { !$node->processes }) or $self->_wrong('processes are left: ' . join ' ', $node->processes);
	# the lock stays, and is taken by the next service
	my @files = grep { !/\.lock$/ } service_files($node);
	$self->_wrong("files are left: @files") if @files;
	my $log = $node->log_text;
	(undef, my @lines) = bad_lines($node->logfile, 0);
	$self->{restarts} += grep { /terminating any other active/ } @lines;
	$self->_wrong(map { chomp; "the server's log: $_" } grep { $_ !~ $of_faults } @lines);
	$self->{by_name}{'ends of services'}{$1}++
		while $log =~ /sort service \(PID \d+\) (?:was terminated by |exited with )([\w ]*\d+)/g;
	return;
}

sub run
{
	my ($self) = @_;
	$self->{start} = time;
	my $warm_up = $self->{seconds} / 10 < 3 ? 3 : $self->{seconds} / 10;

	$self->_start_server;
	my $first = $self->{first} = $self->_measure;
	$self->_part('warm-up', $warm_up, 'storm');
	my $warm = $self->{warm} = $self->_measure;
	$self->_part('storm', $self->{seconds} * 0.75 - $warm_up, 'storm');
	my $stormed = $self->_measure(1);
	$self->_compare($warm, $stormed, qr/^(?!service)/);
	$self->_part('calm', $self->{seconds} * 0.25, 'calm');
	my $last = $self->{last} = $self->_measure(1);
	$self->_compare($stormed, $last, qr//);
	$self->_wrong("the service was replaced without a fault: $stormed->{service}, now $last->{service}")
		if $last->{service} != $stormed->{service};
	$self->_compare($first, $last, qr/^$/);
	for my $witness (@{ $self->{witnesses} })
	{
		$self->_wrong(map { "a witness, $_" } @{ $witness->{wrong} });
		$self->{sums}{'witness answers'} += $witness->{right};
		$self->{by_name}{errors}{$_} += $witness->{errors}{$_} for keys %{ $witness->{errors} };
	}
	$self->_wrong(@{ $self->{faults}{problems} });
	$self->_stop_server;
	$self->_wrong("$self->{restarts} restarts of the server") if $self->{restarts};
	return !@{ $self->{problems} };
}

# All that was counted and measured, [kind, name, value, unit].
sub rows
{
	my ($self) = @_;
	my $wrong = grep { /^(?:the fuzzer|a witness)/ } @{ $self->{problems} };
	my @rows = (
		(map { [ 'fault', $_, $self->{faults}{counts}{$_}, '' ] } sort keys %{ $self->{faults}{counts} }),
		(map { [ 'count', $_, $self->{sums}{$_} // 0, '' ] } sort keys %{ $self->{sums} }));
	for my $what (sort keys %{ $self->{by_name} })
	{
		push @rows, map { [ $what, $_, $self->{by_name}{$what}{$_}, '' ] } sort keys %{ $self->{by_name}{$what} };
	}
	push @rows, [ 'time', 'a stopped service was replaced, at most', sprintf('%.1f', $self->{faults}{slowest} // 0), 's' ],
		[ 'time', 'fast stop', sprintf('%.1f', $self->{stop_seconds}), 's' ];
	for my $name (sort keys %{ $self->{warm}{processes} })
	{
		for my $what ([ 'memory', 'kB' ], [ 'contexts', 'kB' ], [ 'descriptors', '' ], [ 'threads', '' ], [ 'pools', '' ])
		{
			next unless defined $self->{warm}{processes}{$name}{ $what->[0] };
			push @rows, map { [ $what->[0], "$name, $_", $self->{$_}{processes}{$name}{ $what->[0] } // '',
				$what->[1] ] } qw(warm last);
		}
	}
	push @rows, (map { [ 'sorts admitted', $_, $self->{$_}{admitted}, '' ] } qw(first last));
	push @rows, [ 'result', 'wrong answers', $wrong, '' ], [ 'result', 'restarts', $self->{restarts}, '' ],
		[ 'result', 'all that was wrong', scalar @{ $self->{problems} }, '' ];
	return @rows;
}

1;
