/*-------------------------------------------------------------------------
 *
 * plan_tree.c
 *	  Finds its way in finished plans, GpuSort's own nodes among them.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/plan_tree.h"

/* Returns true if plan is a node with these methods; plan may be NULL. */
bool
gpusort_plan_is(const Plan *plan, const CustomScanMethods *methods)
{
	return plan != NULL && IsA(plan, CustomScan) && ((const CustomScan *) plan)->methods == methods;
}

static void
each_of_list(List *plans, GpuSortPlanCallback callback, void *arg)
{
	ListCell *cell;

	foreach(cell, plans)
		callback((Plan **) &lfirst(cell), arg);
}

/*
 * Calls callback with the place of every plan that plan reads from.  Plans of
 * expressions and CTEs are in a list of the statement.
 */
void
gpusort_plan_each_child(Plan *plan, GpuSortPlanCallback callback, void *arg)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			each_of_list(((Append *) plan)->appendplans, callback, arg);
			break;
		case T_MergeAppend:
			each_of_list(((MergeAppend *) plan)->mergeplans, callback, arg);
			break;
		case T_SubqueryScan:
			callback(&((SubqueryScan *) plan)->subplan, arg);
			break;
		case T_CustomScan:
			each_of_list(((CustomScan *) plan)->custom_plans, callback, arg);
			break;
		default:
			break;
	}
	if (plan->lefttree != NULL)
		callback(&plan->lefttree, arg);
	if (plan->righttree != NULL)
		callback(&plan->righttree, arg);
}
