# FuzzExpressions - expressions and predicates of a class of types, over whatever columns there are.
#
# A scope is a hash:
#   sql      after FROM
#   where    a predicate to come with it, if any
#   columns  [ { sql, class } ]; class is int, num, text, bool, date or flt, or what is no part of others: real (a
#            float that is no whole number), array
#   ids      columns that together tell any two rows apart, where it is known
#   unique   a column of integers that does so alone, if there is one
#   rows     a rough number
#
# A context is a round's: few, the name of a table of a few rows with an id; and a query's: params, true where $1
# and $2, which are integers, and $3, a text, may be used; subplans, how many more there may be.
#
# The text is FuzzText's.  Values of equal rows are equal in every plan: floats are whole numbers, so that their
# sums are exact, numerics have two digits, so that equal ones look the same, and nothing fails for a row that not every
# plan looks at.
package FuzzExpressions;

use strict;
use warnings;

use Exporter qw(import);
use FuzzRandom;
use FuzzText;

our @EXPORT = qw(@CLASSES column_of constant expression predicate where_text any_class alias);

our @CLASSES = qw(int int num text bool date flt);

# A name that no other part of the query has.
sub alias
{
	my ($context, $letter) = @_;
	return ($letter // 'q') . ++$context->{aliases};
}

sub column_of
{
	my ($scope, $class) = @_;
	my @columns = grep { $_->{class} eq $class } @{ $scope->{columns} };
	return @columns ? one_of(@columns)->{sql} : undef;
}

# One of the classes that the scope has.
sub any_class
{
	my ($scope) = @_;
	my @columns = grep { my $column = $_; grep { $column->{class} eq $_ } @CLASSES } @{ $scope->{columns} };
	return @columns ? one_of(@columns)->{class} : 'int';
}

sub constant
{
	my ($context, $class) = @_;

	return one_of('$1', '$2') if $class eq 'int' && $context->{params} && chance(40);
	return '$3' if $class eq 'text' && $context->{params} && chance(40);
	return one_of(0, 0, 0, 1, 1, 2, 5, 10, 100, 1000, '(-1)', '(2 - 2)') if $class eq 'int';
	return one_of('0.00', '0.00', '1.50', '10.25', '0::numeric(10, 2)') if $class eq 'num';
	return one_of(map { "'$_'::text" } '', 'a', 'k1', 'k5', 'zz') if $class eq 'text';
	return one_of('true', 'false', 'true', '(0 = 0)') if $class eq 'bool';
	return one_of("'2020-01-01'::date", "'2021-06-30'::date", "'infinity'::date") if $class eq 'date';
	return one_of('0::float8', '5::float8', '1e3::float8');
}

# One value of a class, of a subquery: an InitPlan, or a SubPlan where it looks at the row.
sub _subquery
{
	my ($context, $scope, $class) = @_;
	my $few = $context->{few};
	my $q = alias($context, 's');
	my @correlated;

	if ($scope->{rows} <= 150000)
	{
		my $x = column_of($scope, 'int');
		@correlated = (" WHERE $q.id = $x % 30", " WHERE $q.id > $x % 9", " WHERE $q.g <> $x") if defined $x
			&& $x !~ /[\x01-\x06]/ && ($x =~ /^\w+\.\w+$/ || chance(25));
	}
	my $where = @correlated && chance(60) ? one_of(@correlated)
		: one_of('', " WHERE $q.b", " WHERE $q.id > 5", ' WHERE false');
	$where .= " AND $q.id <> " . constant($context, 'int') if $where =~ /\.id/ && chance(20);
	my %values = (
		int => [ "max($q.id)", 'count(*)', "min($q.g)", "sum($q.id)::int", 'count(*) + 0' ],
		num => [ "sum($q.n)", "max($q.n)", "coalesce(sum($q.n), 0.00)" ],
		text => [ "max($q.x)", "min($q.x)", "string_agg($q.x, '' ORDER BY $q.id)" ],
		bool => [ "bool_and($q.b)", 'count(*) > 3', "every($q.id > 0)" ],
		date => [ "max($q.d)" ],
		flt => [ "sum($q.f)" ]);
	return '(SELECT ' . one_of(@{ $values{$class} }) . " FROM $few $q$where)";
}

# An expression of a class; deeper ones have others as parts.
sub expression
{
	my ($context, $scope, $class, $depth) = @_;
	my $column = column_of($scope, $class);
	my $simple = defined $column && !chance(8) ? $column : constant($context, $class);

	$depth //= 2;
	return $simple if $depth <= 0 || chance(50);
	if ($context->{subplans} > 0 && chance(9))
	{
		$context->{subplans}--;
		return either(_subquery($context, $scope, $class), $simple);
	}
	my $of = sub { return expression($context, $scope, $_[0] // $class, $depth - 1) };
	my $either = sub { return either($_[0], $simple) };
	my $collate = $class eq 'text' ? ' COLLATE "C"' : '';
	if (chance(30))
	{
		return $either->(weighted(
			40 => sub { "coalesce(@{[ $of->() ]}, @{[ constant($context, $class) ]})$collate" },
			30 => sub { "CASE WHEN @{[ predicate($context, $scope, $depth - 1) ]} THEN @{[ $of->() ]}$collate "
				. "@{[ one_of('', 'ELSE ' . constant($context, $class) . $collate . ' ') ]}END" },
			15 => sub { "nullif(@{[ $of->() ]}$collate, @{[ constant($context, $class) ]})" },
			15 => sub { one_of('greatest', 'least') . "(@{[ $of->() ]}$collate, @{[ $of->() ]}$collate)" })->());
	}
	my %make = (
		int => sub { one_of(
			sub { '(' . $of->() . ' + ' . constant($context, 'int') . ')' },
			sub { '(' . $of->() . ' % ' . one_of(2, 3, 10, 100) . ')' },
			sub { '(- ' . $of->() . ')' },
			sub { 'abs(' . $of->() . ')' },
			sub { '(' . $of->() . ' - ' . $of->() . ')' },
			sub { 'length(' . $of->('text') . ')' },
			sub { $of->('bool') . '::int' },
			sub { 'extract(day FROM nullif(' . $of->('date') . ", 'infinity'))::int" })->() },
		num => sub { one_of(
			sub { '(' . $of->() . ' + ' . $of->('int') . ')' },
			sub { '(round(' . $of->() . ', 1) + 0.00)' },
			sub { '(' . $of->('int') . ' + 0.00)' },
			sub { 'abs(' . $of->() . ')' })->() },
		text => sub { one_of(
			sub { '(' . $of->() . " || 'a')" },
			sub { 'left(' . $of->() . ', 2)' },
			sub { 'upper(' . $of->() . ')' },
			sub { '(' . $of->('int') . ')::text' },
			sub { 'md5(' . $of->() . ')' },
			sub { '(' . $of->() . ' COLLATE "C")' })->() },
		bool => sub { '(' . predicate($context, $scope, $depth - 1) . ')' },
		date => sub { '(' . $of->() . ' + ' . one_of(0, 1, 30) . ')' },
		flt => sub { one_of(
			sub { '(' . $of->('int') . ')::float8' },
			# no zero is negative
			sub { '(1 - ' . $of->() . ')' },
			sub { '(' . $of->() . ' + 1)' })->() });
	return $either->($make{$class}->());
}

# Other columns are the query's own, or a table's of few rows.
sub _predicate_of_subquery
{
	my ($context, $scope) = @_;
	my $x = column_of($scope, 'int');
	my $q = alias($context, 's');
	my $few = $context->{few};

	$x = constant($context, 'int') unless defined $x && $x !~ /[\x01-\x06]/;
	return one_of("$x % 40 IN (SELECT $q.id FROM $few $q)", "$x % 40 NOT IN (SELECT $q.id FROM $few $q WHERE $q.b)",
		"EXISTS (SELECT 1 FROM $few $q WHERE $q.id = $x)", "NOT EXISTS (SELECT FROM $few $q WHERE $q.id = $x % 20 AND $q.b)",
		"$x > ALL (SELECT $q.id FROM $few $q WHERE $q.b)", "$x = ANY (SELECT $q.id FROM $few $q ORDER BY $q.id LIMIT 9)",
		"$x < (SELECT max($q.m) FROM $few $q)", "$x = ANY (ARRAY(SELECT $q.id FROM $few $q))",
		"($x, 1) IN (SELECT $q.id, 1 FROM $few $q)", "EXISTS (SELECT 1 FROM $few $q WHERE $q.id < 0)");
}

sub predicate
{
	my ($context, $scope, $depth) = @_;
	my $class = any_class($scope);
	my $collate = $class eq 'text' ? ' COLLATE "C"' : '';

	$depth //= 2;
	if ($context->{subplans} > 0 && $depth > 0 && chance(10))
	{
		$context->{subplans}--;
		return either(_predicate_of_subquery($context, $scope), 'true');
	}
	if ($depth > 0 && chance(25))
	{
		my ($one, $two) = map { predicate($context, $scope, $depth - 1) } 1 .. 2;
		return either(one_of("($one AND $two)", "($one OR $two)", "(NOT $one)", "(($one) IS NOT TRUE)",
			"(($one) IS DISTINCT FROM ($two))"), $one);
	}
	my $x = expression($context, $scope, $class, $depth - 1);
	return either(weighted(
		30 => sub { "$x " . one_of('<', '>', '<=', '>=', '<>', '=') . " @{[ constant($context, $class) ]}$collate" },
		15 => sub { "$x$collate < @{[ expression($context, $scope, $class, $depth - 1) ]}" },
		15 => sub { "$x IS NOT NULL" },
		8 => sub { "$x IS NULL" },
		10 => sub { "$x BETWEEN @{[ constant($context, $class) ]} AND @{[ constant($context, $class) ]}" },
		8 => sub { "$x IN (@{[ constant($context, $class) ]}, @{[ constant($context, $class) ]})" },
		8 => sub { expression($context, $scope, 'int', 1) . ' % ' . one_of(2, 3, 7) . ' ' . one_of('<>', '=') . ' 0' },
		2 => sub { 'random() IS NOT NULL' },
		2 => sub { "clock_timestamp() > '2000-01-01'" },
		2 => sub { one_of('true', 'false', 'NULL::bool') })->(), 'true');
}

# WHERE with what has to be there and more; '' if there is nothing.
sub where_text
{
	my ($scope, @more) = @_;
	my @parts = grep { defined } $scope->{where}, @more;
	return '' unless @parts;
	return optional(' WHERE ' . join ' AND ', map { "($_)" } @parts);
}

1;
