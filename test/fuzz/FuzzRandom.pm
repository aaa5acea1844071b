# FuzzRandom - the random decisions of the fuzzer, all from one seed.
package FuzzRandom;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(seed_random below between chance one_of some_of shuffled weighted);

# perl's rand is its own drand48: the same numbers on every machine.
sub seed_random
{
	my ($seed) = @_;
	srand $seed;
	return;
}

# 0 to n - 1
sub below
{
	my ($n) = @_;
	return int rand $n;
}

sub between
{
	my ($from, $to) = @_;
	return $from + int rand($to - $from + 1);
}

# True in so many of a hundred cases.
sub chance
{
	my ($percent) = @_;
	return rand(100) < $percent;
}

sub one_of
{
	my (@list) = @_;
	return $list[ int rand @list ];
}

sub shuffled
{
	my (@list) = @_;
	for (my $i = @list - 1; $i > 0; $i--)
	{
		my $j = int rand($i + 1);
		@list[ $i, $j ] = @list[ $j, $i ];
	}
	return @list;
}

# n of the list, in random order; all of it if it is shorter.
sub some_of
{
	my ($n, @list) = @_;
	@list = shuffled(@list);
	splice @list, $n if @list > $n;
	return @list;
}

# weighted(weight => value, weight => value, ...) - one of the values.
sub weighted
{
	my (@pairs) = @_;
	my $sum = 0;
	my $at;

	for (my $i = 0; $i < @pairs; $i += 2)
	{
		$sum += $pairs[$i];
	}
	$at = rand $sum;
	for (my $i = 0; $i < @pairs; $i += 2)
	{
		$at -= $pairs[$i];
		return $pairs[ $i + 1 ] if $at < 0;
	}
	return $pairs[-1];
}

1;
