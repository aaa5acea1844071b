# WorkloadPlan - what bench/workload asks of a plan, of EXPLAIN (FORMAT JSON): gpusort's nodes, which
# relations each join joins, and whether two plans are the same.
package WorkloadPlan;

use strict;
use warnings;

use JSON::PP ();

my $json = JSON::PP->new->utf8->canonical;

# Of the lines that EXPLAIN (FORMAT JSON, COSTS OFF, SUMMARY ON) printed
sub new
{
	my ($class, @lines) = @_;
	my $explained = eval { $json->decode(join "\n",
		grep { !/^(?:LOG|NOTICE|WARNING|INFO|DEBUG\d?|HINT|DETAIL|CONTEXT|STATEMENT): / } @lines) } or return;
	my $self = bless { plan => $explained->[0]{Plan}, planning_ms => $explained->[0]{'Planning Time'}, joins => [],
		relations => {}, nodes => {} }, $class;

	$self->below($self->{plan});
	$self->{joins} = [ sort @{ $self->{joins} } ];
	return $self;
}

# The relations below a node, counting gpusort's nodes and adding the joins.  What a SubPlan or an InitPlan
# joins is its own tree.
sub below
{
	my ($self, $node) = @_;
	my ($type, @sides) = ($node->{'Node Type'});

	if ($type eq 'Custom Scan' && ($node->{'Custom Plan Provider'} // '') =~ /^GpuSort/)
	{
		$self->{nodes}{ $node->{'Custom Plan Provider'} }++;
	}
	for my $child (@{ $node->{Plans} // [] })
	{
		my @relations = $self->below($child);
		push @sides, \@relations if ($child->{'Parent Relationship'} // '') !~ /^(?:InitPlan|SubPlan)$/;
	}
	my %relations = map { $_ => 1 } map { @$_ } @sides;
	my $name = $node->{Alias} // $node->{'CTE Name'};
	if (defined $name && $type =~ /Scan$/ && $type ne 'Subquery Scan' && $type ne 'Custom Scan')
	{
		$relations{$name} = $self->{relations}{$name} = 1;
	}
	if (@sides == 2 && $type =~ /^(?:Nested Loop|Hash Join|Merge Join)$/)
	{
		my @names = sort map { join ',', sort @$_ } @sides;
		# those of the same relations are rows side by side, of aggregates that are apart
		push @{ $self->{joins} }, join ' x ', @names if $names[0] ne $names[1];
	}
	return sort keys %relations;
}

# "2 GpuSort, GpuSortExchange"; empty without
sub gpusort_nodes
{
	my ($self) = @_;
	return join ', ', map { ($self->{nodes}{$_} > 1 ? "$self->{nodes}{$_} " : '') . $_ } sort keys %{ $self->{nodes} };
}

# Names of all nodes, from the top, for a reader
sub shape
{
	my ($self, $node) = @_;
	$node //= $self->{plan};
	my $name = $node->{'Node Type'} eq 'Custom Scan' ? $node->{'Custom Plan Provider'} : $node->{'Node Type'};
	return join ' > ', $name, map { $self->shape($_) } @{ $node->{Plans} // [] };
}

sub same_plan
{
	my ($self, $other) = @_;
	return $json->encode($self->{plan}) eq $json->encode($other->{plan});
}

sub same_joins
{
	my ($self, $other) = @_;
	return join("\n", @{ $self->{joins} }) eq join("\n", @{ $other->{joins} });
}

# The joins of the other plan that this one lacks
sub joins_missing
{
	my ($self, $other) = @_;
	my %here;

	$here{$_}++ for @{ $self->{joins} };
	return grep { ($here{$_}-- // 0) <= 0 } @{ $other->{joins} };
}

sub count_relations
{
	my ($self) = @_;
	return scalar keys %{ $self->{relations} };
}

1;
