/*-------------------------------------------------------------------------
 *
 * expressions.c
 *	  The expressions of a finished plan's node.
 *
 * What setrefs.c makes of Vars, and what subselect.c's finalize_plan looks through for parameters, of each node that
 * PostgreSQL 15 to 19 have.  Of CustomScans and ForeignScans of others, what they have beside a target list and
 * conditions is left out.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/check/expressions.h"

#include "nodes/parsenodes.h"


/* Who is told of one node's expressions. */
typedef struct Told
{
	GpuSortExpressionCallback callback;
	void *arg;
} Told;

static void
tell(const Told *told, void *node, GpuSortColumnsOf columns, bool noted)
{
	const GpuSortPlanExpression expression = {.node = node, .columns = columns, .noted = noted};

	if (node != NULL)
		told->callback(&expression, told->arg);
}

/* Whose columns the target list and the conditions of a node name. */
static GpuSortColumnsOf
columns_of(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_FunctionScan:
		case T_ValuesScan:
		case T_TableFuncScan:
		case T_CteScan:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
		case T_ForeignScan:
		case T_CustomScan:
			return GPUSORT_OF_SCAN;
		case T_BitmapIndexScan:
		case T_BitmapAnd:
		case T_BitmapOr:
			return GPUSORT_OF_NOBODY;
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			return GPUSORT_OF_SIDES;
		case T_ModifyTable:
			return GPUSORT_OF_ANY;
		case T_Result:
			/* without a child it can stand for a relation that has no rows */
			return outerPlan(plan) != NULL ? GPUSORT_OF_OUTER : GPUSORT_OF_ANY;
		default:
			return GPUSORT_OF_OUTER;
	}
}

/* What scans have beside a target list and conditions. */
static void
tell_of_scan(const Told *told, const Plan *plan)
{
	ListCell *cell;

	switch (nodeTag(plan))
	{
		case T_SampleScan:
			tell(told, ((const SampleScan *) plan)->tablesample, GPUSORT_OF_SCAN, true);
			break;
		case T_IndexScan:
			tell(told, ((const IndexScan *) plan)->indexqual, GPUSORT_OF_INDEX, true);
			tell(told, ((const IndexScan *) plan)->indexqualorig, GPUSORT_OF_SCAN, false);
			tell(told, ((const IndexScan *) plan)->indexorderby, GPUSORT_OF_INDEX, true);
			tell(told, ((const IndexScan *) plan)->indexorderbyorig, GPUSORT_OF_SCAN, false);
			break;
		case T_IndexOnlyScan:
			tell(told, ((const IndexOnlyScan *) plan)->indexqual, GPUSORT_OF_INDEX, true);
			tell(told, ((const IndexOnlyScan *) plan)->recheckqual, GPUSORT_OF_SCAN, true);
			tell(told, ((const IndexOnlyScan *) plan)->indexorderby, GPUSORT_OF_INDEX, true);
			break;
		case T_BitmapIndexScan:
			tell(told, ((const BitmapIndexScan *) plan)->indexqual, GPUSORT_OF_INDEX, true);
			tell(told, ((const BitmapIndexScan *) plan)->indexqualorig, GPUSORT_OF_SCAN, false);
			break;
		case T_BitmapHeapScan:
			tell(told, ((const BitmapHeapScan *) plan)->bitmapqualorig, GPUSORT_OF_SCAN, true);
			break;
		case T_TidScan:
			tell(told, ((const TidScan *) plan)->tidquals, GPUSORT_OF_SCAN, true);
			break;
		case T_TidRangeScan:
			tell(told, ((const TidRangeScan *) plan)->tidrangequals, GPUSORT_OF_SCAN, true);
			break;
		case T_FunctionScan:
			foreach(cell, ((const FunctionScan *) plan)->functions)
				tell(told, lfirst_node(RangeTblFunction, cell)->funcexpr, GPUSORT_OF_NOBODY, true);
			break;
		case T_TableFuncScan:
			tell(told, ((const TableFuncScan *) plan)->tablefunc, GPUSORT_OF_NOBODY, true);
			break;
		case T_ValuesScan:
			tell(told, ((const ValuesScan *) plan)->values_lists, GPUSORT_OF_NOBODY, true);
			break;
		case T_ForeignScan:
			tell(told, ((const ForeignScan *) plan)->fdw_exprs, GPUSORT_OF_ANY, true);
			tell(told, ((const ForeignScan *) plan)->fdw_recheck_quals, GPUSORT_OF_ANY, true);
			break;
		case T_CustomScan:
			tell(told, ((const CustomScan *) plan)->custom_exprs, GPUSORT_OF_ANY, true);
			break;
		default:
			break;
	}
}

static void
tell_of_join(const Told *told, const Plan *plan)
{
	ListCell *cell;

	tell(told, ((const Join *) plan)->joinqual, GPUSORT_OF_SIDES, true);
	switch (nodeTag(plan))
	{
		case T_NestLoop:
			foreach(cell, ((const NestLoop *) plan)->nestParams)
				tell(told, lfirst_node(NestLoopParam, cell)->paramval, GPUSORT_OF_OUTER, false);
			break;
		case T_MergeJoin:
			tell(told, ((const MergeJoin *) plan)->mergeclauses, GPUSORT_OF_SIDES, true);
			break;
		case T_HashJoin:
			tell(told, ((const HashJoin *) plan)->hashclauses, GPUSORT_OF_SIDES, true);
			tell(told, ((const HashJoin *) plan)->hashkeys, GPUSORT_OF_OUTER, false);
			break;
		default:
			break;
	}
}

/* Calls callback with each expression of a node.  What NULL stands for is left out. */
void
gpusort_plan_each_expression(const Plan *plan, GpuSortExpressionCallback callback, void *arg)
{
	const Told told = {.callback = callback, .arg = arg};

	tell(&told, plan->targetlist, columns_of(plan), true);
	tell(&told, plan->qual, columns_of(plan), true);
	switch (nodeTag(plan))
	{
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			tell_of_join(&told, plan);
			break;
		case T_Result:
			tell(&told, ((const Result *) plan)->resconstantqual, GPUSORT_OF_NOBODY, true);
			break;
		case T_Hash:
			tell(&told, ((const Hash *) plan)->hashkeys, GPUSORT_OF_OUTER, true);
			break;
		case T_Memoize:
			tell(&told, ((const Memoize *) plan)->param_exprs, GPUSORT_OF_NOBODY, true);
			break;
		case T_Limit:
			tell(&told, ((const Limit *) plan)->limitOffset, GPUSORT_OF_NOBODY, true);
			tell(&told, ((const Limit *) plan)->limitCount, GPUSORT_OF_NOBODY, true);
			break;
		case T_WindowAgg:
			tell(&told, ((const WindowAgg *) plan)->startOffset, GPUSORT_OF_NOBODY, true);
			tell(&told, ((const WindowAgg *) plan)->endOffset, GPUSORT_OF_NOBODY, true);
			tell(&told, ((const WindowAgg *) plan)->runCondition, GPUSORT_OF_NODE, false);
			break;
		case T_ModifyTable:
			/* these read a row that is written, too, and what it was before */
			tell(&told, ((const ModifyTable *) plan)->returningLists, GPUSORT_OF_ANY, true);
			tell(&told, ((const ModifyTable *) plan)->onConflictSet, GPUSORT_OF_ANY, true);
			tell(&told, ((const ModifyTable *) plan)->onConflictWhere, GPUSORT_OF_ANY, true);
			tell(&told, ((const ModifyTable *) plan)->withCheckOptionLists, GPUSORT_OF_ANY, false);
			tell(&told, ((const ModifyTable *) plan)->mergeActionLists, GPUSORT_OF_ANY, false);
			break;
		default:
			tell_of_scan(&told, plan);
			break;
	}
}
