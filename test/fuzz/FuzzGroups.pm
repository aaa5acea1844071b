# FuzzGroups - queries with aggregates: no GROUP BY, columns, expressions and constants, sets of all kinds.
#
#   my $groups = group_parts($context, $scope);
#   $groups->{rest}		# from FROM on
#   $groups->{scope}	# what the select list, HAVING, windows and ORDER BY may be made of
#   $groups->{outputs}	# [ { sql, class } ]
#   $groups->{ids}		# which outputs together are those of one group, where that is known
package FuzzGroups;

use strict;
use warnings;

use Exporter qw(import);
use FuzzAggregates;
use FuzzExpressions;
use FuzzRandom;
use FuzzText;
use FuzzWindows;

our @EXPORT = qw(group_parts);

# A constant that is no position.
sub _constant_key
{
	my ($sql, $class) = @{ one_of([ '0::int', 'int' ], [ 'NULL::int', 'int' ], [ '1::int8', 'int' ],
		[ q{'a'::text}, 'text' ], [ '(1 + 0)', 'int' ], [ 'true', 'bool' ],
		[ '0.00::numeric', 'num' ], [ '(SELECT 1)', 'int' ]) };
	return { sql => $sql, class => $class, constant => 1 };
}

sub _keys
{
	my ($context, $scope, $n) = @_;
	my @keys;

	for (1 .. $n)
	{
		push @keys, weighted(
			62 => sub { my $class = one_of(qw(int int int int text num date bool));
				{ sql => column_of($scope, $class) // 'NULL::int', class => defined column_of($scope, $class) ? $class : 'int' } },
			20 => sub { my $class = one_of(qw(int int num text bool date));
				{ sql => plain(expression({ %$context, subplans => chance(15) ? 1 : 0 }, $scope, $class, 2)), class => $class } },
			11 => \&_constant_key,
			7 => sub { @keys ? { %{ one_of(@keys) } } : _constant_key() })->();
		$keys[-1]{sql} .= '::' . { int => 'int8', num => 'numeric', flt => 'float8', text => 'text', bool => 'bool',
			date => 'date' }->{ $keys[-1]{class} } if $keys[-1]{sql} =~ /^\S+$/ && $keys[-1]{sql} !~ /^\w+\.\w+$|::|^\(/;
	}
	return @keys;
}

# Sets of the keys, with others within them.
sub _sets
{
	my ($depth, @keys) = @_;
	my @sets;

	for (1 .. between(1, 4))
	{
		push @sets, weighted(
			20 => sub { '()' },
			55 => sub { '(' . join(', ', some_of(between(1, scalar @keys), @keys)) . ')' },
			8 => sub { one_of(@keys) },
			7 => sub { 'ROLLUP (' . join(', ', some_of(between(1, 3), @keys)) . ')' },
			4 => sub { 'CUBE (' . join(', ', some_of(between(1, 2), @keys)) . ')' },
			6 => sub { $depth > 0 ? _sets($depth - 1, @keys) : '()' })->();
	}
	push @sets, one_of(@sets) if chance(15);
	return 'GROUPING SETS (' . listed(@sets) . ')';
}

# What comes after GROUP BY, and whether it is more than one set.
sub _group_by
{
	my (@keys) = @_;
	my @sql = map { $_->{sql} } @keys;

	return (listed(@sql), 0) if chance(45);
	my $sets = weighted(
		30 => sub { 'ROLLUP (' . listed(@sql) . ')' },
		15 => sub { 'CUBE (' . listed(some_of(3, @sql)) . ')' },
		40 => sub { _sets(1, @sql) },
		10 => sub { my ($first, @others) = @sql; @others ? "$first, ROLLUP (" . listed(@others) . ')' : "ROLLUP ($first)" },
		5 => sub { my ($first, @others) = @sql;
			@others ? "ROLLUP ($first), CUBE (" . listed(@others) . ')' : "CUBE ($first)" },
		5 => sub { @sql > 2 ? "ROLLUP (($sql[0], $sql[1]), " . listed(@sql[ 2 .. $#sql ]) . ')'
			: 'ROLLUP ((' . join(', ', @sql) . '))' })->();
	return (optional(chance(12) ? 'DISTINCT ' : '') . $sets, 1);
}

# An aggregate as it is, or in an expression.
sub _wrapped
{
	my ($context, $scope, $aggregate) = @_;
	my ($sql, $class) = @$aggregate{qw(sql class)};
	my $number = $class =~ /^(?:int|num|flt|real)$/;

	return $aggregate if $class eq 'array' || chance(55);
	return { sql => either("coalesce($sql, 0)", $sql), class => $class } if $number && chance(40);
	return { sql => either("($sql + 0)", $sql), class => $class } if $number && chance(40);
	return { sql => either("CASE WHEN $sql IS NOT NULL THEN $sql END", $sql), class => $class }
		if chance(40) || $class eq 'real';
	return { sql => either(expression($context, { %$scope, columns => [ $aggregate, @{ $scope->{columns} } ] }, $class, 2),
		$sql), class => $class };
}

sub group_parts
{
	my ($context, $scope, %option) = @_;
	my @keys = _keys($context, $scope, $option{keys} // weighted(18 => 0, 30 => 1, 30 => 2, 16 => 3, 6 => 4));
	my $dependent = $scope->{pk} && chance(15);
	@keys = ({ sql => $scope->{pk}, class => 'int' }, some_of(1, @keys)) if $dependent;
	splice @keys, below(@keys + 1), 0, _constant_key() if @keys && !$dependent && chance(15);
	my ($by, $sets) = @keys ? _group_by(@keys) : chance(15) ? (one_of('()', 'GROUPING SETS ((), ())'), 1) : ('', 0);
	my $focus = new_focus($context, $scope);
	$focus->{keys} = \@keys;
	my @aggregates = $option{none} ? () : aggregates($focus);
	my @parts = (@keys, @aggregates);

	# other columns of a table whose key the rows are grouped by
	push @parts, some_of(2, grep { $_->{of_pk} } @{ $scope->{columns} }) if $dependent && !$sets;
	my @grouping = map { { sql => 'grouping(' . join(', ', map { $_->{sql} } some_of(between(1, 3), @keys)) . ')',
		class => 'int' } } 1 .. between(1, 2) if @keys && ($sets ? chance(60) : chance(5));
	my %scope = (columns => [ @parts, @grouping ], rows => @keys ? $scope->{rows} : 1);
	my @outputs = grep { chance(85) } @keys;

	push @outputs, map { _wrapped($context, \%scope, $_) } @aggregates;
	push @outputs, grep { $_->{of_pk} } @parts;
	push @outputs, @grouping;
	push @outputs, _constant_key() if chance(8);
	for (1 .. one_of(0, 0, 1))
	{
		my $class = any_class(\%scope);
		push @outputs, { sql => expression($context, \%scope, $class, 2), class => $class };
	}
	# up to 17 constants are no keys of windows for PostgreSQL, though grouping sets make them NULL: ties decide then
	my %steady = (%scope, columns => [ grep { !$sets || !$_->{constant} } @{ $scope{columns} } ]);
	push @outputs, window_outputs($context, \%steady, between(1, 2)) if $option{windows} // chance(14);
	@outputs = shuffled(@outputs) if chance(50);
	@outputs = ({ sql => 'count(*)', class => 'int' }) if !@outputs;
	my $rest = " FROM $scope->{sql}" . where_text($scope, chance(30) ? predicate($context, $scope, 2) : ());
	if ($by ne '')
	{
		# a position stands for what the select list has there
		my ($at) = grep { $outputs[$_]{sql} eq ($keys[0] // { sql => '' })->{sql} } 0 .. $#outputs;
		$by =~ s/\Q$keys[0]{sql}\E/$at + 1/e if defined $at && !$sets && @keys == 1 && chance(15);
		$rest .= " GROUP BY $by";
	}
	$rest .= optional(' HAVING ' . predicate($context, \%scope, 2)) if chance(30);
	return { rest => $rest, scope => \%scope, outputs => \@outputs, rows => $scope{rows}, sets => $sets };
}

1;
