/*-------------------------------------------------------------------------
 *
 * finish.c
 *	  The pass over the finished plans of a statement.
 *
 * Paths have decided what GpuSort does.  This pass changes the plans that PostgreSQL has made of them where no path can
 * say it.  At each node it takes these steps, in this order:
 *
 *	  on the way down	an Agg takes the place of the node above it that has its columns as the query has them
 *						GpuSort takes the place of a Sort that no path knew, and the columns of GpuSorts refer to the plan
 *						below them (sort_nodes.c); which of their rows are looked at is noted (kept_rows.c)
 *	  on the way up		what processes share ranges by is settled (ranges.c)
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
#include "plan/finish/place.h"
#include "plan/finish/plan_tree.h"
#include "plan/finish/ranges.h"
#include "plan/finish/sort_nodes.h"
#include "plan/offer/paths.h"

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
	below.looks_at = gpusort_plan_looks_at(plan, &place->looks_at);
	below.foreign = IsA(plan, CustomScan) && !gpusort_node_is_ours(plan);
	if (IsA(plan, CustomScan))
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

/*
 * Returns the Agg below a node that has its columns as the query has them: all of them, in their order.  So those above
 * refer to them by the same numbers.  The node says which part of its aggregates the Agg is, where its path could not.
 */
static Plan *
without_columns(CustomScan *node)
{
	Agg *agg = castNode(Agg, outerPlan(node));
	ListCell *cell;
	ListCell *computed;

	Assert(list_length(agg->plan.targetlist) == list_length(node->scan.plan.targetlist));
	forboth(cell, node->scan.plan.targetlist, computed, agg->plan.targetlist)
		lfirst_node(TargetEntry, cell)->expr = lfirst_node(TargetEntry, computed)->expr;
	agg->plan.targetlist = node->scan.plan.targetlist;
	agg->plan.initPlan = list_concat(node->scan.plan.initPlan, agg->plan.initPlan);
	agg->plan.extParam = node->scan.plan.extParam;
	agg->plan.allParam = node->scan.plan.allParam;
	agg->aggsplit = linitial_int(node->custom_private);
	foreach(cell, agg->chain)
		lfirst_node(Agg, cell)->aggsplit = agg->aggsplit;
	return &agg->plan;
}

/* Goes through a plan and all below it. */
static void
visit(Plan **link, void *arg)
{
	GpuSortPlanPlace place = *(const GpuSortPlanPlace *) arg;
	GpuSortPlanPlace below;
	Plan *plan;

	if (gpusort_plan_is(*link, &gpusort_columns_scan_methods))
		*link = without_columns((CustomScan *) *link);
	gpusort_sort_node_replace(&place, link);
	plan = *link;
	if (IsA(plan, ForeignScan))
		return; /* what is below is for rechecks of single rows */
	below = place_below(&place, plan);
	gpusort_plan_each_child(plan, visit, &below);

	if (IsA(plan, MergeJoin))
		gpusort_merge_join_drop_material((MergeJoin *) plan);
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

/* Adds the parameters that a plan's initPlans set, and those of all below it, whose values Gather can send. */
static void
add_initplan_params(Plan **link, void *arg)
{
	GpuSortSafety *safety = arg;
	ListCell *cell;
	ListCell *param;

	foreach(cell, (*link)->initPlan)
	{
		const SubPlan *initplan = lfirst_node(SubPlan, cell);

		if (initplan->subLinkType == CTE_SUBLINK)
			continue; /* what that sets is no value */
		foreach(param, initplan->setParam)
			safety->known_params = bms_add_member(safety->known_params, lfirst_int(param));
	}
	gpusort_plan_each_child(*link, add_initplan_params, safety);
}

/* Changes the plans of a statement as the head of this file says. */
void
gpusort_finish(PlannedStmt *stmt, const GpuSortStatement *statement, GpuSortDecisions *decisions)
{
	GpuSortFinish finish = {.stmt = stmt,
							.rescannable = statement->rescannable,
							.decisions = decisions,
							.safety.subplans = stmt->subplans};
	GpuSortPlanPlace place = {.finish = &finish, .processes = 1, .rescan_param = -1};

	gpusort_plan_each_of_statement(stmt, add_initplan_params, &finish.safety);
	gpusort_plan_each_of_statement(stmt, visit_top, &place);
	/* What is planned for it is asked by who has planned it. */
	if (statement->starts_workers && statement->own_workers == GPUSORT_NO_OWN_WORKERS && stmt->parallelModeNeeded)
		(void) gpusort_own_workers_settle(stmt, GPUSORT_NO_OWN_WORKERS);
}
