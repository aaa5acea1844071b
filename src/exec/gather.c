/*-------------------------------------------------------------------------
 *
 * gather.c
 *	  Reads from a Gather through which the leader's part of the plan below sends empty rows.
 *
 * A Gather comes back with a row or at its end only.  Where the node below it has something to say
 * in between, the leader's sends an empty row, which the node above does not take for one.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/gather.h"

#include "executor/executor.h"
#include "optimizer/optimizer.h"

/* Reads from Gather; the leader takes part in any case. */
TupleTableSlot *
gpusort_gather_row(PlanState *gather)
{
	TupleTableSlot *row;

	if (likely(parallel_leader_participation))
		return ExecProcNode(gather);
	PG_TRY();
	{
		parallel_leader_participation = true;
		row = ExecProcNode(gather);
	}
	PG_FINALLY();
	{
		parallel_leader_participation = false;
	}
	PG_END_TRY();
	return row;
}

/* Takes the empty row that came through Gather and the node below out of their counts. */
void
gpusort_gather_uncount_row(PlanState *gather)
{
	PlanState *below = outerPlanState(gather);

	if (gather->instrument != NULL)
		InstrUpdateTupleCount(gather->instrument, -1);
	if (below->instrument != NULL)
		InstrUpdateTupleCount(below->instrument, -1);
}
