# FuzzRelations - what queries select from: tables, views, subqueries of all kinds, CTEs, joins.
#
# Relations are scopes of FuzzExpressions.
package FuzzRelations;

use strict;
use warnings;

use Exporter qw(import);
use FuzzExpressions;
use FuzzRandom;
use FuzzText;

our @EXPORT = qw(relation joined);

sub _table
{
	my ($context, $name, %option) = @_;
	my $table = $option{table} // one_of(@{ $context->{tables} });
	my $alias = alias($context);
	my $kind = $table->{name} eq 'few' ? 'table' : weighted(65 => 'table', 10 => 'barrier', 25 => 'constants');
	my @columns = map { { sql => "$alias.$_->{name}", class => $_->{class}, of_pk => $kind eq 'table' } }
		@{ $table->{columns} };

	if ($kind eq 'constants')
	{
		my @constants = map { { sql => "$alias.k$_", class => $_ == 3 ? 'text' : 'int' } } 0 .. 5;
		# so that they are taken often
		push @columns, @constants, @constants;
	}
	return { sql => ($kind eq 'table' ? '' : "${kind}_") . "$table->{name} $alias", columns => \@columns,
		ids => ["$alias.id"], unique => "$alias.id", rows => $table->{rows},
		pk => $kind eq 'table' && $table->{key} ? "$alias.id" : undef };
}

# The big table mostly, or one of few rows.
sub _some_table
{
	my ($context, $few) = @_;
	my ($big, $mid, $small) = @{ $context->{tables} };
	return _table($context, undef, table => $few ? weighted(70 => $small, 30 => $mid)
		: weighted(65 => $big, 25 => $mid, 10 => $small));
}

# A query as a relation under an alias.
sub _of_query
{
	my ($context, $query, $before, $after) = @_;
	my $alias = alias($context);
	my @columns = map { { sql => "$alias.$_->{name}", class => $_->{class} } } @{ $query->{columns} };

	return { sql => $before . $query->{sql} . "$after $alias", columns => \@columns, rows => $query->{rows},
		ids => $query->{ids} ? [ map { "$alias.$_" } @{ $query->{ids} } ] : undef,
		unique => defined $query->{unique} ? "$alias.$query->{unique}" : undef };
}

sub _cte
{
	my ($context, $depth) = @_;
	my $cte = @{ $context->{ctes} } && chance(50) ? one_of(@{ $context->{ctes} }) : undef;

	if (!$cte)
	{
		my $query = FuzzSql::select_query($context, depth => $depth - 1, export => 1);
		$cte = { %$query, name => alias($context, 'w') };
		$cte->{text} = "$cte->{name} AS " . one_of('', 'MATERIALIZED ', 'NOT MATERIALIZED ') . "($query->{sql})";
		push @{ $context->{ctes} }, $cte;
	}
	my $relation = _of_query($context, { %$cte, sql => $cte->{name} }, '', '');
	return $relation;
}

sub _recursive
{
	my ($context) = @_;
	my $few = $context->{few};
	my $alias = alias($context);
	my $union = one_of('UNION ALL', 'UNION');
	my $step = one_of("SELECT t.id, w.n + 1 FROM w JOIN $few t ON t.id = w.i + 1 WHERE w.n < 5",
		"SELECT t.g, w.n + 1 FROM w, $few t WHERE t.id = w.i AND w.n < 4",
		"SELECT q.i, q.n FROM (SELECT t.id AS i, w.n + 1 AS n, row_number() OVER (ORDER BY t.id, w.i, w.n) AS k FROM w "
			. "JOIN $few t ON t.id > w.i WHERE w.n < 3) q WHERE q.k < 20");
	return { sql => "(WITH RECURSIVE w (i, n) AS (SELECT id, 0 FROM $few $union $step) SELECT * FROM w) $alias",
		columns => [ map { { sql => "$alias.$_", class => 'int' } } qw(i n) ], rows => 400 };
}

# One thing to select from.
sub relation
{
	my ($context, $depth, $few) = @_;
	my $query = sub { return FuzzSql::select_query($context, depth => $depth - 1, export => 1, @_) };

	return _some_table($context, $few) if $depth <= 0 || chance(60);
	return weighted(
		34 => sub { _of_query($context, $query->(kind => 'plain', constants => 1), '(', one_of(')', ' OFFSET 0)')) },
		30 => sub { _of_query($context, $query->(kind => 'groups'), '(', ')') },
		10 => sub { _of_query($context, $query->(kind => 'windows'), '(', ')') },
		10 => sub { _of_query($context, $query->(kind => 'set'), '(', ')') },
		14 => sub { _cte($context, $depth) },
		6 => sub { _recursive($context) },
		4 => sub { my $alias = alias($context); my $n = between(1, 3000);
			{ sql => "generate_series(1, $n) $alias (i)", columns => [ { sql => "$alias.i", class => 'int' } ],
				ids => ["$alias.i"], unique => "$alias.i", rows => $n } },
		4 => sub { my $alias = alias($context);
			{ sql => "(VALUES (1, 'a', 0), (2, 'k1', 0), (3, NULL, 0), (NULL, 'a', 0)) $alias (i, s, k)",
				columns => [ { sql => "$alias.i", class => 'int' }, { sql => "$alias.s", class => 'text' },
				{ sql => "$alias.k", class => 'int' } ], rows => 4 } })->();
}

# A subquery that looks at the row to its left.
sub _lateral
{
	my ($context, $left) = @_;
	my $x = column_of($left, 'int') // 1;
	my ($alias, $q, $few) = (alias($context), alias($context, 's'), $context->{few});
	my $query = one_of("SELECT count(*) AS c, max($q.x) AS e FROM $few $q WHERE $q.id > $x % 20",
		"SELECT $q.id AS c, $q.x AS e FROM $few $q WHERE $q.g <> $x ORDER BY $q.n, $q.id LIMIT 2",
		"SELECT sum($q.id + $x) AS c, string_agg($q.x, ',' ORDER BY $q.id) AS e FROM $few $q WHERE $q.b",
		"SELECT $x + 1 AS c, 'a'::text AS e",
		"SELECT rank() OVER (ORDER BY $q.g) AS c, $q.x AS e FROM $few $q WHERE $q.id = $x");
	return { sql => "LATERAL ($query) $alias", columns => [ { sql => "$alias.c", class => 'int' },
		{ sql => "$alias.e", class => 'text' } ], rows => 2, ids => undef };
}

sub _join
{
	my ($context, $left, $right, $kind, $on, %more) = @_;
	my $ids = $left->{ids} && $right->{ids} ? [ @{ $left->{ids} }, @{ $right->{ids} } ] : undef;
	my @where = grep { defined } $left->{where}, $right->{where};

	return { sql => "$left->{sql} $kind $right->{sql}$on", columns => [ @{ $left->{columns} }, @{ $right->{columns} } ],
		ids => $ids, rows => $kind eq 'FULL JOIN' ? $left->{rows} + $right->{rows} : $left->{rows},
		where => @where ? join(' AND ', @where) : undef, %more };
}

# One to three relations, joined so that rows do not become many more.
sub joined
{
	my ($context, $depth) = @_;
	my $left = relation($context, $depth);

	for (1 .. weighted(62 => 0, 28 => 1, 10 => 2))
	{
		if (chance(20) && $left->{rows} <= 30000)
		{
			my ($kind, $on) = @{ one_of([ 'CROSS JOIN', '' ], [ 'LEFT JOIN', ' ON true' ]) };
			$left = _join($context, $left, _lateral($context, $left), $kind, $on);
			next;
		}
		my $right = relation($context, $depth - 1, chance(40));
		my $x = column_of($left, 'int');
		next unless defined $x && ($right->{unique} || $right->{rows} <= 40 && $left->{rows} <= 5000);
		my $y = $right->{unique} // column_of($right, 'int') // next;
		my $kind = weighted(40 => 'JOIN', 25 => 'LEFT JOIN', 15 => 'RIGHT JOIN', 20 => 'FULL JOIN');
		my $both = { columns => [ @{ $left->{columns} }, @{ $right->{columns} } ], rows => 1e9 };
		my $more = $kind ne 'FULL JOIN' && chance(20)
			? optional(' AND ' . predicate({ %$context, subplans => 0 }, $both, 1)) : '';
		$left = _join($context, $left, $right, $kind, " ON $x = $y$more",
			unique => $kind =~ /^(?:JOIN|LEFT JOIN)$/ && $right->{unique} ? $left->{unique} : undef);
	}
	return $left;
}

1;
