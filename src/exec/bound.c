/*-------------------------------------------------------------------------
 *
 * bound.c
 *	  How many of its rows a GpuSort is asked for.
 *
 * PostgreSQL tells its own sorts by ExecSetTupleBound, which does not know of custom nodes.
 * So once the executor has started, each Limit is followed down, through nodes that emit
 * as many rows as they read, and the GpuSorts found there are shown the Limit (executor.c).
 * It looks at it when it sorts, and keeps no others than these (sort/top_rows.c), or drops rows that are not among so
 * many while it takes them in (sort/cutoff.c): a Limit knows its counts before
 * it asks for a row, and before it makes the nodes below it start again.
 *
 * WITH TIES asks for rows that equal the last one in the columns that the Limit compares, too.  Rows that are equal in
 * the columns of the sort are, if the Limit is right above it and these are among those.
 *
 * Of each group of rows a node above may look at the first ones alone, as the plan says (plan/finish/kept_rows.c).  How
 * many, a parameter of the statement may tell.
 *
 * A Limit right above need not be given the rows before its OFFSET, which it drops: it counts them,
 * and goes on where it is told that it has counted to.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/bound.h"

#include "catalog/pg_type_d.h"
#include "common/int.h"
#include "nodes/nodeFuncs.h"

/*
 * Finds the children of a node of which no more rows are wanted than of the node itself, from the first one on; returns
 * how many there are.
 */
int
gpusort_bound_children(PlanState *ps, PlanState ***children)
{
	if (ps->qual != NULL)
		return 0;
	switch (nodeTag(ps))
	{
		case T_ResultState:
			*children = &outerPlanState(ps);
			return outerPlanState(ps) != NULL;
		case T_SubqueryScanState:
			*children = &((SubqueryScanState *) ps)->subplan;
			return 1;
		case T_AppendState:
			*children = ((AppendState *) ps)->appendplans;
			return ((AppendState *) ps)->as_nplans;
		case T_MergeAppendState:
			*children = ((MergeAppendState *) ps)->mergeplans;
			return ((MergeAppendState *) ps)->ms_nplans;
		default:
			return 0;
	}
}

/*
 * Returns true if a Limit WITH TIES wants of the node's rows, sorted by these columns, no others beyond its count than
 * those that equal the last of them in these.
 */
bool
gpusort_bound_has_ties(const LimitState *limit, const PlanState *node, const GpuSortColumn *columns, int ncolumns)
{
	const Limit *plan = limit == NULL ? NULL : (const Limit *) limit->ps.plan;

	if (plan == NULL || limit->limitOption != LIMIT_OPTION_WITH_TIES || outerPlanState(limit) != node)
		return false;
	for (int i = 0; i < ncolumns; i++)
	{
		bool found = false;

		for (int j = 0; j < plan->uniqNumCols; j++)
			found |= plan->uniqColIdx[j] == columns[i].attno;
		if (!found)
			return false;
	}
	return true;
}

/*
 * Returns how many rows a Limit will ask for at most, from the first one on, but for ties, if the sort knows these; 0
 * if limit is NULL, or there is no telling.
 */
uint64
gpusort_bound_rows(const LimitState *limit, bool with_ties)
{
	int64 rows;

	if (limit == NULL || limit->noCount || (limit->limitOption != LIMIT_OPTION_COUNT && !with_ties) ||
		pg_add_s64_overflow(limit->count, limit->offset, &rows))
		return 0;
	return Max(rows, 1);
}

/*
 * Returns how many rows a Limit right above the node, which is about to ask for the first one, will drop before it
 * emits one; 0 if limit is NULL, or above other nodes that look at them.
 */
uint64
gpusort_bound_offset(const LimitState *limit, const PlanState *node)
{
	if (limit == NULL || outerPlanState(limit) != node || limit->limitOption != LIMIT_OPTION_COUNT ||
		limit->lstate != LIMIT_RESCAN || limit->position != 0)
		return 0;
	return limit->offset;
}

/* Tells a Limit that so many rows, those of its OFFSET, have been passed over; the next row is the one after them. */
void
gpusort_bound_pass(LimitState *limit, uint64 rows)
{
	Assert(limit->lstate == LIMIT_RESCAN && limit->position == 0 && (uint64) limit->offset == rows);
	limit->position = rows;
}

/* Returns the value of a bound, an integer; 0 if it is NULL, or not known. */
static int64
bound_value(const Node *bound, ParamListInfo params)
{
	Oid type = exprType(bound);
	Datum value;

	if (IsA(bound, Const))
	{
		if (((const Const *) bound)->constisnull)
			return 0;
		value = ((const Const *) bound)->constvalue;
	}
	else
	{
		const int number = castNode(Param, (Node *) bound)->paramid;
		const ParamExternData *param;
		ParamExternData workspace;

		if (params == NULL || number < 1 || number > params->numParams)
			return 0;
		param = params->paramFetch != NULL ? params->paramFetch(params, number, false, &workspace)
										   : &params->params[number - 1];
		if (param->isnull || param->ptype != type)
			return 0;
		value = param->value;
	}
	return type == INT2OID ? DatumGetInt16(value) : type == INT4OID ? DatumGetInt32(value)
																	: DatumGetInt64(value);
}

/* Returns which rows of each group are wanted, as a plan says, by a statement of these parameters. */
GpuSortGroupRows
gpusort_bound_of_groups(const GpuSortKeptRows *kept, ParamListInfo params)
{
	int64 rows = kept->columns > 0 ? bound_value(kept->bound, params) : 0;

	if (kept->less && rows > 0)
		rows--;
	/* Where none is wanted the node above reads a row to see that. */
	if (rows <= 0 || rows > PG_INT32_MAX || (kept->only_one && rows > 1))
		return (GpuSortGroupRows){0};
	return (GpuSortGroupRows){.columns = kept->columns, .rows = rows, .peers = kept->peers};
}
