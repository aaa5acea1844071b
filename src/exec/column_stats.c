/*-------------------------------------------------------------------------
 *
 * column_stats.c
 *	  Values that statistics keep of a column of a plan's rows.
 *
 * A column is followed down the plan to the table that it comes from, as long as it
 * is passed on as it is.  Where it comes from several, the first one's statistics
 * stand for all.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/prefixes.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* What stands for a whole column: so many bounds of equal parts, or values that have this share of the rows. */
#define BOUNDS_MIN 50
#define SHARE_MIN  0.95

/* So many values are enough; of the frequent ones, fewer. */
#define VALUES_MAX   128
#define FREQUENT_MAX 32

/* The plan that the Vars of plan's target list with this varno refer to; NULL if there is none below it. */
static Plan *
referred_plan(Plan *plan, int varno)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			return linitial(((Append *) plan)->appendplans);
		case T_MergeAppend:
			return linitial(((MergeAppend *) plan)->mergeplans);
		case T_SubqueryScan:
			return ((SubqueryScan *) plan)->subplan;
		default:
			return varno == INNER_VAR ? innerPlan(plan) : varno == OUTER_VAR ? outerPlan(plan)
																			 : NULL;
	}
}

/* Finds the table's column that is column attno of plan's rows. */
static bool
find_column(EState *estate, Plan *plan, AttrNumber attno, Oid *relid, AttrNumber *column)
{
	while (plan != NULL)
	{
		TargetEntry *entry = get_tle_by_resno(plan->targetlist, attno);
		const Node *node = entry == NULL ? NULL : (Node *) entry->expr;
		const Var *var;

		while (node != NULL && IsA(node, RelabelType))
			node = (const Node *) ((const RelabelType *) node)->arg;
		if (node != NULL && IsA(node, Var) && ((const Var *) node)->varno == INDEX_VAR)
		{
			List *tlist = IsA(plan, CustomScan) ? ((CustomScan *) plan)->custom_scan_tlist : IsA(plan, IndexOnlyScan) ? ((IndexOnlyScan *) plan)->indextlist
																													  : NIL;

			entry = get_tle_by_resno(tlist, ((const Var *) node)->varattno);
			node = entry == NULL ? NULL : (Node *) entry->expr;
			while (node != NULL && IsA(node, RelabelType))
				node = (const Node *) ((const RelabelType *) node)->arg;
		}
		if (node == NULL || !IsA(node, Var))
			return false;
		var = (const Var *) node;
		if (var->varno > 0 && !IS_SPECIAL_VARNO(var->varno) && !IsA(plan, SubqueryScan))
		{
			RangeTblEntry *rte = exec_rt_fetch(var->varno, estate);

			*relid = rte->relid;
			*column = var->varattno;
			return rte->rtekind == RTE_RELATION && var->varattno > 0;
		}
		attno = var->varattno;
		plan = referred_plan(plan, var->varno);
	}
	return false;
}

/*
 * Calls back for values of column attno, of this type, of child's rows: those that
 * divide them into parts of equal size, once; and frequent ones twice, about as many
 * as there are rows of them beside the others.  NULLs are not among them.  true: these
 * values stand for all of the column's.
 */
bool
gpusort_column_values(PlanState *child, AttrNumber attno, Oid type, GpuSortValueCallback callback, void *arg)
{
	Oid relid;
	AttrNumber column;
	HeapTuple tuple;
	AttStatsSlot slot;
	int bounds = 0;
	double share; /* of all rows, as far as known which values they have */

	if (!find_column(child->state, child->plan, attno, &relid, &column))
		return false;
	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid), Int16GetDatum(column), BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid), Int16GetDatum(column), BoolGetDatum(true));
	if (!HeapTupleIsValid(tuple))
		return false;
	share = ((Form_pg_statistic) GETSTRUCT(tuple))->stanullfrac;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_HISTOGRAM, InvalidOid, ATTSTATSSLOT_VALUES))
	{
		if (IsBinaryCoercible(slot.valuetype, type))
			bounds = Min(slot.nvalues, VALUES_MAX);
		for (int i = 0; i < bounds; i++)
			callback(slot.values[(int64) i * slot.nvalues / bounds], 1, arg);
		free_attstatsslot(&slot);
	}
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_MCV, InvalidOid, ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		int pairs = Min(slot.nvalues, FREQUENT_MAX);

		for (int i = 0; i < slot.nnumbers; i++)
			share += slot.numbers[i];
		if (bounds > 0)
			pairs = Min(pairs, (int) (bounds * share / Max(1 - share, 0.01) / 2));
		if (!IsBinaryCoercible(slot.valuetype, type))
			pairs = 0;
		for (int i = 0; i < pairs; i++)
			callback(slot.values[i], 2, arg);
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return bounds >= BOUNDS_MIN || share >= SHARE_MIN;
}
