# FuzzSql - queries put together at random of all that SQL has, over the tables of FuzzTables.
#
# FuzzExpressions, FuzzAggregates, FuzzGroups, FuzzWindows and FuzzRelations have the parts, FuzzPartitions queries
# whose rows are known from others.  A query is one of FuzzQuery's, with some more:
#   body     the query itself, a FuzzText; sql is what it and before and after are together
#   before, after   the statements round it
#   select   the query alone, with values for parameters
package FuzzSql;

use strict;
use warnings;

use Exporter qw(import);
use FuzzExpressions;
use FuzzGroups;
use FuzzPartitions;
use FuzzQuery qw(way_out);
use FuzzRandom;
use FuzzRelations;
use FuzzTables ();
use FuzzText;
use FuzzWindows;

our @EXPORT = qw(wide_query with_body with_values);

# Numerics as they look where they may be equal to others of another scale.
sub _canonical
{
	my ($output) = @_;
	return $output->{class} eq 'num' ? "round($output->{sql}, 2)" : $output->{sql};
}

# A select list with names o1, o2 ...
sub _list
{
	my ($canonical, @outputs) = @_;
	my $n = 0;
	return listed(map { $n++; ($canonical ? _canonical($_) : $_->{sql}) . " AS o$n" } @outputs);
}

sub _columns
{
	my (@outputs) = @_;
	my $n = 0;
	return [ map { { name => 'o' . ++$n, class => $_->{class} } } @outputs ];
}

# Rows as they are: { outputs, rest, rows, ids, scope }, as FuzzGroups has it.
sub _plain
{
	my ($context, %option) = @_;
	my $scope = joined($context, $option{depth});
	my @outputs = map { { sql => expression($context, $scope, $_, 2), class => $_ } } map { any_class($scope) }
		1 .. between(1, 4);
	my @ids = @{ $scope->{ids} || [] };

	push @outputs, map { { sql => $_, class => 'int' } } @ids;
	push @outputs, map { { sql => one_of('0', 'NULL::int', '1::int8', '(2 - 2)'), class => 'int' } } 1 .. between(1, 2)
		if $option{constants} ? chance(60) : chance(10);
	push @outputs, window_outputs($context, $scope, between(1, 3)) if $option{windows};
	push @outputs, { sql => one_of("generate_series(1, abs(@{[ expression($context, $scope, 'int', 0) ]} % 3)::int)",
		"unnest(ARRAY[1, @{[ expression($context, $scope, 'int', 0) ]}])"), class => 'int' }
		if !$option{windows} && !$option{no_sets} && chance(7);
	my $where = where_text($scope, chance(50) ? predicate($context, $scope, 2) : ());
	my @at = grep { my $at = $_; grep { $outputs[$at]{sql} eq $_ } @ids } 0 .. $#outputs;
	# rows of a set-returning function are not told apart by ids
	my $sets = grep { $_->{sql} =~ /^(?:generate_series|unnest)/ } @outputs;
	return { outputs => \@outputs, rest => " FROM $scope->{sql}$where", rows => $scope->{rows}, scope => $scope,
		ids => @ids && !$sets ? [ map { 'o' . ($_ + 1) } @at ] : undef,
		unique => defined $scope->{unique} && !$sets && @at == 1 ? 'o' . ($at[0] + 1) : undef };
}

# Sides whose columns have the same classes.
sub _set
{
	my ($context, %option) = @_;
	my @classes = map { one_of(qw(int int text num date bool)) } 1 .. between(1, 3);
	my $side = sub {
		my $parts = chance(30) ? group_parts($context, joined($context, $option{depth} - 1)) : undef;
		my $scope = $parts ? $parts->{scope} : joined($context, $option{depth} - 1);
		my @outputs = map { { sql => expression($context, $scope, $_, 1), class => $_ } } @classes;
		my $n = 0;
		# what stands in the place of a column must stay
		return { rows => $scope->{rows}, sql => 'SELECT ' . join(', ', map { $n++; _canonical($_) . ($_->{class} eq 'text'
			? ' COLLATE "C"' : '') . " AS o$n" } @outputs)
			. ($parts ? $parts->{rest} : " FROM $scope->{sql}" . where_text($scope, predicate($context, $scope, 1))) };
	};
	my $first = $side->();
	my ($sql, $rows) = ("($first->{sql})", $first->{rows});

	for (1 .. weighted(60 => 1, 30 => 2, 10 => 3))
	{
		my $operation = one_of('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT', 'UNION ALL', 'INTERSECT ALL', 'EXCEPT ALL');
		my $other = $side->();
		$sql = chance(40) ? "($sql" . optional(" $operation ($other->{sql})") . ')' : $sql
			. optional(" $operation ($other->{sql})");
		$rows += $other->{rows};
	}
	my @columns = map { { name => "o$_", class => $classes[ $_ - 1 ] } } 1 .. @classes;
	return { sql => $sql, rows => $rows, columns => \@columns };
}

# A SELECT: { sql, columns, rows, ids, unique }.  Options: depth; kind; export, it is a subquery; order, it may
# have one.
sub select_query
{
	my ($context, %option) = @_;
	my $depth = $option{depth} // 2;
	my $kind = $option{kind} // weighted(58 => 'groups', 14 => 'windows', 18 => 'plain', 10 => 'set');
	my $parts = $kind eq 'set' ? _set($context, depth => $depth)
		: $kind eq 'groups' ? group_parts($context, joined($context, $depth), %option{ grep { exists $option{$_} } qw(none) })
		: _plain($context, %option, depth => $depth, windows => $kind eq 'windows');
	my $total = $option{order} && chance(50);
	my ($columns, $distinct, $width) = ($parts->{columns}, '', scalar @{ $parts->{columns} || $parts->{outputs} });
	my $sql = $parts->{sql};

	if (!defined $sql)
	{
		$distinct = 'DISTINCT ' if chance($option{distinct} // 7);
		my $canonical = $option{export} || $distinct ne '' || $total;
		$columns = _columns(@{ $parts->{outputs} });
		$sql = 'SELECT ' . optional($distinct) . _list($canonical, @{ $parts->{outputs} }) . $parts->{rest};
	}
	my %query = (columns => $columns, rows => $parts->{rows}, ids => $distinct eq '' ? $parts->{ids} : undef,
		unique => $distinct eq '' ? $parts->{unique} : undef, ordered => $total);
	# PostgreSQL does not sort by a constant, though it is NULL where a set is without it
	$sql = "SELECT * FROM ($sql) q" if $total && $parts->{sets};
	if ($total)
	{
		# ties are of rows that are the same
		my @keys = $parts->{scope} && $distinct eq '' && !$parts->{sets} ? grep { /\w\.\w|\(\*\)/ } map {
			my $class = any_class($parts->{scope});
			plain(expression($context, $parts->{scope}, $class, 1)) . one_of('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST')
		} 1 .. one_of(0, 1, 1, 2) : ();
		$sql .= optional(' ORDER BY ' . join(', ', @keys, shuffled(1 .. $width))
			. (chance(40) ? optional(' LIMIT ' . one_of(0, 1, 5, 10, 100, 1000, 20000)
			. one_of('', '', ' OFFSET ' . between(0, 50))) : ''));
	}
	elsif ($option{order} && chance(20))
	{
		$sql .= optional(' ORDER BY ' . join ', ', some_of(between(1, 2), 1 .. $width));
	}
	elsif ($option{export} && $query{ids} && @{ $query{ids} } && chance(12))
	{
		$sql .= optional(' ORDER BY ' . join(', ', (chance(50) ? one_of(map { $_->{name} } @$columns) : ()), @{ $query{ids} })
			. one_of('', ' LIMIT ' . between(0, 3000), ' OFFSET 3'));
	}
	return { %query, sql => $sql };
}

# --- statements -----------------------------------------------------------------------------------

my @parameters = (qw(5 2), "'k1'");

# Text with values in the place of parameters.
sub with_values
{
	my ($text) = @_;
	return $text =~ s/\$([123])\b/$parameters[$1 - 1]/gr;
}

# The query with another text, which need not be FuzzText's.
sub with_body
{
	my ($query, $body) = @_;
	my $text = plain($body);

	$query->{body} = $body;
	$query->{sql} = $query->{before} . $text . $query->{after};
	$query->{select} = with_values($text);
	return $query;
}

# Statements round a query.
sub _around
{
	my ($context, $ordered) = @_;
	my $values = sub { join ', ', one_of(0, 1, 5, 'NULL', 100), one_of(0, 2, 'NULL'), one_of("'k1'", "''", 'NULL') };
	my $leaving = sub { my $way = one_of(@_); return (name => "sql $way", %{ way_out($way) }) };

	return (name => 'sql prepared', before => 'PREPARE p (int, int, text) AS ',
		after => join('', map { ";\nEXECUTE p (@{[ $values->() ]})" } 1 .. one_of(1, 1, 2, 3, 7)) . ";\nDEALLOCATE p",
		settings => ['plan_cache_mode = ' . one_of(qw(auto force_generic_plan force_custom_plan))]) if $context->{params};
	return weighted(
		60 => sub { (name => 'sql', before => '', after => '') },
		$ordered ? (16 => sub { $leaving->('protocol', 'protocol', 'copy', 'copy to a file', 'copy to a program') }) : (),
		10 => sub { (name => 'sql cursor', before => "BEGIN;\nDECLARE c CURSOR FOR ",
			after => ";\n" . ($ordered ? 'FETCH ' . one_of(1, 10, 1000) . " FROM c;\n" . one_of('', "MOVE 5 FROM c;\n") : '')
				. "FETCH ALL FROM c;\nCOMMIT") },
		6 => sub { $leaving->('create table as', 'create table as', 'materialized view') },
		10 => sub { (name => 'sql row security', before => "SET ROLE $FuzzTables::reader;\n", after => ";\nRESET ROLE") },
		4 => sub { (name => 'sql explain', mode => 'errors', before => 'EXPLAIN (' . one_of('ANALYZE, TIMING off', 'VERBOSE',
			'ANALYZE, VERBOSE, TIMING off', 'COSTS off') . ') ', after => '') })->();
}

# Option tlp: the percentage of queries whose rows are compared with those of parts (FuzzPartitions).
sub wide_query
{
	my ($round, %option) = @_;
	my $context = { %$round, few => 'few', aliases => 0, ctes => [], subplans => one_of(0, 1, 2, 3) };

	return partitioned_query($context) if chance($option{tlp} // 8);
	$context->{params} = chance(16);
	my $query = select_query($context, depth => one_of(0, 1, 1, 2), order => 1);
	my %around = _around($context, $query->{ordered});
	my $ctes = @{ $context->{ctes} } ? optional('WITH ' . listed(map { $_->{text} } @{ $context->{ctes} }) . ' ') : '';

	return with_body({ mode => $query->{ordered} ? 'exact' : 'multiset', wide => 1, %around }, $ctes . $query->{sql});
}

1;
