# FuzzMany - the fuzzer in many processes at once.
#
# Each process is a FuzzRun with seeds of its own.  It has a server of its own, or databases of its
# own on a running server that all share.  Process k of seed s begins with seed s + 1000000 k.
# What it prints goes to DIRECTORY/process-k.log, its failures to DIRECTORY/failure-*.sql.
package FuzzMany;

use strict;
use warnings;

use Carp;
use Exporter qw(import);
use File::Path qw(make_path);
use FuzzNodes;
use FuzzRun;
use FuzzServer;
use JSON::PP ();
use Time::HiRes qw(time);

our @EXPORT = qw(run_many);

# What a process hands up: numbers, and counts by name.
my @numbers = qw(rounds_done queries runs sorts sorted_runs failures skipped varying bystander took);
my @counts = qw(fallbacks kinds errors disturbances);

sub _process
{
	my ($k, $directory, %option) = @_;
	my $log = "$directory/process-$k.log";

	open STDOUT, '>>', $log or croak "$log: $!";
	open STDERR, '>&', \*STDOUT or croak "$log: $!";
	STDOUT->autoflush(1);
	$option{seed} += 1000000 * $k;
	print "seed $option{seed}\n";
	my $run = FuzzRun->new(%option, name => "fuzz_$k", save => $directory);
	$run->run;
	$run->clean;
	print $run->summary, "\n", $run->{nodes}->text, "\n";
	open my $file, '>', "$directory/process-$k.json" or croak "$directory: $!";
	print $file JSON::PP->new->encode({ (map { $_ => $run->{$_} || 0 } @numbers), (map { $_ => $run->{$_} } @counts),
		nodes => { %{ $run->{nodes} } } });
	close $file;
	return;
}

sub _start
{
	my ($k, @rest) = @_;
	my $pid = fork // croak "fork: $!";

	return $pid if $pid;
	my $ok = eval { _process($k, @rest); 1 };
	print $@ unless $ok;
	exit($ok ? 0 : 1);
}

# The sorts that a shared server has done, in a database that is there for this.
sub _sorts
{
	my ($server) = @_;
	return $server->safe_psql('fuzz_0', 'SELECT sorts FROM gpusort_stats');
}

sub _text
{
	my ($name) = @_;
	open my $file, '<', $name or return '';
	local $/;
	return scalar <$file> // '';
}

sub _list
{
	my (%counts) = @_;
	return join(', ', map { "$_ $counts{$_}" } sort keys %counts) || 'none';
}

# Runs so many processes until their time is over, and prints what has been done.  Options: those of
# FuzzRun; directory; log, the log of a shared server.  True if nothing was found.
sub run_many
{
	my ($processes, %option) = @_;
	my ($directory, $log) = delete @option{qw(directory log)};
	my $start = time;
	my $server = $option{server} ? FuzzServer->new : undef;
	my $nodes = FuzzNodes->new;
	my (%process, %sum, %by_name, $sorts, @bad, $early, $stopped);
	my ($cores) = `nproc` =~ /(\d+)/;

	make_path($directory);
	unlink glob "$directory/process-*";
	if ($server)
	{
		$server->safe_psql('postgres', $_) for 'DROP DATABASE IF EXISTS fuzz_0', 'CREATE DATABASE fuzz_0';
		$server->safe_psql('fuzz_0', 'CREATE EXTENSION gpusort');
		$sorts = _sorts($server);
	}
	my $from = defined $log ? -s $log // croak "$log: $!" : undef;
	$process{ _start($_, $directory, %option) } = $_ for 1 .. $processes;
	local $SIG{$_} = sub { $stopped = 1; kill 'TERM', keys %process } for qw(HUP INT TERM);
	while (%process)
	{
		my $pid = waitpid -1, 0;
		last if $pid == -1 && !$!{EINTR};
		my $k = delete $process{$pid} or next;
		my $text = _text("$directory/process-$k.json");
		if ($text ne '')
		{
			my $result = JSON::PP->new->decode($text);
			$sum{$_} += $result->{$_} for @numbers;
			for my $what (@counts)
			{
				$by_name{$what}{$_} += $result->{$what}{$_} for keys %{ $result->{$what} };
			}
			$nodes->merge($result->{nodes});
		}
		else
		{
			my @lines = split /\n/, _text("$directory/process-$k.log");
			splice @lines, 0, -15 if @lines > 15;
			print "process $k ended early:\n", map { "  $_\n" } @lines;
			$early++;
			my $left = int($option{seconds} - (time - $start));
			$process{ _start($k, $directory, %option, seconds => $left, seed => $option{seed} + 1000 * $early) } = $k
				if $left > 20 && !$stopped && $early < 3 * $processes;
		}
	}
	(undef, @bad) = bad_lines($log, $from) if defined $log;
	if ($server)
	{
		# they are zero again after a crash
		my $now = _sorts($server);
		$sum{sorts} = $now >= $sorts ? $now - $sorts : $now;
		$server->safe_psql('postgres', 'DROP DATABASE fuzz_0');
	}
	my $busy = $processes < $cores ? $processes : $cores;
	my $took = time - $start;
	printf "%d processes on %d cores, %.0f s, %.2f core-hours: %d rounds, %d queries (%d too slow, "
		. "%d that vary natively), %d runs with gpusort, %d sorts in the service%s\n",
		$processes, $cores, $took, $busy * ($sum{took} // 0) / $processes / 3600,
			map { $_ // 0 } @sum{qw(rounds_done queries skipped varying runs sorts)},
			$server ? '' : ' in ' . ($sum{sorted_runs} // 0) . ' runs';
	print $nodes->text, "\nfallbacks" . ($server ? ' (not counted on a shared server)' : '') . ': ',
		_list(%{ $by_name{fallbacks} }), '; errors that both have: ', _list(%{ $by_name{errors} }), "\n",
		_list(%{ $by_name{kinds} }), "\n";
	print 'ended by faults from outside: ', _list(%{ $by_name{disturbances} }), "\n" if $option{tolerate_loss};
	print "$sum{bystander} sessions ended by another's crash\n" if $sum{bystander};
	print "the server's log:\n", @bad if @bad;
	print defined $log || !$server ? '' : "the server's log was not looked at (--log)\n";
	print "$_\n" for glob "$directory/failure-*.sql";
	my $failures = ($sum{failures} // 0) + ($early // 0) + (@bad ? 1 : 0);
	print "$failures failures\n";
	return $failures == 0;
}

1;
