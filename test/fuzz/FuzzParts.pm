# FuzzParts - what queries are made of: keys, predicates, and things to select from.
#
# What can be selected from is a hash:
#   sql    after FROM
#   where  a predicate to come with it, if any
#   scope  the columns: [ { sql, type } ]
#   ids    columns of it that together tell any two rows apart
#   table  { name, rows }, of which rows is a rough number
#   no_row it has no row type of a table
#   also   outputs without which it is not what it is meant to be
#
# A context is what a round has: tables and collations.
package FuzzParts;

use strict;
use warnings;

use Exporter qw(import);
use FuzzRandom;
use FuzzTypes;

our @EXPORT = qw(helpers scope_of random_keys random_key total_keys without_direction without_ids random_predicate
	from_one from_join random_from equal_pairs where_of aliased random_limit);

# Views and functions that the queries use, to be made after the tables.
sub helpers
{
	my ($context) = @_;
	my @sql;

	for my $table (@{ $context->{tables} })
	{
		my $name = $table->{name};
		my %from = (scope => [ scope_of($table, $name) ], ids => ["$name.id"], table => $table);

		# more rows than the planner expects
		push @sql, "CREATE FUNCTION f_$name(n int8) RETURNS SETOF $name "
			. "LANGUAGE plpgsql STABLE ROWS 10 AS 'BEGIN RETURN QUERY SELECT * FROM $name WHERE id <= n; END'";
		push @sql, "CREATE VIEW v_$name AS SELECT * FROM $name" . one_of('',
			' WHERE ' . random_predicate('id', $table, @{ $from{scope} })) . ' ORDER BY '
			. join(', ', total_keys($context, \%from));
	}
	return @sql;
}

# What of a table can be used under an alias.
sub scope_of
{
	my ($table, $alias) = @_;
	return map { { sql => "$alias.$_->{name}", type => $_->{type} } } @{ $table->{columns} };
}

# --- keys -----------------------------------------------------------------------------------------

# A string of which a key's prefix does not tell more than its beginning, of which there are a few.
sub _deep
{
	my ($x, $type) = @_;
	my $few = $type->{number} ? "($x % 3)::text" : "left($x\::text, 1)";
	return "(md5($few) || repeat('-', 60) || $x)";
}

# What workers may not be able to compute: a correlated subquery, or what an InitPlan sets.
sub _of_leader
{
	my ($id) = @_;
	my $table = "generate_series(1, @{[ between(2, 5) ]}) of_leader (n)";

	return one_of(
		"(SELECT min(n) FROM $table WHERE n > $id % 4)",
		"(SELECT count(*) FROM $table WHERE n <> $id % 3)",
		"($id % (SELECT max(n) FROM $table))",
		"(SELECT sum(n) FROM $table WHERE n >= $id % (SELECT max(n) FROM $table))");
}

# An expression of a column to sort by.
sub random_key
{
	my ($context, $column, $id) = @_;
	my ($x, $type) = @$column{qw(sql type)};
	my $collation = one_of(collations_for($type, @{ $context->{collations} }));

	return $x if chance(50);
	return _of_leader($id) if chance(4);
	return _deep($x, $type) if ($type->{text} || $type->{number}) && chance(6);
	if (chance(12))
	{
		return one_of("($x IS NULL)", "CASE WHEN $id % 3 = 0 THEN $x END", "coalesce($x, $x)", "fz.h($id\::int8, 3)",
			"$x\::text COLLATE \"C\"");
	}
	if ($type->{text})
	{
		return weighted(
			50 => "$x COLLATE $collation",
			10 => "lower($x)",
			10 => "length($x)",
			10 => "left($x, 5)",
			5 => "($x || 'z')",
			5 => "substr($x, 3)",
			5 => "md5($x)",
			8 => "left($x, 1) COLLATE $collation",
			5 => "(CASE WHEN $id % 9 < 4 THEN 'a' WHEN $id % 9 < 8 THEN 'A' ELSE left($x, 2) END) COLLATE $collation",
			5 => "($x\::text COLLATE $collation)");
	}
	if ($type->{number})
	{
		my $bits = one_of(3, 10, 1000);
		return weighted(
			30 => "($x % $bits)",
			20 => "-($x\::int8)",
			10 => "abs($x\::numeric)",
			10 => "$x\::text",
			10 => "$x\::float8",
			10 => $type->{base} eq 'int4' ? "$x USING OPERATOR(fz.@{[ one_of('<#', '>#', ('<@', '>@') x 3) ]})" : "$x + 0.5");
	}
	return "$x USING OPERATOR(fz.@{[ one_of('<^', '>^') ]})" if $type->{base} eq 'bytea' && chance(60);
	return "NOT $x" if $type->{name} eq 'bool';
	return $x;
}

# The columns with values that repeat, which are more of interest.
sub without_ids
{
	my (@scope) = @_;
	my @others = grep { $_->{sql} !~ /\bid$/ } @scope;
	return @others ? @others : @scope;
}

# So many keys with directions, of the columns.
sub random_keys
{
	my ($context, $n, $id, @scope) = @_;
	my @keys;

	@scope = without_ids(@scope) if chance(90);
	for (1 .. $n)
	{
		my $key = random_key($context, one_of(@scope), $id);
		push @keys, $key =~ / USING / ? $key . one_of('', ' NULLS FIRST') : $key . one_of(@DIRECTIONS);
	}
	return @keys;
}

# Keys that leave no ties.
sub total_keys
{
	my ($context, $from, $n) = @_;
	my @keys = random_keys($context, $n // weighted(5 => 0, 35 => 1, 35 => 2, 15 => 3, 10 => between(4, 8)),
		$from->{ids}[0], @{ $from->{scope} });
	my @ids = map { $_ . one_of(@DIRECTIONS) } shuffled(@{ $from->{ids} });

	return chance(8) ? (@ids, @keys) : (@keys, @ids);
}

# --- FROM -----------------------------------------------------------------------------------------

sub random_predicate
{
	my ($id, $table, @scope) = @_;
	my $column = one_of(@scope);
	my $rows = $table->{rows};

	return weighted(
		20 => "$id % @{[ between(2, 5) ]} <> 0",
		# PostgreSQL expects few rows of it
		20 => "$id % 1 = 0",
		15 => "$id <= @{[ between(0, $rows) ]}",
		5 => "$id % 7 <> @{[ _of_leader($id) ]}",
		15 => "$column->{sql} IS NOT NULL",
		5 => "$column->{sql} IS NULL",
		10 => "$id BETWEEN @{[ between(0, $rows) ]} AND @{[ between(0, $rows) ]}",
		3 => "false");
}

# A key without its direction.
sub without_direction
{
	my ($key) = @_;
	return $key =~ s/ (?:ASC|DESC|NULLS|USING) .*| (?:ASC|DESC)$//r;
}

# One table, or something that gives its rows, under an alias.
sub from_one
{
	my ($context, $alias, $max_rows) = @_;
	my $table = one_of(@{ $context->{tables} });
	my @scope = scope_of($table, $alias);
	my $name = $table->{name};
	my $few = defined $max_rows && $table->{rows} > $max_rows;
	my $where = $few ? "id <= $max_rows" : chance(30) ? random_predicate('id', $table, scope_of($table, $name)) : 'true';
	my %from = (scope => \@scope, ids => ["$alias.id"], table => $table);
	my %inner = (scope => [ scope_of($table, $name) ], ids => ["$name.id"], table => $table);
	my $kind = weighted(55 => 'table', 8 => 'subquery', 6 => 'cte', 8 => 'ordered', 4 => 'function', 4 => 'values',
		3 => 'sample', 4 => 'view', 6 => 'window', 5 => 'distinct on', 4 => 'set', 4 => 'group', 3 => 'first', 3 => 'record');
	my @order = total_keys($context, \%inner);
	my $order = ' ORDER BY ' . join(', ', @order);

	if ($kind eq 'table' || $kind eq 'view' || $kind eq 'sample')
	{
		my $sample = $kind eq 'sample' && !$table->{foreign};
		$from{sql} = ($kind eq 'view' ? 'v_' : '') . "$name $alias"
			. ($sample ? ' TABLESAMPLE ' . one_of('BERNOULLI', 'SYSTEM')
			. " (@{[ between(0, 100) ]}) REPEATABLE (@{[ below(100) ]})" : '');
		$where =~ s/\b(?:\Q$name\E\.)?(id|c\d+)\b/$alias.$1/g;
		$from{where} = $where if $where ne 'true';
	}
	elsif ($kind eq 'subquery')
	{
		$from{sql} = "(SELECT * FROM $name WHERE $where@{[ chance(50) ? ' OFFSET 0' : '' ]}) $alias";
	}
	elsif ($kind eq 'cte')
	{
		$from{sql} = "(WITH w AS @{[ one_of('', 'NOT ') ]}MATERIALIZED (SELECT * FROM $name "
			. "WHERE $where@{[ one_of('', $order) ]}) SELECT * FROM w) $alias";
	}
	elsif ($kind eq 'ordered')
	{
		my $limit = weighted(60 => ' LIMIT ' . between(0, $table->{rows} + 1), 20 => ' OFFSET 0', 20 => '');
		$from{sql} = "(SELECT * FROM $name WHERE $where$order$limit) $alias";
	}
	elsif ($kind eq 'function')
	{
		$from{sql} = "f_$name(@{[ $max_rows // $table->{rows} ]}) $alias";
	}
	elsif ($kind eq 'window')
	{
		my @partition = map { without_direction($_) } random_keys($context, below(3), 'id', @{ $inner{scope} });
		my $partition = @partition ? 'PARTITION BY ' . join(', ', @partition) : '';
		my $number = weighted(60 => 'row_number()', 20 => 'lag(id, 2, 0)', 20 => 'count(*)');
		$from{sql} = "(SELECT *, $number OVER ($partition$order) AS rn FROM $name WHERE $where) $alias";
		push @{ $from{scope} }, { sql => "$alias.rn",
			type => { name => 'int8', sql => 'int8', base => 'int8', number => 1 } };
		$from{where} = "$alias.rn <= " . between(1, 5) if chance(40);
	}
	elsif ($kind eq 'distinct on')
	{
		my @keys = random_keys($context, between(1, 2), 'id', @{ $inner{scope} });
		$from{sql} = "(SELECT DISTINCT ON (" . join(', ', map { without_direction($_) } @keys)
			. ") * FROM $name WHERE $where ORDER BY " . join(', ', @keys, @order) . ") $alias";
	}
	elsif ($kind eq 'set')
	{
		my $operation = one_of('UNION', 'INTERSECT', 'EXCEPT', 'INTERSECT ALL', 'EXCEPT ALL');
		my $other = random_predicate('id', $table, @{ $inner{scope} });
		$other .= " AND $where" if $few;
		$from{sql} = "(SELECT * FROM $name WHERE $where $operation SELECT * FROM $name WHERE $other) $alias";
	}
	elsif ($kind eq 'group')
	{
		# not of values that are equal and look different: which one is shown is PostgreSQL's choice
		my @groups = some_of(between(1, 2),
			grep { !is_inexact($_->{type}) } @{ $table->{columns} }[ 1 .. $#{ $table->{columns} } ]);
		my $groups = join ', ', map { $_->{name} } @groups;
		$from{sql} = "(SELECT min(id) AS id" . (@groups ? ", $groups" : '') . " FROM $name WHERE $where"
			. (@groups ? " GROUP BY $groups" : ' HAVING count(*) > 0') . ") $alias";
		$from{scope} = [ $scope[0], map { { sql => "$alias.$_->{name}", type => $_->{type} } } @groups ];
	}
	elsif ($kind eq 'record')
	{
		my ($one, $two) = map { one_of(@{ $table->{columns} }) } 1 .. 2;
		$from{sql} = "(SELECT *, ROW($one->{name}, $two->{name}) AS both FROM $name "
			. "WHERE $where@{[ one_of('', ' OFFSET 0') ]}) $alias";
		push @{ $from{scope} }, { sql => "($alias.both).f1", type => $one->{type} },
			{ sql => "($alias.both).f2", type => $two->{type} };
	}
	elsif ($kind eq 'first')
	{
		my $n = between(2, 20);
		my @inner_order = map { s/\b\Q$name\E\./i./gr } @order;
		$from{sql} = "(SELECT i.* FROM generate_series(0, @{[ $n - 1 ]}) g, "
			. "LATERAL (SELECT * FROM $name i WHERE id % $n = g AND @{[ $where =~ s/\b\Q$name\E\./i./gr ]} ORDER BY "
			. join(', ', @inner_order) . one_of('', ' LIMIT ' . between(1, 100), ' LIMIT g') . ") i) $alias";
	}
	else
	{
		my $n = between(1, 60);
		my %int = (name => 'int4', sql => 'int4', base => 'int4', number => 1);
		my %text = (name => 'text', sql => 'text', base => 'text', text => 1);
		$from{sql} = '(VALUES ' . join(', ', map { my $k = one_of('NULL', below(20),
			below(1000)); "($_, $k\::int4, '@{[ 'v' x below(30) ]}$k'::text)" } shuffled(1 .. $n)) . ") $alias (id, c1, c2)";
		$from{scope} = [ { sql => "$alias.id", type => \%int }, { sql => "$alias.c1", type => \%int },
			{ sql => "$alias.c2", type => \%text } ];
		$from{table} = { name => '', rows => $n };
		$from{no_row} = 1;
	}
	$from{alias} = $alias;
	return \%from;
}

# --- joins ----------------------------------------------------------------------------------------

# Types that a btree operator family compares with each other.
my @families = (
	[qw(int2 int4 int8)],
	[qw(float4 float8)],
	[qw(date timestamp timestamptz)]);

# Equalities between columns of two sides: of the same type, of different types of one operator
# family, and of expressions with few values.
sub equal_pairs
{
	my ($context, $left, $right) = @_;
	my @pairs;

	for my $x (without_ids(@$left))
	{
		for my $y (without_ids(@$right))
		{
			my ($one, $two) = ($x->{type}, $y->{type});
			if ($one->{text} && $two->{text})
			{
				my $same = ($one->{collation} // $one->{sql}) eq ($two->{collation} // $two->{sql});
				push @pairs, $same && chance(70) ? "$x->{sql} = $y->{sql}" : "$x->{sql} = $y->{sql} COLLATE "
					. one_of(collations_for($two, collations_for($one, @{ $context->{collations} })));
			}
			elsif ($one->{number} && $two->{number})
			{
				my @casts = map { one_of('', '::int2', '::int4', '::int8', '::float4', '::float8', '::numeric') } 1 .. 2;
				my @modulo = map { one_of(1, 2, 7, 40, 1000) } 1 .. 2;
				push @pairs, "($x->{sql} % $modulo[0])$casts[0] = ($y->{sql} % $modulo[1])$casts[1]";
				push @pairs, "$x->{sql} = $y->{sql}" if chance(50);
				# an operator class of its own, of which only a merge join makes use
				push @pairs, "$x->{sql} OPERATOR(fz.@{[ one_of('=#', '=@', '=@') ]}) $y->{sql}"
					if $one->{sql} eq 'int4' && $two->{sql} eq 'int4' && chance(50);
			}
			elsif ($one->{sql} eq $two->{sql} || grep { my $family = $_;
				2 == grep { my $type = $_; grep { $type eq $_ } @$family } $one->{sql}, $two->{sql} } @families)
			{
				push @pairs, "$x->{sql} = $y->{sql}";
			}
		}
	}
	my @deep = map { my $side = $_; [ grep { $_->{type}{text} || $_->{type}{number} } @$side ] } $left, $right;
	if ($deep[0][0] && $deep[1][0] && chance(40))
	{
		push @pairs, join(' = ', map { my $column = one_of(@$_); _deep($column->{sql}, $column->{type}) } @deep) . ' COLLATE '
			. one_of('"C"', '"C"', '"en-x-icu"');
	}
	my ($x, $y) = (one_of(@$left), one_of(@$right));
	push @pairs, "($x->{sql} IS NULL) = ($y->{sql} IS NULL)" if chance(10);
	return @pairs;
}

# Its predicate goes inside, where an outer join does not make it one on the joined rows.
sub _enclosed
{
	my ($from) = @_;
	return $from if !defined $from->{where} || chance(30);
	my $alias = $from->{alias};
	return { %$from, sql =>
		"(SELECT $alias.* FROM $from->{sql} WHERE $from->{where}@{[ one_of('', ' OFFSET 0') ]}) $alias", where => undef,
		no_row => 1 };
}

# Rows made so long that together they fill several chunks (4 MB) of the service's.
sub _padded
{
	my ($from, $rows) = @_;
	my $alias = $from->{alias};
	my $length = int(between(5000000, 15000000) / ($rows + 1));

	$rows = $from->{table}{rows} if $rows > $from->{table}{rows};
	return $from if $rows < 2;
	return { %$from, sql =>
		"(SELECT $alias.*, repeat('q', $length) AS pad FROM $from->{sql}@{[ where_of($from) ]} OFFSET 0) $alias",
		where => undef, no_row => 1, also => [ "length($alias.pad)" ] };
}

# A subquery that is run for each row of another: the rows of inner that belong to outer's, sorted
# in one way or the other.  Returns it, its order, and what more it selects than b's columns.
sub _dependent
{
	my ($context, $outer, $inner) = @_;
	my $n = between(2, 10);
	my @pairs = equal_pairs($context, $outer->{scope}, $inner->{scope});
	my $equal = join ' AND ', some_of(between(1, 2), @pairs ? @pairs : 'b.id = a.id');
	my $belongs = weighted(60 => "b.id % $n = a.id % $n", 60 => $equal, 15 => "b.id <= a.id",
		10 => "b.id > a.id % $n", 15 => 'true');
	my $where = "$belongs" . ($inner->{where} ? " AND $inner->{where}" : '');
	my @order = total_keys($context, $inner);
	my $order = join ', ', @order;
	my $limit = ' LIMIT ' . between(0, 5) . (chance(20) ? ' OFFSET ' . between(0, 3) : '');

	my $kind = weighted(40 => 'limit', 15 => 'order', 15 => 'distinct on', 15 => 'window', 15 => 'merge');
	return "SELECT b.* FROM $inner->{sql} WHERE $where ORDER BY $order$limit" if $kind eq 'limit';
	return "SELECT b.* FROM $inner->{sql} WHERE $where AND b.id <= 200 ORDER BY $order OFFSET 0" if $kind eq 'order';
	if ($kind eq 'distinct on')
	{
		my @keys = random_keys($context, 1, 'b.id', @{ $inner->{scope} });
		return 'SELECT DISTINCT ON (' . join(', ', map { without_direction($_) } @keys)
			. ") b.* FROM $inner->{sql} WHERE $where AND b.id <= 200 ORDER BY " . join(', ', @keys, @order);
	}
	if ($kind eq 'window')
	{
		my $key = without_direction((random_keys($context, 1, 'b.id', @{ $inner->{scope} }))[0]);
		return "SELECT * FROM (SELECT b.*, row_number() OVER (PARTITION BY $key ORDER BY $order) AS rank FROM $inner->{sql} "
			. "WHERE $where AND b.id <= 200) b WHERE rank <= @{[ between(1, 3) ]}";
	}
	my $other = from_one($context, 'm', 100);
	@pairs = some_of(between(1, 2), equal_pairs($context, $inner->{scope}, $other->{scope}));
	@pairs = ('b.id = m.id') if !@pairs;
	$equal = join ' AND ', @pairs, defined $other->{where} ? $other->{where} : ();
	return "SELECT b.* FROM $inner->{sql} WHERE $where AND b.id <= 200 AND EXISTS (SELECT 1 FROM $other->{sql} "
		. "WHERE $equal)";
}

# Two of them joined.
sub from_join
{
	my ($context) = @_;
	my $kind = weighted(20 => 'id', 50 => 'column', 18 => 'lateral', 12 => 'semi');
	my $outer = from_one($context, 'a', $kind eq 'lateral' ? 40 : undef);
	my $inner;

	if ($kind eq 'lateral')
	{
		$inner = from_one($context, 'b', 3000);
		my $dependent = _dependent($context, $outer, $inner);
		return {
			sql => "$outer->{sql} " . one_of("CROSS JOIN LATERAL ($dependent) b", "LEFT JOIN LATERAL ($dependent) b ON true"),
			where => $outer->{where},
			scope => [ @{ $outer->{scope} }, @{ $inner->{scope} } ],
			ids => [ 'a.id', 'b.id' ],
			table => { name => '', rows => 200 }
		};
	}
	if ($kind eq 'semi')
	{
		$inner = from_one($context, 'b', 3000);
		my $not = chance(30) ? 'NOT ' : '';
		my @pairs = grep { !/ COLLATE | OPERATOR/ } equal_pairs($context, $outer->{scope}, $inner->{scope});
		my $pair = @pairs && chance(60) ? one_of(@pairs) : 'a.id = b.id';
		my ($x, $y) = split / = /, $pair;
		my $order = chance(30) ? ' ORDER BY ' . join(', ', total_keys($context, $inner)) . ' LIMIT ' . between(0, 100) : '';
		my $test = weighted(
			50 => "$x ${not}IN (SELECT $y FROM $inner->{sql}@{[ where_of($inner) ]}$order)",
			50 => "${not}EXISTS (SELECT 1 FROM $inner->{sql}@{[ where_of($inner, $pair, chance(20) ? 'a.id <> b.id' : ()) ]})");
		return { %$outer, where => join ' AND ', grep { defined } $outer->{where}, $test };
	}
	# both have many rows of the same key, and yet there are not too many pairs
	my @most = $kind eq 'id' ? () : @{ one_of([ 150, 150 ], [ 150, 150 ], [ 20, 1500 ], [ 1500, 20 ]) };
	($outer, $inner) = (_enclosed(from_one($context, 'a', $most[0])), _enclosed(from_one($context, 'b', $most[1])));
	$outer = _padded($outer, $most[0]) if @most && chance(5);
	$inner = _padded($inner, $most[1]) if @most && chance(20);
	my @pairs = $kind eq 'column' ? some_of(weighted(50 => 1, 35 => 2, 15 => 3),
		equal_pairs($context, $outer->{scope}, $inner->{scope})) : ();
	if ($kind eq 'column' && chance($inner->{also} ? 60 : 25))
	{
		# many pairs, and in half of the cases keys that tie
		my $few = one_of(3, 7, 30);
		my @sides = map { "($_.id % $few)" } qw(a b);
		@sides = map { _deep($_, { number => 1 }) } @sides if chance(50);
		@pairs = (join(' = ', @sides), some_of(below(2), @pairs));
	}
	my $condition = join(' AND ', @pairs) || 'a.id = b.id';
	my $join = one_of('', '', 'LEFT ', 'RIGHT ', 'FULL ');
	$condition .= ' AND ' . one_of('a.id <= b.id', 'a.id + b.id > 50', 'b.id % 3 = 1') if $join ne 'FULL ' && chance(15);
	my %from = (
		sql => "$outer->{sql} ${join}JOIN $inner->{sql} ON $condition",
		where => join(' AND ', grep { defined } $outer->{where}, $inner->{where}) || undef,
		scope => [ @{ $outer->{scope} }, @{ $inner->{scope} } ],
		ids => [ 'a.id', 'b.id' ],
		also => [ map { @{ $_->{also} || [] } } $outer, $inner ],
		table => { name => '', rows => 1000 });
	if ($kind eq 'column' && chance(15))
	{
		my $third = _enclosed(from_one($context, 'd', 4));
		my ($pair) = shuffled(equal_pairs($context, $outer->{scope}, $third->{scope}));
		if (defined $pair)
		{
			$from{sql} .= ' ' . one_of('', 'LEFT ') . "JOIN $third->{sql} ON $pair";
			$from{where} = join(' AND ', grep { defined } $from{where}, $third->{where}) || undef;
			push @{ $from{scope} }, @{ $third->{scope} };
			push @{ $from{ids} }, 'd.id';
		}
	}
	return \%from;
}

sub random_from
{
	my ($context) = @_;
	return from_join($context) if chance(30);
	my $from = from_one($context, 'a');
	return $from->{table}{rows} <= 1000 && chance(4) ? _padded($from, $from->{table}{rows}) : $from;
}

sub where_of
{
	my ($from, @more) = @_;
	my $where = join ' AND ', grep { defined } $from->{where}, @more;
	return $where eq '' ? '' : " WHERE $where";
}

sub aliased
{
	my (@outputs) = @_;
	my $n = 0;
	return join ', ', map { "$_ AS o" . ++$n } @outputs;
}

sub random_limit
{
	my ($rows) = @_;
	my $n = one_of(0, 1, 2, 10, 100, between(0, $rows), between(0, $rows), $rows * 2);
	my $offset = chance(30) ? ' OFFSET ' . one_of(0, 1, 10, between(0, $rows), $rows * 2) : '';

	return weighted(
		70 => " LIMIT $n$offset",
		10 => $offset || ' OFFSET 1',
		20 => "$offset FETCH FIRST $n ROWS WITH TIES",
		5 => ' LIMIT ALL');
}

1;
