# FuzzText - text of SQL that knows which of its parts can go, and makes itself shorter.
#
#   my $sql = 'SELECT ' . listed('a', 'b + ' . either('(SELECT 1)', '1')) . ' FROM t' . optional(' WHERE a > 0');
#   plain($sql);					# as PostgreSQL is to read it
#   shortened_text($sql, sub { ... });	# as short as the function, which is given such text, stays true
#
# Not every shorter text need be valid: one that PostgreSQL refuses is none that fails as before.
package FuzzText;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(optional either listed plain shortened_text);

# The characters that stand in the text for its structure: "<" begins a part that may go, "|" what may stand
# in its place, ">" its end; "[", "," and "]" are a list's.  None of them is in SQL.
my %mark = ('<' => "\x01", '|' => "\x02", '>' => "\x03", '[' => "\x04", ',' => "\x05", ']' => "\x06");

sub optional
{
	my ($text) = @_;
	return "$mark{'<'}$text$mark{'|'}$mark{'>'}";
}

sub either
{
	my ($text, $simpler) = @_;
	return $text if $text eq $simpler;
	return "$mark{'<'}$text$mark{'|'}" . plain($simpler) . $mark{'>'};
}

# At least one of them stays.
sub listed
{
	my (@items) = @_;
	return $mark{'['} . join($mark{','}, @items) . $mark{']'};
}

# --- the text as a tree ---------------------------------------------------------------------------
#
# A tree is a list of strings and of hashes: { parts => tree, simpler => string } and { items => [ trees ] }.

sub _parse
{
	my ($tokens) = @_;
	my @tree;

	while (@$tokens)
	{
		my $token = $tokens->[0];
		last if $token =~ /^[\x02\x03\x05\x06]$/;
		shift @$tokens;
		if ($token eq $mark{'<'})
		{
			my $parts = _parse($tokens);
			shift @$tokens;
			my $simpler = join '', map { ref $_ ? () : $_ } @{ _parse($tokens) };
			shift @$tokens;
			push @tree, { parts => $parts, simpler => $simpler };
		}
		elsif ($token eq $mark{'['})
		{
			my @items = (_parse($tokens));
			push @items, _parse($tokens) while shift @$tokens eq $mark{','};
			push @tree, { items => \@items };
		}
		else
		{
			push @tree, $token;
		}
	}
	return \@tree;
}

sub _tree_of
{
	my ($text) = @_;
	return _parse([ grep { $_ ne '' } split /([\x01-\x06])/, $text ]);
}

sub _rendered
{
	my ($tree) = @_;
	return join '', map { !ref $_ ? $_ : $_->{items} ? join(', ', map { _rendered($_) } @{ $_->{items} })
		: _rendered($_->{parts}) } @$tree;
}

sub plain
{
	my ($text) = @_;
	return $text if $text !~ /[\x01-\x06]/;
	return _rendered(_tree_of($text));
}

# Takes away what is not needed, outer parts before inner ones.  True if anything went.
sub _shorten
{
	my ($tree, $fails) = @_;
	my $shorter = 0;

	for my $i (reverse 0 .. $#$tree)
	{
		my $node = $tree->[$i];
		next unless ref $node;
		if ($node->{items})
		{
			my $items = $node->{items};
			# many at once, where there are many
			for (my $n = int(@$items / 2); $n >= 1; $n = int($n / 2))
			{
				for (my $at = 0; $at < @$items && @$items > $n; )
				{
					my @gone = splice @$items, $at, $n;
					if ($fails->())
					{
						$shorter = 1;
					}
					else
					{
						splice @$items, $at, 0, @gone;
						$at += $n;
					}
				}
			}
			$shorter |= _shorten($_, $fails) for @$items;
			next;
		}
		$tree->[$i] = $node->{simpler};
		if ($fails->())
		{
			$shorter = 1;
			next;
		}
		$tree->[$i] = $node;
		$shorter |= _shorten($node->{parts}, $fails);
	}
	return $shorter;
}

sub shortened_text
{
	my ($text, $fails) = @_;
	my $tree = _tree_of($text);

	1 while _shorten($tree, sub { $fails->(_rendered($tree)) });
	return _rendered($tree);
}

1;
