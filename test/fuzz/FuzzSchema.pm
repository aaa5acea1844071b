# FuzzSchema - random tables.
#
# A table is a hash: name, rows, and columns: [ { name, type } ], of which the
# first is id, which is unique and not NULL.  Types are those of FuzzTypes.  foreign is
# true where it is read from a file.
package FuzzSchema;

use strict;
use warnings;

use Exporter qw(import);
use FuzzRandom;
use FuzzTypes;

our @EXPORT = qw(random_schema);

my %ids = (
	int4 => { name => 'int4', sql => 'int4', base => 'int4', number => 1 },
	int8 => { name => 'int8', sql => 'int8', base => 'int8', number => 1 },
	numeric => { name => 'numeric', sql => 'numeric', base => 'numeric', number => 1 },
);

# Numbers for the rows 1 to n: how many different ones, and in what order they come.
sub _random_number
{
	my ($rows) = @_;
	my $salt = below(100000) * 4;
	my $card = one_of(1, 2, 3, 10, 100, 1000, 100000, 2147483647);

	return weighted(
		60 => "(fz.h(i, $salt) % $card)",
		5 => '(i)',
		5 => "($rows - i)",
		5 => '(i / 50)',
		5 => "(i % $card)",
		10 => "(fz.h(i, $salt) % (1 + fz.h(i, @{[ $salt + 1 ]}) % (1 + fz.h(i, @{[ $salt + 2 ]}) % $card)))",
		# nearly in order
		5 => "(i + fz.h(i, $salt) % 10)");
}

sub _declaration
{
	my ($column) = @_;
	my $text = "$column->{name} $column->{type}{sql}";

	$text .= " COLLATE $column->{type}{collation}" if defined $column->{type}{collation};
	return $text;
}

sub _table
{
	my ($name, $rows, $columns) = @_;
	my $salt = below(100000) * 4;
	my @sql;
	my $id = { name => 'id', type => $ids{ weighted(80 => 'int4', 15 => 'int8', 5 => 'numeric') } };
	# columns that come late are added when the rows are there; columns that go are dropped then
	my @late = chance(25) ? splice(@$columns, -1) : ();
	my @gone = map { { name => "gone$_", type => { sql => one_of(qw(int4 text bool float8)) } } } 1 .. (chance(25)
		? between(1, 2) : 0);
	my @first = shuffled($id, @$columns, @gone);
	my $kind = weighted(65 => 'plain', 20 => 'partitioned', 8 => 'inherited', 7 => 'temporary');
	my $list = join ', ', map { _declaration($_) } @first;
	my $order = chance(60) ? " ORDER BY fz.h(i, $salt)" : '';

	if ($kind eq 'partitioned')
	{
		my $hash = chance(40);
		my $n = between(1, 4);
		my $reversed = join ', ', map { _declaration($_) } reverse @first;

		push @sql, "CREATE TABLE $name ($list) PARTITION BY " . ($hash ? 'HASH' : 'RANGE') . ' (id)';
		for my $i (0 .. $n - 1)
		{
			my $from = $i == 0 ? 'MINVALUE' : int($rows * $i / $n) + 1;
			my $to = $i == $n - 1 ? 'MAXVALUE' : int($rows * ($i + 1) / $n) + 1;
			my $bounds = $hash ? "WITH (MODULUS $n, REMAINDER $i)" : "FROM ($from) TO ($to)";

			next if !$hash && $from eq $to;
			if (chance(40))
			{
				push @sql, "CREATE TABLE ${name}_$i (other int, $reversed)", "ALTER TABLE ${name}_$i DROP COLUMN other",
					"ALTER TABLE $name ATTACH PARTITION ${name}_$i FOR VALUES $bounds";
			}
			else
			{
				push @sql, "CREATE TABLE ${name}_$i PARTITION OF $name FOR VALUES $bounds";
			}
		}
	}
	else
	{
		push @sql, 'CREATE ' . ($kind eq 'temporary' ? 'TEMPORARY ' : '') . "TABLE $name ($list)";
	}
	my $values = sub {
		return join ', ', map {
			$_->{name} eq 'id' ? 'i' : $_->{name} =~ /^gone/ ? 'NULL'
				: value_expression($_->{type}, _random_number($rows), one_of(0, 0, 5, 30, 95, 100), one_of(0, 5, 20, 100),
					below(100000) * 4)
		} @_;
	};
	my $names = join ', ', map { $_->{name} } @first;
	my $split = $kind eq 'inherited' ? int($rows / 2) : $rows;
	push @sql, "INSERT INTO $name ($names) SELECT @{[ $values->(@first) ]} FROM generate_series(1, $split) i$order";
	if ($kind eq 'inherited')
	{
		push @sql, "CREATE TABLE ${name}_child (own int) INHERITS ($name)",
			"INSERT INTO ${name}_child ($names) SELECT @{[ $values->(@first) ]} "
				. "FROM generate_series(@{[ $split + 1 ]}, $rows) i$order";
	}
	for my $column (@late)
	{
		my ($literal) = @{ $column->{type}{edges} };
		my $default = defined $literal && chance(70) ? " DEFAULT '$literal'" : '';
		push @sql, "ALTER TABLE $name ADD COLUMN " . _declaration($column) . $default;
		if (chance(60))
		{
			my $value = value_expression($column->{type}, _random_number($rows), 10, 20, $salt);
			$value =~ s/\bi\b/id::bigint/g;
			push @sql, "UPDATE $name SET $column->{name} = $value WHERE id % @{[ between(1, 4) ]} = 0";
		}
	}
	push @sql, map { "ALTER TABLE $name DROP COLUMN $_->{name}" } @gone;
	push @sql, _indexes($name, $kind, @$columns);
	push @sql, "ANALYZE $name" if chance(70);
	return ({ name => $name, rows => $rows, columns => [ $id, @$columns, @late ] }, @sql);
}

# Indexes of a table, most of them built by gpusort.
sub _indexes
{
	my ($name, $kind, @columns) = @_;
	my @narrow = grep { !$_->{type}{wide} && $_->{type}{name} ne 'numeric' } @columns;
	my @sql;

	push @sql, "ALTER TABLE $name ADD PRIMARY KEY (id)" if chance(30) && $kind ne 'inherited';
	for (1 .. one_of(0, 0, 1, 2))
	{
		my @keys = map { $_->{name} . one_of('', ' DESC', ' NULLS FIRST') } some_of(between(1, 2), @narrow);
		push @keys, 'id' if chance(20) || !@keys;
		push @sql, "CREATE INDEX ON $name (" . join(', ', @keys) . ')' . one_of('', '', ' INCLUDE (id)')
			. one_of('', '', ' WITH (fillfactor = 50)', ' WITH (deduplicate_items = off)')
			. one_of('', '', ' WHERE id % 3 > 0', ' WHERE id < 0');
	}
	if (chance(30))
	{
		# by which first rows are found; not all types have one
		my @keys = map { $_->{name} } some_of(between(1, 3), @columns);

		push @sql, map { "DO \$do\$ BEGIN CREATE INDEX ON $name USING brin ($_) WITH (pages_per_range = "
			. one_of(1, 1, 2, 16) . '); EXCEPTION WHEN undefined_object THEN NULL; END $do$' } @keys;
	}
	return () unless @sql;
	return ('SET gpusort.enable = on', 'SET gpusort.min_rows = 0', 'SET gpusort.force = ' . one_of('on', 'on', 'off'),
		'SET max_parallel_maintenance_workers = ' . between(0, 3), 'SET min_parallel_table_scan_size = ' . one_of(0, "'8MB'"),
		@sql, 'SET gpusort.enable = off');
}

# A table whose rows are another's, in a file beside the server's data.
sub _foreign_table
{
	my ($source, $file) = @_;
	my $columns = join ', ', map { _declaration($_) } @{ $source->{columns} };
	my $names = join ', ', map { $_->{name} } @{ $source->{columns} };

	return ({ %$source, name => 'f1', foreign => 1 },
		"DO \$do\$ DECLARE file text := current_setting('data_directory') || '/$file.f1'; BEGIN "
		. "EXECUTE format('COPY (SELECT $names FROM $source->{name}) TO %L', file); "
		. "EXECUTE format('CREATE FOREIGN TABLE f1 ($columns) SERVER files OPTIONS (filename %L)', file); END \$do\$",
		chance(50) ? 'ANALYZE f1' : ());
}

# Two tables that share some of their columns' types, at times with one of them as a file, too, whose
# name begins as given.  Returns them, and the statements that make them.
sub random_schema
{
	my ($collations, $max_rows, $file) = @_;
	my $wide = chance(30);
	my $n = weighted(15 => between(1, 2), 60 => between(3, 6), 25 => between(7, 12));
	my @types = map { random_type($collations, $wide) } 1 .. $n;
	my @other = (some_of(between(1, 3), @types), map { random_type($collations, 0) } 1 .. between(0, 3));
	my @sql = random_collations();
	my @tables;

	for my $types (\@types, \@other)
	{
		my $rows = weighted(3 => 0, 3 => 1, 24 => between(2, 30), 50 => between(31, 700), 16 => between(700, 4000),
			3 => between(4000, 30000), 1 => between(30000, 120000));
		my $number = 0;
		my ($table, @more);

		$rows = $max_rows if $rows > $max_rows;
		$rows = 600 if $rows > 600 && grep { $_->{wide} } @$types;
		($table, @more) = _table('t' . (@tables + 1), $rows, [ map { { name => 'c' . ++$number, type => $_ } } @$types ]);
		push @tables, $table;
		push @sql, @more;
	}
	if (defined $file && chance(12))
	{
		my ($table, @more) = _foreign_table(one_of(@tables), $file);
		push @tables, $table;
		push @sql, @more;
	}
	return (\@tables, @sql);
}

1;
