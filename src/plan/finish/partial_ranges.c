/*-------------------------------------------------------------------------
 *
 * partial_ranges.c
 *	  Settles in finished plans how processes share ranges of sorted rows below a Gather.
 *
 * Each GpuSortOutput that is a partial path's (ranges_path.c) gets the number of its Gather's parameter for
 * rescans, and the GpuSorts below it how many of their first columns part ranges, and whose keys these have, as
 * range_plan.c finds.  Should it find that the plan may not run range by range, though the path
 * looked as if, the GpuSorts have no such column, and at run time one process does it all: the answer is right, and a
 * path was offered that should not have been.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/partial_ranges.h"

#include "node.h"
#include "nodes/extensible.h"
#include "plan/finish/node_safety.h"
#include "plan/finish/plan_tree.h"
#include "plan/finish/range_plan.h"

/* Where in a statement's plans we are. */
typedef struct RangesPlace
{
	PlannedStmt *stmt;
	int rescan_param; /* of the Gather, or Gather Merge, above; -1: there is none */
} RangesPlace;

/* Settles what a GpuSortOutput, and the GpuSorts below it, have to know. */
static void
settle(const RangesPlace *place, CustomScan *output)
{
	const GpuSortOutputInfo info = {.rescan_param = place->rescan_param, .partial = true, .window = -1};
	GpuSortSafety safety;
	GpuSortRangePlan ranges;
	ListCell *cell;

	if (place->rescan_param < 0)
		elog(ERROR, "there is no Gather above GpuSortOutput");
	output->custom_private = gpusort_output_plan_pack(&info);
	gpusort_plan_refer_to_child(output);
	gpusort_safety_init(&safety, place->stmt);
	if (!gpusort_range_plan_find(outerPlan(output), &safety, &ranges))
	{
		elog(DEBUG1, "gpusort: rows below GpuSortOutput cannot be shared out: %s",
			 safety.why_not != NULL ? safety.why_not : "the plan is of an unknown kind");
		return;
	}
	foreach(cell, ranges.sorts)
		gpusort_plan_set_range_columns(lfirst_node(CustomScan, cell), ranges.ncolumns,
									   gpusort_range_key_types(&ranges));
}

static void
visit(Plan **link, void *arg)
{
	RangesPlace place = *(const RangesPlace *) arg;
	Plan *plan = *link;

	if (IsA(plan, Gather))
		place.rescan_param = ((Gather *) plan)->rescan_param;
	else if (IsA(plan, GatherMerge))
		place.rescan_param = ((GatherMerge *) plan)->rescan_param;
	else if (gpusort_plan_is(plan, &gpusort_output_scan_methods) &&
			 gpusort_output_plan_unpack((CustomScan *) plan).partial)
		settle(&place, (CustomScan *) plan);
	gpusort_plan_each_child(plan, visit, &place);
}

/* Changes the plans of a statement as the head of this file says.  To be called when all else about them is settled. */
void
gpusort_partial_ranges_settle(PlannedStmt *stmt)
{
	RangesPlace place = {.stmt = stmt, .rescan_param = -1};

	gpusort_plan_each_of_statement(stmt, visit, &place);
}
