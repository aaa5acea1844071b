/*-------------------------------------------------------------------------
 *
 * ranges.c
 *	  Tells nodes of finished plans by which columns processes share rows.
 *
 * A GpuSortOutput runs the plan below it for ranges of sorted rows.  Paths have decided that (offer/exchange_paths.c,
 * offer/ranges_path.c).  Here it gets the number of its Gather's parameter for rescans, and the GpuSorts below it how
 * many of their first columns part ranges, and whose keys these have, as range_plan.c finds in the plan.
 *
 * Should range_plan.c find that a plan cannot run range by range, though its path could, the GpuSorts get no such
 * column, and at run time one process does it all.  Builds that check plans raise an error.
 *
 * Where one process runs what is above a sort whose rows several take in, the reason is told here.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/ranges.h"

#include "node.h"
#include "nodes/bitmapset.h"
#include "nodes/makefuncs.h"
#include "plan/finish/plan_tree.h"
#include "plan/finish/range_plan.h"
#include "plan/offer/paths.h"

static const char *const why_alone[] = {
	[GPUSORT_ALONE_NO_PATH] = "the sort is in the finished plan alone, where no more is decided than who sorts",
	[GPUSORT_ALONE_REREAD] = "the query does not give the same rows when it is read again",
	[GPUSORT_ALONE_SCROLL] = "the cursor can scroll",
	[GPUSORT_ALONE_SETTING] = "gpusort.parallel_output is off",
	[GPUSORT_ALONE_REPEATED] = "a nested loop reads it for each row",
	[GPUSORT_ALONE_LIMIT] = "a LIMIT may want its first rows alone, and all would be read before",
	[GPUSORT_ALONE_MARKED] = "a merge join goes back in it",
	[GPUSORT_ALONE_TIME] = "several would take longer, for the rows that come of it have to be passed on",
};

/*
 * Tells the GpuSorts below a GpuSortOutput which ranges there are, and it what it has to know of them: by the plan
 * below it that runs range by range.
 */
static void
settle(GpuSortFinish *finish, CustomScan *output, const Plan *plan, GpuSortOutputInfo info)
{
	GpuSortSafety *safety = &finish->safety;
	GpuSortRangePlan ranges;
	ListCell *cell;

	if (info.rescan_param < 0)
		elog(ERROR, "there is no Gather above GpuSortOutput");
	if (gpusort_range_plan_find(plan, info.partial, safety, &ranges))
	{
		info.window = ranges.window != NULL ? ranges.window->plan.plan_node_id : -1;
		info.partition_columns = ranges.partition_columns;
	}
	else
	{
		elog(GPUSORT_BROKEN_PLAN, "gpusort: rows below GpuSortOutput cannot be shared out: %s",
			 safety->why_not != NULL ? safety->why_not : "the plan is of an unknown kind");
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
		   (GpuSortOutputInfo){.rescan_param = place->rescan_param, .partial = true, .window = -1});
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
	ListCell *cell;

	gpusort_plan_refer_to_child(output);
	foreach(cell, gather->plan.targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);

		entry->expr = (Expr *) makeVarFromTargetEntry(
			OUTER_VAR, list_nth_node(TargetEntry, output->scan.plan.targetlist, entry->resno - 1));
	}
	gpusort_plan_refer_to_child(exchange);
	settle(finish, output, by_ranges(outerPlan(output)),
		   (GpuSortOutputInfo){.rescan_param = gather->rescan_param, .window = -1});
}

/* The GpuSortPlanCallback of the next function. */
static void
tell_of_sort(Plan **link, void *arg)
{
	const GpuSortPlanPlace *above = arg;
	GpuSortFinish *finish = above->finish;
	GpuSortRangePlan ranges;
	GpuSortPlanInfo info;

	if (!gpusort_is_gathered_sort(*link))
		return;
	if (gpusort_range_plan_find(above->above, false, &finish->safety, &ranges))
	{
		gpusort_plan_unpack((CustomScan *) *link, &info);
		gpusort_decide_alone(finish->decisions, above->above, why_alone[info.alone]);
	}
	else if (finish->safety.why_not != NULL)
		gpusort_decide_alone(finish->decisions, above->above, finish->safety.why_not);
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
