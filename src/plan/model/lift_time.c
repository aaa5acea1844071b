/*-------------------------------------------------------------------------
 *
 * lift_time.c
 *	  Whether what is above a sort takes less time in several processes.
 *
 * Several processes share what nodes do with the sorted rows, but each row that comes out of the last
 * of these nodes is written to a queue and read from it, which takes as long as a Unique takes for a
 * row.  So where nearly all rows come out, and next to nothing is done with them, one process is
 * faster, unless there are many.  The times of nodes are those of paths (node_time.h), here for the nodes
 * of a finished plan.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/lift_time.h"

#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "node.h"
#include "plan/model/node_time.h"
#include "plan/finish/plan_tree.h"
#include "utils/lsyscache.h"

/* What giving a sorted row out takes. */
#define EMIT_ROW NS(15)

/* The aggregates of a node. */
typedef struct Aggregates
{
	Bitmapset *seen; /* their transitions: several can have one in common */
	double row;      /* what they take for each row */
	double group;    /* and for each group */
} Aggregates;

static bool
find_aggregates(Node *node, void *arg)
{
	Aggregates *found = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		const Aggref *aggregate = (const Aggref *) node;
		bool state = !get_typbyval(aggregate->aggtranstype) || aggregate->aggtranstype == INTERNALOID;

		if (bms_is_member(aggregate->aggtransno, found->seen))
			return false;
		found->seen = bms_add_member(found->seen, aggregate->aggtransno);
		gpusort_add_transition_times(state, &found->row, &found->group);
		if (aggregate->aggorder != NIL || aggregate->aggdistinct != NIL)
			found->row += TRANSITION_SORT;
		return false;
	}
	return expression_tree_walker(node, find_aggregates, arg);
}

static double
aggregate_time(const Agg *agg)
{
	const Plan *plan = &agg->plan;
	double rows = outerPlan(plan)->plan_rows;
	int sets = Max(list_length(agg->groupingSets), 1);
	Aggregates found = {0};

	(void) find_aggregates((Node *) plan->targetlist, &found);
	(void) find_aggregates((Node *) plan->qual, &found);
	return rows * sets * (SORTED_ROW + found.row) + plan->plan_rows * (SORTED_GROUP + found.group);
}

/* What a node, by PostgreSQL's cost, takes beside the one below it. */
static double
cost_over(const Plan *plan, const Plan *below)
{
	return Max(plan->total_cost - below->total_cost, 0);
}

/* Returns what a plan takes from where its GpuSorts have sorted. */
static double
time_above(const Plan *plan)
{
	const Plan *below = IsA(plan, SubqueryScan) ? ((const SubqueryScan *) plan)->subplan : outerPlan(plan);
	double time;

	if (gpusort_is_gathered_sort(plan))
		return plan->plan_rows * EMIT_ROW;
	time = time_above(below);
	switch (nodeTag(plan))
	{
		case T_WindowAgg:
			return time + below->plan_rows * gpusort_window_row_time(plan->targetlist, ((const WindowAgg *) plan)->winref, ((const WindowAgg *) plan)->runCondition, gpusort_plan_is(below, &gpusort_scan_methods));
		case T_Agg:
			return time + aggregate_time((const Agg *) plan);
		case T_Group:
		case T_Unique:
			return time + below->plan_rows * UNIQUE_ROW;
		case T_SetOp:
			if (innerPlan(plan) != NULL)
				time += time_above(innerPlan(plan)) + innerPlan(plan)->plan_rows * SETOP_ROW;
			return time + below->plan_rows * SETOP_ROW;
		case T_MergeJoin:
			return time + time_above(innerPlan(plan)) + (below->plan_rows + innerPlan(plan)->plan_rows) * MERGE_ROW +
				plan->plan_rows * JOINED_ROW;
		case T_Sort:
		case T_IncrementalSort:
		case T_CustomScan:
			return time + NATIVE_SORT_TIME * cost_over(plan, below);
		default:
			return time + cost_over(plan, below) * OTHER_UNIT;
	}
}

/* Returns true if a plan that ranges tell about takes less time range by range, in as many processes as there may be. */
bool
gpusort_lift_saves_time(const Plan *plan, const GpuSortRangePlan *ranges)
{
	double time = time_above(plan);
	int workers = 0;
	ListCell *cell;

	foreach(cell, ranges->sorts)
		workers = Max(workers, castNode(Gather, outerPlan(lfirst_node(CustomScan, cell)))->num_workers);
	return gpusort_time_in_ranges(time, plan->plan_rows, gpusort_range_processes(workers)) < time;
}
