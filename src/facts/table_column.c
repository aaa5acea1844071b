/*-------------------------------------------------------------------------
 *
 * table_column.c
 *	  Which column of which table a column of a finished plan's rows is.
 *
 * For those who look into statistics: of the table's column, when a plan is costed,
 * and of its values, when it runs.  A column is followed down the plan as long as it
 * is passed on as it is, under whatever type.
 *
 *-------------------------------------------------------------------------
 */
#include "facts/table_column.h"

#include "access/table.h"
#include "nodes/primnodes.h"
#include "parser/parsetree.h"
#include "utils/rel.h"

/* The plan that the Vars of plan's target list with this varno refer to; NULL if there is none below it. */
static const Plan *
referred_plan(const Plan *plan, int varno)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			return linitial(((const Append *) plan)->appendplans);
		case T_MergeAppend:
			return linitial(((const MergeAppend *) plan)->mergeplans);
		case T_SubqueryScan:
			return ((const SubqueryScan *) plan)->subplan;
		default:
			return varno == INNER_VAR ? innerPlan(plan) : varno == OUTER_VAR ? outerPlan(plan)
																			 : NULL;
	}
}

/* The Var that column attno of a target list is; NULL if it is something else. */
static const Var *
list_var(List *tlist, AttrNumber attno)
{
	const TargetEntry *entry = get_tle_by_resno(tlist, attno);
	const Node *node = entry == NULL ? NULL : (const Node *) entry->expr;

	while (node != NULL && IsA(node, RelabelType))
		node = (const Node *) ((const RelabelType *) node)->arg;
	return node != NULL && IsA(node, Var) ? (const Var *) node : NULL;
}

/* The Var that column attno of plan's rows is, seen through the list of columns that some scans have. */
static const Var *
plan_var(const Plan *plan, AttrNumber attno)
{
	const Var *var = list_var(plan->targetlist, attno);

	if (var == NULL || var->varno != INDEX_VAR)
		return var;
	if (IsA(plan, CustomScan))
		return list_var(((const CustomScan *) plan)->custom_scan_tlist, var->varattno);
	if (IsA(plan, IndexOnlyScan))
		return list_var(((const IndexOnlyScan *) plan)->indextlist, var->varattno);
	return NULL;
}

/*
 * Finds the table's column that column attno of plan's rows is;
 * rtable is the statement's.  Returns false if it is none,
 * such as an expression or a table's system column.
 */
bool
gpusort_find_table_column(List *rtable, const Plan *plan, AttrNumber attno, GpuSortTableColumn *column)
{
	column->one_of_several = false;
	while (plan != NULL)
	{
		const Var *var = plan_var(plan, attno);

		if (var == NULL)
			return false;
		if (var->varno > 0 && !IsA(plan, SubqueryScan))
		{
			const RangeTblEntry *entry = rt_fetch(var->varno, rtable);

			column->table = entry->relid;
			column->attno = var->varattno;
			return entry->rtekind == RTE_RELATION && var->varattno > 0;
		}
		if (IsA(plan, Append) || IsA(plan, MergeAppend))
			column->one_of_several = true;
		attno = var->varattno;
		plan = referred_plan(plan, var->varno);
	}
	return false;
}

/* Returns true if a table has columns that are computed when they are read. */
bool
gpusort_has_virtual_columns(Oid table)
{
	Relation relation = table_open(table, NoLock);
	const bool has = HAS_VIRTUAL_COLUMNS(relation->rd_att->constr);

	table_close(relation, NoLock);
	return has;
}
