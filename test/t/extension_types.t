# Types of extensions as keys, of those extensions that are there, PostgreSQL's, Debian's and others: sorts, windows,
# groups and joins by them, and index builds, have PostgreSQL's answers, with NULLs and odd values.  gpusort sorts those
# whose operator class abbreviates them, and leaves the others to PostgreSQL; behind other columns it sorts all.
use strict;
use warnings;

use GpuSortNode;
use Test::More;

# Extension, type, an expression of row n, odd values: not those by which a type has no order, as ranges of prefixes and
# NaN of units have none
my @types = (
	[ 'citext', 'citext', q{(ARRAY['a', 'A', 'bb', 'Bb'])[1 + n % 4] || n % 90},
		'', 'É', 'é', 'co-op', 'coop', 'CO-OP', ' a' ],
	[ 'hstore', 'hstore', q{hstore('k' || n % 9, (n % 70)::text)},
		'', 'a=>NULL', 'a=>1', 'a=>1, b=>2', 'b=>2, a=>1', 'aa=>""' ],
	[ 'ltree', 'ltree', q{('top.n' || n % 50 || '.x' || n % 3)::ltree}, '', 'a', 'A', 'a.b', 'a.B.c', 'a_b', 'ab' ],
	[ 'isn', 'ean13', q{('978' || lpad((n % 900 * 7919)::text, 9, '0') || '?')::ean13} ],
	[ 'cube', 'cube', q{cube(ARRAY[n % 10, n % 7])}, '()', '(0)', '(0,0)', '(1),(2)', '(2),(1)', '(nan)' ],
	[ 'seg', 'seg', q{(n % 30 || '..' || 30 + n % 7)::seg}, '1', '1.0', '~1', '<1', '1..', '..1', '-0' ],
	[ 'ip4r', 'ip4', q{('10.0.' || n % 90 || '.' || n % 7)::ip4}, '0.0.0.0', '255.255.255.255', '127.0.0.1' ],
	[ 'ip4r', 'ip4r', q{('10.' || n % 90 || '.0.0/' || 16 + n % 3)::ip4r},
		'0.0.0.0/0', '0.0.0.0', '1.1.1.1-1.1.1.3' ],
	[ 'ip4r', 'ip6', q{('fe80::' || to_hex(n % 900))::ip6}, '::', '::1', '8000::' ],
	[ 'ip4r', 'iprange', q{('10.' || n % 90 || '.0.0/' || 16 + n % 3)::iprange},
		'-', '::/0', '0.0.0.0/0', 'fe80::/10' ],
	[ 'semver', 'semver', q{(n % 5 || '.' || n % 7 || '.' || n % 11)::semver}, '0.0.0', '1.0.0-alpha',
		'1.0.0-alpha.1', '1.0.0-1', '1.0.0-rc.10', '1.0.0-rc.9', '1.0.0+b1', '1.0.0+b2', '99999.0.0' ],
	[ 'prefix', 'prefix_range', q{(n % 99)::text::prefix_range}, '', '1', '12' ],
	[ 'debversion', 'debversion', q{(n % 5 || '.' || n % 11 || '-1')::debversion},
		'0', '1.0', '1.0~rc1', '1:0.9', '1.0-1', '1.0-1+b1', '1.00' ],
	[ 'pg_rational', 'rational', q{((n % 30) || '/' || 1 + n % 7)::rational}, '1/2', '2/4', '-1/2', '0/5' ],
	[ 'unit', 'unit', q{((n % 40) || ' m')::unit}, '0', '1 s', '1 m', '1 km', '-1 m', 'Infinity m' ],
	[ 'vector', 'vector', q{ARRAY[n % 30, n % 7]::vector}, '[0]', '[-0]', '[1]', '[1,2]', '[1,1,1]', '[-1e30]' ],
	[ 'vector', 'halfvec', q{ARRAY[n % 30, n % 7]::halfvec}, '[0]', '[1]', '[1,2]', '[1,1,1]' ],
	[ 'vector', 'sparsevec', q{ARRAY[n % 30, n % 7]::vector::sparsevec}, '{}/3', '{1:1}/3', '{1:1}/2' ],
	[ 'postgis', 'geography', q{ST_MakePoint(n % 180, n % 77)::geography},
		'POINT EMPTY', 'POINT(0 0)', 'POINT(180 90)', 'POINT(-180 -90)', 'LINESTRING(0 0,1 1)' ],
	[ 'postgis', 'geometry', q{CASE WHEN n % 7 = 0 THEN ST_MakeLine(ST_MakePoint(n % 30, n % 11), ST_MakePoint(1, 1))
			WHEN n % 11 = 0 THEN ST_MakePoint('Infinity', n % 3) ELSE ST_MakePoint(n % 1000 - 500, n % 77 / 7.0) END},
		'POINT EMPTY', 'POLYGON EMPTY', 'GEOMETRYCOLLECTION EMPTY', 'POINT(0 0)', 'POINT(-0 0)', 'POINT(1 1)',
		'SRID=4326;POINT(1 1)', 'POINT Z (1 1 1)', 'POINT(NaN NaN)', 'LINESTRING(0 0,1 1)', 'LINESTRING(1 1,0 0)',
		'POINT(1e300 -1e300)', 'POLYGON((0 0,0 1,1 1,0 0))', 'MULTIPOINT(1 1)' ]);
my %abbreviated = (geometry => 1);

my $node = GpuSortNode->new('main');
$node->init(conf => [ 'gpusort.min_rows = 0', 'gpusort.index_builds = on', 'jit = off', 'max_parallel_workers = 8',
	'max_worker_processes = 12', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0',
	'max_parallel_maintenance_workers = 2', 'fsync = off', 'enable_incremental_sort = off' ]);
$node->start;
$node->wait_service;
my $amcheck = eval { $node->safe_psql('postgres', 'CREATE EXTENSION amcheck'); 1 };
my %there = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', 'SELECT name FROM pg_available_extensions');

# Makes an extension; one that this server cannot make is not there.
sub has_extension
{
	my ($name) = @_;

	return 0 unless $there{$name};
	$there{$name} = $node->psql('postgres',
		"SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS $name") == 0;
	return $there{$name};
}

# What is asked of each table; values that are equal may look different, and are not shown.
my @queries = (
	[ 'up', 'SELECT id FROM t ORDER BY k, id' ],
	[ 'down', 'SELECT id FROM t ORDER BY k DESC NULLS LAST, id DESC' ],
	[ 'behind another column', 'SELECT id FROM t ORDER BY few, k NULLS FIRST, id' ],
	[ 'first rows', 'SELECT id FROM t ORDER BY k, id LIMIT 20 OFFSET 5' ],
	[ 'a window', 'SELECT id, rank() OVER (PARTITION BY few ORDER BY k), count(*) OVER (ORDER BY k) FROM t ORDER BY id' ],
	[ 'groups', 'SELECT count(*), min(id) FROM t GROUP BY k ORDER BY k' ],
	[ 'different ones', 'SELECT DISTINCT ON (k) id FROM t ORDER BY k, id' ],
	[ 'an aggregate', 'SELECT few, array_agg(id ORDER BY k, id) FROM t GROUP BY few ORDER BY few' ],
	[ 'a join', 'SELECT count(*), sum(a.id * b.id) FROM t a JOIN t b ON a.k = b.k WHERE b.id <= 500' ],
	[ 'without gpusort.force', 'SELECT id FROM t ORDER BY k, id', 'SET gpusort.force = off' ]);

# The answers to all of them, by name.
sub answers
{
	my ($workers, $settings) = @_;
	my (undef, %answers) = split /^next (.*)\n/m, $node->safe_psql('postgres', join ';', $settings,
		"SET max_parallel_workers_per_gather = $workers", 'SET enable_hashjoin = off', 'SET enable_hashagg = off',
		'SET enable_nestloop = off', map { "@{[ $_->[2] // '' ]};\n\\echo next $_->[0]\n$_->[1]" } @queries);
	return \%answers;
}

for (@types)
{
	my ($extension, $type, $value, @odd) = @$_;
	SKIP:
	{
		skip "no $extension", 1 unless has_extension($extension);
		my $literals = join ', ', map { "'$_'" } @odd ? @odd : 'NULL';
		my $odd = @odd ? "(ARRAY[$literals])[1 + n % @{[ scalar @odd ]}]::$type" : "NULL::$type";

		$node->safe_psql('postgres', qq{SET client_min_messages = warning; DROP TABLE IF EXISTS t;
			CREATE TABLE t (id int, few int, k $type);
			INSERT INTO t SELECT n, n % 4, CASE WHEN n % 13 = 0 THEN NULL WHEN n % 3 = 0 THEN $odd ELSE $value END
				FROM generate_series(1, 5000) n ORDER BY md5(n::text);
			ANALYZE t});
		for my $workers (0, 2)
		{
			my ($right, $forced) = map { answers($workers, $_) } 'SET gpusort.enable = off', 'SET gpusort.force = on';

			is($forced->{$_}, $right->{$_}, "$type, $workers workers, $_") for map { $_->[0] } @queries;
		}
		my %methods = map {
			$_ => $node->safe_psql('postgres', "SET gpusort.force = on; SET max_parallel_workers_per_gather = 0; "
				. "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT id FROM t ORDER BY $_")
				=~ /Sort Method: \S+ radix/ ? 'gpusort' : 'postgresql'
		} 'k', 'few, k';
		is_deeply(\%methods, { 'k' => $abbreviated{$type} ? 'gpusort' : 'postgresql', 'few, k' => 'gpusort' },
			"$type: what sorts it");

		skip 'no amcheck', 1 unless $amcheck;
		$node->safe_psql('postgres',
			'SET gpusort.force = on; CREATE INDEX i ON t (k, id); CREATE INDEX j ON t (few, k DESC)');
		is($node->safe_psql('postgres', join '; ', map { 'SELECT ' . sprintf($node->check_index, "'$_'") } 'i', 'j'), "\n",
			"$type: indexes are good");
	}
}
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
is($node->safe_psql('postgres', 'SELECT fallbacks FROM gpusort_stats'), '0', 'no fallback');

$node->stop;
done_testing();
