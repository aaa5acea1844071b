# FuzzWindows - window functions over any columns, whose values ties do not decide.
package FuzzWindows;

use strict;
use warnings;

use Exporter qw(import);
use FuzzExpressions;
use FuzzRandom;
use FuzzText;

our @EXPORT = qw(window_outputs);

# A partition and an order; with ids an order without ties.
sub _window
{
	my ($context, $scope, $partition, $total) = @_;
	my @keys = map { (column_of($scope, $_) // 1) . one_of('', ' DESC', ' NULLS FIRST') } map { any_class($scope) }
		1 .. one_of(0, 1, 1, 2);
	push @keys, @{ $scope->{ids} } if $total;
	my $order = @keys ? ' ORDER BY ' . join(', ', @keys) : '';
	my $frame = !@keys ? '' : $total && chance(30)
		? " ROWS BETWEEN @{[ below(4) ]} PRECEDING AND " . one_of('CURRENT ROW', '2 FOLLOWING')
		: weighted(70 => '', 10 => ' RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING',
			10 => ' GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW', 10 => ' RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING');
	return "($partition$order$frame)";
}

# Functions over up to so many windows.
sub window_outputs
{
	my ($context, $scope, $n) = @_;
	my $total = $scope->{ids} && @{ $scope->{ids} } && chance(50);
	my @outputs;
	my $new = sub {
		my $class = any_class($scope);
		my $partition = chance(60) ? 'PARTITION BY ' . (chance(70) ? column_of($scope, $class) // 1
			: plain(expression($context, $scope, $class, 1))) : '';
		return _window($context, $scope, $partition, $total);
	};
	my $shared = $new->();

	for (1 .. $n)
	{
		my $window = chance(50) ? $shared : $new->();
		my $filter = chance(10) ? ' FILTER (WHERE ' . predicate($context, $scope, 1) . ')' : '';
		my ($int, $num, $text) = map { plain(expression($context, $scope, $_, 1)) } qw(int num text);
		my ($sql, $class) = @{ one_of([ 'rank()', 'int' ], [ 'dense_rank()', 'int' ], [ "count(*)$filter", 'int' ],
			[ "count($text)$filter", 'int' ], [ "sum($int)$filter", 'num' ], [ "sum($num)$filter", 'num' ],
			[ "min($int)$filter", 'int' ], [ "max($text)$filter", 'text' ], [ "avg($int)$filter", 'num' ],
			[ 'cume_dist()', 'real' ], [ 'percent_rank()', 'real' ],
			$total ? ([ 'row_number()', 'int' ], [ "lag($int)", 'int' ], [ "lead($text, 2)", 'text' ],
			[ "first_value($int)", 'int' ], [ 'ntile(3)', 'int' ], [ "nth_value($text, 2)", 'text' ],
			[ "last_value($int)", 'int' ]) : ()) };
		push @outputs, { sql => "$sql OVER $window", class => $class };
	}
	return @outputs;
}

1;
