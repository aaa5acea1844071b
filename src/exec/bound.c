/*-------------------------------------------------------------------------
 *
 * bound.c
 *	  How many of its rows a GpuSort is asked for.
 *
 * PostgreSQL tells its own sorts by ExecSetTupleBound, which does not know of custom nodes.
 * So once the executor has started, each Limit is followed down, through nodes that emit
 * as many rows as they read, and a GpuSort found there is shown the Limit (executor.c).
 * It looks at it when it sorts, and drops rows that are not among so many
 * while it takes them in (sort/cutoff.c): a Limit knows its counts before
 * it asks for a row, and before it makes the nodes below it start again.
 *
 * A Limit right above need not be given the rows before its OFFSET, which it drops: it counts them,
 * and goes on where it is told that it has counted to.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/bound.h"

#include "common/int.h"

/* Returns the node whose rows a Limit counts; NULL if there is none. */
PlanState *
gpusort_bound_node(LimitState *limit)
{
	PlanState *ps = outerPlanState(limit);

	while (ps != NULL && ps->qual == NULL && (IsA(ps, ResultState) || IsA(ps, SubqueryScanState)))
		ps = IsA(ps, ResultState) ? outerPlanState(ps) : ((SubqueryScanState *) ps)->subplan;
	return ps;
}

/*
 * Returns how many rows a Limit will ask for at most, from the first one on; 0 if limit is NULL, or there is no
 * telling.
 */
uint64
gpusort_bound_rows(const LimitState *limit)
{
	int64 rows;

	if (limit == NULL || limit->noCount || limit->limitOption != LIMIT_OPTION_COUNT ||
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
