# FuzzQuery - random queries over the tables of FuzzSchema.
#
# A query is a hash:
#   name   what kind it is
#   sql    the statements, for psql; after it the session is as it was before
#   mode   what must be the same with and without gpusort:
#          exact     all output
#          multiset  the rows, in whatever order
#          ranked    the keys of the rows, in order; the rows, as far as they decide
#          errors    SQLSTATEs only
#   rank   ranked: a query of all rows that may be in the output, before each its
#          place in the order
#   whole  ranked: all rows of rank must come
#
# Queries have no volatile functions, and no LIMIT below anything unless the order
# is total: PostgreSQL must owe the answer, not just give it.
package FuzzQuery;

use strict;
use warnings;

use Exporter qw(import);
use FuzzRandom;
use FuzzTypes;

our @EXPORT = qw(random_query helpers);

# Functions that the queries use, to be made after the tables.
sub helpers
{
	my ($tables) = @_;
	return map {
		# more rows than the planner expects
		"CREATE FUNCTION f_$_->{name}(n int8) RETURNS SETOF $_->{name} LANGUAGE plpgsql STABLE ROWS 10 AS 'BEGIN RETURN QUERY SELECT * FROM $_->{name} WHERE id <= n; END'"
	} @$tables;
}

# What of a table can be used under an alias.
sub _scope
{
	my ($table, $alias) = @_;
	return map { { sql => "$alias.$_->{name}", type => $_->{type} } } @{ $table->{columns} };
}

# --- keys -----------------------------------------------------------------------------------------

# An expression of a column to sort by.
sub _key
{
	my ($context, $column, $id) = @_;
	my ($x, $type) = @$column{qw(sql type)};
	my $collation = one_of(@{ $context->{collations} });

	return $x if chance(50);
	if (chance(12))
	{
		return one_of("($x IS NULL)", "CASE WHEN $id % 3 = 0 THEN $x END", "coalesce($x, $x)", "fz.h($id\::int8, 3)", "$x\::text COLLATE \"C\"");
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
			10 => $type->{base} eq 'int4' ? "$x USING OPERATOR(fz.@{[ one_of('<#', '>#') ]})" : "$x + 0.5");
	}
	return "NOT $x" if $type->{name} eq 'bool';
	return $x;
}

# The columns with values that repeat, which are more of interest.
sub _without_ids
{
	my (@scope) = @_;
	my @others = grep { $_->{sql} !~ /\bid$/ } @scope;
	return @others ? @others : @scope;
}

# So many keys with directions, of the columns.
sub _keys
{
	my ($context, $n, $id, @scope) = @_;
	my @keys;

	@scope = _without_ids(@scope) if chance(90);
	for (1 .. $n)
	{
		my $key = _key($context, one_of(@scope), $id);
		push @keys, $key =~ / USING / ? $key . one_of('', ' NULLS FIRST') : $key . one_of(@DIRECTIONS);
	}
	return @keys;
}

# Keys that leave no ties.
sub _total_keys
{
	my ($context, $from, $n) = @_;
	my @keys = _keys($context, $n // weighted(5 => 0, 35 => 1, 35 => 2, 15 => 3, 10 => between(4, 8)), $from->{ids}[0], @{ $from->{scope} });
	my @ids = map { $_ . one_of(@DIRECTIONS) } shuffled(@{ $from->{ids} });

	return chance(8) ? (@ids, @keys) : (@keys, @ids);
}

# --- FROM -----------------------------------------------------------------------------------------

sub _predicate
{
	my ($id, $table, @scope) = @_;
	my $column = one_of(@scope);
	my $rows = $table->{rows};

	return weighted(
		20 => "$id % @{[ between(2, 5) ]} <> 0",
		# PostgreSQL expects few rows of it
		20 => "$id % 1 = 0",
		15 => "$id <= @{[ between(0, $rows) ]}",
		15 => "$column->{sql} IS NOT NULL",
		5 => "$column->{sql} IS NULL",
		10 => "$id BETWEEN @{[ between(0, $rows) ]} AND @{[ between(0, $rows) ]}",
		3 => "false");
}

# One table, or something that gives its rows, under an alias.
sub _from_one
{
	my ($context, $alias, $max_rows) = @_;
	my $table = one_of(@{ $context->{tables} });
	my @scope = _scope($table, $alias);
	my $name = $table->{name};
	my $where = defined $max_rows && $table->{rows} > $max_rows ? "id <= $max_rows" : chance(30) ? _predicate('id', $table, _scope($table, $name)) : 'true';
	my %from = (scope => \@scope, ids => ["$alias.id"], table => $table);
	my %inner = (scope => [ _scope($table, $name) ], ids => ["$name.id"], table => $table);
	my $kind = weighted(60 => 'table', 10 => 'subquery', 8 => 'cte', 10 => 'ordered', 6 => 'function', 6 => 'values');

	if ($kind eq 'table')
	{
		$from{sql} = "$name $alias";
		$where =~ s/\b(?:\Q$name\E\.)?(id|c\d+)\b/$alias.$1/g;
		$from{where} = $where if $where ne 'true';
	}
	elsif ($kind eq 'subquery')
	{
		$from{sql} = "(SELECT * FROM $name WHERE $where@{[ chance(50) ? ' OFFSET 0' : '' ]}) $alias";
	}
	elsif ($kind eq 'cte')
	{
		my $order = chance(50) ? ' ORDER BY ' . join(', ', _total_keys($context, \%inner)) : '';
		$from{sql} = "(WITH w AS @{[ one_of('', 'NOT ') ]}MATERIALIZED (SELECT * FROM $name WHERE $where$order) SELECT * FROM w) $alias";
	}
	elsif ($kind eq 'ordered')
	{
		my $limit = chance(60) ? ' LIMIT ' . between(0, $table->{rows} + 1) : '';
		$from{sql} = "(SELECT * FROM $name WHERE $where ORDER BY @{[ join ', ', _total_keys($context, \%inner) ]}$limit) $alias";
	}
	elsif ($kind eq 'function')
	{
		$from{sql} = "f_$name(@{[ $max_rows // $table->{rows} ]}) $alias";
	}
	else
	{
		my $n = between(1, 60);
		my %int = (name => 'int4', sql => 'int4', base => 'int4', number => 1);
		my %text = (name => 'text', sql => 'text', base => 'text', text => 1);
		$from{sql} = '(VALUES ' . join(', ', map { my $k = one_of('NULL', below(20), below(1000)); "($_, $k\::int4, '@{[ 'v' x below(30) ]}$k'::text)" } shuffled(1 .. $n)) . ") $alias (id, c1, c2)";
		$from{scope} = [ { sql => "$alias.id", type => \%int }, { sql => "$alias.c1", type => \%int }, { sql => "$alias.c2", type => \%text } ];
		$from{table} = { name => '', rows => $n };
		$from{no_row} = 1;
	}
	return \%from;
}

# Two of them joined.
sub _from_join
{
	my ($context) = @_;
	my $kind = weighted(30 => 'id', 45 => 'column', 15 => 'lateral', 10 => 'semi');

	if ($kind eq 'lateral' || $kind eq 'semi')
	{
		my $outer = _from_one($context, 'a', $kind eq 'lateral' ? 40 : undef);
		my $inner = _from_one($context, 'b', 3000);
		my $n = between(2, 10);
		my $inner_where = $inner->{where} ? " AND $inner->{where}" : '';

		if ($kind eq 'semi')
		{
			my $not = chance(30) ? 'NOT ' : '';
			my $order = chance(50) ? ' ORDER BY ' . join(', ', _total_keys($context, $inner)) . ' LIMIT ' . between(0, 100) : '';
			my $in = "a.id ${not}IN (SELECT b.id FROM $inner->{sql} WHERE true$inner_where$order)";
			$outer->{where} = join ' AND ', grep { defined } $outer->{where}, $in;
			return $outer;
		}
		my $keys = join ', ', _total_keys($context, $inner);
		return {
			sql => "$outer->{sql} @{[ one_of('CROSS', 'LEFT') ]} JOIN LATERAL (SELECT b.* FROM $inner->{sql} WHERE b.id % $n = a.id % $n$inner_where ORDER BY $keys LIMIT @{[ between(0, 5) ]}) b" =~ s/(LEFT JOIN LATERAL .*)/$1 ON true/sr,
			where => $outer->{where},
			scope => [ @{ $outer->{scope} }, @{ $inner->{scope} } ],
			ids => [ 'a.id', 'b.id' ],
			table => { name => '', rows => 200 }
		};
	}
	my ($left, $right) = (_from_one($context, 'a', $kind eq 'id' ? undef : 150), _from_one($context, 'b', $kind eq 'id' ? undef : 150));
	my @conditions;
	if ($kind eq 'column')
	{
		for my $x (_without_ids(@{ $left->{scope} }))
		{
			push @conditions, map { "$x->{sql} = $_->{sql}" }
				grep { $_->{type}{sql} eq $x->{type}{sql} && ($_->{type}{collation} // '') eq ($x->{type}{collation} // '') } @{ $right->{scope} };
		}
	}
	my $condition = join ' AND ', @conditions ? some_of(between(1, 2), @conditions) : 'a.id = b.id';
	return {
		sql => "$left->{sql} @{[ one_of('', '', 'LEFT ', 'RIGHT ', 'FULL ') ]}JOIN $right->{sql} ON $condition",
		where => join(' AND ', grep { defined } $left->{where}, $right->{where}) || undef,
		scope => [ @{ $left->{scope} }, @{ $right->{scope} } ],
		ids => [ 'a.id', 'b.id' ],
		table => { name => '', rows => 1000 }
	};
}

sub _from
{
	my ($context) = @_;
	return chance(30) ? _from_join($context) : _from_one($context, 'a');
}

sub _where
{
	my ($from, @more) = @_;
	my $where = join ' AND ', grep { defined } $from->{where}, @more;
	return $where eq '' ? '' : " WHERE $where";
}

# --- SELECT ---------------------------------------------------------------------------------------

sub _aliased
{
	my (@outputs) = @_;
	my $n = 0;
	return join ', ', map { "$_ AS o" . ++$n } @outputs;
}

# An output that needs a sort of its own.
sub _subquery
{
	my ($context) = @_;
	my $inner = _from_one($context, 'i', 2000);
	my $keys = join ', ', _total_keys($context, $inner);
	my $n = between(2, 9);

	return weighted(
		40 => "ARRAY(SELECT i.id FROM $inner->{sql}@{[ _where($inner) ]} ORDER BY $keys LIMIT 50)",
		40 => "(SELECT string_agg(q.id::text, ',') FROM (SELECT i.id FROM $inner->{sql}@{[ _where($inner, \"i.id % $n = a.id % $n\") ]} ORDER BY $keys LIMIT 3) q)",
		20 => "EXISTS (SELECT 1 FROM $inner->{sql}@{[ _where($inner, \"i.id % $n = a.id % $n\") ]} ORDER BY $keys)");
}

sub _limit
{
	my ($rows) = @_;
	my $n = one_of(0, 1, 2, 10, 100, between(0, $rows), between(0, $rows), $rows * 2);
	my $offset = chance(30) ? ' OFFSET ' . one_of(0, 1, 10, between(0, $rows)) : '';

	return weighted(
		70 => " LIMIT $n$offset",
		10 => $offset || ' OFFSET 1',
		20 => "$offset FETCH FIRST $n ROWS WITH TIES",
		5 => ' LIMIT ALL');
}

# SELECT ... ORDER BY.  Options: total => no ties; limit => percent of LIMIT; plain => nothing that
# fails or locks; partial => perhaps not all rows are read, so nothing that fails in one of them.
sub _select
{
	my ($context, %option) = @_;
	my $from = $option{from} // _from($context);
	my $total = $option{total} // chance(55);
	my $limit = chance($option{limit} // 25) ? _limit($from->{table}{rows}) : '';
	my @columns = some_of(weighted(20 => 0, 50 => between(1, 3), 30 => 20), @{ $from->{scope} });
	# long values are not multiplied by a join
	my @outputs = map { $_->{type}{wide} && @{ $from->{ids} } > 1 ? "md5($_->{sql})" : $_->{sql} } @columns;
	my $error = !$option{plain} && !$option{partial} && $limit eq '' && chance(4);
	my $suffix = '';
	my @keys;

	push @outputs, 'a' if chance(4) && !$from->{no_row} && $from->{sql} =~ /^t\d/;
	push @outputs, _key($context, one_of(@{ $from->{scope} }), $from->{ids}[0]) if chance(20);
	$outputs[-1] =~ s/ USING .*// if @outputs;
	@outputs = shuffled(@outputs, @{ $from->{ids} }) if !$total || !@outputs || chance(60);
	if ($error)
	{
		my $k = between(0, $from->{table}{rows});
		push @outputs, one_of("1000 / ($from->{ids}[0] - $k)", "CASE WHEN $from->{ids}[0] = $k THEN ('x' || $k)::int END");
	}
	if (!$option{plain} && $from->{table}{rows} <= 300 && $from->{ids}[0] eq 'a.id' && chance(15))
	{
		push @outputs, _subquery($context);
	}
	if ($total)
	{
		@keys = _total_keys($context, $from);
	}
	else
	{
		@keys = _keys($context, between(1, 3), $from->{ids}[0], @{ $from->{scope} });
		push @keys, one_of(@keys) if chance(5);
	}
	push @keys, "1000 / ($from->{ids}[0] - @{[ between(0, $from->{table}{rows}) ]})" if $error && chance(30);
	if (!$option{plain} && $from->{sql} =~ /^t\d a$/ && chance(6))
	{
		$suffix = one_of(' FOR UPDATE', ' FOR SHARE', ' FOR KEY SHARE');
		$limit =~ s/FETCH FIRST (\d+) ROWS WITH TIES/LIMIT $1/;
	}
	my $keys = join ', ', @keys;
	my $rest = "FROM $from->{sql}" . _where($from);
	my $list = _aliased(@outputs);
	return {
		sql => "SELECT $list $rest ORDER BY $keys$limit$suffix",
		mode => $total ? 'exact' : 'ranked',
		rank => $total ? undef : "SELECT rank() OVER (ORDER BY $keys), $list $rest",
		whole => $limit eq '',
		columns => scalar @outputs
	};
}

# DISTINCT rows are shown in canonical form, from outside, so that the sort is of the values.
sub _shown
{
	my ($select, $types) = @_;
	my $n = 0;
	return $select unless grep { is_inexact($_) } @$types;
	return 'SELECT ' . join(', ', map { $n++; canonical($_, "o$n") . " AS o$n" } @$types) . " FROM ($select) s";
}

sub _distinct_like
{
	my ($core, $types, $limits) = @_;
	my $n = @$types;
	my $kind = weighted(25 => 'none', 45 => 'some', 30 => 'all');
	my @order = $kind eq 'none' ? () : map { "o$_" . one_of(@DIRECTIONS) } some_of($kind eq 'all' ? $n : between(1, $n), 1 .. $n);
	my $order = join ', ', @order;

	return { sql => _shown($core, $types), mode => 'multiset' } unless @order;
	my $limit = $limits && chance(25) ? _limit(100) : '';
	my $count = 0;
	my $shown = join ', ', map { $count++; canonical($_, "o$count") } @$types;
	return {
		sql => _shown("$core ORDER BY $order$limit", $types),
		mode => 'ranked',
		rank => "SELECT rank() OVER (ORDER BY $order), $shown FROM ($core) s",
		whole => $limit eq ''
	};
}

sub _distinct
{
	my ($context) = @_;
	my $from = _from($context);
	my @columns = some_of(between(1, 3), chance(70) ? _without_ids(@{ $from->{scope} }) : @{ $from->{scope} });
	my $core = 'SELECT DISTINCT ' . _aliased(map { $_->{sql} } @columns) . " FROM $from->{sql}" . _where($from);

	return { name => 'distinct', %{ _distinct_like($core, [ map { $_->{type} } @columns ], 1) } };
}

sub _distinct_on
{
	my ($context) = @_;
	my $from = _from($context);
	my @keys = _keys($context, between(1, 2), $from->{ids}[0], @{ $from->{scope} });
	my $on = join ', ', map { s/ (?:ASC|DESC|NULLS|USING) .*| (?:ASC|DESC)$//r } @keys;
	my @outputs = (@{ $from->{ids} }, map { $_->{sql} } some_of(between(0, 3), @{ $from->{scope} }));

	# an operator class of its own has its own equality, which DISTINCT ON then goes by
	my $order = join ', ', @keys, _total_keys($context, $from, between(0, 2));
	return { name => 'distinct on', mode => 'exact',
		sql => "SELECT DISTINCT ON ($on) " . _aliased(@outputs) . " FROM $from->{sql}" . _where($from) . " ORDER BY $order" . (chance(20) ? ' LIMIT 10' : '') };
}

# Aggregates whose result does not depend on the order of rows, or that have an order.
sub _aggregate
{
	my ($context, $from) = @_;
	my $x = one_of(@{ $from->{scope} })->{sql};
	my ($number) = shuffled(grep { $_->{type}{number} } @{ $from->{scope} });
	my $id = $from->{ids}[0];

	return weighted(
		30 => 'count(*)',
		20 => "count($x)",
		10 => "count(DISTINCT $x)",
		20 => "min($id)",
		10 => "sum($number->{sql}::numeric)",
		20 => "array_agg($id ORDER BY @{[ join ', ', _total_keys($context, $from, between(0, 2)) ]})",
		10 => "string_agg(DISTINCT $x\::text COLLATE \"C\", ',' ORDER BY $x\::text COLLATE \"C\")" =~ s/\Q$x\E::text/md5($x\::text)/gr,
		5 => "percentile_disc(0.5) WITHIN GROUP (ORDER BY $number->{sql})");
}

sub _group
{
	my ($context) = @_;
	my $from = _from($context);
	my @groups = some_of(between(1, 3), chance(70) ? _without_ids(@{ $from->{scope} }) : @{ $from->{scope} });
	my @expressions = map { $_->{sql} } @groups;
	my @aggregates = map { _aggregate($context, $from) } 1 .. between(0, 3);
	my @outputs = ((map { canonical($_->{type}, $_->{sql}) } @groups), 'grouping(' . join(', ', @expressions) . ')', @aggregates);
	my $groups = join ', ', @expressions;
	my $sets = weighted(70 => $groups, 10 => "ROLLUP ($groups)", 10 => "CUBE ($groups)", 10 => 'GROUPING SETS (' . join(', ', map { "($_)" } @expressions) . ')');
	my $core = "FROM $from->{sql}" . _where($from) . " GROUP BY $sets" . (chance(15) ? ' HAVING count(*) > 1' : '');
	my $list = _aliased(@outputs);
	my @keys = map { $_ . one_of(@DIRECTIONS) } some_of(between(1, 3), @expressions, 'count(*)', "min($from->{ids}[0])");
	my $keys = join ', ', @keys;
	my $limit = chance(20) ? _limit(100) : '';

	return { name => 'group', sql => "SELECT $list $core", mode => 'multiset' } if chance(25);
	return { name => 'group', sql => "SELECT $list $core ORDER BY $keys$limit", mode => 'ranked', whole => $limit eq '',
		rank => "SELECT rank() OVER (ORDER BY $keys), $list $core" };
}

sub _window
{
	my ($context) = @_;
	my $from = _from($context);
	my (@outputs, @windows);

	@outputs = @{ $from->{ids} };
	for my $n (1 .. between(1, 3))
	{
		my @partition = map { $_->{sql} } some_of(weighted(30 => 0, 50 => 1, 20 => 2), _without_ids(@{ $from->{scope} }));
		my $total = chance(50);
		my @keys = $total ? _total_keys($context, $from, between(0, 2)) : _keys($context, between(1, 2), $from->{ids}[0], @{ $from->{scope} });
		my $x = one_of(@{ $from->{scope} })->{sql};
		my $frame = weighted(70 => '', 15 => $total ? ' ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING' : ' GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING', 15 => ' RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING');

		push @windows, "w$n AS (" . (@partition ? 'PARTITION BY ' . join(', ', @partition) . ' ' : '') . 'ORDER BY ' . join(', ', @keys) . "$frame)";
		push @outputs, map { "$_ OVER w$n" } some_of(between(1, 3), 'rank()', 'dense_rank()', 'count(*)', "count($x)", "max($from->{ids}[0])", 'cume_dist()',
			$total ? ('row_number()', "lag($x)", "lead($from->{ids}[0], 2)", "first_value($x)", 'ntile(4)') : ());
	}
	my $core = 'SELECT ' . _aliased(@outputs) . " FROM $from->{sql}" . _where($from) . ' WINDOW ' . join(', ', @windows);
	return { name => 'window', mode => 'multiset', sql => $core } if chance(50);
	return { name => 'window', mode => 'exact', sql => "$core ORDER BY " . join(', ', _total_keys($context, $from)) . (chance(25) ? _limit($from->{table}{rows}) : '') };
}

sub _setop
{
	my ($context) = @_;
	my ($one, $two) = @{ $context->{tables} };
	my ($n, @names_one, @names_two, @types);

	if (chance(50))
	{
		my @columns = some_of(between(1, 3), @{ $one->{columns} });
		$two = $one;
		@names_one = @names_two = map { $_->{name} } @columns;
		@types = map { $_->{type} } @columns;
	}
	else
	{
		for my $column (@{ $one->{columns} })
		{
			my ($same) = grep { $_->{type}{sql} eq $column->{type}{sql} && ($_->{type}{collation} // '') eq ($column->{type}{collation} // '') } @{ $two->{columns} };
			next unless $same;
			push @names_one, $column->{name};
			push @names_two, $same->{name};
			push @types, $column->{type};
		}
		return _setop($context) if !@types;
	}
	my @operations = map { one_of('UNION ALL', 'UNION', 'INTERSECT', 'EXCEPT', 'UNION ALL', 'INTERSECT ALL', 'EXCEPT ALL') } 1 .. between(1, 2);
	my @sides;
	for my $i (0 .. @operations)
	{
		my ($table, $names) = $i % 2 ? ($two, \@names_two) : ($one, \@names_one);
		my $side = "SELECT " . _aliased(@$names) . " FROM $table->{name} WHERE " . _predicate('id', $table, { sql => $names->[0] });
		if (chance(25))
		{
			my $from = { scope => [ _scope($table, $table->{name}) ], ids => ['id'], table => $table };
			$side .= ' ORDER BY ' . join(', ', map { s/^id\b/$table->{name}.id/r } _total_keys($context, $from)) . ' LIMIT ' . between(0, $table->{rows} + 1);
		}
		push @sides, $i == @operations ? "($side)" : "($side) $operations[$i]";
	}
	return { name => 'set operation', %{ _distinct_like(join(' ', @sides), \@types, 1) } };
}

# --- statements round a SELECT --------------------------------------------------------------------

sub _plain
{
	my ($context) = @_;
	my $query = _select($context);

	return { %$query, name => 'select' } unless chance(6);
	$query = _select($context, total => 1, plain => 1);
	return { %$query, name => 'fetch count', sql => "\\set FETCH_COUNT @{[ one_of(1, 7, 1000) ]}\n$query->{sql};\n\\set FETCH_COUNT 0\nSELECT" };
}

sub _cursor
{
	my ($context) = @_;
	my $query = _select($context, total => 1, partial => 1);
	my $scroll = $query->{sql} =~ / FOR (?:UPDATE|SHARE|KEY)/ ? 'NO SCROLL' : weighted(60 => 'SCROLL', 40 => 'NO SCROLL');
	my $hold = chance(30) && $query->{sql} !~ / FOR (?:UPDATE|SHARE|KEY)/;
	my @moves;

	for (1 .. between(2, 12))
	{
		my $n = one_of(1, 2, 10, 100, 5000);
		push @moves, ($scroll eq 'SCROLL' || chance(2)) && chance(60)
			? weighted(30 => "FETCH BACKWARD $n FROM c", 10 => 'FETCH PRIOR FROM c', 10 => 'FETCH LAST FROM c', 10 => 'FETCH FIRST FROM c', 10 => "FETCH ABSOLUTE @{[ between(-20, 200) ]} FROM c",
				10 => "FETCH RELATIVE @{[ between(-9, 9) ]} FROM c", 10 => "MOVE BACKWARD $n FROM c", 5 => 'MOVE BACKWARD ALL FROM c', 5 => 'FETCH BACKWARD ALL FROM c')
			: weighted(60 => "FETCH $n FROM c", 15 => 'FETCH NEXT FROM c', 10 => 'FETCH ALL FROM c', 15 => "MOVE $n FROM c");
	}
	if ($hold)
	{
		splice @moves, below(scalar @moves), 0, 'COMMIT', 'BEGIN';
	}
	elsif (chance(20))
	{
		splice @moves, below(scalar @moves), 0, 'SAVEPOINT s', 'SELECT 1/0', 'ROLLBACK TO s';
	}
	push @moves, 'CLOSE c' if chance(70) || $hold;
	return { name => 'cursor', mode => 'exact',
		sql => join(";\n", 'BEGIN', "DECLARE c $scroll CURSOR @{[ $hold ? 'WITH HOLD ' : '' ]}FOR $query->{sql}", @moves, one_of('COMMIT', 'ROLLBACK'), $hold ? ('CLOSE ALL') : ()) };
}

sub _create
{
	my ($context) = @_;
	my $query = _select($context, total => 1);
	my $read = "SET LOCAL max_parallel_workers_per_gather = 0;\nSET LOCAL force_parallel_mode = off;\nTABLE made";

	return { name => 'create table as', mode => 'exact', sql => "BEGIN;\nCREATE TABLE made AS $query->{sql};\n$read;\nROLLBACK" } if $query->{sql} =~ / FOR / || chance(40);
	return { name => 'insert', mode => 'exact',
		sql => "BEGIN;\nCREATE TABLE made AS $query->{sql};\nTRUNCATE made;\nINSERT INTO made $query->{sql} RETURNING o1;\n$read;\nROLLBACK" } if chance(40);
	return { name => 'materialized view', mode => 'exact',
		sql => "BEGIN;\nCREATE MATERIALIZED VIEW made AS $query->{sql};\nREFRESH MATERIALIZED VIEW made;\n$read;\nROLLBACK" };
}

sub _prepared
{
	my ($context) = @_;
	my $from = _from($context);
	my $rows = $from->{table}{rows};
	my @keys = _total_keys($context, $from);
	my $sql = 'PREPARE p (int8, int8) AS SELECT ' . _aliased(@{ $from->{ids} }, map { $_->{sql} } some_of(3, @{ $from->{scope} }))
		. " FROM $from->{sql}" . _where($from, "$from->{ids}[0] > \$1") . ' ORDER BY ' . join(', ', @keys) . ' LIMIT $2';

	for (1 .. between(1, 7))
	{
		$sql .= ";\nEXECUTE p (@{[ one_of(0, between(0, $rows)) ]}, @{[ one_of('NULL', 0, 1, between(0, $rows)) ]})";
	}
	return { name => 'prepared', mode => 'exact', sql => "$sql;\nDEALLOCATE p" };
}

sub _plpgsql
{
	my ($context) = @_;
	my $query = _select($context, total => 1, partial => 1);
	my $stop = chance(30) ? 'EXIT WHEN n >= ' . one_of(1, 5, 100) . '; ' : '';
	my $body = weighted(
		50 => "FOR x IN $query->{sql} LOOP n := n + 1; RETURN NEXT x::text; ${stop}END LOOP;",
		15 => "FOR x IN EXECUTE q LOOP n := n + 1; RETURN NEXT x::text; ${stop}END LOOP;",
		20 => "FOR y IN 1 .. @{[ between(2, 4) ]} LOOP n := 0; BEGIN FOR x IN $query->{sql} LOOP n := n + 1; RETURN NEXT x::text; IF n = @{[ between(1, 50) ]} THEN PERFORM 1 / (y - 2); END IF; ${stop}END LOOP; EXCEPTION WHEN division_by_zero THEN RETURN NEXT 'caught'; END; END LOOP;",
		15 => "OPEN c FOR $query->{sql}; LOOP FETCH c INTO x; EXIT WHEN NOT FOUND; n := n + 1; RETURN NEXT x::text; ${stop}END LOOP; CLOSE c;");
	my $function = "CREATE FUNCTION g() RETURNS SETOF text LANGUAGE plpgsql AS \$body\$ DECLARE x record; n int := 0; c refcursor; q text := \$q\$$query->{sql}\$q\$; BEGIN $body END \$body\$";

	return { name => 'plpgsql', mode => 'exact', sql => "$function;\nSELECT * FROM g();\n" . (chance(30) ? "SELECT * FROM g();\n" : '') . 'DROP FUNCTION g()' };
}

# A set-returning SQL function, whose query is left half-way where LIMIT stops it.
sub _function
{
	my ($context) = @_;
	my $query = _select($context, total => 1, plain => 1);
	my $text = "SELECT q::text FROM ($query->{sql}) q";
	my $call = weighted(40 => 'SELECT g()', 30 => 'SELECT * FROM g()', 30 => 'SELECT g() LIMIT 5');

	return { name => 'sql function', mode => 'exact',
		sql => "CREATE FUNCTION g() RETURNS SETOF text LANGUAGE sql STABLE AS \$body\$ $text \$body\$;\n$call;\nDROP FUNCTION g()" };
}

sub _nested
{
	my ($context) = @_;
	my $query = _select($context, total => 1, plain => 1);

	return weighted(
		40 => { name => 'array', mode => 'exact', sql => "SELECT ARRAY(SELECT o1 FROM ($query->{sql}) q)" },
		30 => { name => 'row_number', mode => 'exact', sql => "SELECT row_number() OVER (), q.* FROM ($query->{sql}) q" },
		30 => { name => 'with', mode => 'exact', sql => "WITH w AS MATERIALIZED ($query->{sql}) SELECT * FROM w UNION ALL SELECT * FROM w" });
}

# A few rows that are long, up to longer than a chunk of the staging pool.
sub _long
{
	my ($context) = @_;
	my $from = _from_one($context, 'a', 1000);
	my $keys = join ', ', _total_keys($context, $from);
	my $n = 1 + int($from->{table}{rows} / between(1, 8));
	my $length = one_of(70000, 800000, 4100000, 9000000);
	my $where = _where($from);
	my $list = "a.id AS o1, CASE WHEN a.id % $n = 0 THEN repeat('q', $length) END AS o2, @{[ one_of(@{ $from->{scope} })->{sql} ]} AS o3";

	return { name => 'long rows', mode => 'exact',
		sql => "SELECT o1, length(o2), o3 FROM (SELECT $list FROM $from->{sql}$where ORDER BY $keys@{[ one_of(' OFFSET 0', ' LIMIT 500') ]}) s" };
}

sub _copy
{
	my ($context) = @_;
	my $query = _select($context, total => 1);
	return { name => 'copy', mode => 'exact', sql => "COPY ($query->{sql}) TO STDOUT" };
}

sub _explain
{
	my ($context) = @_;
	my $query = _select($context);
	my @options = some_of(between(1, 4), 'ANALYZE', 'ANALYZE', 'VERBOSE', 'ANALYZE, BUFFERS', 'FORMAT ' . one_of(qw(json xml yaml)), 'ANALYZE, TIMING off');
	my %seen;
	@options = grep { !$seen{$_}++ } map { split /, / } @options;

	return { name => 'explain', mode => 'errors', sql => 'EXPLAIN (' . join(', ', @options) . ") $query->{sql}" };
}

sub random_query
{
	my ($context) = @_;
	my $make = weighted(
		40 => \&_plain,
		8 => \&_distinct,
		6 => \&_distinct_on,
		8 => \&_group,
		8 => \&_window,
		8 => \&_setop,
		9 => \&_cursor,
		5 => \&_create,
		5 => \&_prepared,
		5 => \&_plpgsql,
		3 => \&_function,
		4 => \&_nested,
		2 => \&_copy,
		1 => \&_long,
		3 => \&_explain);
	return $make->($context);
}

1;
