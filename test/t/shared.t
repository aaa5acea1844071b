# Shared memory in a server that does not preload gpusort: modules of two builds side by side, and none to
# be had.
use strict;
use warnings;

use GpuSortNode;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => ["shared_preload_libraries = ''", 'max_locks_per_transaction = 64']);
my $sort = 'SET gpusort.force = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT i '
	. 'FROM generate_series(1, 1000) i ORDER BY i DESC';
my $engine_name = $engine eq 'cuda' ? 'gpu' : 'cpu';

# As when a new version is installed while sessions use the old one: two modules, each with its service,
# of builds that differ in one bit.
sub module_of_build
{
	my ($name, $build) = @_;
	my $directory = $node->own_module;

	$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
	rename $directory, $node->basedir . "/$name" or die $!;
	$directory = $node->basedir . "/$name";
	for my $file (grep { -e } map { "$directory/$_" } 'gpusort.so', 'gpusortd', 'gpusort_cuda.so')
	{
		my $text = slurp_file($file);
		next unless defined $build;
		# the upper half, which the compiler may have taken out of the whole
		my $half = reverse pack 'H8', $build;
		my $other = $half ^ "\0\1";
		$text =~ s/\Q$half\E/$other/g or die "$file is not of build $build";
		open my $out, '>:raw', $file or die $!;
		print $out $text;
		close $out;
	}
	return "$directory/gpusort";
}
my $old = module_of_build('old');
$node->start;
my $first = $node->session;
my $text;
# a sort waits for two seconds for the service that it starts
ok(wait_until(sub { ($text = $first->run("LOAD '$old'; $sort")) =~ /$engine_name radix/ }),
	'a session that loads a module by itself sorts') or diag $text;
my ($service) = $node->services;
my ($build) = command_line($service) =~ /--build\0([0-9a-f]{16})\0/;
my $new = module_of_build('new', $build);
my $second = $node->session;
ok(wait_until(sub { ($text = $second->run("LOAD '$new'; $sort")) =~ /GpuSort.*$engine_name radix/s }),
	'one that loads a module of another build, too') or diag $text;
like($first->run($sort), qr/$engine_name radix/, 'and the first goes on');
is(scalar $node->services, 2, 'with a service each');
is(scalar $node->supervisors, 2, 'and a supervisor each');
is(scalar $node->log_lines(qr/ERROR|WARNING|exit code/), 0, 'nobody complains') or diag $node->log_text;

# the same for a parallel worker, which loads what is there now
rename "$new.so", "$old.so" or die $!;
my $parallel = $first->run('SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; '
	. 'SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;'
	. ' SET gpusort.force = on; SET gpusort.parallel_output = off; '
	. 'CREATE TABLE t AS SELECT i AS id, (i * 7919) % 30011 AS k '
		. 'FROM generate_series(1, 30000) i; ANALYZE t;'
	. ' EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF) SELECT * FROM t ORDER BY k');
like($parallel, qr/$engine_name radix.*Workers Launched: 2.*GpuSortIngest/s,
	'a parallel sort whose workers load another build');
like($parallel, qr/worker 0 0, worker 1 0/, 'which leave the sort to the leader');
is($first->run('SELECT sum(id * n) FROM (SELECT id, row_number() OVER () AS n '
	. 'FROM (SELECT * FROM t ORDER BY k, id) s) s'),
   $node->safe_psql('postgres',
	'SELECT sum(id * n) FROM (SELECT id, row_number() OVER (ORDER BY k, id) AS n FROM t) s'), 'with the right rows');
$_->close for $first, $second;
$node->stop;

# locks have taken all the memory that the server has to spare
$node->start;
SKIP:
{
	skip 'from PostgreSQL 19 on locks have memory of their own', 10
		if $node->safe_psql('postgres', 'SHOW server_version_num') >= 190000;

	my $hog = $node->session;
	(undef, my $err) = do { $hog->send('SELECT pg_advisory_lock(i) FROM generate_series(1, 100000) i'); $hog->result };
	like($err, qr/out of shared memory/, 'shared memory is used up');
	$hog->run('SELECT pg_advisory_unlock_all()'); # the memory stays that of the lock tables
	my $session = $node->session;
	$text = $session->run("LOAD 'gpusort'; $sort");
	unlike($text, qr/GpuSort/, 'a session without shared memory has its rows sorted by PostgreSQL');
	like($text, qr/Sort Method: quicksort/, 'without an error');
	$session->run($sort) for 1 .. 3;
	is(scalar $node->log_lines(qr/LOG:.*gpusort is not used in this session: not enough shared memory/), 1,
		'and a line in the log');
	$session->run('CREATE EXTENSION gpusort');
	for my $view ('gpusort_stats', 'gpusort_jobs', 'gpusort_service', 'gpusort_stats_reset()')
	{
		$session->send("SELECT * FROM $view");
		like(($session->result)[1], qr/ERROR:.*gpusort has no shared memory.*HINT:.*shared_preload_libraries/s,
			"$view says so");
	}
	$session->send('SELECT * FROM gpusort_devices');
	like(($session->result)[1], qr/WARNING:.*gpusort has no shared memory/, 'gpusort_devices too');
	is(scalar $node->services + scalar $node->supervisors, 0, 'no service starts');
	$_->close for $hog, $session;
}

done_testing;
