/*-------------------------------------------------------------------------
 *
 * uses.c
 *	  Rules of finished plans: what a GpuSort says of the node right above it, and of the one below.
 *
 * The executor believes it, and runs that node by it.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/check/rules.h"

#include "facts/aggregates.h"
#include "facts/windows.h"
#include "node.h"
#include "nodes/nodeFuncs.h"
#include "plan/finish/plan_tree.h"
#include "utils/fmgroids.h"

/* An Agg whose aggregates read the rows of a GpuSort by number. */
typedef struct ByNumber
{
	const Plan *plan;
	const GpuSortPlanInfo *sort;
	int aggregates;
} ByNumber;

/* Returns true if an aggregate sorts its rows by the first columns of a GpuSort. */
static bool
sorts_alike(const Aggref *aggregate, const GpuSortPlanInfo *sort)
{
	int i = 0;
	ListCell *cell;

	foreach(cell, aggregate->aggorder)
	{
		if (i == sort->ncolumns ||
			!gpusort_aggregate_sorts_by(aggregate, lfirst_node(SortGroupClause, cell), &sort->columns[i++]))
			return false;
	}
	return i > 0;
}

static bool
check_aggregates(Node *node, void *arg)
{
	ByNumber *by_number = arg;
	const Aggref *aggregate = (const Aggref *) node;
	bool alike;

	if (node == NULL)
		return false;
	if (!IsA(node, Aggref))
		return expression_tree_walker(node, check_aggregates, arg);
	by_number->aggregates++;
	alike = sorts_alike(aggregate, by_number->sort);
	if (gpusort_aggregate_is_percentile(aggregate->aggfnoid))
		alike |= sorts_alike(gpusort_aggregate_without_cast(aggregate), by_number->sort);
	else if (!gpusort_aggregate_is_hypothetical(aggregate->aggfnoid) || aggregate->aggfnoid == F_DENSE_RANK_ANY ||
			 list_length(aggregate->aggdirectargs) != list_length(aggregate->aggorder))
		gpusort_refuse_plan(by_number->plan, "reads rows by number, and has aggregate %u", aggregate->aggfnoid);
	if (!alike || aggregate->aggfilter != NULL)
		gpusort_refuse_plan(by_number->plan, "reads rows by number, of which aggregate %u wants others",
							aggregate->aggfnoid);
	return false;
}

static void
check_by_number(const Plan *plan, const GpuSortPlanInfo *sort)
{
	ByNumber by_number = {.plan = plan, .sort = sort};
	const Agg *agg = (const Agg *) plan;

	if (!IsA(plan, Agg) || agg->aggstrategy != AGG_PLAIN || agg->aggsplit != AGGSPLIT_SIMPLE ||
		agg->groupingSets != NIL || outerPlan(plan)->parallel_aware)
		gpusort_refuse_plan(plan, "is above a GpuSort for an Agg of all rows, and is none");
	(void) check_aggregates((Node *) plan->targetlist, &by_number);
	(void) check_aggregates((Node *) plan->qual, &by_number);
	if (by_number.aggregates == 0)
		gpusort_refuse_plan(plan, "reads rows by number, and has no aggregate");
}

static void
check_window(const Plan *plan, const GpuSortUse *said)
{
	const GpuSortUse use = gpusort_window_plan_needs((const WindowAgg *) plan).use;

	/* A path shows functions that are computed below the window, volatile ones, say, in which case nothing is done. */
	if (said->kind == GPUSORT_USE_NONE)
		return;
	if (use.kind != said->kind || use.before != said->before || use.after != said->after || use.rows != said->rows ||
		use.totals != said->totals)
		gpusort_refuse_plan(plan, "is a window that the GpuSort below takes for another (%d, not %d)", said->kind,
							use.kind);
}

/* Looks at a plan, if it is a GpuSort, right below plan. */
static void
check_below(Plan **link, void *arg)
{
	const Plan *plan = arg;
	GpuSortPlanInfo sort;

	if (!gpusort_plan_is(*link, &gpusort_scan_methods))
		return;
	gpusort_plan_unpack((const CustomScan *) *link, &sort);
	if (IsA(plan, WindowAgg))
		check_window(plan, &sort.use);
	else if (sort.use.kind == GPUSORT_USE_NUMBERS)
		check_by_number(plan, &sort);
	else if (sort.use.kind != GPUSORT_USE_UNKNOWN)
		gpusort_refuse_plan(plan, "is above a GpuSort for a window, and is none");
}

/* Looks at a GpuSort that may read blocks by an index, in one process. */
static void
check_blocks(const Plan *plan)
{
	GpuSortPlanInfo sort;

	gpusort_plan_unpack((const CustomScan *) plan, &sort);
	if (OidIsValid(sort.block_index.index) && (plan->parallel_aware || !IsA(outerPlan(plan), SeqScan)))
		gpusort_refuse_plan(plan, "reads blocks by an index, and is above no table");
}

/*
 * Raises an error where a GpuSort right below a node does not say what that makes of the order, or plan is one that
 * reads blocks of no table.
 */
void
gpusort_check_use(Plan *plan)
{
	const Plan *below = outerPlan(plan);

	if (gpusort_plan_is(plan, &gpusort_scan_methods))
		check_blocks(plan);

	gpusort_plan_each_child(plan, check_below, plan);
	if (!gpusort_plan_is(plan, &gpusort_output_scan_methods) ||
		gpusort_output_plan_unpack((const CustomScan *) plan).partition_columns < 0)
		return;
	while (below != NULL && !(IsA(below, WindowAgg) && gpusort_plan_is(outerPlan(below), &gpusort_scan_methods)))
		below = IsA(below, SubqueryScan) ? ((const SubqueryScan *) below)->subplan : outerPlan(below);
	if (below == NULL)
		gpusort_refuse_plan(plan, "has a window go on from one range to the next, which is not above a GpuSort");
}
