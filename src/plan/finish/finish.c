/*-------------------------------------------------------------------------
 *
 * finish.c
 *	  The pass over the finished plans of a statement.
 *
 * Paths have decided what GpuSort does.  This pass changes the plans that PostgreSQL has made of them where no path can
 * say it.  At each node it takes these steps, in this order:
 *
 *	  on the way down	GpuSort takes the place of a Sort that no path knew, and the columns of GpuSorts refer to the plan
 *						below them (sort_nodes.c)
 *	  on the way up		aggregates over sorted rows lose what the order does for them (presorted.c)
 *						processes make the groups that grouping sets are made of (partial_groups.c), and the parts of
 *						aggregates of all rows
 *						what processes share ranges by is settled (ranges.c)
 *						a query's rows lose the columns that it was only sorted by (junk.c)
 *
 * In the end GpuSorts are told whether they may start workers where the statement runs without (own_workers.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/finish.h"

#include "node.h"
#include "plan/finish/junk.h"
#include "plan/finish/own_workers.h"
#include "plan/finish/partial_groups.h"
#include "plan/finish/place.h"
#include "plan/finish/plan_tree.h"
#include "plan/finish/presorted.h"
#include "plan/finish/ranges.h"
#include "plan/finish/sort_nodes.h"
#include "plan/offer/paths.h"

static bool
is_ours(const Plan *plan)
{
	return gpusort_plan_is(plan, &gpusort_scan_methods) || gpusort_plan_is(plan, &gpusort_ingest_scan_methods) ||
		gpusort_plan_is(plan, &gpusort_exchange_scan_methods) || gpusort_plan_is(plan, &gpusort_output_scan_methods) ||
		gpusort_plan_is(plan, &gpusort_groups_scan_methods);
}

/* Returns the LIMIT that asks a plan's children for their first rows alone; NULL if none does. */
static const Limit *
limit_below(const GpuSortPlanPlace *place, const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Limit:
			return ((const Limit *) plan)->limitCount != NULL &&
					((const Limit *) plan)->limitOption == LIMIT_OPTION_COUNT
				? (const Limit *) plan
				: NULL;
		case T_Append:
		case T_MergeAppend:
		case T_Result:
		case T_Gather:
		case T_GatherMerge:
			return place->limit; /* these pass a bound on */
		case T_SubqueryScan:
			return plan->qual == NIL ? place->limit : NULL;
		default:
			return NULL;
	}
}

/* Returns the place of a plan's children. */
static GpuSortPlanPlace
place_below(const GpuSortPlanPlace *place, const Plan *plan)
{
	GpuSortPlanPlace below = *place;

	below.above = plan;
	below.limit = limit_below(place, plan);
	below.foreign = IsA(plan, CustomScan) && !is_ours(plan);
	if (IsA(plan, CustomScan) && !gpusort_plan_is(plan, &gpusort_groups_scan_methods))
		below.in_ranges = gpusort_plan_is(plan, &gpusort_output_scan_methods);
	if (IsA(plan, Gather))
	{
		below.processes = ((const Gather *) plan)->num_workers + 1;
		below.rescan_param = ((const Gather *) plan)->rescan_param;
	}
	else if (IsA(plan, GatherMerge))
	{
		below.processes = ((const GatherMerge *) plan)->num_workers + 1;
		below.rescan_param = ((const GatherMerge *) plan)->rescan_param;
	}
	return below;
}

/* Goes through a plan and all below it. */
static void
visit(Plan **link, void *arg)
{
	GpuSortPlanPlace place = *(const GpuSortPlanPlace *) arg;
	GpuSortPlanPlace below;
	Plan *plan;

	gpusort_sort_node_replace(&place, link);
	plan = *link;
	if (IsA(plan, ForeignScan))
		return; /* what is below is for rechecks of single rows */
	below = place_below(&place, plan);
	gpusort_plan_each_child(plan, visit, &below);

	if (IsA(plan, MergeJoin))
		gpusort_merge_join_drop_material((MergeJoin *) plan);
	if (IsA(plan, Agg))
	{
		gpusort_presorted_settle(&place, (Agg *) plan);
		gpusort_partial_groups_settle(place.finish, (Agg *) plan);
		gpusort_ranges_settle_aggregate(place.finish, (Agg *) plan);
	}
	if (gpusort_plan_is(plan, &gpusort_exchange_scan_methods))
		gpusort_ranges_settle_exchange(place.finish, (CustomScan *) plan);
	else if (gpusort_plan_is(plan, &gpusort_output_scan_methods) &&
			 gpusort_output_plan_unpack((CustomScan *) plan).partial)
		gpusort_ranges_settle_partial(&place, (CustomScan *) plan);
	else
		gpusort_ranges_tell_alone(&place, plan);
	if (IsA(plan, SubqueryScan))
		gpusort_junk_remove_of_subquery(place.finish, (SubqueryScan *) plan);
}

static void
visit_top(Plan **link, void *arg)
{
	visit(link, arg);
	gpusort_junk_remove(((const GpuSortPlanPlace *) arg)->finish, *link);
}

/* Changes the plans of a statement as the head of this file says. */
void
gpusort_finish(PlannedStmt *stmt, const GpuSortStatement *statement, GpuSortDecisions *decisions)
{
	GpuSortFinish finish = {.stmt = stmt, .rescannable = statement->rescannable, .decisions = decisions};
	GpuSortPlanPlace place = {.finish = &finish, .processes = 1, .rescan_param = -1};

	gpusort_safety_init(&finish.safety, stmt);
	gpusort_plan_each_of_statement(stmt, visit_top, &place);
	/* What is planned for it is asked by who has planned it. */
	if (statement->starts_workers && !statement->one_reader && stmt->parallelModeNeeded)
		(void) gpusort_own_workers_settle(stmt);
}
