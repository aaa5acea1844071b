/*-------------------------------------------------------------------------
 *
 * output_share.c
 *	  What the participants of a GpuSortOutput share, and when it begins and ends.
 *
 * The leader makes it before workers start, with the sorts in the service, and once more whenever Gather starts over;
 * where there are no workers, when the first row is asked for.
 *
 * When no more rows are wanted workers that wait must end before Gather waits for them: by the node's shutdown and
 * end, which come before Gather's, and when Gather starts over by a callback of its expression context.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/output.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "server/reasons.h"
#include "settings.h"

static Size
shared_bytes(int nprocesses)
{
	return CACHELINEALIGN(offsetof(GpuSortOutputShared, figures) + nprocesses * sizeof(GpuSortProcessFigures));
}

/* Returns where the row queue of a worker is. */
void *
gpusort_output_queue_place(GpuSortOutputShared *shared, int worker)
{
	return (char *) shared + shared_bytes(shared->nprocesses) + worker * gpusort_row_queue_bytes();
}

/* Returns the new table whose pages take the rows, which is in the place of the queues. */
GpuSortNewTableShared *
gpusort_output_into(GpuSortOutputShared *shared)
{
	return (GpuSortNewTableShared *) gpusort_output_queue_place(shared, 0);
}

/* Returns by what workers form their rows; NULL: they do not. */
const GpuSortFormat *
gpusort_output_format(GpuSortOutputShared *shared)
{
	return shared->formed ? gpusort_output_queue_place(shared, shared->nprocesses - 1) : NULL;
}

/* Begins the sorts in the service; false, with a reason, if it takes no part. */
static bool
begin_in_service(GpuSortOutputState *state, GpuSortFailure *failure)
{
	const int nprocesses = state->shared->nprocesses;

	if (state->lost.reason != GPUSORT_REASON_NONE)
	{
		*failure = state->lost;
		return false;
	}
	if (gpusort_output_first_sort(state)->info.range_columns == 0)
		return gpusort_failure_set(failure, GPUSORT_REASON_UNAVAILABLE, "the rows cannot be divided among processes");
	if (state->partial && !gpusort_spill)
		return gpusort_failure_set(failure, GPUSORT_REASON_UNAVAILABLE, "gpusort.spill is off");
	if (state->partial && nprocesses > 1 && !parallel_leader_participation)
		return gpusort_failure_set(failure, GPUSORT_REASON_UNAVAILABLE, "parallel_leader_participation is off");
	return gpusort_nodes_begin(&state->nodes, nprocesses, failure);
}

/*
 * Begins a run of all that share this, before any of them reads.  Begins the sorts in the service; if that takes no
 * part, alone says so.
 */
static void
begin_run(GpuSortOutputState *state)
{
	GpuSortOutputShared *shared = state->shared;
	GpuSortFailure failure;

	state->stage = GPUSORT_OUTPUT_BEGIN;
	state->nodes.started = false;
	state->window.passes = 0;
	gpusort_window_ranges_reset(&state->window);
	shared->window = (GpuSortWindowShared){.totals = InvalidDsaPointer};
	gpusort_claims_start(&shared->claims);
	memset(shared->figures, 0, shared->nprocesses * sizeof(GpuSortProcessFigures));
	shared->leads_all = state->only_formed && !shared->formed && !shared->into;
	shared->alone = !begin_in_service(state, &failure);
	if (shared->into)
		gpusort_new_table_init(gpusort_output_into(shared), state->into);
	if (!shared->alone)
		return;
	gpusort_sort_set_refuse(&state->nodes.set, &failure);
	shared->claims.failure = failure;
}

static void
create_shared(GpuSortOutputState *state, GpuSortOutputShared *shared, int nprocesses)
{
	shared->formed = false;
	shared->into = state->into != NULL;
	gpusort_claims_create(&shared->claims);
	shared->nprocesses = nprocesses;
}

/* Begins a run in a process without workers, for which the leader's memory will do. */
void
gpusort_output_begin_without_workers(GpuSortOutputState *state)
{
	if (state->own == NULL)
	{
		const Size into = state->into == NULL ? 0 : sizeof(GpuSortNewTableShared);

		state->own = MemoryContextAllocZero(state->css.ss.ps.state->es_query_cxt, shared_bytes(1) + into);
		create_shared(state, state->own, 1);
	}
	state->shared = state->own;
	begin_run(state);
}

/* Makes the workers' queues, before they start. */
static void
open_queues(GpuSortOutputState *state)
{
	const int nworkers = state->shared->nprocesses - 1;

	Assert(state->queues == NULL);
	state->queues = palloc(nworkers * sizeof(GpuSortRowQueueReader *));
	for (int i = 0; i < nworkers; i++)
	{
		void *place = gpusort_output_queue_place(state->shared, i);

		gpusort_row_queue_create(place);
		state->queues[i] = gpusort_row_queue_open_reader(place, &state->shared->queues, i);
	}
}

static void
close_queues(GpuSortOutputState *state)
{
	if (state->queues == NULL)
		return;
	for (int i = 0; i < state->shared->nprocesses - 1; i++)
		gpusort_row_queue_close_reader(state->queues[i]);
	pfree(state->queues);
	state->queues = NULL;
}

/* Ends workers that wait for others, read, or write to a queue, since no more rows are wanted. */
void
gpusort_output_stop(GpuSortOutputState *state)
{
	if (state->workers == NULL)
		return;
	gpusort_claims_stop(&state->shared->claims, NULL);
	if (state->shared->into)
		gpusort_range_places_wake(&gpusort_output_into(state->shared)->places);
	close_queues(state);
}

/* Stops, when Gather starts over, which waits for its workers first. */
static void
before_gather_starts_over(Datum arg)
{
	gpusort_output_stop((GpuSortOutputState *) DatumGetPointer(arg));
}

/* Begins a run with workers, who are about to start. */
static void
share(GpuSortOutputState *state)
{
	MemoryContext caller = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

	gpusort_sort_set_end(&state->nodes.set);
	begin_run(state);
	if (!state->partial && !state->shared->alone && !state->shared->into)
		open_queues(state);
	if (state->gather != NULL)
		RegisterExprContextCallback(state->gather->ps_ExprContext, before_gather_starts_over, PointerGetDatum(state));
	MemoryContextSwitchTo(caller);
}

/*
 * Lets the leader read on without workers, who have ended, and without Gather's shared memory, which may go.  Returns
 * false, and does nothing, if that cannot be: not all rows are the leader's, or some are in that memory.
 */
bool
gpusort_output_keep(GpuSortOutputState *state)
{
	GpuSortOutputShared *own;
	Size bytes;

	if (state->workers == NULL)
		return true;
	if (!state->shared->leads_all)
		return false;
	bytes = shared_bytes(state->shared->nprocesses);
	own = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt, bytes);
	memcpy(own, state->shared, bytes);
	if (!gpusort_sort_set_keep(&state->nodes.set, &own->claims.stop))
	{
		pfree(own);
		return false;
	}
	close_queues(state);
	state->shared = own;
	state->workers = NULL;
	return true;
}

/* The node's callbacks for dynamic shared memory. */
Size
gpusort_output_estimate_shared(CustomScanState *node, ParallelContext *pcxt)
{
	const GpuSortOutputState *state = (GpuSortOutputState *) node;
	const Size queues = state->partial ? 0 : mul_size(pcxt->nworkers, gpusort_row_queue_bytes());
	const Size format = state->format == NULL ? 0 : state->format->bytes;

	if (state->into != NULL)
		return add_size(shared_bytes(1 + pcxt->nworkers), sizeof(GpuSortNewTableShared));
	return add_size(shared_bytes(1 + pcxt->nworkers), add_size(queues, format));
}

/* Begins a run in the leader, before workers start for the first time; drops what it may have sorted alone. */
void
gpusort_output_initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;

	/* Without a segment there is but this process. */
	if (pcxt->seg == NULL)
		return;
	state->shared = coordinate;
	state->workers = pcxt;
	create_shared(state, state->shared, 1 + pcxt->nworkers);
	gpusort_row_queues_create(&state->shared->queues, pcxt->seg);
	if (state->format != NULL)
	{
		state->shared->formed = true;
		memcpy(gpusort_output_queue_place(state->shared, pcxt->nworkers), state->format, state->format->bytes);
	}
	share(state);
}

/* Keeps what EXPLAIN tells, while the shared memory is there. */
void
gpusort_output_take_figures(GpuSortOutputState *state)
{
	const GpuSortOutputShared *shared = state->shared;
	const Size bytes = shared->nprocesses * sizeof(GpuSortProcessFigures);

	if (state->figures != NULL)
		pfree(state->figures);
	state->ranges = shared->claims.ranges;
	state->nprocesses = shared->alone ? 0 : shared->nprocesses;
	state->figures = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt, bytes);
	memcpy(state->figures, shared->figures, bytes);
}

/*
 * Compares what all have read with what was put, and ends the sorts in the service; workers have ended, or read no
 * more.  It is an error if it is not the same.
 */
void
gpusort_output_finish(GpuSortOutputState *state)
{
	GpuSortFailure failure;

	if (!gpusort_sort_set_finish(&state->nodes.set, &failure))
		gpusort_sort_report_lost(true, &failure);
	gpusort_sort_set_release(&state->nodes.set);
}

/* Keeps what EXPLAIN tells, and finishes the sorts of a partial plan, of which no more rows are wanted. */
static void
end_run(GpuSortOutputState *state)
{
	gpusort_output_take_figures(state);
	if (state->partial)
		gpusort_output_finish(state);
}

/* Begins another run, before workers start again. */
void
gpusort_output_reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;

	if (state->workers == NULL)
		return;
	end_run(state);
	gpusort_row_queues_start(&state->shared->queues);
	gpusort_window_ranges_free(&state->shared->window, node->ss.ps.state->es_query_dsa);
	share(state);
}

void
gpusort_output_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;

	if (gpusort_claims_are_ours(coordinate))
		state->shared = coordinate;
}

/* Ends, in the leader, workers that still run, and the sorts in the service: the shared memory goes after this. */
void
gpusort_output_shutdown(CustomScanState *node)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;

	if (state->workers == NULL)
		return;
	gpusort_output_stop(state);
	end_run(state);
	gpusort_sort_set_release(&state->nodes.set);
	state->workers = NULL;
	state->shared = NULL;
	if (state->stage != GPUSORT_OUTPUT_BEGIN)
		state->stage = GPUSORT_OUTPUT_ENDED;
}
