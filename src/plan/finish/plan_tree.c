/*-------------------------------------------------------------------------
 *
 * plan_tree.c
 *	  Finds its way in finished plans, GpuSort's own nodes among them.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/plan_tree.h"

#include "node.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"

/* Returns true if plan is a node with these methods; plan may be NULL. */
bool
gpusort_plan_is(const Plan *plan, const CustomScanMethods *methods)
{
	return plan != NULL && IsA(plan, CustomScan) && ((const CustomScan *) plan)->methods == methods;
}

/* Returns true if each column of the plan's is the same of the plan below. */
bool
gpusort_plan_passes_rows_on(const Plan *plan)
{
	ListCell *cell;

	if (list_length(plan->targetlist) != list_length(outerPlan(plan)->targetlist))
		return false;
	foreach(cell, plan->targetlist)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, cell);
		const Var *var = (const Var *) entry->expr;

		if (IsA(var, Const))
			continue;
		if (!IsA(var, Var) || var->varno != OUTER_VAR || var->varattno != entry->resno)
			return false;
	}
	return true;
}

static void
each_of_list(List *plans, GpuSortPlanCallback callback, void *arg)
{
	ListCell *cell;

	foreach(cell, plans)
	{
		if (lfirst(cell) != NULL) /* a subplan can have been found needless */
			callback((Plan **) &lfirst(cell), arg);
	}
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
		case T_BitmapAnd:
			each_of_list(((BitmapAnd *) plan)->bitmapplans, callback, arg);
			break;
		case T_BitmapOr:
			each_of_list(((BitmapOr *) plan)->bitmapplans, callback, arg);
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

/* Calls callback with the place of each plan that the statement has: its own, those of CTEs and of expressions. */
void
gpusort_plan_each_of_statement(PlannedStmt *stmt, GpuSortPlanCallback callback, void *arg)
{
	if (stmt->planTree != NULL)
		callback(&stmt->planTree, arg);
	each_of_list(stmt->subplans, callback, arg);
}

static void
find_last_node_id(Plan **link, void *arg)
{
	int *last = arg;

	*last = Max(*last, (*link)->plan_node_id);
	gpusort_plan_each_child(*link, find_last_node_id, arg);
}

/* The highest number of a plan node of the statement. */
int
gpusort_plan_last_node_id(PlannedStmt *stmt)
{
	int last = 0;

	gpusort_plan_each_of_statement(stmt, find_last_node_id, &last);
	return last;
}

/* Lets a column of a GpuSort that says how many rows, or values of a column below, there are, refer to that. */
static TargetEntry *
count_column(const CustomScan *scan, const TargetEntry *entry)
{
	const Plan *below = outerPlan(scan);
	const AttrNumber counted =
		list_nth_int(gpusort_plan_counted(scan), entry->resno - list_length(below->targetlist) - 1);
	TargetEntry *column = copyObject(list_nth_node(TargetEntry, scan->custom_scan_tlist, entry->resno - 1));

	if (counted > 0)
		linitial_node(TargetEntry, castNode(Aggref, column->expr)->args)->expr =
			(Expr *) makeVarFromTargetEntry(OUTER_VAR, list_nth_node(TargetEntry, below->targetlist, counted - 1));
	return column;
}

/* Lets the columns of the node's rows refer to the child's, and its target list to these. */
void
gpusort_plan_refer_to_child(CustomScan *scan)
{
	Plan *plan = &scan->scan.plan;
	List *visible = NIL;
	List *columns = NIL;
	const int below_columns = list_length(outerPlan(plan)->targetlist);
	ListCell *cell;

	foreach(cell, plan->targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);
		TargetEntry *column;

		if (entry->resno > below_columns)
			column = count_column(scan, entry);
		else
		{
			column = flatCopyTargetEntry(entry);
			column->expr = (Expr *) makeVarFromTargetEntry(
				OUTER_VAR, list_nth_node(TargetEntry, outerPlan(plan)->targetlist, entry->resno - 1));
		}
		entry = flatCopyTargetEntry(entry);
		entry->expr = (Expr *) makeVarFromTargetEntry(INDEX_VAR, column);
		columns = lappend(columns, column);
		visible = lappend(visible, entry);
	}
	plan->targetlist = visible;
	scan->custom_scan_tlist = columns;
}

/* A target list of the first so many columns of the plan's rows, for a plan over it. */
List *
gpusort_plan_columns(const Plan *plan, int count)
{
	List *columns = NIL;

	for (int i = 0; i < count; i++)
	{
		TargetEntry *below = list_nth_node(TargetEntry, plan->targetlist, i);
		TargetEntry *entry = flatCopyTargetEntry(below);

		entry->expr = (Expr *) makeVarFromTargetEntry(OUTER_VAR, below);
		columns = lappend(columns, entry);
	}
	return columns;
}

/* Gives a plan the costs, and the number and width of rows, that another one has. */
void
gpusort_plan_take_estimates(Plan *plan, const Plan *from)
{
	INHERIT_DISABLED_NODES(plan, from);
	plan->startup_cost = from->startup_cost;
	plan->total_cost = from->total_cost;
	plan->plan_rows = from->plan_rows;
	plan->plan_width = from->plan_width;
}

/* Puts a plan above child, with its estimates and that number; its target list is left open. */
void
gpusort_plan_put_above(Plan *plan, Plan *child, int plan_node_id)
{
	gpusort_plan_take_estimates(plan, child);
	plan->parallel_safe = child->parallel_safe;
	plan->plan_node_id = plan_node_id;
	plan->extParam = child->extParam;
	plan->allParam = child->allParam;
	plan->lefttree = child;
}

/* A projection of a plan's rows, at no cost. */
Result *
gpusort_plan_project(Plan *child, List *targetlist, int plan_node_id)
{
	Result *result = makeNode(Result);

	gpusort_plan_put_above(&result->plan, child, plan_node_id);
	result->plan.targetlist = targetlist;
	return result;
}
