# WorkloadQuery - what bench/workload asks of a query's text: where statements end, whether one only
# reads, and what it is ordered by at its top.
package WorkloadQuery;

use strict;
use warnings;

use List::Util qw(max);

# The text in tokens: [kind, text, depth of parentheses].  Kinds: word, string, comment, blank, other.  What
# a script has for psql, lines that begin with a backslash, are comments here.
sub tokens
{
	my ($text) = @_;
	my ($depth, @tokens) = (0);
	my $add = sub { push @tokens, [ $_[0], $_[1], $depth ] };

	pos($text) = 0;
	while (pos($text) < length $text)
	{
		if ($text =~ /\G(\s+)/gc) { $add->('blank', $1) }
		elsif ($text =~ /\G(--[^\n]*|(?:(?<=\n)|(?<!.))\\[^\n]*)/gc) { $add->('comment', $1) }
		elsif ($text =~ m{\G/\*}gc)
		{
			my ($from, $open) = (pos($text) - 2, 1);
			while ($open && $text =~ m{(/\*|\*/)}g) { $open += $1 eq '/*' ? 1 : -1 }
			pos($text) = length $text if $open;
			$add->('comment', substr $text, $from, pos($text) - $from);
		}
		elsif (
			$text =~ /\G([eE]'(?:[^'\\]|\\.|'')*'|(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*'|(?:[uU]&)?"(?:[^"]|"")*")/gcs) { my $quoted =
			$1; $add->($quoted =~ /"\z/ ? 'word' : 'string', $quoted) }
		elsif ($text =~ /\G(\$(\w*)\$.*?\$\2\$)/gcs) { $add->('string', $1) }
		elsif ($text =~ /\G([A-Za-z_\x80-\xff][\w\$\x80-\xff]*|\d[\w.]*)/gc) { $add->('word', $1) }
		elsif ($text =~ /\G(\()/gc) { $add->('other', '('); $depth++ }
		elsif ($text =~ /\G(\))/gc) { $depth--; $add->('other', ')') }
		else { $text =~ /\G(.)/gcs; $add->('other', $1) }
	}
	return @tokens;
}

# The statements of a text, without comments around them and without semicolons
sub statements
{
	my ($text) = @_;
	my @statements = ('');

	for (tokens($text))
	{
		my ($kind, $token, $depth) = @$_;
		if ($token eq ';' && $depth <= 0) { push @statements, '' }
		elsif ($kind eq 'comment' && $statements[-1] !~ /\S/) { }
		else { $statements[-1] .= $kind eq 'comment' ? ' ' : $token }
	}
	s/^\s+|\s+$//g for @statements;
	return grep { $_ ne '' } @statements;
}

# True for what is a query to begin with; a transaction that only reads keeps the rest out.
sub is_query
{
	my ($statement) = @_;
	return $statement =~ /^[\s(]*(?:select|with|values|table)\b/i;
}

# The text with other texts in the place of its parameters, by their numbers ($1 is 1)
sub with_values
{
	my ($statement, $values) = @_;
	my @tokens = tokens($statement);
	for (0 .. $#tokens - 1)
	{
		my $number = $tokens[ $_ + 1 ][1];
		@tokens[ $_, $_ + 1 ] = ([ other => $values->{$number} ], [ blank => '' ])
			if $tokens[$_][1] eq '$' && exists $values->{$number};
	}
	return join '', map { $_->[1] } @tokens;
}

# The highest number of a parameter, 0 without any
sub has_parameters
{
	my ($statement) = @_;
	my @tokens = tokens($statement);
	return max 0, map { $tokens[$_][1] eq '$' && $tokens[ $_ + 1 ][1] =~ /^(\d+)$/ ? $1 : () } 0 .. $#tokens - 1;
}

# True for what psql would take for the beginning of something longer, or for a command of its own
sub is_broken
{
	my ($statement) = @_;
	my $depth = 0;

	for (tokens($statement))
	{
		my ($kind, $token) = @$_;
		return 1 if $kind eq 'comment' && $token =~ m{^/\*} && $token !~ m{\*/\z};
		next if $kind ne 'other';
		return 1 if $token =~ /['"\\]/;
		$depth += $token eq '(' ? 1 : $token eq ')' ? -1 : 0;
		return 1 if $depth < 0;
	}
	return $depth != 0;
}

sub normal
{
	my ($text) = @_;
	$text =~ s/\s+/ /g;
	$text =~ s/^ | $//g;
	$text =~ s/ ?([(),*+\/-]) ?/$1/g;
	return lc $text;
}

# Splits tokens at the commas of this depth; returns texts.
sub at_commas
{
	my ($depth, @tokens) = @_;
	my @texts = ('');

	for (@tokens)
	{
		if ($_->[1] eq ',' && $_->[2] == $depth) { push @texts, '' }
		else { $texts[-1] .= $_->[0] eq 'comment' ? ' ' : $_->[1] }
	}
	return @texts;
}

# What ends a query: { limit => true with LIMIT or OFFSET, unlimited => the query without them, keys => the
# columns, from 0, that it is ordered by, up to the first that is not one of its columns, ordered => true
# with ORDER BY }.  $columns: the names of its columns.
sub ends_of
{
	my ($query, $columns) = @_;
	my @tokens = tokens($query);
	my @top = grep { $tokens[$_][2] == 0 && $tokens[$_][0] eq 'word' } 0 .. $#tokens;
	my ($order, $limit, $select, $from, $sets);

	for my $i (0 .. $#top)
	{
		my $word = lc $tokens[ $top[$i] ][1];
		my $next = $i < $#top ? lc $tokens[ $top[ $i + 1 ] ][1] : '';
		if ($word eq 'order' && $next eq 'by') { $order = $top[$i]; $limit = undef }
		elsif ($word =~ /^(?:limit|offset|fetch)$/) { $limit //= $top[$i] }
		elsif ($word eq 'for' && $next =~ /^(?:update|no|share|key)$/) { splice @tokens, $top[$i]; last }
		elsif ($word =~ /^(?:union|intersect|except)$/) { $sets = 1; $order = $limit = undef }
		elsif ($word eq 'select') { $select //= $top[$i] }
		elsif ($word eq 'from') { $from //= $top[$i] }
	}
	my $end = $limit // scalar @tokens;
	my %ends = (ordered => defined $order, limit => defined $limit, keys => [],
		unlimited => join('', map { $_->[0] eq 'comment' ? ' ' : $_->[1] } @tokens[ 0 .. $end - 1 ]));
	return \%ends if !defined $order;

	# the texts of the columns, where each is one
	my %at;
	my %names;
	$names{ $columns->[$_] }++ for 0 .. $#$columns;
	for (0 .. $#$columns)
	{
		$at{ lc $columns->[$_] } = $_ if $names{ $columns->[$_] } == 1;
	}
	if (defined $select && !$sets)
	{
		my @list = at_commas(0, @tokens[ $select + 1 .. (defined $from && $from > $select ? $from : $order) - 1 ]);
		$list[0] =~ s/^\s*(?:all|distinct)\b//i if @list;
		if (@list == @$columns && !grep { /\*\s*$/ } @list)
		{
			for (0 .. $#list)
			{
				my $text = $list[$_];
				$text =~ s/\s+as\s+\S+\s*$//i;
				$at{ normal($text) } //= $_;
			}
		}
	}
	my ($by) = grep { lc $tokens[$_][1] eq 'by' } $order + 1 .. $#tokens;
	for (at_commas(0, @tokens[ $by + 1 .. $end - 1 ]))
	{
		s/\s+nulls\s+(?:first|last)\s*$//i;
		s/\s+(?:asc|desc)\s*$//i;
		s/\s+collate\s+\S+\s*$//i;
		s/^\s+|\s+$//g;
		my $key = /^\d+$/ ? $_ - 1 : /^"(.*)"$/ ? $at{ lc $1 } : $at{ normal($_) };
		last if !defined $key || $key > $#$columns;
		push @{ $ends{keys} }, $key;
	}
	return \%ends;
}

1;
