# FuzzAggregates - all of PostgreSQL's aggregates whose value does not depend on the plan.
#
# Several aggregates of one query share what they are of, mostly, and so their transition states and orders.
package FuzzAggregates;

use strict;
use warnings;

use Exporter qw(import);
use FuzzExpressions;
use FuzzRandom;
use FuzzText;

our @EXPORT = qw(new_focus aggregate aggregates);

# What the aggregates of a query have in common: an argument of each class, an order, a filter.
sub new_focus
{
	my ($context, $scope) = @_;
	my %focus = (scope => $scope, context => $context);

	$focus{$_} = chance(75) ? column_of($scope, $_) // constant($context, $_) : expression($context, $scope, $_, 2)
		for qw(int num text bool date flt);
	my $class = any_class($scope);
	$focus{class} = $class;
	$focus{way} = one_of('', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST');
	$focus{filter} = predicate($context, $scope, 1);
	return \%focus;
}

sub _argument
{
	my ($focus, $class) = @_;
	return $focus->{$class} if chance(65);
	return expression($focus->{context}, $focus->{scope}, $class, 2);
}

# Keys that leave no ties but of equal arguments.
sub _order
{
	my ($focus, @arguments) = @_;
	my @keys = map { _argument($focus, $focus->{class}) . $focus->{way} } 1 .. one_of(0, 0, 1, 1, 2);
	return ' ORDER BY ' . join ', ', @keys, @arguments;
}

# As it is to be shown: long lists are not.
sub _short
{
	my ($text, $array) = @_;
	return weighted(60 => "md5(($text)::text)", 20 => "left(($text)::text, 40)", 20 => $array ? "cardinality($text)::text"
		: "length(($text)::text)::text");
}

# Two or three of a name have a state in common.
my @of_numbers = qw(sum avg sum avg sum avg stddev stddev_pop stddev_samp variance var_pop var_samp);
my @of_pairs = qw(corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
	regr_sxy regr_syy);

# Floats of another order of rows differ in their last digits; nothing that is divided comes near a limit of rounding.
sub _rounded
{
	my ($text) = @_;
	return "round(($text)::numeric + 0.000000137, 5)";
}

# A direct argument: a constant, a subquery's value, or what groups have in common.
sub _direct
{
	my ($focus, $class) = @_;
	my $context = $focus->{context};
	my @keys = grep { $_->{class} eq $class } @{ $focus->{keys} || [] };

	return one_of(@keys)->{sql} if @keys && chance(30);
	return one_of(5, 0, 1, 100, '2 + 3', 'NULL::int', constant($context, 'int'),
		"(SELECT max(id) FROM $context->{few})", "(SELECT min(g) FROM $context->{few})") if $class eq 'int';
	return one_of('0.5', '0::numeric', '1.25', "(SELECT max(n) FROM $context->{few})") if $class eq 'num';
	return constant($context, $class);
}

sub _fraction
{
	my ($focus) = @_;
	my ($key) = shuffled(grep { $_->{class} eq 'int' } @{ $focus->{keys} || [] });
	return weighted(70 => one_of('0.5', '0.1', '0.9', '0', '1', '0.25', 'NULL'), 15 => '(1.0 / 3)',
		15 => defined $key && chance(50) ? "(abs($key->{sql} % 3) / 2.0)"
			: "(SELECT count(*) / 50.0 FROM $focus->{context}{few})");
}

# Returns the text without FILTER, and its class.
sub _ordered_set
{
	my ($focus) = @_;
	my $class = one_of(qw(int int num flt));
	my $way = $focus->{way};

	return weighted(
		25 => sub { ("percentile_cont(@{[ _fraction($focus) ]}) WITHIN GROUP (ORDER BY @{[ _argument($focus, $class) ]}$way)",
			'real') },
		10 => sub { ("percentile_cont(ARRAY[@{[ join ', ', map { one_of(0.1, 0.5, 0.9, 'NULL') } 1 .. between(1, 3) ]}]"
			. "::float8[]) WITHIN GROUP (ORDER BY @{[ _argument($focus, $class) ]}$way)", 'array') },
		15 => sub { my $of = $focus->{class};
			("percentile_disc(@{[ _fraction($focus) ]}) WITHIN GROUP (ORDER BY @{[ _argument($focus, $of) ]}$way)", $of) },
		5 => sub { ("percentile_disc(ARRAY[0, 0.5]) WITHIN GROUP (ORDER BY @{[ _argument($focus, $focus->{class}) ]}$way)",
			'array') },
		15 => sub { my $of = $focus->{class};
			("mode() WITHIN GROUP (ORDER BY @{[ _argument($focus, $of) ]}$way)", $of) },
		35 => sub {
			my @classes = map { one_of(qw(int int num text)) } 1 .. one_of(1, 1, 1, 2);
			my $function = one_of(qw(rank dense_rank percent_rank cume_dist percent_rank cume_dist));
			("$function(@{[ join ', ', map { _direct($focus, $_) } @classes ]}) WITHIN GROUP (ORDER BY "
				. join(', ', map { _argument($focus, $_) . $way } @classes) . ')', $function =~ /^(?:dense_)?rank/ ? 'int' : 'real')
		})->();
}

# Returns the text without FILTER, its class, and what is to be done with it then, if anything.
sub _plain
{
	my ($focus) = @_;
	my $distinct = chance(15) ? 'DISTINCT ' : '';
	my $number = one_of(qw(int int num));
	my $any = one_of('int', $focus->{class});

	return weighted(
		15 => sub { ('count(*)', 'int') },
		15 => sub { ("count($distinct@{[ _argument($focus, $any) ]})", 'int') },
		40 => sub { (one_of(@of_numbers) . "($distinct@{[ _argument($focus, $number) ]})", 'num') },
		8 => sub { my $name = one_of(qw(sum avg stddev variance var_pop));
			("$name(@{[ _argument($focus, 'flt') ]})", $name eq 'sum' ? 'flt' : $name eq 'avg' ? 'real' : 'num',
				$name =~ /sum|avg/ ? () : \&_rounded) },
		15 => sub { my $class = one_of(qw(int num text date flt));
			(one_of('min', 'max') . "(@{[ _argument($focus, $class) ]})", $class) },
		8 => sub { (one_of(qw(bool_and bool_or every)) . "($distinct@{[ _argument($focus, 'bool') ]})", 'bool') },
		8 => sub { (one_of(qw(bit_and bit_or bit_xor)) . "(@{[ _argument($focus, 'int') ]})", 'int') },
		6 => sub { my @pair = shuffled(_argument($focus, 'int') . ' % 100',
				one_of(column_of($focus->{scope}, 'int') // 1, 7) . ' % 50');
			(one_of(@of_pairs) . "(($pair[0]), ($pair[1]))", 'num', \&_rounded) },
		12 => sub { my $x = _argument($focus, $any);
			my $array = $distinct ? "array_agg(DISTINCT $x@{[ one_of('', qq{ ORDER BY $x DESC}) ]})"
				: "array_agg($x@{[ _order($focus, $x) ]})";
			($array, 'text', sub { _short($_[0], 1) }) },
		10 => sub { my $x = _argument($focus, 'text');
			($distinct ? "string_agg(DISTINCT $x, ',' ORDER BY $x)" : "string_agg($x, ','@{[ _order($focus, $x) ]})", 'text',
				\&_short) },
		6 => sub { my $x = _argument($focus, $any);
			(one_of(qw(json_agg jsonb_agg)) . "($x@{[ _order($focus, $x) ]})", 'text', \&_short) },
		4 => sub { my ($k, $x) = ("coalesce(@{[ _argument($focus, 'text') ]}, '-')", _argument($focus, $any));
			(one_of(qw(json_object_agg jsonb_object_agg)) . "($k, $x ORDER BY $k, $x)", 'text', \&_short) },
		4 => sub { my $x = '(' . _argument($focus, 'int') . ' % 50)';
			("range_agg(int4range($x\::int, ($x + 3)::int))", 'text', \&_short) },
		2 => sub { my $x = '(' . _argument($focus, 'int') . ' % 50)';
			("range_intersect_agg(int4range($x\::int, ($x + 60)::int))", 'text', \&_short) })->();
}

# One aggregate: { sql, class }; those of class "array" and "real" are no part of other expressions.
sub aggregate
{
	my ($focus) = @_;
	my ($sql, $class, $shown) = chance(35) ? _ordered_set($focus) : _plain($focus);

	$sql .= optional(' FILTER (WHERE ' . (chance(60) ? $focus->{filter}
		: predicate($focus->{context}, $focus->{scope}, 2)) . ')') if chance(18);
	return { sql => $shown ? $shown->($sql) : $sql, class => $class, bare => $sql };
}

# Aggregates of one state: their transitions are shared.
sub _sharing
{
	my ($focus) = @_;
	my $class = one_of(qw(int int num));
	my ($x, $way) = ($focus->{$class}, $focus->{way});
	my $distinct = chance(15) ? 'DISTINCT ' : '';
	my @pair = weighted(
		60 => sub { map { { sql => "$_($distinct$x)", class => 'num' } } qw(sum avg) },
		15 => sub { map { { sql => "$_($x)", class => 'num' } } some_of(2, qw(stddev var_pop variance stddev_pop)) },
		15 => sub { map { { sql => "percentile_cont($_) WITHIN GROUP (ORDER BY $x$way)", class => 'real' } } 0.5,
			_fraction($focus) },
		10 => sub { map { { sql => "$_(" . one_of(0, 5) . ") WITHIN GROUP (ORDER BY $x$way)",
			class => /^rank|dense/ ? 'int' : 'real' } } some_of(2, qw(rank dense_rank percent_rank cume_dist)) })->();
	return @pair;
}

# One to six of a query, some of them twice.
sub aggregates
{
	my ($focus) = @_;
	my @aggregates = map { aggregate($focus) } 1 .. weighted(20 => 1, 25 => 2, 25 => 3, 15 => 4, 10 => 5, 5 => 6);

	push @aggregates, _sharing($focus) if chance(30);
	push @aggregates, one_of(@aggregates) if chance(12);
	return shuffled(some_of(6, @aggregates));
}

1;
