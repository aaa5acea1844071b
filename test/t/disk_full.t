# A temporary tablespace that is full: PostgreSQL's error for it with a hint, and all is free afterwards.
use strict;
use warnings;

# The tablespace is a small file system of this test's own, which the kernel lets a user make in name spaces of
# the user's: the test runs in these once more, first as their root, then as itself.
BEGIN
{
	my $small = $ENV{GPUSORT_TEST_SMALL_FILE_SYSTEM};
	my $ids = sprintf '--map-user=%d --map-group=%d', $>, $) + 0;

	if (!defined $small && $> != 0
		&& system("unshare -Urm sh -c 'mount -t tmpfs tmpfs /mnt && unshare -U $ids true' >/dev/null 2>&1") == 0)
	{
		require File::Temp;
		my $directory = File::Temp::tempdir('gpusort-full-XXXXXX', TMPDIR => 1);
		$ENV{GPUSORT_TEST_SMALL_FILE_SYSTEM} = $directory;
		my @perl = ($^X, (map { "-I$_" } @INC), $0);
		my $status = system('unshare', '-Urm', 'sh', '-c',
			"mount -t tmpfs -o size=12m,mode=0777 tmpfs $directory && exec unshare -U $ids \"\$@\"", 'sh', @perl);
		rmdir $directory;
		exit($status == 0 ? 0 : $status >> 8 || 1);
	}
}

use GpuSortNode;
use Test::More;

my $small = $ENV{GPUSORT_TEST_SMALL_FILE_SYSTEM};
plan skip_all => 'no file system of its own' unless defined $small;
plan skip_all => 'the memory that the host engine sorts in' if $engine ne 'host';

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'gpusort.host_memory = 24MB', 'gpusort.force = on', 'work_mem = 256MB',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
					  'min_parallel_table_scan_size = 0', 'gpusort.setup_cost = 0', 'gpusort.row_cost = 0' ]);
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, hashint4(i) AS h, i % 9001 AS g,
		md5(i::text) || md5((-i)::text) AS s FROM generate_series(1, 250000) i;
	ANALYZE t;
});
$node->safe_psql('postgres', "CREATE TABLESPACE small LOCATION '$small'");

my $query = q{SELECT count(*) || ' ' || md5(string_agg(hashtextextended(q::text, 0)::text, ',')) }
	. q{FROM (SELECT id, h, s FROM t ORDER BY h, id) q};
my $window = q{SELECT count(*) || ' ' || sum(hashtextextended(q::text, 0)::numeric) FROM (SELECT g, id, sum(id) }
	. q{OVER (PARTITION BY g ORDER BY id), lag(s) OVER (PARTITION BY g ORDER BY id) FROM t OFFSET 0) q};
my $session = $node->session;
my $right = $session->run("SET gpusort.enable = off; $query; RESET gpusort.enable");

for ([ 'a sort', '', $query ], [ 'a parallel sort', 'SET max_parallel_workers_per_gather = 2;', $query ],
	[ 'a window in every process', 'SET max_parallel_workers_per_gather = 2;', $window ])
{
	my ($name, $settings, $statement) = @$_;

	$session->send("SET temp_tablespaces = 'small'; $settings $statement");
	my ($out, $err) = $session->result;
	is($out, '', "$name: no rows");
	# the service's, or the process's own, whose file has grown by then
	my $not_written = 'gpusort: could not write a run to a temporary file|could not extend temporary file "[^"]+"';
	like($err,
		qr/ERROR:  53100: (?:$not_written): No space left on device\n.*HINT:  Check free disk space/s,
		"$name: but what was wrong");
	$session->run('RESET temp_tablespaces; RESET max_parallel_workers_per_gather');
	ok(wait_until(sub { $node->ask(
		'SELECT (SELECT count(*) FROM gpusort_jobs()), (SELECT sum(memory_used) FROM gpusort_devices())') eq '0|0' }),
		"$name: the sort has ended");
	is(join(' ', glob "$small/PG_*/pgsql_tmp/*"), '', "$name: its file is gone");
	my ($used) = `df --output=used -k $small` =~ /(\d+)\s*$/;
	ok(wait_until(sub { ($used) = `df --output=used -k $small` =~ /(\d+)\s*$/; $used < 100 }),
		"$name: and its space is free") or diag $used;
	is($session->run($query), $right, "$name: elsewhere the next is right");
}
# PostgreSQL's own sort fails as well there
$session->send("SET temp_tablespaces = 'small'; SET gpusort.enable = off; SET work_mem = '1MB'; $query");
my ($out, $err) = $session->result;
like($err, qr/ERROR:  53100:/, 'as with a sort of its own') or diag $out;
is(join(' ', $node->services), $service, 'the service is the same');
unlike($node->log_text, qr/PANIC|TRAP|leak|still referenced/, 'nothing is in the log that should not be');
$session->close;
$node->stop;
done_testing();
