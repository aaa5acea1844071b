# WorkloadParameters - values for the parameters ($1) that pg_stat_statements keeps in place of constants.
#
#   my ($text, $why) = WorkloadParameters::filled($session, $query, $rows);
#
# $text is the query with a value for each parameter, or undef, and $why says which were taken, or which
# could not be found.  A parameter that is compared with a column has a value of that column's statistics
# (pg_stats): for equality and what is not known better one of the most common, in turn within a list, for the ends
# of a range those at a quarter and three quarters.  LIMIT has $rows, the mean of rows per call, OFFSET has 0.
package WorkloadParameters;

use strict;
use warnings;

use WorkloadQuery;

my $name = qr/"[^"]+"|[A-Za-z_\x80-\xff][\w\x80-\xff]*/;
my $column = qr/(?:(?:$name\.)*?(?<table>$name)\.)?(?<column>$name)(?:::\w+)?/;
my $equal = qr/=|<>|!=|~~?\*?|\b(?:not\s+)?(?:i?like|in)\b/i;

# Which value: [kind, number in the list].  $text has no comments and no strings.
sub use_of
{
	my ($text, $number) = @_;
	my $parameter = qr/\$$number(?!\d)/;

	return { kind => 'limit' } if $text =~ /\blimit\s+$parameter/i;
	return { kind => 'offset' } if $text =~ /\boffset\s+$parameter/i;
	return { %+, kind => 'low' } if $text =~ /$column\s+(?:not\s+)?between\s+(?:symmetric\s+)?$parameter/i;
	return { %+, kind => 'high' } if $text =~ /$column\s+(?:not\s+)?between\s+(?:symmetric\s+)?\$\d+\s+and\s+$parameter/i;
	return { %+, kind => 'low' } if $text =~ /$column\s*>=?\s*$parameter/;
	return { %+, kind => 'high' } if $text =~ /$column\s*<=?\s*$parameter/;
	return { column => $+{column}, table => $+{table}, kind => 'common', turn => 1 + ($+{before} =~ tr/$//) }
		if $text =~ /$column\s*$equal\s*(?:any\s*)?\(?\s*(?<before>(?:\$\d+\s*,\s*)*)$parameter/i;
	return { %+, kind => 'common', turn => 1 } if $text =~ /$parameter\s*(?:=|<>|!=|<=?|>=?)\s*$column/;
	return;
}

# A name as the catalogs have it
sub plain
{
	my ($text) = @_;
	return $text =~ /^"(.*)"$/ ? $1 : lc $text;
}

sub quote { my ($text) = @_; $text =~ s/'/''/g; return "E'" . $text =~ s/\\/\\\\/gr . "'" }

# The value in a column's statistics, undef without one
sub common_value
{
	my ($session, $text, $use) = @_;
	my %words = map { (plain($_) => 1) } $text =~ /($name)/g;

	if (defined $use->{table})
	{
		my ($table) = map { plain($_) } $use->{table};
		# of an alias the table before it
		my ($named) = $text =~ /($name)\s+(?:as\s+)?"?\Q$table\E"?(?![\w.])/i;
		%words = map { $_ => 1 } $table, defined $named ? plain($named) : ();
	}
	my ($turn, $part) = ($use->{turn} // 1, { low => 0.25, high => 0.75 }->{ $use->{kind} } // 0.5);
	my ($common, $bounds) = map { "s.${_}::text::text[]" } qw(most_common_vals histogram_bounds);
	my @values = ("($common)[1 + ($turn - 1) % cardinality($common)]",
		"($bounds)[1 + floor($part * (cardinality($bounds) - 1))::int]");
	@values = reverse @values if $use->{kind} ne 'common';
	my $answer = $session->run('SELECT encode(convert_to(coalesce(' . join(', ', @values) . "), 'UTF8'), 'hex') "
		. "FROM pg_catalog.pg_stats s WHERE s.attname = " . quote(plain($use->{column})) . ' AND s.tablename IN ('
		. join(', ', map { quote($_) } sort keys %words)
		. ") AND s.schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY s.inherited DESC, s.tablename LIMIT 1");
	my $hex = $answer->{lines}[0] // '';
	return defined $answer->{error} || $hex !~ /^(?:[0-9a-f]{2})+$/ ? undef : pack 'H*', $hex;
}

# The types of a query's parameters, by number from 0, or an error: ($types, $error)
sub types
{
	my ($session, $query) = @_;
	my $answer = $session->run("PREPARE gpusort_workload AS $query\n;\nSELECT unnest(parameter_types)::regtype FROM "
		. "pg_catalog.pg_prepared_statements WHERE name = 'gpusort_workload';\n");

	return (undef, $answer->{error}) if defined $answer->{error};
	$session->run('DEALLOCATE gpusort_workload');
	return ($answer->{lines});
}

sub filled
{
	my ($session, $query, $rows) = @_;
	my ($types, $error) = types($session, $query);
	my $text = join '', map { $_->[0] =~ /comment|string/ ? ' ' : $_->[1] } WorkloadQuery::tokens($query);
	my (%literal, @taken, @missing);

	return (undef, $error) if defined $error;
	for my $number (1 .. @$types)
	{
		my $use = use_of($text, $number);
		my $value = !$use ? undef : $use->{kind} eq 'limit' ? $rows : $use->{kind} eq 'offset' ? 0
			: common_value($session, $text, $use);
		if (defined $value)
		{
			$literal{$number} = '(' . quote($value) . "::$types->[$number - 1])";
			push @taken, "\$$number = $value";
		}
		else { push @missing, "\$$number" }
	}
	return (undef, 'no value for ' . join ', ', @missing) if @missing;
	my $filled = WorkloadQuery::with_values($query, \%literal);
	my $answer = $session->run("EXPLAIN $filled\n;\n");
	return (undef, "$answer->{error} with " . join ', ', @taken) if defined $answer->{error};
	return ($filled, 'parameters: ' . join ', ', @taken);
}

1;
