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
 * A Limit right above need not be given the rows before its OFFSET, which it drops: it counts them,
 * and goes on where it is told that it has counted to.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/bound.h"

#include "common/int.h"

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
