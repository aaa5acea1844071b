# FuzzPartitions - queries whose rows are known from those of others, as SQLancer has it (ternary logic partitioning).
#
# Rows for which a predicate is true, those for which it is false and those for which it is NULL are all rows.  So a
# query of all is the same as one of three parts, by UNION ALL, by UNION where rows are distinct, or by aggregates of
# aggregates.  And no plan changes how many rows there are.  A query is FuzzSql's, and
#   parts   the other query, whose rows must be the same, with gpusort as well
package FuzzPartitions;

use strict;
use warnings;

use Exporter qw(import);
use FuzzExpressions;
use FuzzRandom;
use FuzzRelations;
use FuzzText;

our @EXPORT = qw(partitioned_query);

# What a query shows of all rows, and what of its parts' that is.
my %again = (count => 'sum', sum => 'sum', min => 'min', max => 'max', bool_and => 'bool_and', bool_or => 'bool_or',
	bit_xor => 'bit_xor');

sub _aggregates
{
	my ($context, $scope) = @_;
	my @functions = map { one_of(qw(count sum min max bool_and bool_or count sum)) } 1 .. between(1, 5);
	my $column = column_of($scope, 'int') // 1;
	my @whole = ('count(*)', map {
		/^bool/ ? "$_(@{[ column_of($scope, 'bool') // 'true' ]})"
			: $_ eq 'count' && chance(50) ? 'count(DISTINCT ' . (column_of($scope, 'text') // 1) . ') * 0'
			: "$_($column)"
	} @functions);
	my $n = 0;
	return (\@whole, [ map { $n++; "$_(o$n)" } map { $again{$_} } 'count', @functions ]);
}

sub partitioned_query
{
	my ($context) = @_;
	my $scope = joined($context, one_of(0, 0, 1));
	my $where = chance(40) ? predicate($context, $scope, 2) : undef;
	my $p = plain(predicate($context, $scope, 2));
	my $ctes = @{ $context->{ctes} } ? 'WITH ' . join(', ', map { $_->{text} } @{ $context->{ctes} }) . ' ' : '';
	my @parts = map { plain(where_text($scope, grep({ defined } $where), $_)) } $p, "NOT ($p)", "($p) IS NULL";
	my $from = plain(" FROM $scope->{sql}");
	my $all = plain(where_text($scope, grep { defined } $where));
	my @keys = map { my $class = any_class($scope); plain(expression({ %$context, subplans => 0 }, $scope, $class, 1)) }
		1 .. between(1, 3);
	my $n = 0;
	my $list = join ', ', map { $n++; "$_ AS o$n" } @keys;
	my %query = (wide => 1, mode => 'multiset', before => '', after => '', name => 'sql parts');

	my ($whole, $parts) = weighted(
		20 => sub { ("SELECT $list$from$all", join(' UNION ALL ', map { "SELECT $list$from$_" } @parts)) },
		20 => sub { ("SELECT DISTINCT $list$from$all", join(' UNION ', map { "SELECT $list$from$_" } @parts)) },
		15 => sub {
			# how many rows there are does not depend on what else is done with them
			my $order = join ', ', map { "o$_" } shuffled(1 .. $n);
			("SELECT count(*) FROM (SELECT $list$from$all) q", "SELECT count(*) FROM (SELECT q.*, row_number() OVER (ORDER BY "
				. "$order) FROM (SELECT $list$from$all OFFSET 0) q ORDER BY $order OFFSET 0) q") },
		25 => sub {
			my ($of_all, $of_parts) = _aggregates($context, $scope);
			my $k = 0;
			my $shown = join ', ', map { $k++; "$_ AS o$k" } @$of_all;
			("SELECT $shown$from$all", "SELECT " . join(', ', @$of_parts) . ' FROM ('
				. join(' UNION ALL ', map { "SELECT $shown$from$_" } @parts) . ') q') },
		20 => sub {
			my ($of_all, $of_parts) = _aggregates($context, $scope);
			my $k = 0;
			my $shown = join ', ', map { $k++; "$_ AS o$k" } @$of_all;
			my $key = column_of($scope, 'int') // '1::int8';
			("SELECT $key AS k, $shown$from$all GROUP BY 1", "SELECT k, " . join(', ', @$of_parts) . ' FROM ('
				. join(' UNION ALL ', map { "SELECT $key AS k, $shown$from$_ GROUP BY 1" } @parts) . ') q GROUP BY k') })->();
	return { %query, body => $ctes . $whole, sql => plain($ctes . $whole), select => plain($ctes . $whole),
		parts => plain($ctes . $parts) };
}

1;
