# Strings whose beginnings are left out of the keys: processes that ingest rows of one sort must
# leave out the same, whatever their own first rows look like, whoever comes first, and whether or
# not they find chunks in the pool.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

my @parallel = ('max_parallel_workers_per_gather = 3', 'max_parallel_workers = 12', 'max_worker_processes = 16',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'gpusort.force = on');
# Each stretch of the table, longer than what is looked at, begins in a way of its own, and some in none.
my $tables = q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, (ARRAY['https://www.example.com/shop/catalogue/', 'https://www.example.com/shop/cat',
		'https://', '', 'https://www.example.com/shop/catalogue/things/of/all/kinds/'])[1 + i / 3000 % 5]
		|| md5(i::text) || CASE WHEN i % 50 = 0 THEN repeat('x', i % 1000) ELSE '' END AS t
		FROM generate_series(1, 90000) i;
	ALTER TABLE t SET (autovacuum_enabled = off);
};
# Statistics say nothing of an expression; and nothing of the column before ANALYZE.
my %keys = (column => 't COLLATE "C"', expression => q{(t || '') COLLATE "C" DESC}, icu => q{t COLLATE "en-x-icu"},
several => q{(id % 3)::text COLLATE "C", (t || '') COLLATE "C"});
my $node = GpuSortNode->new('main');
$node->init(conf => [ @parallel, "gpusort.staging_memory = 64MB" ]);
$node->start;
$node->wait_service;
$node->safe_psql('postgres', $tables);

sub query
{
	my ($key) = @_;
	return "SELECT count(*) || md5(string_agg(id || t, ',')) FROM (SELECT id, t FROM t ORDER BY $key, id) s";
}

my %right = map { ($_ => $node->safe_psql('postgres', 'SET gpusort.enable = off; ' . query($keys{$_}))) } keys %keys;
for my $statistics ('no', 'with')
{
	$node->safe_psql('postgres', 'ANALYZE t') if $statistics eq 'with';
	for my $name (sort keys %keys)
	{
		like($node->safe_psql('postgres', "EXPLAIN SELECT id, t FROM t ORDER BY $keys{$name}, id"),
			qr/GpuSortIngest|GpuSortOutput/,
			"$statistics statistics, $name: parallel");
		for my $leader ('on', 'off')
		{
			my $settings = "SET parallel_leader_participation = $leader";
			my @answers = map { $node->safe_psql('postgres', "$settings; " . query($keys{$name})) } 1 .. 4;
			is(scalar(grep { $_ eq $right{$name} } @answers), 4,
				"$statistics statistics, $name, leader $leader: the right order");
		}
		is($node->safe_psql('postgres', 'SET max_parallel_workers = 0; ' . query($keys{$name})), $right{$name},
			"$statistics statistics, $name: no worker to be had");
	}
}
my $text = $node->safe_psql('postgres',
	"SET gpusort.parallel_output = off; EXPLAIN (ANALYZE, VERBOSE, TIMING OFF) "
	. "SELECT id, t FROM t ORDER BY $keys{expression}, id");
like($text, qr/Workers Launched: 3.*Rows Ingested: 90000/s, 'all rows are ingested by the processes that scan');

# read again and again, with prefixes chosen anew each time
is($node->safe_psql('postgres',
	q{SET enable_material = off; SET enable_hashjoin = off; SELECT count(DISTINCT d) FROM generate_series(1, 5) g,
	LATERAL (SELECT md5(string_agg(id || t, ',')) AS d
		FROM (SELECT id, t FROM t WHERE id % 5 <> g ORDER BY (t || '') COLLATE "C") s) q}), 5, 'another sort for each row');

is($node->safe_psql('postgres', 'SELECT fallbacks FROM gpusort_stats'), 0,
	'no process has made other keys than the others');

# rows that find no chunk come up through Gather, from processes that have written some or none
my @sessions = map { $node->session } 1 .. 6;
for my $name ('column', 'expression')
{
	$_->send(query($keys{$name})) for @sessions;
	is(join(' ', map { ($_->result)[0] } @sessions), join(' ', ($right{$name}) x @sessions),
		"$name: more sorts at once than the pool has chunks for");
}
$_->close for @sessions;
unlike($node->log_text, qr/PANIC|terminating any other active server processes/, 'the server lived through it all');
$node->remove;

done_testing;
