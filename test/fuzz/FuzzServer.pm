# FuzzServer - the running server that PGHOST, PGPORT and PGUSER name, as the fuzzer uses it: what
# GpuSortCluster does for a server of the fuzzer's own.
package FuzzServer;

use strict;
use warnings;

use Carp;
use IPC::Run ();

sub new
{
	my ($class) = @_;
	my $directory = $ENV{PG_CONFIG} ? `$ENV{PG_CONFIG} --bindir` : '';
	chomp $directory;
	return bless { psql => $directory eq '' ? 'psql' : "$directory/psql" }, $class;
}

sub _psql
{
	my ($self, %option) = @_;
	return ($self->{psql}, qw(-X -q -A -t -d), $option{database} || 'postgres', qw(-v ON_ERROR_STOP=1 -v VERBOSITY=verbose));
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

sub sql
{
	my ($self, $sql, %option) = @_;
	my ($out, $err, $status) = $self->try($sql, %option);
	croak "psql failed ($status): $err\nin: $sql" if $status != 0;
	return $out;
}

1;
