/*-------------------------------------------------------------------------
 *
 * plan_info.c
 *	  What a finished plan tells the executor: the layout of custom_private.
 *
 * Lists of integers and Oids only, so that plans can be copied, and read back by
 * parallel workers.
 *
 *-------------------------------------------------------------------------
 */
#include "node.h"

/* The lists in custom_private; each but the last has an entry for every sort column. */
typedef enum PlanPrivate
{
	PLAN_ATTNOS,
	PLAN_OPERATORS,
	PLAN_COLLATIONS,
	PLAN_NULLS_FIRST,
	PLAN_SCALARS,
	PLAN_PRIVATE_Count,
} PlanPrivate;

/* The entries of PLAN_SCALARS. */
typedef enum PlanScalar
{
	SCALAR_RESCANNABLE,
	SCALAR_WIDTH,
	SCALAR_GIVEN,
	SCALAR_Count,
} PlanScalar;

/*
 * What takes the place of sort: as GpuSortPlanInfo has it.  All columns are given out, and the child is thought to
 * give other rows when it is read again.
 */
List *
gpusort_plan_pack(const Sort *sort)
{
	List *attnos = NIL;
	List *operators = NIL;
	List *collations = NIL;
	List *nulls_first = NIL;
	List *lists;

	for (int i = 0; i < sort->numCols; i++)
	{
		attnos = lappend_int(attnos, sort->sortColIdx[i]);
		operators = lappend_oid(operators, sort->sortOperators[i]);
		collations = lappend_oid(collations, sort->collations[i]);
		nulls_first = lappend_int(nulls_first, sort->nullsFirst[i]);
	}
	lists = list_make5(attnos, operators, collations, nulls_first,
					   list_make3_int(false, sort->plan.plan_width, list_length(sort->plan.targetlist)));
	Assert(list_length(lists) == PLAN_PRIVATE_Count);
	return lists;
}

/* Has the plan sort by column new_attnos[n] where it sorted by column n. */
void
gpusort_plan_move_keys(CustomScan *plan, const AttrNumber *new_attnos)
{
	ListCell *cell;

	foreach(cell, list_nth(plan->custom_private, PLAN_ATTNOS))
		lfirst_int(cell) = new_attnos[lfirst_int(cell)];
}

/* Says whether the child gives the same rows when it is read again. */
void
gpusort_plan_set_rescannable(CustomScan *plan, bool rescannable)
{
	lfirst_int(list_nth_cell(list_nth(plan->custom_private, PLAN_SCALARS), SCALAR_RESCANNABLE)) = rescannable;
}

/* Has the plan give out only the first columns of its rows. */
void
gpusort_plan_set_given(CustomScan *plan, int given)
{
	lfirst_int(list_nth_cell(list_nth(plan->custom_private, PLAN_SCALARS), SCALAR_GIVEN)) = given;
}

/* Reads what gpusort_plan_pack wrote.  columns is palloc'd. */
void
gpusort_plan_unpack(const CustomScan *plan, GpuSortPlanInfo *info)
{
	List *lists = plan->custom_private;
	List *attnos = list_nth(lists, PLAN_ATTNOS);
	List *scalars = list_nth(lists, PLAN_SCALARS);

	Assert(list_length(lists) == PLAN_PRIVATE_Count);
	Assert(list_length(scalars) == SCALAR_Count);
	info->ncolumns = list_length(attnos);
	info->columns = palloc0(info->ncolumns * sizeof(GpuSortColumn));
	for (int i = 0; i < info->ncolumns; i++)
	{
		GpuSortColumn *column = &info->columns[i];

		column->attno = list_nth_int(attnos, i);
		column->sort_operator = list_nth_oid(list_nth(lists, PLAN_OPERATORS), i);
		column->collation = list_nth_oid(list_nth(lists, PLAN_COLLATIONS), i);
		column->nulls_first = list_nth_int(list_nth(lists, PLAN_NULLS_FIRST), i) != 0;
	}
	info->rescannable = list_nth_int(scalars, SCALAR_RESCANNABLE) != 0;
	info->estimated_width = list_nth_int(scalars, SCALAR_WIDTH);
	info->given = list_nth_int(scalars, SCALAR_GIVEN);
	info->estimated_rows = plan->scan.plan.plan_rows;
}

/* Is plan one of our nodes, with these methods? */
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
