# SoakWatch - what processes hold, and what lies about in the data directory.
#
#   my $first = measure($pid);		# { memory => kB, descriptors => n, what => these, threads => n, pools => n }
#   ...
#   my @grown = grown('supervisor', $first, measure($pid), 1024);
#   my @files = service_files($node);
#
# Memory is what is resident and anonymous (RssAnon): what a process has in common with others, shared
# buffers and staging pools, comes and goes with what it touches.  Staging pools that are still mapped are
# counted instead.  Of descriptors those of relations are not counted: PostgreSQL keeps them open for the next time, as
# many as it has looked into, whose catalogs it looks into again when others have changed them.
package SoakWatch;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(measure grown service_files temporary_files);

sub _lines
{
	my ($name) = @_;
	open my $file, '<', $name or return;
	return <$file>;
}

# What a process holds; nothing if there is no such process.
sub measure
{
	my ($pid) = @_;
	my ($memory) = map { /^RssAnon:\s+(\d+)/ } _lines("/proc/$pid/status") or return;
	my ($threads) = map { /^Threads:\s+(\d+)/ } _lines("/proc/$pid/status");
	my %pools = map { m{\s(\d+)\s+/memfd:} ? ($1 => 1) : () } _lines("/proc/$pid/maps");
	my @descriptors = grep { !m{/(?:base/\d+|global)/\d+(?:_\w+)?(?:\.\d+)?$} }
		map { readlink // 'one that is closed' } glob "/proc/$pid/fd/*";

	return { memory => $memory, threads => $threads, descriptors => scalar @descriptors, pools => scalar keys %pools,
		what => join ' ', sort @descriptors };
}

# What of it has grown: memory by more than so many kB, memory contexts by more than a few blocks,
# descriptors, threads and pools by more than one.
sub grown
{
	my ($name, $first, $last, $memory) = @_;
	return "$name is gone" unless defined $first && defined $last;
	my %allowed = (memory => $memory, contexts => 512, descriptors => 1, threads => 1, pools => 1);
	return map { defined $first->{$_} && $last->{$_} > $first->{$_} + $allowed{$_}
		? "$name: $_ $first->{$_} at first, $last->{$_} in the end" . ($_ eq 'descriptors' ? ": $last->{what}" : '')
		: () } sort keys %allowed;
}

# The sockets and locks of services, and other files of gpusort's in the data directory.
sub service_files
{
	my ($node) = @_;
	my $data = $node->data_dir;
	return map { s{^\Q$data\E/}{}r } glob "$data/pg_stat_tmp/*gpusort* $data/*gpusort*";
}

sub temporary_files
{
	my ($node) = @_;
	return glob $node->data_dir . '/base/pgsql_tmp/*';
}

1;
