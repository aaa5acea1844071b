/*-------------------------------------------------------------------------
 *
 * partial_share.c
 *	  What the processes of a GpuSortOutput in a partial plan share, and when it begins and ends.
 *
 * The leader makes it before workers start, with the sorts in the service,
 * and once more whenever Gather starts over; where there are no workers,
 * when the first row is asked for.  It keeps what EXPLAIN tells before the shared memory goes.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/partial_share.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "server/installation.h"
#include "server/reasons.h"
#include "settings.h"

static Size
shared_bytes(int nprocesses)
{
	return offsetof(GpuSortPartialShared, figures) + nprocesses * sizeof(GpuSortProcessFigures);
}

/*
 * Begins the sorts in the service, for the processes that share what is shared, before any of them reads; if it takes
 * no part, alone says so.
 */
static void
begin_sorts(GpuSortPartialState *state)
{
	GpuSortPartialShared *shared = state->shared;
	GpuSortFailure failure;
	bool begun;

	state->stage = GPUSORT_PARTIAL_BEGIN;
	state->nodes.started = false;
	gpusort_claims_start(&shared->claims, false);
	memset(shared->figures, 0, shared->nprocesses * sizeof(GpuSortProcessFigures));
	if (state->nodes.nodes[0]->info.range_columns == 0)
		begun = gpusort_failure_set(&failure, GPUSORT_REASON_UNAVAILABLE, "the rows cannot be shared out");
	else if (!gpusort_spill)
		begun = gpusort_failure_set(&failure, GPUSORT_REASON_UNAVAILABLE, "gpusort.spill is off");
	else if (shared->nprocesses > 1 && !parallel_leader_participation)
		begun = gpusort_failure_set(&failure, GPUSORT_REASON_UNAVAILABLE, "parallel_leader_participation is off");
	else
		begun = gpusort_nodes_begin(&state->nodes, shared->nprocesses, &failure);
	shared->alone = !begun;
	if (begun)
		return;
	gpusort_joint_sorts_refuse(&state->nodes.sorts, &failure);
	shared->claims.failure = failure;
}

/* The leader's memory will do for a process without workers. */
void
gpusort_partial_begin_without_workers(GpuSortPartialState *state)
{
	if (state->own == NULL)
	{
		state->own = MemoryContextAllocZero(state->css.ss.ps.state->es_query_cxt, shared_bytes(1));
		state->own->nprocesses = 1;
		gpusort_claims_create(&state->own->claims);
	}
	state->shared = state->own;
	begin_sorts(state);
}

/* Has workers that wait for others, or read, end: no more rows are wanted. */
void
gpusort_partial_stop_workers(GpuSortPartialState *state)
{
	GpuSortFailure none = {0};

	if (state->workers != NULL)
		gpusort_claims_stop(&state->shared->claims, &none);
}

/* Gather starts over, and waits for its workers first. */
static void
before_gather_starts_over(Datum arg)
{
	gpusort_partial_stop_workers((GpuSortPartialState *) DatumGetPointer(arg));
}

static void
share(GpuSortPartialState *state)
{
	MemoryContext caller;

	begin_sorts(state);
	if (state->gather == NULL)
		return;
	caller = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	RegisterExprContextCallback(state->gather->ps_ExprContext, before_gather_starts_over, PointerGetDatum(state));
	MemoryContextSwitchTo(caller);
}

/* The node's callbacks for dynamic shared memory: room for all processes' figures and claims. */
Size
gpusort_partial_estimate_shared(CustomScanState *node, ParallelContext *pcxt)
{
	return shared_bytes(1 + pcxt->nworkers);
}

/*
 * In the leader, before workers start for the first time:
 * drops what this process may have sorted alone, and begins the sorts.
 */
void
gpusort_partial_initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortPartialState *state = (GpuSortPartialState *) node;

	/* Without a segment there is but this process. */
	if (pcxt->seg == NULL)
		return;
	state->shared = coordinate;
	state->workers = pcxt;
	state->shared->build = gpusort_module_build();
	state->shared->nprocesses = 1 + pcxt->nworkers;
	gpusort_claims_create(&state->shared->claims);
	gpusort_joint_sorts_end(&state->nodes.sorts);
	share(state);
}

/* Keeps what EXPLAIN tells, and compares what all have read with what was put; workers have ended, or read no more. */
void
gpusort_partial_take_figures(GpuSortPartialState *state)
{
	GpuSortPartialShared *shared = state->shared;
	GpuSortFailure failure;

	if (state->figures != NULL)
		pfree(state->figures);
	state->ranges = shared->claims.ranges;
	state->nprocesses = shared->alone ? 0 : shared->nprocesses;
	state->figures = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt,
										shared->nprocesses * sizeof(GpuSortProcessFigures));
	memcpy(state->figures, shared->figures, shared->nprocesses * sizeof(GpuSortProcessFigures));
	if (!gpusort_joint_sorts_finish(&state->nodes.sorts, &failure))
		gpusort_sort_report_lost(true, &failure);
}

/* The same before they start again, when what EXPLAIN tells of the last time has been kept. */
void
gpusort_partial_reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortPartialState *state = (GpuSortPartialState *) node;

	if (state->workers == NULL)
		return;
	gpusort_partial_take_figures(state);
	gpusort_joint_sorts_end(&state->nodes.sorts);
	share(state);
}

void
gpusort_partial_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuSortPartialState *state = (GpuSortPartialState *) node;

	/*
	 * After make install a worker may have loaded another module
	 * than its leader: an error, should it be asked for a row.
	 */
	if (((GpuSortPartialShared *) coordinate)->build == gpusort_module_build())
		state->shared = coordinate;
}
