/*-------------------------------------------------------------------------
 *
 * partial_groups.c
 *	  Makes processes group rows that the leader would group by grouping sets.
 *
 * PostgreSQL computes grouping sets in one process, of all rows.  Where the path has groups in each process
 * (offer/partial_sets.c), these are made here:
 *
 *	  MixedAggregate				Finalize MixedAggregate
 *	    Gather				->		  Gather
 *	      GpuSortGroups				    Partial HashAggregate, by the columns of the finest set
 *	        partial plan			      partial plan
 *
 * The finest set has the columns of all others, of which the leader makes them (combine.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/partial_groups.h"

#include "plan/finish/combine.h"
#include "plan/finish/plan_tree.h"
#include "plan/offer/paths.h"

/* Changes an Agg as the head of this file says. */
void
gpusort_partial_groups_settle(GpuSortFinish *finish, Agg *agg)
{
	Plan *gather = outerPlan(agg);
	GpuSortFinestSet finest;
	Plan *groups;
	Plan *rows;
	Agg *part;

	if (gather == NULL || !IsA(gather, Gather) || !gpusort_plan_is(outerPlan(gather), &gpusort_groups_scan_methods))
		return;
	groups = outerPlan(gather);
	rows = outerPlan(groups);
	if (!gpusort_combine_may_sets(agg, &finest))
	{
		elog(GPUSORT_BROKEN_PLAN, "grouping sets that were planned of groups cannot be made of these");
		gather->lefttree = rows;
		return;
	}
	part = gpusort_combine_split_sets(agg, &finest, AGG_HASHED, rows, gpusort_finish_node_id(finish));
	gpusort_plan_take_estimates(&part->plan, groups);
	part->plan.startup_cost = part->plan.total_cost;
	part->plan.parallel_safe = true;
	gpusort_plan_take_params(&part->plan);
	gather->targetlist = gpusort_plan_columns(&part->plan, list_length(part->plan.targetlist));
	gather->lefttree = &part->plan;
}
