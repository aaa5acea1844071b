# What happens to aggregates that read sorted rows by number, or parts of them in all processes, where what the service
# sends is wrong, and when they are cancelled: PostgreSQL's own answer, or a clean error.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my %queries = (
	percentiles => 'SELECT percentile_disc(array[0.9, 0.01, 0.5, 0]) WITHIN GROUP (ORDER BY k) FROM t',
	strings => 'SELECT percentile_disc(array[0.3, 0.7]) WITHIN GROUP (ORDER BY pad COLLATE "C") FROM t',
	distinct => 'SELECT count(DISTINCT k), sum(DISTINCT k) FROM t',
	ordered => 'SELECT md5(array_agg(id ORDER BY k, id)::text), count(*) FROM t',
	windows => 'SELECT count(x), sum(x) FROM (SELECT lag(id) OVER (PARTITION BY k % 50 ORDER BY k, id) AS x FROM t) s');

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0', 'gpusort.min_rows = 0' ]);
$node->own_module(gpusortd => $fault_service);
$node->start;
$node->wait_service;
$node->safe_psql('postgres', q{
	CREATE TABLE t AS SELECT i AS id, CASE WHEN i % 9 > 0 THEN (i::bigint * 7919) % 30011 END AS k,
		repeat(chr(97 + i % 26), 90) || i % 1000 AS pad FROM generate_series(1, 60000) i;
	ALTER TABLE t SET (parallel_workers = 2);
	ANALYZE t});

my %count;
for my $query (sort keys %queries)
{
	for my $workers (0, 2)
	{
		my $session = $node->session;
		$session->run("SET gpusort.force = on; SET max_parallel_workers_per_gather = $workers; SET gpusort.enable = off");
		my $native = $session->run($queries{$query});
		$session->run('SET gpusort.enable = on');
		like($session->run("EXPLAIN $queries{$query}"), qr/GpuSort/, "$query, $workers workers: sorted by gpusort");
		is($session->run($queries{$query}), $native, 'the native answer');
		for my $fault ('sorted_more_rows 1', map { ("zero_length $_", "drop_row $_") } 1 .. 3)
		{
			$node->choose_fault($fault);
			$session->send($queries{$query});
			my ($out, $err) = $session->result;
			my $happened = $node->fault_happened;
			my $outcome = $err =~ /ERROR:  (?:XX001|58000):/ ? 'error' : $err =~ /ERROR|connection/ ? 'odd'
				: $out eq $native ? 'right' : 'wrong';

			$count{ ($happened ? '' : 'no fault, ') . $outcome }++;
			diag "$query, $workers workers, $fault: $outcome, $out $err" unless $outcome =~ /^(?:right|error)$/;
		}
		$node->choose_fault;
		is($session->run($queries{$query}), $native, 'and again, when nothing is wrong');
		$session->send("SET statement_timeout = '1ms'; $queries{$query}");
		my ($out, $err) = $session->result;
		like($err, qr/57014/, 'it can be cancelled');
		$session->end_timeout;
		is($session->run($queries{$query}), $native, 'and after that');
	}
}
is($count{$_} // 0, 0, "no answer was $_") for 'wrong', 'odd', 'no fault, wrong', 'no fault, odd';
cmp_ok($count{right} // 0, '>', 0, 'PostgreSQL sorted where rows were lost');
note join ', ', map { "$count{$_} $_" } sort keys %count;
unlike($node->log_text, qr/PANIC|terminating any other active server processes/, 'without a restart of the server');

done_testing;
