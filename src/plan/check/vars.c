/*-------------------------------------------------------------------------
 *
 * vars.c
 *	  Rules of finished plans: each Var names a column that is there, of the Var's type.
 *
 * Where a node passes the rows below it on, the columns of both are of the same types.  Typmods and collations can
 * differ in PostgreSQL's own plans: it simplifies CASE WHEN true THEN a ELSE b END to a after it has given the
 * expression a typmod and a collation, and what reads the column of a subquery keeps these.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/check/rules.h"

#include "access/htup_details.h"
#include "catalog/pg_type_d.h"
#include "node.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parsetree.h"
#include "plan/check/expressions.h"
#include "plan/finish/plan_tree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* What is looked at. */
typedef struct Look
{
	PlannedStmt *stmt;
	Plan *plan;
	GpuSortColumnsOf columns;
} Look;

/* Raises an error if a Var is not of its column's type. */
static void
compare(const Look *look, const Var *var, Oid type, const char *whose)
{
	/* a whole row of a subquery is called a record where its type has a name */
	if (var->vartype == RECORDOID && type_is_rowtype(type))
		return;
	if (var->vartype != type)
		gpusort_refuse_plan(look->plan, "has type %s for column %d of %s, which is %s", format_type_be(var->vartype),
							var->varattno, whose, format_type_be(type));
}

static void
check_column(const Look *look, const Var *var, List *columns, const char *whose)
{
	const TargetEntry *entry = NULL;
	ListCell *cell;

	foreach(cell, columns)
	{
		if (lfirst_node(TargetEntry, cell)->resno == var->varattno)
			entry = lfirst_node(TargetEntry, cell);
	}
	if (entry == NULL)
		gpusort_refuse_plan(look->plan, "names column %d of %s, which has %d", var->varattno, whose,
							list_length(columns));
	compare(look, var, exprType((Node *) entry->expr), whose);
}

/* The plan whose rows are the outer side of a node; NULL if it has none. */
static const Plan *
outer_plan(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			return linitial(((const Append *) plan)->appendplans);
		case T_MergeAppend:
			return linitial(((const MergeAppend *) plan)->mergeplans);
		default:
			return outerPlan(plan);
	}
}

/* The columns that a scan makes up itself; NIL if it has those of a relation. */
static List *
scanned_columns(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_IndexOnlyScan:
			return ((const IndexOnlyScan *) plan)->indextlist;
		case T_ForeignScan:
			return ((const ForeignScan *) plan)->fdw_scan_tlist;
		case T_CustomScan:
			return ((const CustomScan *) plan)->custom_scan_tlist;
		default:
			return NIL;
	}
}

/* A column of a table: system columns and whole rows are there always. */
static void
check_table_column(const Look *look, const Var *var, Oid table)
{
	if (var->varattno > 0)
		compare(look, var, get_atttype(table, var->varattno), get_rel_name(table));
}

/* A column of what a node scans.  Functions, row sources of others and work tables tell theirs in no plan. */
static void
check_scanned(const Look *look, const Var *var)
{
	const Plan *plan = look->plan;
	const Scan *scan = (const Scan *) plan;

	if (var->varno != scan->scanrelid)
		gpusort_refuse_plan(plan, "scans relation %u and names a column of relation %d", scan->scanrelid, var->varno);
	if (var->varattno == 0)
		return;
	switch (nodeTag(plan))
	{
		case T_SubqueryScan:
			check_column(look, var, ((const SubqueryScan *) plan)->subplan->targetlist, "the subquery");
			break;
		case T_CteScan:
			check_column(look, var,
						 ((const Plan *) list_nth(look->stmt->subplans, ((const CteScan *) plan)->ctePlanId - 1))
							 ->targetlist,
						 "the CTE");
			break;
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_ForeignScan:
			check_table_column(look, var, rt_fetch(scan->scanrelid, look->stmt->rtable)->relid);
			break;
		default:
			break;
	}
}

/* A column of the index that a node scans.  Its type is the operator class's own, which can be another one. */
static void
check_index_column(const Look *look, const Var *var)
{
	const Plan *plan = look->plan;
	Oid index = IsA(plan, IndexScan) ? ((const IndexScan *) plan)->indexid
		: IsA(plan, IndexOnlyScan)   ? ((const IndexOnlyScan *) plan)->indexid
									 : ((const BitmapIndexScan *) plan)->indexid;

	if (!SearchSysCacheExists2(ATTNUM, ObjectIdGetDatum(index), Int16GetDatum(var->varattno)))
		gpusort_refuse_plan(plan, "names column %d of its index, which has fewer", var->varattno);
}

static void
check_var(const Look *look, const Var *var)
{
	GpuSortColumnsOf columns = look->columns;
	Plan *plan = look->plan;

	if (columns == GPUSORT_OF_ANY)
		return;
	if (var->varno == OUTER_VAR && (columns == GPUSORT_OF_OUTER || columns == GPUSORT_OF_SIDES) &&
		outer_plan(plan) != NULL)
		check_column(look, var, outer_plan(plan)->targetlist, "the plan below");
	else if (var->varno == INNER_VAR && columns == GPUSORT_OF_SIDES)
		check_column(look, var, innerPlan(plan)->targetlist, "the inner plan");
	else if (var->varno == INDEX_VAR && columns == GPUSORT_OF_SCAN && scanned_columns(plan) != NIL)
		check_column(look, var, scanned_columns(plan), "what is scanned");
	else if (var->varno == INDEX_VAR && columns == GPUSORT_OF_INDEX)
		check_index_column(look, var);
	else if (!IS_SPECIAL_VARNO(var->varno) && columns == GPUSORT_OF_SCAN && scanned_columns(plan) == NIL)
		check_scanned(look, var);
	else if (!IS_SPECIAL_VARNO(var->varno) && columns == GPUSORT_OF_NODE)
		check_column(look, var, plan->targetlist, "its own rows");
	else
		gpusort_refuse_plan(plan, "names column %d of relation %d, which it does not have", var->varattno, var->varno);
}

static bool
find_vars(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		check_var(arg, (const Var *) node);
		return false;
	}
	return expression_tree_walker(node, find_vars, arg);
}

static void
find_vars_in(const GpuSortPlanExpression *expression, void *arg)
{
	Look *look = arg;

	look->columns = expression->columns;
	(void) find_vars(expression->node, look);
}

/* Raises an error where an expression of a node names a column that is not there, or is of another type. */
void
gpusort_check_vars(PlannedStmt *stmt, Plan *plan)
{
	Look look = {.stmt = stmt, .plan = plan};

	gpusort_plan_each_expression(plan, find_vars_in, &look);
	if (gpusort_node_is_ours(plan))
	{
		look.columns = GPUSORT_OF_OUTER;
		(void) find_vars((Node *) ((CustomScan *) plan)->custom_scan_tlist, &look);
	}
}

/* Of the columns of a GpuSort those behind its child's say how many rows there are. */
static void
check_counted(const Plan *plan, const Plan *child)
{
	const int columns = list_length(child->targetlist);
	List *counted = gpusort_plan_counted((const CustomScan *) plan);
	ListCell *cell;

	if (list_length(plan->targetlist) != columns + list_length(counted))
		gpusort_refuse_plan(plan, "counts %d rows of %d columns, and has %d", list_length(counted), columns,
							list_length(plan->targetlist));
	for_each_from(cell, plan->targetlist, columns)
	{
		const AttrNumber column = list_nth_int(counted, foreach_current_index(cell) - columns);

		if (exprType((Node *) lfirst_node(TargetEntry, cell)->expr) != INT8OID || column < 0 || column > columns)
			gpusort_refuse_plan(plan, "has a column %d that is no number of the rows below it",
								foreach_current_index(cell) + 1);
	}
}

/* The columns of a child and of the node that passes its rows on are of the same types. */
static void
check_child(const Plan *plan, const Plan *child)
{
	const bool counts = gpusort_plan_is(plan, &gpusort_scan_methods) && gpusort_plan_counted((const CustomScan *) plan);
	ListCell *cell;
	ListCell *below;

	if (counts)
		check_counted(plan, child);
	/* ours may emit the first columns alone (plan/finish/junk.c), and so does a SetOp of two sides */
	if (list_length(plan->targetlist) != list_length(child->targetlist) &&
		((!IsA(plan, CustomScan) && !IsA(plan, SetOp)) ||
		 (list_length(plan->targetlist) > list_length(child->targetlist) && !counts)))
		gpusort_refuse_plan(plan, "passes rows of %d columns on, and has %d", list_length(child->targetlist),
							list_length(plan->targetlist));
	forboth(cell, plan->targetlist, below, child->targetlist)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, cell);
		const Var *var = (const Var *) entry->expr;
		Oid type = exprType((Node *) entry->expr);
		Oid passed = exprType((Node *) lfirst_node(TargetEntry, below)->expr);

		if (type != passed)
			gpusort_refuse_plan(plan, "passes column %d on, of %s, as %s", entry->resno, format_type_be(passed),
								format_type_be(type));
		if (IsA(var, Var) && var->varattno != entry->resno)
			gpusort_refuse_plan(plan, "passes rows on, and has column %d of them as its column %d", var->varattno,
								entry->resno);
	}
}

static void
check_children(const Plan *plan, List *children)
{
	ListCell *cell;

	foreach(cell, children)
		check_child(plan, lfirst(cell));
}

/* Raises an error where a node that passes rows on has other columns than the plans that they are of. */
void
gpusort_check_passed_rows(Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			check_children(plan, ((Append *) plan)->appendplans);
			break;
		case T_MergeAppend:
			check_children(plan, ((MergeAppend *) plan)->mergeplans);
			break;
		case T_CustomScan:
			if (gpusort_node_is_ours(plan))
				check_child(plan, outerPlan(plan));
			break;
		case T_Hash:
		case T_IncrementalSort:
		case T_Limit:
		case T_LockRows:
		case T_Material:
		case T_Memoize:
		case T_RecursiveUnion:
		case T_SetOp:
		case T_Sort:
		case T_Unique:
			check_child(plan, outerPlan(plan));
			if (innerPlan(plan) != NULL)
				check_child(plan, innerPlan(plan));
			break;
		default:
			break;
	}
}
