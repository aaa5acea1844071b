# FuzzSettings - settings by chance, for one run of a query with gpusort.
package FuzzSettings;

use strict;
use warnings;

use Exporter qw(import);
use FuzzRandom;

our @EXPORT = qw(random_settings wide_settings);

# $force_parallel: the name of the setting that has parallel plans even where they cost more.
sub random_settings
{
	my ($force_parallel) = @_;
	my $workers = one_of(0, 0, 1, 2, 3, 4);
	my @settings = (
		'gpusort.force = ' . (chance(70) ? 'on' : 'off'),
		'gpusort.min_rows = 0',
		'gpusort.verify_rows = ' . (chance(75) ? 'on' : 'off'),
		'work_mem = ' . one_of("'64kB'", "'256kB'", "'4MB'", "'64MB'"),
		"max_parallel_workers_per_gather = $workers");

	push @settings, 'gpusort.setup_cost = 0', 'gpusort.row_cost = 0' if chance(70);
	push @settings, 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0',
		'min_parallel_index_scan_size = 0' if $workers && chance(85);
	push @settings, 'parallel_leader_participation = off' if $workers && chance(25);
	push @settings, 'max_parallel_workers = ' . one_of(0, 0, 1) if $workers && chance(8);
	push @settings, 'gpusort.verify_collation = off' if chance(25);
	push @settings, 'gpusort.page_scan = off' if chance(25);
	push @settings, 'gpusort.parallel_output = off' if $workers && chance(20);
	push @settings, "$force_parallel = " . one_of('on', 'regress') if chance(20);
	# so that there are sorts: most of them stand below joins and groups
	push @settings, 'enable_hashjoin = off' if chance(50);
	push @settings, 'enable_nestloop = off' if chance(40);
	push @settings, 'enable_hashagg = off' if chance(50);
	push @settings, 'enable_incremental_sort = off' if chance(40);
	push @settings, 'enable_indexscan = off', 'enable_indexonlyscan = off' if chance(30);
	push @settings, map { "enable_$_ = off" } some_of(between(0, 3),
		qw(mergejoin bitmapscan material memoize seqscan sort gathermerge partition_pruning parallel_append parallel_hash));
	push @settings, map { "enable_$_ = on" } some_of(2, qw(partitionwise_join partitionwise_aggregate)) if chance(25);
	push @settings, 'plan_cache_mode = ' . one_of('force_generic_plan', 'force_custom_plan') if chance(30);
	push @settings, 'jit = on', 'jit_above_cost = 0' if chance(2);
	push @settings, 'cursor_tuple_fraction = 1' if chance(20);
	push @settings, 'auto_explain.log_verbose = on' if chance(40);
	push @settings, 'auto_explain.log_analyze = on', 'auto_explain.log_timing = off' if chance(15);
	push @settings, 'join_collapse_limit = 1' if chance(5);
	# so that every process runs what is above sorts
	push @settings, 'max_parallel_workers_per_gather = ' . between(1, 4), 'gpusort.force = on',
		'gpusort.parallel_output = on', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
		'min_parallel_table_scan_size = 0',
			map { "enable_$_ = off" } qw(hashagg hashjoin nestloop indexscan indexonlyscan bitmapscan) if chance(25);
	return @settings;
}

# As random_settings, but mostly what makes the planner choose among gpusort's plans and not only take its sorts:
# nothing is forced, and what costs money costs none.
sub wide_settings
{
	my ($force_parallel) = @_;
	return random_settings($force_parallel) if chance(35);
	my $workers = one_of(0, 1, 2, 2, 3, 4);
	my @settings = ('gpusort.force = ' . (chance(20) ? 'on' : 'off'), 'gpusort.min_rows = 0', 'gpusort.setup_cost = 0',
		'gpusort.row_cost = 0', "max_parallel_workers_per_gather = $workers");

	push @settings, 'parallel_setup_cost = 0', 'min_parallel_table_scan_size = 0' if chance(90);
	push @settings, 'parallel_tuple_cost = 0' if chance(70);
	push @settings, 'enable_hashagg = off' if chance(40);
	push @settings, 'work_mem = ' . one_of("'64kB'", "'4MB'", "'64MB'") if chance(40);
	push @settings, 'enable_hashjoin = off', 'enable_nestloop = off' if chance(25);
	push @settings, 'enable_' . one_of(qw(incremental_sort indexscan mergejoin material memoize)) . ' = off' if chance(25);
	push @settings, map { "enable_$_ = on" } some_of(2, qw(partitionwise_join partitionwise_aggregate)) if chance(20);
	push @settings, 'gpusort.verify_rows = ' . one_of('on', 'off') if chance(50);
	push @settings, 'parallel_leader_participation = off' if $workers && chance(10);
	return @settings;
}

1;
