/*-------------------------------------------------------------------------
 *
 * ranges.c
 *	  Tells nodes of finished plans by which columns processes share rows.
 *
 * A GpuSortOutput runs the plan below it for ranges of sorted rows.  Paths have decided that (offer/exchange_paths.c,
 * offer/ranges_path.c).  Here it gets the number of its Gather's parameter for rescans, and the GpuSorts below it how
 * many of their first columns part ranges, and whose keys these have, as range_plan.c finds in the plan.
 *
 * Should range_plan.c find no such column, though the path has one, one process does it all at run time.  Builds that
 * check plans raise an error.
 *
 * Where one process runs what is above a sort whose rows several take in, the path's reason is told here.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/ranges.h"

#include "node.h"
#include "nodes/bitmapset.h"
#include "nodes/makefuncs.h"
#include "plan/finish/plan_tree.h"
#include "plan/finish/range_plan.h"
#include "plan/node_kinds.h"
#include "plan/offer/paths.h"

/*
 * Tells the GpuSorts below a GpuSortOutput which ranges there are, and it what it has to know of them: by the plan
 * below it that runs range by range.
 */
static void
settle(GpuSortFinish *finish, CustomScan *output, const Plan *plan, GpuSortOutputInfo info)
{
	GpuSortRangePlan ranges;
	ListCell *cell;

	if (info.rescan_param < 0)
		elog(ERROR, "there is no Gather above GpuSortOutput");
	if (gpusort_range_plan_find(plan, &ranges))
		info.partition_columns = ranges.partition_columns;
	else
	{
		elog(GPUSORT_BROKEN_PLAN, "gpusort: rows below GpuSortOutput cannot be divided into ranges");
		ranges.sorts = NIL;
	}
	output->custom_private = gpusort_output_plan_pack(&info);
	foreach(cell, ranges.sorts)
	{
		gpusort_plan_set_range_columns(lfirst_node(CustomScan, cell), ranges.ncolumns,
									   gpusort_range_key_types(&ranges));
		/* The leader reads all rows again by starting Gather over, in a partial plan nobody can. */
		gpusort_plan_set_rescannable(lfirst_node(CustomScan, cell), finish->rescannable && !info.partial);
	}
}

/* Settles a GpuSortOutput of a partial path.  To be called when all else below it is settled. */
void
gpusort_ranges_settle_partial(const GpuSortPlanPlace *place, CustomScan *output)
{
	gpusort_plan_refer_to_child(output);
	settle(place->finish, output, outerPlan(output),
		   (GpuSortOutputInfo){.rescan_param = place->rescan_param, .partial = true, .partition_columns = -1});
}

/* Returns what runs range by range of a plan below a GpuSortOutput, of what comes of which there is more in each. */
static const Plan *
by_ranges(const Plan *plan)
{
	if (IsA(plan, Limit))
		return outerPlan(outerPlan(plan)); /* the first rows, by another order */
	if (IsA(plan, Agg) && ((const Agg *) plan)->aggstrategy == AGG_PLAIN)
		return outerPlan(plan); /* a part of an aggregate of all rows */
	return plan;
}

/* Settles a GpuSortExchange.  To be called when all else below it is settled. */
void
gpusort_ranges_settle_exchange(GpuSortFinish *finish, CustomScan *exchange)
{
	Gather *gather = (Gather *) outerPlan(exchange);
	CustomScan *output = (CustomScan *) outerPlan(gather);
	GpuSortOutputInfo info;
	ListCell *cell;

	gpusort_plan_refer_to_child(output);
	foreach(cell, gather->plan.targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);

		entry->expr = (Expr *) makeVarFromTargetEntry(
			OUTER_VAR, list_nth_node(TargetEntry, output->scan.plan.targetlist, entry->resno - 1));
	}
	gpusort_plan_refer_to_child(exchange);
	info = gpusort_output_plan_unpack(output);
	info.rescan_param = gather->rescan_param;
	settle(finish, output, by_ranges(outerPlan(output)), info);
}

/* Lets a GpuSortExchange that is settled start workers even where PostgreSQL runs the statement without. */
void
gpusort_ranges_start_workers(const CustomScan *exchange)
{
	CustomScan *output = (CustomScan *) outerPlan(outerPlan(exchange));
	GpuSortOutputInfo info = gpusort_output_plan_unpack(output);

	info.starts_workers = true;
	output->custom_private = gpusort_output_plan_pack(&info);
}

/* Returns true if plan is a GpuSort whose rows parallel processes take in. */
bool
gpusort_is_gathered_sort(const Plan *plan)
{
	return gpusort_plan_is(plan, &gpusort_scan_methods) && IsA(outerPlan(plan), Gather) &&
		gpusort_plan_is(outerPlan(outerPlan(plan)), &gpusort_ingest_scan_methods);
}

/* Returns true if a node could run by ranges, if its path said so, and does more than to pass rows on. */
static bool
works(const Plan *plan)
{
	const GpuSortNodeRow *row = gpusort_node_row(plan);

	return row != NULL && row->ranges != GPUSORT_RANGES_PASS && row->ranges != GPUSORT_RANGES_SORT;
}

/* The GpuSortPlanCallback of the next function. */
static void
tell_of_sort(Plan **link, void *arg)
{
	const GpuSortPlanPlace *above = arg;
	GpuSortPlanInfo info;

	if (!gpusort_is_gathered_sort(*link))
		return;
	gpusort_plan_unpack((CustomScan *) *link, &info);
	if (info.why_alone == NULL && works(above->above))
		info.why_alone = "the sort was found in the finished plan only, too late to plan for several processes";
	if (info.why_alone != NULL)
		gpusort_decide_alone(above->finish->decisions, above->above, info.why_alone);
}

/* Tells why one process runs a plan that is right above a sort whose rows several take in, if anybody wants to know. */
void
gpusort_ranges_tell_alone(const GpuSortPlanPlace *place, const Plan *plan)
{
	GpuSortPlanPlace here = *place;

	here.above = plan;
	if (place->finish->decisions != NULL)
		gpusort_plan_each_child((Plan *) plan, tell_of_sort, &here);
}
