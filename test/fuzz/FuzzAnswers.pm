# FuzzAnswers - compares what a query answers without and with gpusort, and reads messages.
#
#   sqlstates(@messages);		# "22012", "57014 01000", ...: those of errors and warnings
#   compare_answers($session, $query, $native, $ours);	# nothing, or what is wrong: "rows: ...", "order: ..."
#
# An answer is fields, each with a NUL behind it.  By the query's mode it is to be the same, field by field
# ("exact"); the same but for rows whose places in the order, which a query of its own tells, are the same
# ("ranked"); or the same rows in any order.  The session, in which gpusort is off, is asked what that takes.
package FuzzAnswers;

use strict;
use warnings;

use Exporter qw(import);
use List::Util qw(min);

our @EXPORT = qw(sqlstates without_plans shortened compare_answers);

sub sqlstates
{
	my (@messages) = @_;
	return join ' ', map { /\b(?:ERROR|FATAL|PANIC|WARNING):  (\w{5}|no answer)/ ? $1 : () } @messages;
}

# Messages but for plans and decisions among them.
sub without_plans
{
	my (@messages) = @_;
	my $in = 0;
	return grep {
		$in = 1 if /(?:INFO|LOG):  00000: (?:duration|gpusort): /;
		my $keep = !$in;
		$in = 0 if /^LOCATION:/;
		$keep
	} @messages;
}

sub shortened
{
	my ($text) = @_;
	return 'no row' unless defined $text;
	$text =~ s/\0/|/g;
	return length $text > 200 ? substr($text, 0, 200) . '...' : $text;
}

# Rows that the two do not have as often as each other.
sub difference_of_rows
{
	my ($native, $ours) = @_;
	my %count;

	$count{$_}++ for @$native;
	$count{$_}-- for @$ours;
	my ($missing) = grep { $count{$_} > 0 } @$native;
	my ($more) = grep { $count{$_} < 0 } @$ours;
	return unless defined $missing || defined $more;
	return sprintf '%d rows natively and %d with gpusort; only natively: %s; only with gpusort: %s',
		scalar @$native, scalar @$ours, shortened($missing), shortened($more);
}

# The rows of an output: fields are separated by NULs, like rows, so a row is so many fields.
sub rows_of
{
	my ($output, $fields) = @_;
	my @fields = split /\0/, $output, -1;
	my @rows;

	pop @fields;
	push @rows, join "\0", splice @fields, 0, $fields while @fields;
	return @rows;
}

sub compare_ranked
{
	my ($session, $query, $native, $ours) = @_;
	my ($fields) = $session->run("$query->{rank} LIMIT 1");
	$fields = ($fields // '') =~ tr/\0//;
	return if $fields == 0;
	my ($all, @messages) = $session->run($query->{rank});
	return if sqlstates(@messages) ne '';
	# rows that look the same may have several places
	my (%ranks, %rows);
	for my $row (rows_of($all, $fields))
	{
		my ($rank, $rest) = split /\0/, $row, 2;
		$ranks{$rest}{$rank} = 1;
		$rows{$rest}++;
	}
	my @native = rows_of($native, $fields - 1);
	my @ours = rows_of($ours, $fields - 1);
	if ($query->{whole})
	{
		my $difference = difference_of_rows(\@native, \@ours);
		return "rows: $difference" if $difference;
	}
	return sprintf 'rows: %d natively, %d with gpusort', scalar @native, scalar @ours if @native != @ours;
	my (%used, %alike);
	for my $i (0 .. $#ours)
	{
		my ($our_row, $native_row) = ($ours[$i], $native[$i]);
		my $ranks = $ranks{$our_row};
		my $native_ranks = $ranks{$native_row};
		return "rows: row $i is none of the query's: " . shortened($our_row)
			unless $ranks && $used{$our_row}++ < $rows{$our_row};
		next if $our_row eq $native_row || ($alike{$our_row}{$native_row} //= grep { $native_ranks->{$_} } keys %$ranks);
		my ($rank, $native_rank) = map { min(keys %$_) } $ranks, $native_ranks;
		return "order: row $i has rank $rank and natively $native_rank: " . shortened($our_row) . ' instead of '
			. shortened($native_row);
	}
	return;
}

sub compare_text
{
	my ($native, $ours) = @_;
	my @native = split /\0/, $native, -1;
	my @ours = split /\0/, $ours, -1;
	my $i = 0;

	my $difference = difference_of_rows(\@native, \@ours);
	return "rows: $difference" if $difference;
	$i++ while $native[$i] eq $ours[$i];
	return "order: field $i is " . shortened($ours[$i]) . ' instead of ' . shortened($native[$i]);
}

sub compare_answers
{
	my ($session, $query, $native, $ours) = @_;

	return compare_text($native, $ours) if $query->{mode} eq 'exact';
	return compare_ranked($session, $query, $native, $ours) if $query->{mode} eq 'ranked';
	my ($fields) = $session->run("SELECT * FROM (" . ($query->{wide} ? $query->{select} : $query->{sql}) . ') q LIMIT 1');
	$fields = ($fields // '') =~ tr/\0//;
	my $wrong = difference_of_rows([ rows_of($native, $fields || 1) ], [ rows_of($ours, $fields || 1) ]);
	return $wrong ? "rows: $wrong" : ();
}

1;
