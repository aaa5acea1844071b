# A service that cannot start: the server runs, queries get their answers from PostgreSQL's own
# sort, the log says it without filling up; and the service comes when it can.
use strict;
use warnings;

use GpuSortNode;
use Test::More;
use Time::HiRes qw(sleep);

my $node = GpuSortNode->new('main');
$node->init;
# where the socket is to be nothing can be made
my $obstacle = $node->data_dir . '/pg_stat_tmp';
chmod 0500, $obstacle or die "chmod: $!";

$node->start;
$node->safe_psql('postgres',
	'CREATE TABLE t AS SELECT i AS id, (i * 7919) % 30011 AS k FROM generate_series(1, 20000) i');
my $rows = $node->safe_psql('postgres', 'SET gpusort.enable = off; SELECT string_agg(id::text, \',\') '
	. 'FROM (SELECT * FROM t ORDER BY k, id) s');
for my $i (1 .. 5)
{
	is($node->safe_psql('postgres', 'SET gpusort.force = on; SET gpusort.log_decisions = on; SELECT '
		. 'string_agg(id::text, \',\') FROM (SELECT * FROM t ORDER BY k, id) s'), $rows, "answer $i without a service");
	# the first may meet one that starts
	next if $i > 1;
	ok(wait_until(sub { $node->log_lines(qr/LOG:.*sort service \(PID \d+\) exited with/) }), 'the log tells');
}
cmp_ok($node->waits_in_vain, '<=', 1, 'and without much waiting');
my $why = qr/(?:not used|falling back to tuplesort): the sort service (?:ended|is not running)/;
cmp_ok(scalar $node->log_lines($why), '>=', 4, 'as the log says for each');
like($node->method, qr/^(?:fallback|native)$/, 'by PostgreSQL itself');
sleep 1.5;
cmp_ok(scalar(grep { !/LOG:  gpusort: / } $node->log_lines(qr/(?:LOG|WARNING):/)), '<', 40, 'but not at every moment');
ok(wait_until(sub { $node->services == 0 }), 'none of those that were tried has stayed');
unlike($node->log_text, qr/PANIC|terminating any other active server processes/, 'the server did not restart');

# the obstacle gone
chmod 0700, $obstacle or die "chmod: $!";
ok($node->wait_service, 'the service comes once it can');
is($node->safe_psql('postgres', 'SET gpusort.force = on; SELECT string_agg(id::text, \',\') FROM (SELECT * FROM t '
	. 'ORDER BY k, id) s'), $rows, 'and sorts');

# an engine that is not there is no reason for an error
SKIP:
{
	skip 'there is a GPU', 2 if -e '/dev/nvidiactl';
	my $text = $node->safe_psql('postgres',
		'SET gpusort.force = on; SET gpusort.engine = cuda; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM t '
		. 'ORDER BY k');
	unlike($text, qr/gpu radix/, 'the cuda engine without a GPU does not sort');
	is($node->safe_psql('postgres', 'SET gpusort.force = on; SET gpusort.engine = cuda; '
		. 'SELECT string_agg(id::text, \',\') FROM (SELECT * FROM t ORDER BY k, id) s'), $rows, 'PostgreSQL does');
}

# a job larger than the memory allowed, which may not spill: where the planner knows it is not begun, where it does not
# the rows that were ingested go on into PostgreSQL's sort; a device's engine needs more for itself
my ($memory, $count) = $engine eq 'host' ? ('16MB', 250000) : ('64MB', 1000000);
$node->safe_psql('postgres', qq{
	ALTER SYSTEM SET gpusort.host_memory = '$memory';
	ALTER SYSTEM SET gpusort.device_memory = '$memory';
	ALTER SYSTEM SET gpusort.spill = off;
	-- more rows than the planner expects of it; some are larger than a chunk's share
	CREATE FUNCTION surprise(n int) RETURNS TABLE (id int, k int, s text) LANGUAGE plpgsql IMMUTABLE ROWS 10 AS \$\$
	BEGIN
		RETURN QUERY SELECT i, (i::bigint * 7919 % 100003)::int, repeat(md5(i::text), CASE WHEN i % 25000 = 7 THEN 50000
			ELSE 3 END) FROM generate_series(1, n) i;
	END \$\$;
});
$node->reload;
ok(wait_until(sub { $node->safe_psql('postgres', 'SHOW gpusort.host_memory') eq $memory }), "a limit of $memory");
$node->wait_service;
my $text;
# by the next service: one that takes over may be a reason for it, too
ok(wait_until(sub {
	$text = $node->safe_psql('postgres',
		"SET gpusort.force = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT * FROM surprise($count) ORDER BY k, id");
	return $text =~ /Sort Method: fallback: tuplesort.*Fallback Reason: .*gpusort\.(?:host|device)_memory/s;
}), 'a sort of more falls back, and names the setting') or diag $text;
for my $order ('k, id', 's COLLATE "C" DESC')
{
	my $digest = "SELECT count(*), md5(string_agg(id || left(s, 40), ',')) FROM (SELECT * FROM surprise($count) "
		. "ORDER BY $order) s";
	is($node->safe_psql('postgres', "SET gpusort.force = on; $digest"),
		$node->safe_psql('postgres', "SET gpusort.enable = off; $digest"),
		"full in the middle of the rows, by $order: the right answer");
}
# likewise rows with a resjunk column: the executor's junk filter is not there to leave it out
my $insert = "INSERT INTO %s SELECT id, left(s, 40) FROM surprise($count) ORDER BY k, id";
$node->safe_psql('postgres', "CREATE TABLE $_ (id int, s text)") for 'native', 'forced';
$node->safe_psql('postgres', 'SET gpusort.enable = off; ' . sprintf $insert, 'native');
like($node->safe_psql('postgres', 'SET gpusort.force = on; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ' . sprintf $insert,
	'forced'),
	 qr/fallback: tuplesort/, 'full in the middle of rows with a resjunk key');
is($node->safe_psql('postgres', q{SELECT md5(string_agg(id || s, ',' ORDER BY ctid)) FROM forced}),
   $node->safe_psql('postgres', q{SELECT md5(string_agg(id || s, ',' ORDER BY ctid)) FROM native}), 'the right rows');
is($node->method, 'radix', 'a small sort fits');
like($node->safe_psql('postgres', 'SET gpusort.force = on; SET gpusort.log_decisions = on; EXPLAIN SELECT * '
	. 'FROM generate_series(1, 100000000) i ORDER BY i DESC'),
	 qr/^ *(?:Sort|->  Sort)/m, 'one that the planner knows to be too large is not tried');
ok(wait_until(sub { $node->log_lines(qr/gpusort: not used: .*gpusort\.(?:host|device)_memory/) }),
	'and the log names the setting');

done_testing;
