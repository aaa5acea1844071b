# FuzzMinimise - makes a failure of the fuzzer smaller.
#
#   my @smaller = minimise(sub { $session }, $tables, $query, $settings, sub { ... });
#
# The first gives a session, which is another one after a crash.  The last makes the round's schema, does the statements
# that it is given after it, tries the query with the settings, and is true if that fails as before.
package FuzzMinimise;

use strict;
use warnings;

use Exporter qw(import);
use FuzzAnswers;
use FuzzSql;
use FuzzText;

our @EXPORT = qw(minimise);

# Parts of a query that FuzzSql has made, and what stands round it.
sub _shorten_query
{
	my ($query, $fails) = @_;
	my %whole = %$query;

	return if $query->{parts};
	if ($query->{before} ne '')
	{
		@$query{qw(before after)} = ('', '');
		with_body($query, with_values($query->{body}));
		%$query = %whole if !$fails->();
	}
	my $best = $query->{body};
	shortened_text($best, sub {
		with_body($query, $_[0]);
		my $failed = $fails->();
		$best = $_[0] if $failed;
		return $failed;
	});
	with_body($query, $best);
	return;
}

sub _shorten_settings
{
	my ($settings, $fails, @kept) = @_;

	for (my $i = 0; $i < @$settings; $i++)
	{
		my ($gone) = splice @$settings, $i, 1;
		if ($fails->(@kept))
		{
			$i--;
		}
		else
		{
			splice @$settings, $i, 0, $gone;
		}
	}
	return;
}

# Takes rows, columns, settings and parts of the query away as long as the failure stays, the latter two from
# what it is given.  Returns the statements that take away the others, and comments that tell what rows are left;
# nothing if there is no failure.
sub minimise
{
	my ($session, $tables, $query, $settings, $fails) = @_;
	my @kept;

	return unless $fails->();
	_shorten_query($query, $fails) if $query->{wide};
	_shorten_settings($settings, $fails) if $query->{wide};
	my $again = 1;
	while ($again)
	{
		$again = 0;
		for my $table (@$tables)
		{
			$fails->(@kept) or last;
			my ($shape) = $session->()->run("SELECT min(id)::int8, max(id)::int8, count(*), count(*) FILTER (WHERE id % 2 = 0) "
				. "FROM r.$table->{name}");
			my ($low, $high, $rows, $even) = ($shape // '') =~ /^(\d+)\0(\d+)\0(\d+)\0(\d+)/ or next;
			my $middle = int(($low + $high) / 2);
			my @less = $low < $high ? ("id > $middle", "id <= $middle") : ("id = $low");
			push @less, 'id % 2 = 0', 'id % 2 = 1' if $even > 0 && $even < $rows;
			for my $less (@less)
			{
				my $delete = "DELETE FROM $table->{name} WHERE $less";
				next if !$fails->(@kept, $delete);
				push @kept, $delete;
				$again = 1;
				last;
			}
		}
	}
	for my $table (@$tables)
	{
		for my $column (@{ $table->{columns} })
		{
			my $drop = "ALTER TABLE $table->{name} DROP COLUMN $column->{name} CASCADE";
			push @kept, $drop if $column->{name} ne 'id' && $fails->(@kept, $drop);
		}
	}
	_shorten_settings($settings, $fails, @kept) unless $query->{wide};
	# selected columns and predicates; what orders rows stays
	my $output = qr/, [^,()]+ AS o\d+(?=,| FROM)/;
	my $condition = qr/ AND [\w.%<> ]+?(?: IS NOT NULL| IS NULL|\d)(?= AND| ORDER|\)|$)/;
	my $first_condition = qr/(?<=WHERE )[\w.%<> ]+? AND /;
	for my $part ($query->{wide} ? () : $query->{sql} =~ /($output|$condition|$first_condition)/g)
	{
		my %whole = %$query;
		for (grep { defined $query->{$_} } qw(sql rank))
		{
			$query->{$_} =~ s/\Q$part\E//;
		}
		%$query = %whole if !$fails->(@kept);
	}
	my @data;
	$fails->(@kept);
	for my $table (@$tables)
	{
		my ($rows) = $session->()->run("SELECT q::text FROM r.$table->{name} q LIMIT 20");
		push @data, map { "--   $table->{name} " . shortened($_) } split /\0/, $rows // '';
	}
	return (@kept, @data);
}

1;
