/*-------------------------------------------------------------------------
 *
 * node.c
 *	  What a finished plan tells the executor: the layout of custom_private.
 *
 * Lists of integers and Oids only, so that plans
 * can be copied, and read back by parallel workers.
 *
 *-------------------------------------------------------------------------
 */
#include "node.h"

#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"

/* The lists in custom_private; each but the last has an entry for every sort column. */
typedef enum PlanPrivate
{
	PLAN_ATTNOS,
	PLAN_OPERATORS,
	PLAN_COLLATIONS,
	PLAN_NULLS_FIRST,
	PLAN_VALUE_TYPES,
	PLAN_KEY_TYPES,
	PLAN_SCALARS,
	PLAN_PRIVATE_Count,
} PlanPrivate;

/* The entries of PLAN_SCALARS. */
typedef enum PlanScalar
{
	SCALAR_RESCANNABLE,
	SCALAR_WIDTH,
	SCALAR_VISIBLE,
	SCALAR_RANGE_COLUMNS,
	SCALAR_ALONE,
	SCALAR_Count,
} PlanScalar;

/* Returns the type of the values of a Sort's key number i, from 0. */
Oid
gpusort_sort_value_type(const Sort *sort, int i)
{
	return exprType((Node *) get_tle_by_resno(sort->plan.targetlist, sort->sortColIdx[i])->expr);
}

/*
 * Returns custom_private for a node in the place of sort.  All attributes are visible, and the child
 * is taken to give other rows when it is read again, until the functions below say otherwise.
 */
List *
gpusort_plan_pack(const Sort *sort)
{
	List *attnos = NIL;
	List *operators = NIL;
	List *collations = NIL;
	List *nulls_first = NIL;
	List *value_types = NIL;
	List *key_types = NIL;
	List *lists;
	List *scalars;

	for (int i = 0; i < sort->numCols; i++)
	{
		attnos = lappend_int(attnos, sort->sortColIdx[i]);
		operators = lappend_oid(operators, sort->sortOperators[i]);
		collations = lappend_oid(collations, sort->collations[i]);
		nulls_first = lappend_int(nulls_first, sort->nullsFirst[i]);
		value_types = lappend_oid(value_types, gpusort_sort_value_type(sort, i));
		key_types = lappend_oid(key_types, InvalidOid);
	}
	lists = list_make5(attnos, operators, collations, nulls_first, value_types);
	lists = lappend(lists, key_types);
	scalars =
		list_make5_int(false, sort->plan.plan_width, list_length(sort->plan.targetlist), 0, GPUSORT_ALONE_NO_PATH);
	lists = lappend(lists, scalars);
	Assert(list_length(lists) == PLAN_PRIVATE_Count);
	return lists;
}

/* Has the plan sort by attribute new_attnos[n] where it sorted by attribute n (1-based). */
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

/* Has the plan show only the first attributes of its rows to the node above: the others are resjunk. */
void
gpusort_plan_set_visible(CustomScan *plan, int visible)
{
	lfirst_int(list_nth_cell(list_nth(plan->custom_private, PLAN_SCALARS), SCALAR_VISIBLE)) = visible;
}

/*
 * Has all processes read the rows, those that are equal in so many
 * leading columns together, which have the keys of these types.
 */
void
gpusort_plan_set_range_columns(CustomScan *plan, int range_columns, const Oid *key_types)
{
	for (int i = 0; i < range_columns; i++)
		lfirst_oid(list_nth_cell(list_nth(plan->custom_private, PLAN_KEY_TYPES), i)) = key_types[i];
	lfirst_int(list_nth_cell(list_nth(plan->custom_private, PLAN_SCALARS), SCALAR_RANGE_COLUMNS)) = range_columns;
}

/* Says why one process runs what is above the sort, or more of it. */
void
gpusort_plan_set_alone(CustomScan *plan, GpuSortAlone alone)
{
	lfirst_int(list_nth_cell(list_nth(plan->custom_private, PLAN_SCALARS), SCALAR_ALONE)) = alone;
}

/* Returns custom_private for a GpuSortOutput. */
List *
gpusort_output_plan_pack(const GpuSortOutputInfo *info)
{
	return list_make1(list_make5_int(info->rescan_param, info->partial, info->window, info->partition_columns,
									 info->only_formed));
}

/* Reads what gpusort_output_plan_pack wrote. */
GpuSortOutputInfo
gpusort_output_plan_unpack(const CustomScan *plan)
{
	const List *numbers = linitial(plan->custom_private);

	Assert(list_length(numbers) == 5);
	return (GpuSortOutputInfo){
		.rescan_param = linitial_int(numbers),
		.partial = lsecond_int(numbers) != 0,
		.window = lthird_int(numbers),
		.partition_columns = lfourth_int(numbers),
		.only_formed = list_nth_int(numbers, 4) != 0,
	};
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
		column->value_type = list_nth_oid(list_nth(lists, PLAN_VALUE_TYPES), i);
		column->key_type = list_nth_oid(list_nth(lists, PLAN_KEY_TYPES), i);
	}
	info->rescannable = list_nth_int(scalars, SCALAR_RESCANNABLE) != 0;
	info->estimated_width = list_nth_int(scalars, SCALAR_WIDTH);
	info->visible = list_nth_int(scalars, SCALAR_VISIBLE);
	info->range_columns = list_nth_int(scalars, SCALAR_RANGE_COLUMNS);
	info->alone = (GpuSortAlone) list_nth_int(scalars, SCALAR_ALONE);
	info->estimated_rows = plan->scan.plan.plan_rows;
}
