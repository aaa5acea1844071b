/*-------------------------------------------------------------------------
 *
 * partial_groups.c
 *	  Has processes group rows that the leader would group by grouping sets.
 *
 * PostgreSQL computes grouping sets in one process, of all rows:
 *
 *	  MixedAggregate				Finalize MixedAggregate
 *	    Gather				->		  Gather
 *	      partial plan				    Partial HashAggregate, by the columns of the finest set
 *										  partial plan
 *
 * Where one of the sets has the columns of all others, and its groups are fewer than the rows, each process makes
 * the groups of its rows by that set, and the leader makes all sets of these (combine.c).  The paths that
 * partial_sets.c offers for such plans are finished here; what PostgreSQL has planned likewise gains, too.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/partial_groups.h"

#include "optimizer/optimizer.h"
#include "plan/finish/combine.h"
#include "plan/finish/node_safety.h"
#include "plan/finish/plan_time.h"
#include "plan/finish/plan_tree.h"
#include "settings.h"
#include "utils/lsyscache.h"

/* Returns true if a hash table can be made of the columns. */
static bool
can_be_hashed(const GpuSortFinestSet *finest)
{
	RegProcedure left;
	RegProcedure right;

	for (int i = 0; i < finest->count; i++)
	{
		if (!get_op_hash_functions(finest->operators[i], &left, &right))
			return false;
	}
	return true;
}

/* Returns true if workers may compute these aggregates. */
static bool
are_safe(PlannedStmt *stmt, const GpuSortFinestSet *finest)
{
	Agg probe = {.plan.type = T_Agg, .plan.targetlist = finest->aggregates};
	GpuSortSafety safety;

	gpusort_safety_init(&safety, stmt);
	return gpusort_safety_of_node(&safety, &probe.plan);
}

/* Has processes group the rows that agg has of gather. */
static void
split(PlannedStmt *stmt, Agg *agg, Gather *gather, const GpuSortFinestSet *finest)
{
	Plan *rows = outerPlan(gather);
	Agg *part = gpusort_combine_split_sets(agg, finest, AGG_HASHED, rows, gpusort_plan_last_node_id(stmt) + 1);

	gpusort_plan_take_estimates(&part->plan, rows);
	part->plan.startup_cost = part->plan.total_cost;
	part->plan.plan_rows = Min(finest->groups, rows->plan_rows);
	part->plan.parallel_safe = true;
	gpusort_plan_take_params(&part->plan);
	gather->plan.plan_rows = clamp_row_est(gather->plan.plan_rows / Max(rows->plan_rows, 1) * part->plan.plan_rows);
	gather->plan.targetlist = gpusort_plan_columns(&part->plan, list_length(part->plan.targetlist));
	gather->plan.lefttree = &part->plan;
}

static void
visit(Plan **link, void *arg)
{
	PlannedStmt *stmt = arg;
	Agg *agg = (Agg *) *link;
	GpuSortFinestSet finest;

	if (IsA(agg, Agg) && outerPlan(agg) != NULL && IsA(outerPlan(agg), Gather))
	{
		Gather *gather = (Gather *) outerPlan(agg);

		if (!gather->single_copy && gather->num_workers > 0 && gpusort_plan_passes_rows_on(&gather->plan) &&
			gpusort_combine_may_sets(agg, &finest) && can_be_hashed(&finest) && are_safe(stmt, &finest) &&
			(gpusort_force || gpusort_partial_groups_save_time(agg, gather, &finest)))
			split(stmt, agg, gather, &finest);
	}
	gpusort_plan_each_child(*link, visit, arg);
}

/* Changes the plans of a statement as the head of this file says. */
void
gpusort_partial_groups_settle(PlannedStmt *stmt)
{
	if (gpusort_parallel_output && stmt->parallelModeNeeded)
		gpusort_plan_each_of_statement(stmt, visit, stmt);
}
