# FuzzServer - the running server that PGHOST, PGPORT and PGUSER name, as the fuzzer uses it: a
# GpuSortNode that is neither made nor ended.
package FuzzServer;

use strict;
use warnings;

use GpuSortNode;

our @ISA = qw(GpuSortNode);

sub new
{
	my ($class) = @_;
	my %environment = %GpuSortNode::environment;

	delete $ENV{PGUSER};
	$ENV{$_} = $environment{$_} for grep { /^PG[A-Z]+$/ } keys %environment;
	# as PostgreSQL::Test::Cluster has them
	return bless { _host => $environment{PGHOST} // '', _port => $environment{PGPORT} // 5432, _name => 'server' }, $class;
}

1;
