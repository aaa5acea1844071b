# FuzzPlans - queries that PostgreSQL sorts rows for elsewhere than at the top: DISTINCT, GROUP BY,
# windows, joins, set operations, recursion.
#
# Queries are those of FuzzQuery.
package FuzzPlans;

use strict;
use warnings;

use Exporter qw(import);
use FuzzParts;
use FuzzRandom;
use FuzzTypes;

our @EXPORT = qw(distinct_query distinct_on_query group_query aggregate_query window_query first_rows_query join_query
	recursive_query set_query);

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
	my @order = $kind eq 'none' ? () : map { "o$_" . one_of(@DIRECTIONS) } some_of($kind eq 'all' ? $n : between(1, $n),
		1 .. $n);
	my $order = join ', ', @order;

	return { sql => _shown($core, $types), mode => 'multiset' } unless @order;
	my $limit = $limits && chance(25) ? random_limit(100) : '';
	my $count = 0;
	my $shown = join ', ', map { $count++; canonical($_, "o$count") } @$types;
	return {
		sql => _shown("$core ORDER BY $order$limit", $types),
		mode => 'ranked',
		rank => "SELECT rank() OVER (ORDER BY $order), $shown FROM ($core) s",
		whole => $limit eq ''
	};
}

sub distinct_query
{
	my ($context, %option) = @_;
	my $from = $option{from} // random_from($context);
	my @columns = some_of(between(1, 3), chance(70) ? without_ids(@{ $from->{scope} }) : @{ $from->{scope} });
	my $core = 'SELECT DISTINCT ' . aliased(map { $_->{sql} } @columns) . " FROM $from->{sql}" . where_of($from);

	return { name => 'distinct', %{ _distinct_like($core, [ map { $_->{type} } @columns ], 1) } };
}

sub distinct_on_query
{
	my ($context, %option) = @_;
	my $from = $option{from} // random_from($context);
	my @keys = random_keys($context, between(1, 2), $from->{ids}[0], @{ $from->{scope} });
	my $on = join ', ', map { without_direction($_) } @keys;
	my @outputs = (@{ $from->{ids} }, @{ $from->{also} || [] },
		map { $_->{sql} } some_of(between(0, 3), @{ $from->{scope} }));

	# an operator class of its own has its own equality, which DISTINCT ON then goes by
	my $order = join ', ', @keys, total_keys($context, $from, between(0, 2));
	return { name => 'distinct on', mode => 'exact',
		sql => "SELECT DISTINCT ON ($on) " . aliased(@outputs) . " FROM $from->{sql}" . where_of($from) . " ORDER BY $order"
			. (chance(20) ? ' LIMIT 10' : '') };
}

# An output that fails in one row, if that is there.
sub _failing
{
	my ($from) = @_;
	return "1000 / ($from->{ids}[0] - @{[ between(0, $from->{table}{rows}) ]})";
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
		5 => "avg($number->{sql}::numeric)",
		5 => "count(*) FILTER (WHERE $x IS NULL)",
		20 => "array_agg($id ORDER BY @{[ join ', ', total_keys($context, $from, between(0, 2)) ]})",
		10 => "string_agg(DISTINCT md5($x\::text) COLLATE \"C\", ',' ORDER BY md5($x\::text) COLLATE \"C\")",
		5 => "percentile_disc(0.5) WITHIN GROUP (ORDER BY $number->{sql})");
}

# Options here and below: from, what to select from; total, rows in an order that leaves no ties.
sub group_query
{
	my ($context, %option) = @_;
	my $from = $option{from} // random_from($context);
	my @groups = some_of(between(1, 3), chance(70) ? without_ids(@{ $from->{scope} }) : @{ $from->{scope} });
	my (@expressions, @shown);

	for my $column (@groups)
	{
		my $expression = $column->{type}{number} && chance(25) ? "($column->{sql} % @{[ one_of(2, 10, 100) ]})" : chance(8)
			? "($column->{sql} IS NULL)" : $column->{sql};
		# which can be hashed, but has no order
		$expression = "(hashtext($column->{sql}\::text) & 1023)::text::xid" if !$option{total} && chance(6);
		next if grep { $_ eq $expression } @expressions;
		push @expressions, $expression;
		push @shown, $expression eq $column->{sql} ? canonical($column->{type}, $expression) : $expression;
	}
	my @aggregates = map { _aggregate($context, $from) } 1 .. between(0, 3);
	push @aggregates, 'rank() OVER (' . one_of('', 'PARTITION BY count(*) ') . "ORDER BY min($from->{ids}[0]))"
		if chance(15);
	my @outputs = (@shown, 'grouping(' . join(', ', @expressions) . ')', @aggregates);
	my $groups = join ', ', @expressions;
	# Columns that a join made equal are the same to the planner above grouping sets, too, where one of
	# them is NULL: it drops keys that it needs.
	my $joined = @{ $from->{ids} } > 1;
	my $sets = $joined && $option{total} ? $groups : weighted(
		65 => $groups,
		10 => "ROLLUP ($groups)",
		10 => "CUBE ($groups)",
		10 => 'GROUPING SETS (' . join(', ', map { "($_)" } @expressions) . ')',
		5 => "DISTINCT ROLLUP ($groups), CUBE ($expressions[0])");
	my $core = "FROM $from->{sql}" . where_of($from) . " GROUP BY $sets" . (chance(15) ? ' HAVING count(*) > 1' : '');
	my $list = aliased(@outputs);
	my $limit = chance(20) ? random_limit(100) : '';

	if ($option{total})
	{
		my $keys = join ', ', map { $_ . one_of(@DIRECTIONS) } shuffled(@expressions),
			'grouping(' . join(', ', @expressions) . ')';
		return { name => 'group', sql => "SELECT $list $core ORDER BY $keys$limit", mode => 'exact' };
	}
	return { name => 'group', sql => "SELECT $list $core", mode => 'multiset' }
		if $joined && $sets ne $groups || chance(25);
	my $keys = join ', ', map { $_ . one_of(@DIRECTIONS) } some_of(between(1, 3), @expressions, 'count(*)',
		"min($from->{ids}[0])");
	return { name => 'group', sql => "SELECT $list $core ORDER BY $keys$limit", mode => 'ranked', whole => $limit eq '',
		rank => "SELECT rank() OVER (ORDER BY $keys), $list $core" };
}

# Aggregates that all want one order, or each value once, mostly: of all rows, or of groups.
sub _ordered_aggregates
{
	my ($context, $from) = @_;
	my $id = $from->{ids}[0];
	my $column = one_of(@{ $from->{scope} });
	my $x = $column->{sql};
	my ($number) = shuffled(grep { $_->{type}{number} } @{ $from->{scope} });
	my $n = "$number->{sql}::numeric";
	# some are floats only when percentile_cont() has cast them
	my $float = weighted(60 => "$number->{sql}::float8", 10 => "($id * 31 % 1000)::numeric(6, 1)",
		10 => "($id % 77)::int2", 10 => $id, 10 => "($id / 7.0)::float4");
	my $way = one_of(@DIRECTIONS);
	my $kind = weighted(25 => 'distinct', 20 => 'order', 20 => 'percentiles', 25 => 'beside', 10 => 'mixed',
		20 => 'several');

	if ($kind eq 'distinct')
	{
		return "count(DISTINCT $x)" if chance(40);
		return some_of(between(1, 4), "count(DISTINCT $n)", "sum(DISTINCT $n)", "avg(DISTINCT $n)", "max(DISTINCT $n)",
			"array_agg(DISTINCT $n)");
	}
	if ($kind eq 'order')
	{
		my $keys = join ', ', total_keys($context, $from, between(0, 2));

		return some_of(between(1, 4), "array_agg($id ORDER BY $keys)", "string_agg(md5($x\::text), ',' ORDER BY $keys)",
			"json_agg($id ORDER BY $keys)", "array_agg($id ORDER BY $keys) FILTER (WHERE $id % 3 > 0)", 'count(*)', "sum($n)",
			"count($x)");
	}
	if ($kind eq 'percentiles')
	{
		my $fractions = 'array[' . join(', ', map { one_of('0', '1', '0.5', 'NULL', rand()) } 1 .. between(1, 5))
			. ']::float8[]';

		return some_of(between(1, 3), "percentile_cont(@{[ rand() ]}) WITHIN GROUP (ORDER BY $float$way)",
			"percentile_cont($fractions) WITHIN GROUP (ORDER BY $float$way)",
			"percentile_disc(0.5) WITHIN GROUP (ORDER BY $float$way)") if chance(50);
		return canonical($column->{type}, "percentile_disc(@{[ one_of(0, 1, rand()) ]}) WITHIN GROUP (ORDER BY $x$way)")
			if chance(50);
		my $row = one_of('0', 'NULL', between(-1000, 1000), rand());
		my @ranks = map { "$_($row) WITHIN GROUP (ORDER BY $n$way)" } qw(rank percent_rank cume_dist dense_rank);
		return some_of(between(1, 4), @ranks,
			"percentile_disc(0.5) WITHIN GROUP (ORDER BY $n$way) + 0 = 1");
	}
	if ($kind eq 'beside')
	{
		my @others = ('count(*)', "sum($n)", "count($x)", "max($id) FILTER (WHERE $id % 3 > 0)");
		my $filter = one_of("$id % 2 = 0", "$x IS NOT NULL", "$number->{sql} > $id", 'false');

		return some_of(between(2, 6), @others, "count(DISTINCT $x)", "count(DISTINCT $x) FILTER (WHERE $filter)",
			canonical($column->{type}, "mode() WITHIN GROUP (ORDER BY $x)"),
			canonical($column->{type}, "percentile_disc(@{[ rand() ]}) WITHIN GROUP (ORDER BY $x)")) if chance(60);
		my $row = one_of('0', 'NULL', between(-1000, 1000), rand());

		return some_of(between(2, 6), @others, "dense_rank($row) WITHIN GROUP (ORDER BY $n$way) FILTER (WHERE $filter)",
			(map { "$_($row, 100) WITHIN GROUP (ORDER BY $n$way, $id)" } qw(rank percent_rank cume_dist dense_rank)),
			"rank($row) WITHIN GROUP (ORDER BY $n) FILTER (WHERE $filter)", "count(DISTINCT $n)") if chance(40);
		return some_of(between(2, 6), @others, "count(DISTINCT $n)", "sum(DISTINCT $n) FILTER (WHERE $filter)",
			"avg(DISTINCT $n)", "array_agg($id ORDER BY $n, $id)", "array_agg(DISTINCT $n) FILTER (WHERE $id % 5 > 1)");
	}
	if ($kind eq 'several')
	{
		my @of_columns = map {
			my ($type, $sql) = ($_->{type}, $_->{sql});
			one_of("count(DISTINCT $sql)", canonical($type, "mode() WITHIN GROUP (ORDER BY $sql$way)"),
				canonical($type, "percentile_disc(@{[ rand() ]}) WITHIN GROUP (ORDER BY $sql)"))
		} some_of(between(1, 4), @{ $from->{scope} });

		return shuffled(@of_columns, some_of(between(1, 3), "sum(DISTINCT $n) + count(DISTINCT $id)", 'count(*)', "sum($n)",
			"percentile_cont(0.7) WITHIN GROUP (ORDER BY $float$way)", "array_agg($id ORDER BY $id)"));
	}
	return some_of(between(2, 4), "count(DISTINCT $x)",
		"array_agg($id ORDER BY @{[ join ', ', total_keys($context, $from, 1) ]})",
		'count(*)', "percentile_cont(0.3) WITHIN GROUP (ORDER BY $float$way)", "sum($n)",
		"count(DISTINCT $n) FILTER (WHERE $id % 2 = 0)");
}

# Aggregates of all rows, or of a table's or a window's; groups of the first kind.  One row, mostly.
sub aggregate_query
{
	my ($context, %option) = @_;
	my $from = $option{from} // random_from($context);
	my $id = $from->{ids}[0];

	if (chance(25))
	{
		my ($number) = map { "$_->{sql}::numeric" } shuffled(grep { $_->{type}{number} } @{ $from->{scope} });
		# of numerics that are equal and look different that is shown which the order of rows says
		my $function = weighted(60 => one_of('lag', 'max', 'count') . "($id)", 20 => "sum($number)",
			20 => "lag(round($number, ($id % 3)::int))");
		my $inner = "$function OVER (" . (chance(70) ? "PARTITION BY $from->{scope}[0]{sql} " : '') . 'ORDER BY '
			. join(', ', total_keys($context, $from, between(0, 1))) . ')';

		return { name => 'aggregate of windows', mode => 'exact',
			sql => 'SELECT ' . aliased(some_of(between(1, 4), 'count(*)', 'count(x)', 'sum(x)', 'avg(x)', 'max(x)', 'min(x)',
			'count(*) FILTER (WHERE x % 3 = 0)')) . " FROM (SELECT $inner AS x FROM $from->{sql}" . where_of($from) . ') w' };
	}
	my $rest = " FROM $from->{sql}" . where_of($from);
	my @aggregates = _ordered_aggregates($context, $from);
	return { name => 'aggregate', mode => 'exact', sql => 'SELECT ' . aliased(@aggregates) . $rest
		. (chance(15) ? " HAVING count(DISTINCT $id) > 3" : '') } if chance(70);
	if (chance(50))
	{
		# not of values that are equal and look different: which one is shown is PostgreSQL's choice
		my @keys = map { $_->{sql} } some_of(between(1, 3), grep { !is_inexact($_->{type}) } @{ $from->{scope} });

		return { name => 'counted group', mode => 'multiset', sql => 'SELECT ' . aliased(@keys, some_of(between(1, 3),
			'count(*)', 'count(1)', 'count(*) * 2', map { "count($_)" } @keys)) . $rest . ' GROUP BY ' . join(', ', @keys)
			. (chance(30) ? ' HAVING count(*) > ' . between(0, 3) : '') } if @keys;
	}
	my $group = one_of(grep { $_->{type}{number} } @{ $from->{scope} })->{sql};
	return { name => 'ordered group', mode => 'multiset',
		sql => 'SELECT ' . aliased($group, @aggregates) . "$rest GROUP BY $group" };
}

# An order, a frame and functions over it whose results the order determines.
sub _window
{
	my ($context, $from) = @_;
	my ($id) = @{ $from->{ids} };
	my $column = one_of(@{ $from->{scope} });
	my $x = $column->{sql};
	my ($number) = shuffled(grep { $_->{type}{number} } @{ $from->{scope} });
	# the time of these grows with the square of the rows
	my $exclude = $from->{table}{rows} > 300 ? '' : one_of('', '', ' EXCLUDE CURRENT ROW', ' EXCLUDE GROUP',
		' EXCLUDE TIES');
	my $kind = weighted(50 => 'total', 35 => 'ties', 15 => 'offset');
	my @functions = ('rank()', 'dense_rank()', 'count(*)', "count($x)", "max($id)", 'cume_dist()',
		"sum($number->{sql}::numeric)");
	my (@keys, $frame);

	if ($kind eq 'total')
	{
		@keys = total_keys($context, $from, between(0, 2));
		$frame = weighted(60 => '', 25 => " ROWS BETWEEN @{[ below(5) ]} PRECEDING AND @{[ below(5) ]} FOLLOWING$exclude",
			15 => ' ROWS UNBOUNDED PRECEDING');
		push @functions, 'row_number()', "lag($x)", "lead($id, 2)", "first_value($x)", "nth_value($id, 3)", 'ntile(4)';
	}
	elsif ($kind eq 'ties')
	{
		@keys = random_keys($context, between(1, 2), $id, @{ $from->{scope} });
		$frame = weighted(
			50 => '',
			15 => " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING$exclude",
			15 => ' RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING',
			10 => " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING$exclude");
	}
	else
	{
		@keys = ("($number->{sql}::numeric)" . one_of(@DIRECTIONS));
		$frame = " RANGE BETWEEN @{[ below(1000) ]} PRECEDING AND @{[ below(1000) ]} FOLLOWING$exclude";
	}
	return (\@keys, $frame, some_of(between(1, 3), @functions));
}

# Several windows: with partitions of their own, with one that they share, with one order.
sub window_query
{
	my ($context, %option) = @_;
	my $from = $option{from} // random_from($context);
	my $partition = sub {
		my @keys = map { without_direction($_) } random_keys($context, weighted(30 => 0, 50 => 1, 20 => 2), $from->{ids}[0],
			@{ $from->{scope} });
		return @keys ? 'PARTITION BY ' . join(', ', @keys) : '';
	};
	my $shared = $partition->();
	my $one = chance(40);
	my @outputs = (@{ $from->{ids} }, @{ $from->{also} || [] });
	my @windows = chance(30) ? ("w AS ($shared)") : ();

	for my $n (1 .. weighted(30 => 1, 35 => 2, 25 => 3, 10 => 4))
	{
		my ($keys, $frame, @functions) = _window($context, $from);
		my $by = $one && @windows && $windows[0] =~ /^w / ? 'w' : $one ? $shared : $partition->();
		push @windows, "w$n AS ($by ORDER BY " . join(', ', @$keys) . "$frame)";
		push @outputs, map { "$_ OVER w$n" } @functions;
	}
	my $limit = chance(25) ? random_limit($from->{table}{rows}) : '';
	push @outputs, _failing($from) if !$option{total} && $limit eq '' && chance(4);
	my $core = 'SELECT ' . aliased(@outputs) . " FROM $from->{sql}" . where_of($from) . ' WINDOW ' . join(', ', @windows);
	return { name => 'window', mode => 'multiset', sql => $core } if !$option{total} && chance(60);
	return { name => 'window', mode => 'exact', sql => "$core ORDER BY " . join(', ', total_keys($context, $from))
		. $limit };
}

# The first rows of each partition: by their number, or with ties; other functions may look at all of them.
sub first_rows_query
{
	my ($context) = @_;
	my $from = random_from($context);
	my $id = $from->{ids}[0];
	my @partition = map { without_direction($_) } random_keys($context, between(1, 2), $id, @{ $from->{scope} });
	my $partition = join ', ', @partition;
	my $total = chance(60);
	my $order = join ', ', $total ? total_keys($context, $from, between(0, 2))
		: random_keys($context, between(1, 2), $id, @{ $from->{scope} });
	my $function = one_of('rank()', 'rank()', 'dense_rank()', $total ? ('row_number()', 'row_number()') : ());
	my @others = chance(30) ? some_of(between(1, 2), 'rank()', 'dense_rank()', 'count(*)', "max($id)", 'cume_dist()') : ();
	my $bound = one_of('r = 1', 'r <= ' . between(1, 5), 'r < ' . between(0, 3), between(1, 4) . ' >= r',
		'r BETWEEN 2 AND 4', 'r <= ' . between(1, 3) . ' AND o1 IS NOT NULL', 'r <= NULL::int8', 'r <> 1');
	return { name => 'first rows', mode => 'multiset', sql => 'SELECT * FROM (SELECT '
		. aliased(@{ $from->{ids} }, map { "$_ OVER w" } @others) . ", $function OVER w AS r FROM $from->{sql}"
		. where_of($from) . " WINDOW w AS (PARTITION BY $partition ORDER BY $order)) q WHERE $bound" };
}

# A join as it is, without ORDER BY: its rows, or numbers that tell whether all are there once.
sub join_query
{
	my ($context, %option) = @_;
	my $from = $option{from} // from_join($context);
	my @ids = @{ $from->{ids} };
	my $core = "FROM $from->{sql}" . where_of($from);
	my $order = $option{total} ? ' ORDER BY ' . join(', ', total_keys($context, $from)) : '';
	my @also = @{ $from->{also} || [] };
	my @failing = !$option{total} && chance(5) ? _failing($from) : ();
	my $list = aliased(@ids, @also, @failing,
		map { $_->{type}{wide} ? "md5($_->{sql})" : $_->{sql} } some_of(between(0, 2), @{ $from->{scope} }));
	my $pair = join ' + ', map { my $n = $_; "coalesce($ids[$n]\::int8 + 1, 0) * " . (1, 1000003, 7919)[$n] } 0 .. $#ids;
	my $sums = aliased('count(*)', (map { "count($_)" } @ids), (map { "sum($_)" } @also), "sum(fz.h($pair, 1)::numeric)");

	# most of them by merging
	my @settings = chance(60) ? ('enable_hashjoin = off', 'enable_nestloop = off',
		some_of(below(2), 'enable_material = off')) : ();
	my %query = (name => 'join', settings => \@settings);
	return { %query, mode => 'exact', sql => "SELECT $list $core$order" } if $order ne '';
	return { %query, mode => 'exact', sql => "SELECT $sums $core" } if chance(50);
	return { %query, mode => 'multiset', sql => "SELECT $list $core" };
}

# Steps of a recursion sort anew, the rows of the step before or those of a table.
sub recursive_query
{
	my ($context) = @_;
	my $table = one_of(@{ $context->{tables} });
	my $other = from_one($context, 'b', 60);
	my $n = between(2, 9);
	my $keys = join ', ', total_keys($context, $other);
	my $where = where_of($other, 'b.id <= 60');
	my $step = weighted(
		35 => "SELECT b.id::int8, w.n + 1 FROM w JOIN $other->{sql} ON b.id % $n = w.id % $n$where AND w.n < 4",
		25 => "SELECT b.id::int8, w.n + 1 FROM w CROSS JOIN "
			. "LATERAL (SELECT b.id FROM $other->{sql}$where AND b.id % $n = w.id % $n ORDER BY $keys "
			. "LIMIT @{[ one_of(2, 'w.n', 'w.id % 3') ]}) b WHERE w.n < 4",
		20 => "SELECT b.id::int8, b.n + 1 FROM (SELECT id, n, rank() OVER (PARTITION BY n ORDER BY id % $n DESC, id) AS r "
			. "FROM w) b WHERE n < 5 AND r % 3 <> 0",
		20 => "SELECT q.id, q.n + 1 FROM (SELECT DISTINCT ON (id % $n) (id * 7) % 61 AS id, n FROM w "
			. "ORDER BY id % $n, id DESC, n) q WHERE n < 6");
	my $search = $step =~ /^SELECT b.id::int8, w.n \+ 1 FROM w JOIN/ && chance(50)
		? ' SEARCH BREADTH FIRST BY id SET seq SELECT id, n, seq FROM w ORDER BY seq' : '';
	return { name => 'recursive', mode => 'multiset',
		sql => "WITH RECURSIVE w(id, n) AS (SELECT id::int8, 0 FROM $table->{name} WHERE id <= 20 UNION $step)"
		. ($search || ' SELECT * FROM w') };
}

# Columns that one result column can have on two sides: of one type, or of numbers that differ in width.
sub _are_alike
{
	my ($one, $two) = @_;

	return 1 if $one->{sql} eq $two->{sql} && ($one->{collation} // '') eq ($two->{collation} // '');
	return 1 if $one->{number} && $two->{number};
	return 2 == grep { $_->{sql} =~ /^float[48]$/ } $one, $two;
}

sub set_query
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
			my ($same) = shuffled(grep { _are_alike($_->{type}, $column->{type}) } @{ $two->{columns} });
			next unless $same;
			push @names_one, $column->{name};
			push @names_two, $same->{name};
			push @types, is_inexact($same->{type}) ? $same->{type} : $column->{type};
		}
		return set_query($context) if !@types;
	}
	my @operations = map { one_of('UNION ALL', 'UNION', 'INTERSECT', 'EXCEPT', 'UNION ALL', 'INTERSECT ALL',
		'EXCEPT ALL') } 1 .. between(1, 2);
	my @sides;
	for my $i (0 .. @operations)
	{
		my ($table, $names) = $i % 2 ? ($two, \@names_two) : ($one, \@names_one);
		my $side = "SELECT " . aliased(@$names) . " FROM $table->{name} WHERE "
			. random_predicate('id', $table, { sql => $names->[0] });
		if (chance(25))
		{
			my $from = { scope => [ scope_of($table, $table->{name}) ], ids => ['id'], table => $table };
			$side .= ' ORDER BY ' . join(', ', map { s/^id\b/$table->{name}.id/r } total_keys($context, $from)) . ' LIMIT '
				. between(0, $table->{rows} + 1);
		}
		push @sides, $i == @operations ? "($side)" : "($side) $operations[$i]";
	}
	@sides[1, 2] = ("($sides[1]", "$sides[2])") if @sides == 3 && chance(30);
	return { name => 'set operation', %{ _distinct_like(join(' ', @sides), \@types, 1) } };
}

1;
