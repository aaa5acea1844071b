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
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "utils/inval.h"
#include "utils/syscache.h"

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

/* What workers look up for expressions, and for rights, which the leader has looked up when its nodes began */
static const int looked_up[] = {AUTHMEMROLEMEM, AUTHOID, COLLOID, OPEROID, PROCOID, TYPEOID};

/* How often any of these has changed */
static uint64 changes = 0;

/* A syscache callback. */
static void
note_change(Datum arg, int cache, uint32 hash)
{
	changes++;
}

/* Returns what a node that begins finds, for gpusort_gather_begin_workers. */
GpuSortBeginning
gpusort_gather_beginning(void)
{
	static bool listening = false;

	if (!listening)
	{
		for (int i = 0; i < lengthof(looked_up); i++)
			CacheRegisterSyscacheCallback(looked_up[i], note_change, (Datum) 0);
	}
	listening = true;
	return (GpuSortBeginning){.user = GetUserId(), .changes = changes};
}

/*
 * Returns true if workers find all that a node has found when it began.  They look functions up anew, and whether the
 * user may call them, and the tables: who fetches from a cursor may be another user than who has opened it, in a
 * function with SECURITY DEFINER, say, and a function may have been dropped since.
 */
static bool
is_as_begun(const EState *estate, const GpuSortBeginning *beginning)
{
	AcceptInvalidationMessages();
	return beginning->user == GetUserId() && beginning->changes == changes && HAS_PERMISSIONS(estate);
}

/*
 * Starts a Gather's workers, if the statement has none, nothing around it is in parallel mode, as in a worker, and they
 * find what the node has found when it began.  No other Gather may be executed before gpusort_gather_end_workers.  An
 * error in between needs no such call: the transaction's end, or a subtransaction's, ends workers and mode.
 */
bool
gpusort_gather_begin_workers(PlanState *gather, const GpuSortBeginning *beginning)
{
	EState *estate = gather->state;

	if (estate->es_use_parallel_mode || estate->es_epq_active != NULL || IsInParallelMode() ||
		max_parallel_workers == 0 || !is_as_begun(estate, beginning))
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
