/*-------------------------------------------------------------------------
 *
 * plan_time.c
 *	  How long what is above the sorts of a finished plan takes.
 *
 * Several processes share what nodes do with the sorted rows, but each row that comes out of the last
 * of these nodes is written to a queue and read from it, which takes as long as a Unique takes for a
 * row.  So where nearly all rows come out, and next to nothing is done with them, one process is
 * faster, unless there are many.  The times are the model's (shape.c), of shapes that are read off the nodes.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/plan_time.h"

#include "executor/nodeAgg.h"
#include "miscadmin.h"
#include "node.h"
#include "plan/admission.h"
#include "plan/finish/plan_tree.h"
#include "plan/model/constants.h"
#include "plan/model/shape.h"
#include "plan/model/sort_time.h"
#include "plan/node_kinds.h"

/* What a node, by PostgreSQL's cost, has beside the one below it. */
static double
cost_over(const Plan *plan, const Plan *below)
{
	return plan->total_cost - below->total_cost;
}

/* The shape of a node above sorts, of rows of the node below it. */
static GpuSortShape
node_shape(const Plan *plan, const Plan *below)
{
	const GpuSortNodeRow *row = gpusort_node_row(plan);
	GpuSortShape shape = {
		.kind = GPUSORT_NODE_OTHER,
		.rows = below->plan_rows,
		.rows_out = plan->plan_rows,
		.groups = plan->plan_rows,
		.width = below->plan_width,
		.cost = cost_over(plan, below),
	};

	if (innerPlan(plan) != NULL)
		shape.inner_rows = innerPlan(plan)->plan_rows;
	if (row != NULL)
		shape.kind = row->time;
	if (row != NULL && row->fill_shape != NULL)
		row->fill_shape(plan, below, &shape);
	return shape;
}

/* Returns what a plan takes from where its GpuSorts have sorted. */
static double
time_above(const Plan *plan)
{
	const Plan *below = IsA(plan, SubqueryScan) ? ((const SubqueryScan *) plan)->subplan : outerPlan(plan);
	GpuSortShape shape;

	if (gpusort_is_gathered_sort(plan))
		return plan->plan_rows * gpusort_constant(GPUSORT_TIME_EMIT_ROW, gpusort_sorts_on_cuda());
	if (IsA(plan, Sort) || IsA(plan, IncrementalSort) || IsA(plan, CustomScan))
		return time_above(below) + gpusort_native_sort_time(below->plan_rows, below->plan_width, -1, 1, false);
	shape = node_shape(plan, below);
	return time_above(below) + (innerPlan(plan) != NULL ? time_above(innerPlan(plan)) : 0) + gpusort_node_time(&shape);
}

/*
 * Returns true if a plan that ranges tell about takes less time range by range, in as many processes as there may be.
 */
bool
gpusort_lift_saves_time(const Plan *plan, const GpuSortRangePlan *ranges)
{
	double time = time_above(plan);
	double again = 0;
	int workers = 0;
	ListCell *cell;

	if (ranges->window != NULL && ranges->partition_columns == 0)
	{
		const GpuSortWindowNeeds needs = gpusort_window_plan_needs(ranges->window);

		again = gpusort_window_again_time(&needs, outerPlan(ranges->window)->plan_rows);
	}
	foreach(cell, ranges->sorts)
		workers = Max(workers, castNode(Gather, outerPlan(lfirst_node(CustomScan, cell)))->num_workers);
	return gpusort_time_in_ranges(time + again, plan->plan_rows, gpusort_range_processes(workers)) < time;
}

/* Returns what an Agg takes of so many rows, by one set or by all of the chain's. */
static double
groups_time(const Agg *agg, const GpuSortShape *given, double rows, AggStrategy strategy, double groups, int sets)
{
	GpuSortShape shape = *given;

	shape.kind = strategy == AGG_HASHED ? GPUSORT_NODE_HASH_GROUPS : GPUSORT_NODE_SORTED_GROUPS;
	shape.rows = rows * Max(sets, 1);
	shape.groups = Max(Min(groups, rows), 1);
	shape.memory = get_hash_memory_limit();
	shape.entry = hash_agg_entry_size(shape.aggregates.values + shape.aggregates.states, shape.width,
									  agg->transitionSpace);
	return gpusort_node_time(&shape);
}

/* Returns what the grouping sets of an Agg take, of so many rows of below. */
static double
sets_time(const Agg *agg, const GpuSortShape *shape, double rows)
{
	const bool hashed = agg->aggstrategy == AGG_HASHED || agg->aggstrategy == AGG_MIXED;
	double time = groups_time(agg, shape, rows, hashed ? AGG_HASHED : AGG_SORTED, agg->numGroups,
							  list_length(agg->groupingSets));
	ListCell *cell;

	foreach(cell, agg->chain)
	{
		const Agg *other = lfirst_node(Agg, cell);

		time += groups_time(agg, shape, rows, other->aggstrategy, other->numGroups, list_length(other->groupingSets));
	}
	return time;
}

/* Returns true if grouping sets take less time of the groups that processes make of the rows that a Gather has. */
bool
gpusort_partial_groups_save_time(const Agg *agg, const Gather *gather, const GpuSortFinestSet *finest)
{
	const Plan *rows = outerPlan(gather);
	const double all = gather->plan.plan_rows;
	const double groups = Min(finest->groups, rows->plan_rows);
	const double gathered = all / Max(rows->plan_rows, 1) * groups;
	const double gather_row = gpusort_constant(GPUSORT_TIME_GATHER_ROW, false);
	const GpuSortShape shape = node_shape(&agg->plan, &gather->plan);

	return groups_time(agg, &shape, rows->plan_rows, AGG_HASHED, groups, 1) * gpusort_crowd(gather->num_workers) +
		gathered * gather_row + sets_time(agg, &shape, gathered) <
		all * gather_row + sets_time(agg, &shape, all);
}
