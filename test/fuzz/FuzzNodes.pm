# FuzzNodes - which sorts a query had, from the plans that auto_explain sends with its messages.
#
#   my $nodes = FuzzNodes->new;
#   $nodes->add(@messages);		# of one run
#   $nodes->plan;				# lines of the plans of that run
#   $nodes->text;				# all counts
#
# Counted are executed plans, those of functions and cursors too.  A sort's place is
# its parent: "Merge Join", or "top" where it has none.  Of a GpuSortExchange it is the node
# that every process runs.
package FuzzNodes;

use strict;
use warnings;

sub new
{
	my ($class) = @_;
	return bless { gpusort => {}, native => {}, rescanned => 0, in_worker => 0, ingest => 0, exchange => {}, shapes => {},
		exchange_runs => 0, analyzed => 0, in_runs => 0, plan => [] }, $class;
}

# What makes a session's server send the plans, whatever client_min_messages is.
sub settings
{
	return map { "SET auto_explain.$_" } 'log_min_duration = 0', 'log_nested_statements = on', 'log_level = info';
}

sub _kind
{
	my ($node) = @_;
	$node =~ s/^(?:Parallel|Partial|Finalize|Async) //g;
	return $1 if $node =~ /^Custom Scan \((\w+)\)/;
	$node =~ s/ (?:on|using) .*//;
	$node =~ s/ (?:Left|Right|Full|Semi|Anti|Right Anti|Right Semi)(?: Join)?$/ Join/;
	$node =~ s/^Nested Loop.*/Nested Loop/;
	return $node;
}

# One plan, by the indentation of its lines.
sub _add_plan
{
	my ($self, @lines) = @_;
	my @path;		# [ indentation, kind, children so far, rescanned, in a worker, aggregates so far ]

	for (@lines)
	{
		my ($indent, $kind);
		$self->{analyzed}++ if /^\s+Sort Method: (\S+ radix|first rows)/;
		$self->{in_runs}++ if /^\s+Run Storage: /;
		if (/^(\s*)(?:->  )?(\S.*?)  \(cost=/)
		{
			($indent, $kind) = (length $1, _kind($2));
		}
		elsif (/^(\s+)(SubPlan|InitPlan|CTE) /)
		{
			($indent, $kind) = (length $1, $2);
		}
		else
		{
			next;
		}
		pop @path while @path && $path[-1][0] >= $indent;
		my $parent = @path ? $path[-1] : [ -1, 'top', 0, 0, 0 ];
		$parent->[2]++ if $kind !~ /^(?:SubPlan|InitPlan|CTE)$/;
		my $rescanned = $parent->[3] || $kind eq 'SubPlan' || $parent->[1] eq 'Nested Loop' && $parent->[2] == 2;
		my $in_worker = $parent->[4] || $parent->[1] =~ /^Gather/;
		if ($kind eq 'GpuSort')
		{
			$self->{gpusort}{ $parent->[1] }++;
			$self->{rescanned}++ if $rescanned;
			$self->{in_worker}++ if $in_worker;
		}
		$self->{ingest}++ if $kind eq 'GpuSortIngest';
		$self->{exchange}{$kind}++ if $parent->[1] eq 'GpuSortOutput';
		$self->{native}{ $parent->[1] }++ if $kind eq 'Sort';
		# sets and orders apart, as far as they look so
		$self->{shapes}{$kind}++ if $kind =~ /^GpuSort(?!$)/;
		my $above = $parent->[1] eq 'Materialize' && @path > 1 ? $path[-2] : $parent;
		$self->{shapes}{"$above->[1] of aggregates"}++ if $kind =~ /Aggregate/ && $above->[1] =~ /^(?:Append|Nested Loop)$/
			&& ++$above->[5] == 2;
		push @path, [ $indent, $kind, 0, $rescanned, $in_worker ];
	}
	return;
}

sub add
{
	my ($self, @messages) = @_;
	my $lines;
	my %before = %{ $self->{exchange} };

	$self->{plan} = [];
	for (@messages)
	{
		if (/INFO:  00000: duration: /)
		{
			$lines = [];
		}
		elsif ($lines && /^LOCATION:/)
		{
			$self->_add_plan(@$lines);
			push @{ $self->{plan} }, grep { /^\s*(?:->|SubPlan|InitPlan|CTE)|^\S.*\(cost=|Key:|Cond:|Workers/ } @$lines;
			$lines = undef;
		}
		elsif ($lines)
		{
			push @$lines, $_;
		}
	}
	$self->{exchange_runs}++ if grep { $self->{exchange}{$_} > ($before{$_} // 0) } keys %{ $self->{exchange} };
	return;
}

sub plan
{
	my ($self) = @_;
	return @{ $self->{plan} };
}

# Adds the counts of another.
sub merge
{
	my ($self, $other) = @_;
	for my $what (qw(gpusort native exchange shapes))
	{
		$self->{$what}{$_} += $other->{$what}{$_} for keys %{ $other->{$what} };
	}
	$self->{$_} += $other->{$_} for qw(rescanned in_worker ingest exchange_runs analyzed in_runs);
	return;
}

sub _list
{
	my ($counts) = @_;
	return join(', ', map { "$_ $counts->{$_}" } sort { $counts->{$b} <=> $counts->{$a} || $a cmp $b } keys %$counts)
		|| 'none';
}

sub text
{
	my ($self) = @_;
	return 'GpuSort under: ' . _list($self->{gpusort})
		. "; rescanned $self->{rescanned}, in workers $self->{in_worker}; with GpuSortIngest $self->{ingest}; "
			. "of $self->{analyzed} analyzed $self->{in_runs} in runs\n"
		. "runs with GpuSortExchange: $self->{exchange_runs}, over " . _list($self->{exchange}) . "\n"
		. 'nodes and shapes of plans: ' . _list($self->{shapes}) . "\n"
		. 'PostgreSQL\'s Sort under: ' . _list($self->{native});
}

1;
