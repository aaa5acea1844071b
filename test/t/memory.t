# The memory of the sort service: when the system has none left, sorts that may not spill go on without it and lose
# no row; how many threads it has; that the kernel ends it before a process of the server.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

plan skip_all => 'the memory that the host engine sorts in' if $engine ne 'host';

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'gpusort.host_memory = 1GB', 'gpusort.host_threads = 1', 'gpusort.force = on',
	'gpusort.spill = off', 'max_parallel_workers_per_gather = 0' ]);
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, (i * 7919) % 300007 AS k, 'row number ' || i || ' ' || repeat('x', i % 100) AS pad
		FROM generate_series(1, 250000) i;
	ANALYZE t;
	CREATE SEQUENCE seen;
});

sub read_file
{
	my ($path) = @_;
	open my $file, '<', $path or die "$path: $!\n";
	local $/;
	return scalar <$file>;
}

is(read_file("/proc/$service/oom_score_adj") + 0, 1000, 'the kernel ends the service first when memory runs out');
is($node->safe_psql('postgres', q{SELECT detail FROM gpusort_devices WHERE engine = 'host'}), '1 thread',
	'gpusort.host_threads');
$node->append_conf('postgresql.conf', 'gpusort.host_threads = 3');
$node->reload;
ok(wait_until(sub { $node->ask(
	q{SELECT detail FROM gpusort_devices WHERE engine = 'host'}) eq '3 threads' }), 'and after a change of it');
$service = $node->wait_service;

# A sequence moves with every row read, so the rows cannot be read a second time.
my $sort = q{SELECT id, pad FROM t WHERE nextval('seen') > 0 ORDER BY k, id};
my $digest = "SELECT count(*) || md5(string_agg(id || pad, ',')) FROM ($sort) s";
my $right = $node->safe_psql('postgres', "SET gpusort.enable = off; $digest");
# most rows are dropped before the service has them
my $first = "SELECT count(*) || md5(string_agg(id || pad, ',')) FROM ($sort LIMIT 60000) s";
my $right_first = $node->safe_psql('postgres', "SET gpusort.enable = off; $first");
is($node->safe_psql('postgres', $digest), $right, 'the right answer with memory');

# so many MB more than it has mapped; a new service, as one keeps what it has mapped for the next sort
my %ways;
for my $more (4, 12, 36, 120)
{
	kill 'KILL', $service;
	$service = $node->wait_service($service);
	my ($mapped) = read_file("/proc/$service/statm") =~ /^(\d+)/;
	my $limit = $mapped * 4096 + ($more << 20);
	is(system('prlimit', "--pid=$service", "--as=$limit:"), 0, "$more MB left");
	is($node->safe_psql('postgres', $digest), $right, 'the right answer, of rows that cannot be read twice');
	is($node->safe_psql('postgres', $first), $right_first, 'and of the first of them');
	my $plan = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF) $sort");
	$ways{ $plan =~ /out of memory: / ? 'fallback' : $plan =~ /cpu radix/ ? 'service' : "neither:\n$plan" }++;
	is(system('prlimit', "--pid=$service", '--as=unlimited:'), 0, 'unlimited again');
}
ok($ways{fallback}, 'some sorts were full for want of memory');
ok($ways{service}, 'some had enough of it');
is(join(' ', grep { /neither/ } keys %ways), '', 'that is all of them');
is(join(' ', $node->services), $service, 'the service is the same');
ok(wait_until(sub { $node->ask('SELECT sum(memory_used) FROM gpusort_devices') eq '0' }),
	'and holds no memory of theirs');
done_testing();
