# Many sorts in runs at once, and many runs, with little memory: all are done by the service, and right.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

plan skip_all => 'the memory that the host engine sorts in' if $engine ne 'host';

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'gpusort.host_memory = 64MB', 'gpusort.staging_memory = 256MB', 'gpusort.force = on',
	'work_mem = 64MB', 'max_worker_processes = 30', 'max_parallel_workers = 20',
					  'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0',
						'gpusort.setup_cost = 0', 'gpusort.row_cost = 0', 'gpusort.log_decisions = on' ]);
$node->start;
my $service = $node->wait_service;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, hashint4(i) AS h, i % 9001 AS g, md5(i::text) || md5((-i)::text) AS s
		FROM generate_series(1, 120000) i;
	ANALYZE t;
});

my $digest = q{SELECT count(*) || ' ' || md5(string_agg(hashtextextended(q::text, 0)::text, ',')) FROM (%s) q};
my $long = 'SELECT * FROM t UNION ALL SELECT id + 1000000, h, g, s FROM t UNION ALL SELECT id + 2000000, h, g, s '
	. 'FROM t';

# Sorts that PostgreSQL did, so far: all, and those that had waited in the service's queue in vain, for as long as
# any may or because nothing had moved for 250 ms (session_queue.c): a busy machine stops them all for so long.
sub refused
{
	my @all = $node->log_lines(qr/falling back to tuplesort/);
	return (\@all, scalar grep { /: after a wait of (\d+) ms/ && $1 >= 250 } @all);
}

# What becomes of the same statements in sessions, all at once: right rows, and no sort of PostgreSQL's own, unless
# it waited for those before it, which a busy machine may make slow.
sub at_once
{
	my ($name, $sessions, @statements) = @_;
	my %right = map { $_ => $node->safe_psql('postgres', "SET gpusort.enable = off; $_") } @statements;

	$node->safe_psql('postgres', 'SELECT gpusort_stats_reset()');
	my (undef, $waited_before) = refused;
	my $i = 0;
	my %asked = map { $_ => $statements[ $i++ % @statements ] } 0 .. $#$sessions;
	$sessions->[$_]->send($asked{$_}) for 0 .. $#$sessions;
	my $wrong = 0;
	for my $n (0 .. $#$sessions)
	{
		my ($out, $err) = $sessions->[$n]->result;
		next if $out eq $right{ $asked{$n} };
		$wrong++;
		diag "$name, session $n: $out $err";
	}
	is($wrong, 0, "$name: right rows for all");
	my ($sorts, $runs, $fallbacks) = split /\|/,
		$node->safe_psql('postgres', 'SELECT sorts, runs, fallbacks FROM gpusort_stats()');
	my ($refused, $waited) = refused;
	$waited -= $waited_before;
	is($fallbacks, $waited, "$name: none is PostgreSQL's ($waited waited in vain)") or diag join "\n", @$refused;
	cmp_ok($runs, '>=', 2 * (@$sessions - $waited), "$name: in runs ($runs of $sorts sorts)");
	ok(wait_until(sub { $node->ask('SELECT (SELECT count(*) FROM gpusort_jobs()), (SELECT sum(memory_used) '
		. 'FROM gpusort_devices())') eq '0|0' }), "$name: nothing is left");
	return;
}

my @sessions = map { $node->session } 1 .. 8;
$_->run(q{SET statement_timeout = '100s'}) for @sessions;
at_once('eight sorts', \@sessions, sprintf($digest, "SELECT * FROM ($long) l ORDER BY h, id"),
	sprintf($digest, "SELECT * FROM ($long) l ORDER BY s DESC, id"));
$_->run('SET max_parallel_workers_per_gather = 2') for @sessions;
at_once('four parallel sorts', [ @sessions[ 0 .. 3 ] ], sprintf($digest, "SELECT * FROM ($long) l ORDER BY h, id"));
$_->run('RESET max_parallel_workers_per_gather') for @sessions;

# the least memory
$node->safe_psql('postgres', q{ALTER SYSTEM SET gpusort.host_memory = '16MB'});
$node->reload;
$service = $node->wait_service($service);
my $many = sprintf $digest,
	"SELECT * FROM ($long UNION ALL SELECT id + 3000000, h, g, s FROM t UNION ALL SELECT id + 4000000, h, g, s FROM t) l "
	. "ORDER BY h, id";
at_once('one sort with 16 MB', [ $sessions[0] ], $many);
cmp_ok($node->safe_psql('postgres', 'SELECT runs FROM gpusort_stats()'), '>=', 8, 'has many runs');
at_once('two sorts with 16 MB', [ @sessions[ 0, 1 ] ], sprintf($digest, "SELECT * FROM ($long) l ORDER BY h, id"));

is(join(' ', $node->services), $service, 'the service is the same');
unlike($node->log_text, qr/PANIC|TRAP|leak|still referenced/, 'nothing is in the log that should not be');
$_->close for @sessions;
$node->stop;
done_testing();
