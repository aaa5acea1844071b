# The fuzzer (test/fuzz) finds rows in a wrong order, whichever way they leave the server.  The service exchanges two
# rows of each chunk here, which nothing but a comparison of answers tells.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../fuzz";
use FuzzQuery qw(way_out);
use FuzzRandom;
use FuzzRun;
use GpuSortNode;
use Test::More;

my $select = 'SELECT k AS o1, pad AS o2 FROM t ORDER BY k';
my @settings = ('gpusort.force = on', 'gpusort.verify_rows = off', 'max_parallel_workers_per_gather = 2',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0');
my @ways = ('protocol', 'copy', 'copy to a file', 'copy to a program', 'create table as', 'materialized view',
	'insert');

my $node = GpuSortNode->new('main');
$node->init;
$node->own_module(gpusortd => $fault_service);
$node->start;
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT i * 7919 % 20011 AS k, 'row ' || i AS pad FROM generate_series(1, 20000) i;
	ANALYZE t});

# Each way with several of its options: kind, formats, COPY's.
my @queries = ({ name => 'psql', sql => $select });
for my $way (@ways)
{
	for my $seed (1 .. 3)
	{
		seed_random($seed);
		my $round = way_out($way, columns => 2, query => $select);
		push @queries, { name => "$way, $seed", sql => "$round->{before}$select$round->{after}", wire => $round->{wire} };
	}
}

my $run = FuzzRun->new(node => $node);

# What is wrong with a query's answer; empty: nothing.
sub wrong
{
	my ($query) = @_;
	my ($what) = $run->try_in('postgres', { mode => 'exact', %$query }, \@settings);
	return $what // '';
}

is(wrong($_), '', "$_->{name}: nothing is wrong with a good service") for @queries;
for my $query (@queries)
{
	$node->choose_fault('swap_rows 0');
	like(wrong($query), qr/^(?:order|rows): /, "$query->{name}: rows that have changed places are found");
	$node->choose_fault(undef);
}

done_testing;
