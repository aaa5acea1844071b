# Who sets what cannot work is told, and so is the log; a session that holds its share of the staging pool has its next
# sort planned for PostgreSQL; gpusort_jobs has the statement, the leader and how far it is.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'gpusort.staging_memory = 16MB', 'gpusort.min_rows = 0', 'gpusort.host_memory = 1000TB',
	'max_parallel_workers_per_gather = 0' ]);
$node->start;
$node->wait_service;
my $too_much = qr/gpusort\.host_memory \(\d+ MB\) exceeds the machine's memory \(\d+ MB\)/;
like($node->log_text, qr/WARNING:.*$too_much/, 'at the start the log tells of more memory than the machine has');

sub complaint
{
	my ($sql) = @_;
	my (undef, undef, $err) = $node->psql('postgres', $sql);
	return $err;
}
like(complaint(q{ALTER SYSTEM SET gpusort.host_memory = '999TB'}), qr/NOTICE:.*$too_much.*\n.*HINT: /,
	'who sets it is told');
is(complaint(q{ALTER SYSTEM SET gpusort.host_memory = '64MB'}), '', 'of less he is not');
my $before = length $node->log_text;
$node->append_conf('postgresql.conf', q{gpusort.host_memory = '998TB'});
$node->safe_psql('postgres', q{ALTER SYSTEM RESET gpusort.host_memory});
$node->reload;
ok(wait_until(sub { substr($node->log_text, $before) =~ /WARNING:.*$too_much/ }), 'a reload tells the log again');
$node->append_conf('postgresql.conf', q{gpusort.host_memory = '64MB'});
$node->reload;
# while one takes over from another nobody is told of engines
$node->wait_service_with('host-memory', 64 << 20);

# an engine that is not there
SKIP:
{
	skip 'there is a GPU', 4 if -e '/dev/nvidiactl';
	my $no_device = qr/gpusort\.engine is cuda, but the service has no CUDA device; PostgreSQL sorts/;
	$node->safe_psql('postgres', 'SELECT count(*) FROM (SELECT i FROM generate_series(1, 10000) i ORDER BY i OFFSET 0) s');
	like(complaint(q{SET gpusort.engine = 'cuda'}), qr/NOTICE:.*$no_device.*\n.*HINT: /, 'who sets the engine is told');
	is(complaint(q{SET gpusort.engine = 'host'; SET gpusort.engine = 'auto'; SET client_min_messages = warning; }
		. q{SET gpusort.engine = 'cuda'}), '', 'nothing of others, or where notices are not wanted');
	$before = length $node->log_text;
	$node->append_conf('postgresql.conf', q{gpusort.engine = 'cuda'});
	$node->reload;
	ok(wait_until(sub { substr($node->log_text, $before) =~ /WARNING:.*$no_device/ }), 'a reload tells the log');
	$node->append_conf('postgresql.conf', q{gpusort.engine = 'host'});
	$node->reload;
	wait_until(sub { $node->safe_psql('postgres', 'SHOW gpusort.engine') eq 'host' });
	unlike(complaint(q{SELECT 1}), qr/NOTICE/, 'others are not told');
}

# a session that holds its share: 16 MB are four chunks, half of which one session gets, but two sorts
$node->safe_psql('postgres', q{CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, (i * 7919::bigint) % 300007 AS k, repeat(md5(i::text), 10) AS m
	FROM generate_series(1, 100000) i; ANALYZE t});
my $session = $node->session;
my $explain = q{SELECT string_agg(line, E'\n') FROM gpusort_explain('SELECT * FROM t ORDER BY id') line};
$session->run('SET gpusort.force = on; BEGIN');
for my $i (1 .. 2)
{
	my ($plan) = $session->run($explain);
	like($plan, qr/Custom Scan \(GpuSort\)/, "planned for the service with so many sorts open: " . ($i - 1));
	$session->run("DECLARE c$i CURSOR FOR SELECT * FROM t ORDER BY k; FETCH 10 FROM c$i");
}
my ($plan) = $session->run($explain);
my $share = qr/other sorts of this session use its whole share of gpusort\.staging_memory/;
like($plan, qr/GpuSort: not used: $share/, 'not with two');
my ($reasons) = $session->run(q{SELECT fallbacks FROM gpusort_stats});
$session->run('SELECT count(*) FROM (SELECT * FROM t ORDER BY id OFFSET 0) s');
is(($session->run(q{SELECT fallbacks FROM gpusort_stats}))[0], $reasons, 'so nothing falls back');

# meanwhile, gpusort_jobs
is($node->safe_psql('postgres', q{SELECT count(*), bool_and(percent BETWEEN 0 AND 100), bool_and(phase = 'emit'),
	bool_and(leader_pid IS NULL), bool_and(query = (SELECT query FROM pg_stat_activity a WHERE a.pid = j.pid))
	FROM gpusort_jobs j}), '2|t|t|t|t', 'gpusort_jobs has the statement and how far it is');
$node->safe_psql('postgres', 'CREATE ROLE watcher; GRANT SELECT ON gpusort_jobs TO watcher; '
	. 'GRANT EXECUTE ON FUNCTION gpusort_jobs() TO watcher');
is($node->safe_psql('postgres', 'SET ROLE watcher; SELECT DISTINCT query FROM gpusort_jobs'),
	'<insufficient privilege>', 'who may not see statements in pg_stat_activity does not see them here');
$session->run('CLOSE c1');
($plan) = $session->run($explain);
like($plan, qr/Custom Scan \(GpuSort\)/, 'planned for the service again when a cursor was closed');
$session->close;
$node->stop;

done_testing;
