/*-------------------------------------------------------------------------
 *
 * node_safety.c
 *	  Whether parallel workers may compute what nodes of a finished plan do.
 *
 * What an expression may have is facts/parallel_safety.c's; here are the expressions of a node.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/node_safety.h"

#include "plan/finish/plan_tree.h"
#include "plan/node_kinds.h"

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

/* Begins to look at nodes of a statement. */
void
gpusort_safety_init(GpuSortSafety *safety, PlannedStmt *stmt)
{
	*safety = (GpuSortSafety){.subplans = stmt->subplans};
	gpusort_plan_each_of_statement(stmt, add_initplan_params, safety);
}

/*
 * Returns true if a node itself may run in workers, whatever is below it: one of those that node_kinds.c knows.  Its
 * parameters are added to used_params.  Otherwise why_not says why, as the rest of a sentence.
 */
bool
gpusort_safety_of_node(GpuSortSafety *safety, const Plan *plan)
{
	const GpuSortNodeRow *row = gpusort_node_row(plan);
	GpuSortComputed computed = {0};
	ListCell *cell;

	if (row != NULL && row->computed != NULL)
		row->computed(plan, &computed);
	if (!gpusort_safety_of_expression(safety, (Node *) plan->targetlist) ||
		!gpusort_safety_of_expression(safety, (Node *) plan->qual) ||
		!gpusort_safety_of_expression(safety, (Node *) computed.expressions))
		return false;
	foreach(cell, computed.functions)
	{
		if (!gpusort_safety_of_function(safety, lfirst_oid(cell)))
			return false;
	}
	return true;
}
