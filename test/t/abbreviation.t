# Keys that operator classes abbreviate values to: of classes whose words are ordered in a way of their own, each as
# PostgreSQL allows.  Answers are PostgreSQL's; where words do not order rows across a whole sort that is noticed, and
# the class left to PostgreSQL from then on.
use strict;
use warnings;

use File::Temp qw(tempdir);
use GpuSortNode;
use IPC::Run ();
use Test::More;

my $directory = tempdir(CLEANUP => 1);
chmod 0755, $directory;
my $config = $ENV{PG_CONFIG} // 'pg_config';
chomp(my $include = `$config --includedir-server`);
plan skip_all => "no gcc, or no headers in $include"
	unless eval { IPC::Run::run([ 'gcc', '-O2', '-shared', '-fPIC', "-I$include", '-o', "$directory/odd_abbreviation.so",
		'test/lib/odd_abbreviation.c' ]) };

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'gpusort.force = on', 'gpusort.staging_memory = 256MB', 'enable_hashjoin = off',
	'enable_nestloop = off', 'enable_incremental_sort = off', 'max_parallel_workers = 8',
	'max_worker_processes = 12', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0' ]);
$node->start;
$node->wait_service;

my $radix = $engine eq 'cuda' ? 'gpu radix' : 'cpu radix';
my @classes = ('open', 'distance', 'float', 'int32', 'bit', 'error');
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, i % 7 AS k, CASE WHEN i % 11 = 0 THEN NULL
		WHEN i % 5 = 0 THEN (ARRAY['\x', '\x00', '\xffffffffffffffff', '\xffffffffffffffffff', '\x80', '\x7f',
			'\x8000000000000000'])[1 + i % 7]::bytea
		ELSE decode(md5((i % 7000)::text), 'hex') END AS b
	FROM generate_series(1, 20000) i ORDER BY md5(i::text);
	ANALYZE t;
});
for my $class (@classes)
{
	my %function = (lt => '<', le => '<=', eq => '=', ge => '>=', gt => '>');

	$node->safe_psql('postgres', join ';', "CREATE SCHEMA $class",
		"CREATE FUNCTION $class.abbreviate(internal) RETURNS void LANGUAGE c "
			. "AS '$directory/odd_abbreviation', 'abbreviate_$class'",
		(map { "CREATE OPERATOR $class.$function{$_} (FUNCTION = bytea$_, LEFTARG = bytea, RIGHTARG = bytea)" }
			sort keys %function),
		"CREATE OPERATOR CLASS $class.ops FOR TYPE bytea USING btree AS OPERATOR 1 $class.<, "
			. "OPERATOR 2 $class.<=, OPERATOR 3 $class.=, OPERATOR 4 $class.>=, OPERATOR 5 $class.>, "
			. "FUNCTION 1 byteacmp(bytea, bytea), FUNCTION 2 $class.abbreviate(internal)");
}

my $parallel = 'SET max_parallel_workers_per_gather = 2';
my $serial = 'SET max_parallel_workers_per_gather = 0';
my %queries = (
	up => 'SELECT id, b FROM t ORDER BY b USING OPERATOR(%s.<), id',
	down => 'SELECT id, b FROM t ORDER BY b USING OPERATOR(%s.>) NULLS LAST, id',
	second => 'SELECT id, b FROM t ORDER BY k, b USING OPERATOR(%s.<), id',
	window => 'SELECT id, rank() OVER (PARTITION BY k ORDER BY b USING OPERATOR(%s.<)) AS r FROM t ORDER BY id');
my $digest = q{SELECT count(*) || ' ' || md5(string_agg(q::text, ',')) FROM (%s OFFSET 0) q};

sub query
{
	my ($class, $name) = @_;
	return sprintf $digest, sprintf $queries{$name}, $class;
}

sub right_answers
{
	my ($class) = @_;

	for my $name (sort keys %queries)
	{
		my $query = query($class, $name);
		my $right = $node->safe_psql('postgres', "SET gpusort.enable = off; $serial; $query");

		for my $settings ($serial, $parallel)
		{
			is($node->safe_psql('postgres', "$settings; $query"), $right, "$class, $name, $settings: the right answer");
		}
	}
	return;
}

sub method
{
	my ($class, $name) = @_;
	my $plan = $node->safe_psql('postgres', "$serial; EXPLAIN (ANALYZE, COSTS OFF) " . sprintf $queries{$name}, $class);

	return $plan =~ /Custom Scan \(GpuSort\).*?Sort Method: ([a-z ]+)/s ? $1 : 'none';
}

# --- words that order rows ------------------------------------------------------------------------

for my $class ('open', 'int32', 'bit')
{
	right_answers($class);
	is(method($class, 'up'), $radix, "$class: sorted by its words");
}
is($node->safe_psql('postgres', 'SELECT fallbacks FROM gpusort_stats'), '0', 'no fallback');

# --- words in an order that is not known ----------------------------------------------------------

right_answers('float');
is(method('float', 'up'), 'none', 'words that are compared as floating-point numbers are left to PostgreSQL');

# --- words that are others in each sort -----------------------------------------------------------

like($node->safe_psql('postgres', "$serial; EXPLAIN (ANALYZE, COSTS OFF) " . sprintf $queries{up}, 'distance'),
	qr/Custom Scan \(GpuSort\).*Fallback Reason: [^\n]*collation/s,
	'words that do not order the rows of a sort are noticed');
is($node->safe_psql('postgres', q{SELECT fallback_reasons FROM gpusort_stats}), '{"collation": 1}', 'and counted');
like($node->log_text,
	qr/gpusort leaves sorts by operator family distance.ops for access method btree to PostgreSQL until/,
	'and told in the log');
is(method('distance', 'up'), 'none', 'then the class is left to PostgreSQL');
right_answers('distance');
is(method('open', 'up'), $radix, 'and no other is');
for my $name (sort keys %queries)
{
	for my $settings ($serial, $parallel)
	{
		my $query = query('distance', $name);
		my $right = $node->safe_psql('postgres', "SET gpusort.enable = off; $query");

		$node->restart;
		$node->wait_service;
		is($node->safe_psql('postgres', "$settings; $query"), $right,
			"distance, $name, $settings: right where that is not known yet");
	}
}

# --- what the class thinks of its words -----------------------------------------------------------

$node->safe_psql('postgres', 'SELECT gpusort_stats_reset()');
my $unforced = 'SET gpusort.force = off; SET gpusort.min_rows = 0; '
	. 'SET gpusort.setup_cost = 0; SET gpusort.row_cost = 0';
is($node->safe_psql('postgres', "$serial; $unforced; " . query('bit', 'up')),
	$node->safe_psql('postgres', 'SET gpusort.enable = off; ' . query('bit', 'up')), 'a class that aborts its words');
unlike($node->safe_psql('postgres', "$serial; $unforced; EXPLAIN (ANALYZE, COSTS OFF) " . sprintf $queries{up}, 'bit'),
	qr/radix/, 'is left to PostgreSQL');

# --- errors ---------------------------------------------------------------------------------------

for my $enable ('on', 'off')
{
	my ($rc, $out, $err) = $node->psql('postgres', "SET gpusort.enable = $enable; " . sprintf $queries{up}, 'error');
	like($err, qr/this class cannot sort/, "an error of a class's function, gpusort.enable $enable");
}
is($node->safe_psql('postgres', 'SELECT 1'), '1', 'the server is there');

$node->stop;
done_testing();
