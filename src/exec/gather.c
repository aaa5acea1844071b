/*-------------------------------------------------------------------------
 *
 * gather.c
 *	  Reads from a Gather: through which the leader's part of the plan below sends empty rows, or which has workers
 *	  where the statement has none.
 *
 * A Gather comes back with a row or at its end only.  Where the node below it has something to say
 * in between, the leader's sends an empty row, which the node above does not take for one.
 *
 * A statement that is fetched from piece by piece, or that writes, PostgreSQL runs without parallel mode, and a Gather
 * in it without workers.  Between gpusort_gather_begin_workers and gpusort_gather_end_workers, within one call of the
 * node above, it has them.  After that the Gather, with all below it, has come to its end for good: what is parallel
 * there points to memory that went with the workers.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/gather.h"

#include "access/parallel.h"
#include "access/xact.h"
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

/*
* Starts a Gather's workers, if the statement has none and nothing around it is in parallel mode, as in a worker.  No
 * other Gather may be executed before gpusort_gather_end_workers.  An error in between needs no such call: the
 * transaction's end, or a subtransaction's, ends workers and mode.
 *
 * Workers check whether the user may do what the statement does.  Who fetches from a cursor may be another user than
 * who has opened it, in a function with SECURITY DEFINER, say.
 */
bool
gpusort_gather_begin_workers(PlanState *gather)
{
	EState *estate = gather->state;

	if (estate->es_use_parallel_mode || estate->es_epq_active != NULL || IsInParallelMode() || !HAS_PERMISSIONS(estate))
		return false;
	EnterParallelMode();
	estate->es_use_parallel_mode = true;
	return true;
}

/*
* Makes the session keep the memory that a FETCH frees, up to the default of work_mem.  The C library gives
 * what is free at the heap's end back to the system, to be faulted in by the next FETCH, until a larger piece was
 * freed: a process that takes rows in itself has done so.
 */
static void
keep_freed_memory(void)
{
	void *volatile piece = malloc(4096 * 1024);

	free(piece);
}

/* Ends the workers, which have nothing more to do. */
void
gpusort_gather_end_workers(PlanState *gather)
{
	(void) ExecShutdownNode(gather);
	gather->state->es_use_parallel_mode = false;
	ExitParallelMode();
	keep_freed_memory();
}
