# FuzzTables - tables for FuzzSql: columns of known types, keys, views, policies.
#
# big has the most rows, mid fewer, few up to forty.  Values do not depend on their order or on the plan.
package FuzzTables;

use strict;
use warnings;

use Exporter qw(import);
use FuzzRandom;

our @EXPORT = qw(wide_schema);

# A role that policies are for.
our $reader = 'fuzz_reader';

our @COLUMNS = (
	[ id => 'int' ], [ g => 'int' ], [ m => 'int' ], [ u => 'int' ], [ i2 => 'int' ], [ v => 'int' ], [ n => 'num' ],
	[ x => 'text' ], [ y => 'text' ], [ b => 'bool' ], [ d => 'date' ], [ f => 'flt' ]);

# The columns of a row i, but the id; h is a function of the round's own.
sub _values
{
	my ($rows) = @_;
	my $salt = below(100000) * 16;
	my $n = 0;
	my $h = sub { my ($of) = @_; return "(fz.h(i, @{[ $salt + $n++ ]}) % $of)" };
	my $or_null = sub { my ($value) = @_; my $percent = one_of(0, 0, 3, 20);
		return $percent ? "CASE WHEN @{[ $h->(100) ]} >= $percent THEN $value END" : $value };
	my $few = one_of(1, 3, 10, 40, 100);
	my $many = int($rows / one_of(2, 3, 5, 20)) + 1;

	return join ', ', $or_null->($h->($few)), one_of($h->($many), "(i % $many)", "(i / 3)"),
		one_of("(i::bigint * 7919 % ($rows + 1))", $h->($rows + 1), "($rows - i)"),
		$or_null->("(@{[ $h->(50) ]} - 5)"), $or_null->($h->(one_of(2, 50, 1000, 1000000))),
		$or_null->("(@{[ $h->(one_of(10, 1000, 100000)) ]} / 100.0)"),
		$or_null->("'k' || @{[ $h->(one_of(5, 100, 10000)) ]}"), "chr(97 + @{[ $h->(20) ]}::int) || @{[ $h->(30) ]}",
		$or_null->("@{[ $h->(3) ]} > 0"), $or_null->("date '2020-01-01' + @{[ $h->(one_of(5, 400)) ]}::int"),
		$or_null->("@{[ $h->(1000) ]}");
}

sub _table
{
	my ($name, $rows) = @_;
	my $declared = 'id int4, g int4, m int4, u int4, i2 int2, v int8, n numeric(10, 2), x text COLLATE "C", y text, '
		. 'b bool, d date, f float8';
	my $kind = $name ne 'few' && chance(20) ? 'partitioned' : 'plain';
	my @sql = "CREATE TABLE $name ($declared)" . ($kind eq 'partitioned' ? ' PARTITION BY RANGE (id)' : '');

	push @sql, "CREATE TABLE ${name}_0 PARTITION OF $name FOR VALUES FROM (MINVALUE) TO (@{[ int($rows / 2) ]})",
		"CREATE TABLE ${name}_1 PARTITION OF $name FOR VALUES FROM (@{[ int($rows / 2) ]}) TO (MAXVALUE)"
		if $kind eq 'partitioned';
	push @sql, "INSERT INTO $name SELECT i, @{[ _values($rows) ]} FROM generate_series(1, $rows) i"
		. one_of('', " ORDER BY fz.h(i, @{[ below(1000) ]})");
	push @sql, "ALTER TABLE $name ADD PRIMARY KEY (id)" if $name eq 'few' || chance(60);
	push @sql, "CREATE INDEX ON $name (" . one_of('g', 'm', 'u DESC', 'x, id', 'n') . ')' if chance(25);
	push @sql, "ALTER TABLE $name SET (parallel_workers = @{[ between(1, 4) ]})" if $kind eq 'plain' && chance(40);
	push @sql, (chance(30) ? 'VACUUM ' : '') . "ANALYZE $name" if chance(85);
	return ({ name => $name, rows => $rows, columns => [ map { { name => $_->[0], class => $_->[1] } } @COLUMNS ],
		key => scalar grep({ /PRIMARY KEY/ } @sql) }, @sql);
}

# Returns the tables and the statements that make them.
sub wide_schema
{
	my ($max_rows) = @_;
	my $big = weighted(8 => between(0, 50), 22 => between(300, 5000), 55 => between(20000, 40000),
		15 => between(40000, 120000));
	my $mid = weighted(20 => between(0, 100), 50 => between(500, 5000), 30 => between(5000, 20000));
	my (@tables, @sql);

	for ([ big => $big ], [ mid => $mid ], [ few => between(3, 40) ])
	{
		my ($name, $rows) = @$_;
		my ($table, @more) = _table($name, $rows > $max_rows ? $max_rows : $rows);
		push @tables, $table;
		push @sql, @more;
	}
	my $few = $tables[2]{name};
	for my $table (@tables[ 0, 1 ])
	{
		my $name = $table->{name};
		push @sql, "CREATE VIEW barrier_$name WITH (security_barrier) AS SELECT * FROM $name WHERE "
			. one_of('g IS NOT NULL', 'id % 7 <> 0', 'b', "id IN (SELECT m FROM $few)", 'x > \'k1\'');
		push @sql, "CREATE VIEW constants_$name AS SELECT *, 0 AS k0, NULL::int AS k1, 1::int8 AS k2, 'a'::text AS k3, "
			. "g % 2 AS k4, 0 AS k5 FROM $name" . one_of('', ' OFFSET 0');
		push @sql, "ALTER TABLE $name ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON $name TO $reader USING ("
			. one_of('id % 3 <> 0', 'g IS NULL OR g < 5', "EXISTS (SELECT 1 FROM $few f WHERE f.id = $name.g)",
			"id > (SELECT min(id) FROM $few)", 'true') . ')';
	}
	push @sql, "GRANT USAGE ON SCHEMA r, fz TO $reader", "GRANT SELECT ON ALL TABLES IN SCHEMA r TO $reader";
	return (\@tables, @sql);
}

1;
