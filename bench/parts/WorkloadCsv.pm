# WorkloadCsv - the CSV of bench/workload, a line a query, for bench/keep.
#
#   my $csv = WorkloadCsv->new($file, $command, 'postgresql: ...', ...);	# added to, if it is there
#   $csv->add(@fields);
#   $csv->close('12 of 13 queries: ...', ...);		# with comments
package WorkloadCsv;

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Path qw(make_path);
use POSIX ();

# Tells the host, as the other programs of bench/ do, and the facts, a comment each.
sub new
{
	my ($class, $file, $command, @facts) = @_;
	my $exists = -s $file;
	make_path(dirname($file));
	open my $out, '>>', $file or die "$file: $!\n";
	$out->autoflush(1);
	my ($cpu) = grep { defined } map { /^model name\s*: (.*)/ ? $1 : undef } lines('/proc/cpuinfo');
	my ($memory) = map { /^MemTotal:\s*(\d+)/ ? $1 / 2**20 : () } lines('/proc/meminfo');
	my ($smi) = grep { -x } map({ "$_/nvidia-smi" } split /:/, $ENV{PATH} // ''), '/usr/local/nvidia/bin/nvidia-smi';
	my @gpus = defined $smi ? `$smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null` : ();
	my $gpu = @gpus && $? == 0 ? scalar(@gpus) . ' x ' . $gpus[0] =~ s/,.*\n//r : 'none';
	chomp(my $commit = `git -C '@{[dirname(__FILE__)]}' rev-parse --short HEAD 2>/dev/null`);
	printf $out "# date: %s%s\n# command: %s\n", POSIX::strftime('%Y-%m-%dT%H:%MZ', gmtime),
		$commit ne '' ? "; commit: $commit" : '', $command;
	# 84: _SC_NPROCESSORS_ONLN of Linux
	printf $out "# cpu: %s, %d cores; memory: %.0f GiB\n# gpu: %s\n", $cpu // 'unknown', POSIX::sysconf(84) || 0,
		$memory // 0, $gpu;
	print $out map { "# $_\n" } @facts;
	print $out 'suite,query,ms_off,ms_on,ratio,changed,same_joins,nodes,planning_off,planning_on,relations,rows,turns,',
		"answers,verdict,ms_forced,nodes_forced,why,advised\n"
		if !$exists;
	return bless { file => $file, out => $out }, $class;
}

sub lines
{
	open my $in, '<', $_[0] or return;
	return <$in>;
}

sub field
{
	my ($value) = @_;
	$value //= '';
	$value =~ s/\s+/ /g;
	$value =~ s/"/""/g;
	return $value =~ /[,"]/ ? "\"$value\"" : $value;
}

# Adds the line of a query: values of all columns.
sub add
{
	my ($self, @fields) = @_;
	my $out = $self->{out};

	print $out join(',', map { field($_) } @fields), "\n";
	return;
}

sub close
{
	my ($self, @comments) = @_;
	my $out = $self->{out};

	print $out map { "# $_\n" } @comments;
	CORE::close($out) or die "$self->{file}: $!\n";
	return;
}

1;
