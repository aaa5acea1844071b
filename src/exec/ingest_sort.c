/*-------------------------------------------------------------------------
 *
 * ingest_sort.c
 *	  The sort of a GpuSort above Gather, to which all participants add rows by their GpuSortIngest nodes.
 *
 * It runs in the leader.  The sort's source are the rows that come up through Gather; those that the participants have
 * put are what others put (sort/sort.h has the order of calls).
 *
 *-------------------------------------------------------------------------
 */
#include "exec/ingest_state.h"

#include "exec/gather.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "server/reasons.h"
#include "server/wait_events.h"
#include "sort/fallback.h"
#include "sort/service_sort.h"
#include "storage/latch.h"

/* Workers that have stayed are to end.  Gather must be read to its end then, or start over. */
void
gpusort_ingest_stop(GpuSortIngestState *state)
{
	GpuSortFailure none = {0};

	state->holds = false;
	if (state->shared != NULL)
		gpusort_claims_stop(&state->shared->claims, &none);
}

/*
 * Returns the GpuSortIngest node of a GpuSort over child; NULL if there is none.
 * Errors: the two would not make the same of a row.
 */
GpuSortIngestState *
gpusort_ingest_find(PlanState *child, const GpuSortPlanInfo *info)
{
	GpuSortIngestState *state;
	TupleDesc above;
	TupleDesc below;
	bool same;

	if (!IsA(child, GatherState) || !IsA(outerPlanState(child), CustomScanState) ||
		((CustomScanState *) outerPlanState(child))->methods != &gpusort_ingest_exec_methods)
		return NULL;
	state = (GpuSortIngestState *) outerPlanState(child);
	state->gather = castNode(GatherState, child);

	above = child->ps_ResultTupleDesc;
	below = ExecGetResultType(outerPlanState(state));
	same = above->natts == below->natts && info->ncolumns == state->info.ncolumns &&
		info->visible == state->info.visible;
	for (int i = 0; same && i < above->natts; i++)
		same = TupleDescAttr(above, i)->atttypid == TupleDescAttr(below, i)->atttypid;
	for (int i = 0; same && i < info->ncolumns; i++)
	{
		const GpuSortColumn *a = &info->columns[i];
		const GpuSortColumn *b = &state->info.columns[i];

		same = a->attno == b->attno && a->sort_operator == b->sort_operator && a->collation == b->collation &&
			a->nulls_first == b->nulls_first;
	}
	if (!same)
		elog(ERROR, "GpuSort and GpuSortIngest differ in their rows");
	return state;
}

/* Returns how many workers have signed off: they are there still. */
static int
stayed(const GpuSortIngestState *state)
{
	int workers = 0;

	if (state->shared != NULL)
	{
		GpuSortClaims *claims = &state->shared->claims;

		LWLockAcquire(&claims->lock, LW_SHARED);
		workers = claims->signed_off;
		LWLockRelease(&claims->lock);
	}
	return workers;
}

/*
 * Returns the next row that came up; an empty slot, or NULL,
 * when all processes have taken their rows in: then workers may have stayed.
 */
static TupleTableSlot *
next_row(GpuSortIngestState *state)
{
	PlanState *gather = &state->gather->ps;

	if (!state->holds)
		return ExecProcNode(gather);
	for (;;)
	{
		TupleTableSlot *row;

		state->held = false;
		row = gpusort_gather_row(gather);
		if (!state->held)
			return row;
		gpusort_gather_uncount_row(gather);
		if (state->gather->nreaders == stayed(state))
			return NULL;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, 0, gpusort_wait_event(GPUSORT_WAIT_WORKERS));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* The source's: a row that came up, for the sort, if there is one, to write. */
static int
next_batch(GpuSortSource *source, GpuSortRow *rows, int n)
{
	GpuSortIngestState *state = ((IngestSource *) source)->ingest;
	TupleTableSlot *slot = next_row(state);

	if (TupIsNull(slot))
		return 0;
	/* If nobody has chosen common prefixes there are to be none. */
	if (state->ingest.writer != NULL)
		gpusort_parallel_ingest_settle_common_prefixes(&state->ingest);
	gpusort_plan_source_show(&state->source.plan, slot, rows);
	return 1;
}

/* The source's: all rows come up when Gather has started over, as there is no sort any more. */
static void
restart(GpuSortSource *source)
{
	gpusort_ingest_reset(((IngestSource *) source)->ingest);
	gpusort_plan_source_restart(source);
}

static const GpuSortSourceMethods source_methods = {
	.next_batch = next_batch,
	.restart = restart,
	.table_column = gpusort_plan_source_table_column,
};

/* Makes the source of the sort of the GpuSort above Gather, of rows like these. */
GpuSortSource *
gpusort_ingest_source(GpuSortIngestState *state, const GpuSortHeapRows *rows, bool may_restart)
{
	gpusort_plan_source_init(&state->source.plan, &state->gather->ps, rows, state->info.columns, state->info.ncolumns,
							 may_restart);
	state->source.plan.source.methods = &source_methods;
	state->source.ingest = state;
	return &state->source.plan.source;
}

/* There is no sort any more: participants give their rows to the source. */
void
gpusort_ingest_reset(GpuSortIngestState *state)
{
	gpusort_ingest_stop(state);
	gpusort_parallel_ingest_reset(&state->ingest);
	state->ended = false;
	state->leader_rows = 0;
	state->nworkers = 0;
}

/* Begins the sort, in the service if that is to be; the source is read after this. */
static void
begin(GpuSortIngestState *state, GpuSortState *sort)
{
	const GatherState *gather = state->gather;
	/* Empty rows do not go into expressions of Gather's, so no worker can be made to stay then. */
	const int checkers = gather->ps.ps_ProjInfo == NULL ? 1 + castNode(Gather, gather->ps.plan)->num_workers : 0;
	bool common_later;

	gpusort_ingest_reset(state);
	if (!gpusort_sort_begin_with_others(sort, checkers, &common_later))
		return;
	gpusort_parallel_ingest_start(&state->ingest, &sort->service.writer, sort->keys, common_later);
	state->holds = sort->service.shared;
	state->participates = parallel_leader_participation;
}

/* The source has ended, and with it what participants put: returns that, but for the leader's part. */
static GpuSortPut
collect(GpuSortIngestState *state)
{
	const GpuSortParallelIngestShared *shared = state->ingest.shared;
	GpuSortPut put = {0};

	state->ingest.writer = NULL;
	if (shared == NULL)
		return put;
	if (state->worker_rows == NULL)
		state->worker_rows = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt, shared->nworkers * sizeof(uint64));
	state->nworkers = shared->nworkers;
	for (int i = 0; i < state->nworkers; i++)
		state->worker_rows[i] = shared->put[i].rows;
	gpusort_parallel_ingest_collect(&state->ingest, &put);
	return put;
}

/* Reads the source to its end, and so has all participants put their rows, or PostgreSQL's sort take them. */
static void
put(GpuSortIngestState *state, GpuSortState *sort)
{
	GpuSortFailure full;
	GpuSortPut others;

	if (gpusort_sort_put_own(sort, &full))
		return;
	/* The service gives its rows when workers have left. */
	gpusort_ingest_stop(state);
	gpusort_fallback_feed(sort);
	others = collect(state);
	(void) gpusort_sort_take_back(sort, &others, &full);
}

/* Verifies the order with the workers that have stayed; false, with a reason: rows are out of order, or lost. */
static bool
check_with_workers(GpuSortIngestState *state, GpuSortState *sort, GpuSortFailure *failure)
{
	GpuSortServiceSort *service = &sort->service;
	GpuSortOrderReader own = {.check = service->check, .reader = &service->reader, .client = service->client};
	GpuSortClaims *claims = &state->shared->claims;
	GpuSortOrderedRows *rows = &state->shared->rows;
	int processes = 1 + stayed(state);

	rows->expected = own.reader->expected;
	if (!gpusort_order_cut(own.client, rows, processes, failure))
		return false;
	gpusort_claims_begin_parts(claims, GPUSORT_PARTS_VERIFY, gpusort_order_divide(rows, processes));
	if (!gpusort_order_check_parts(&own, rows, claims, failure))
		return false;
	gpusort_claims_finish_parts(claims);
	*failure = claims->failure;
	sort->figures.pairs = rows->pairs;
	return !claims->stop;
}

/* Verifies the order, where that is to be done; false, with a reason: rows are out of order, or lost. */
static bool
check(GpuSortIngestState *state, GpuSortState *sort, GpuSortFailure *failure)
{
	if (!sort->service.check_order)
		return true;
	gpusort_service_sort_begin_check(sort);
	/* Long rows are in a file of this process. */
	if (state->holds && stayed(state) > 0 && sort->rows->overflow.file == NULL)
		return check_with_workers(state, sort, failure);
	return gpusort_sort_check(sort, failure);
}

/*
 * Workers are to end: reads Gather to its end, so that their errors, counts and times come in.  false, with a reason,
 * if the keys of one of them may have been others than ours.  Errors: there is a row.
 */
static bool
finish(GpuSortIngestState *state, GpuSortFailure *failure)
{
	bool held = state->holds;

	gpusort_ingest_stop(state);
	if (held)
	{
		TupleTableSlot *row = ExecProcNode(&state->gather->ps);

		if (!TupIsNull(row))
			elog(ERROR, "a parallel worker has rows that came too late to be sorted");
	}
	if (state->ingest.shared == NULL || !state->ingest.shared->libc_differs)
		return true;
	return gpusort_failure_set(failure, GPUSORT_REASON_COLLATION,
							   "processes of the sort have different versions of a locale of the C library");
}

/* Has the rows sorted that are put: from stage INPUT to SERVICE or NATIVE. */
static void
perform(GpuSortIngestState *state, GpuSortState *sort)
{
	GpuSortPut others = {0};
	GpuSortFailure failure = {0};
	GpuSortFailure theirs;
	instr_time ordered;
	bool good;

	if (sort->native == NULL)
		others = collect(state);
	if (!gpusort_sort_order(sort, &others))
		return;
	INSTR_TIME_SET_CURRENT(ordered);
	good = check(state, sort, &failure);
	if (!finish(state, &theirs) && good)
	{
		failure = theirs;
		good = false;
	}
	gpusort_sort_complete(sort, ordered, good, &failure);
}

/* Has the rows of all participants sorted, in the service or by PostgreSQL: from stage INPUT to SERVICE or NATIVE. */
void
gpusort_ingest_sort(GpuSortIngestState *state, GpuSortState *sort)
{
	begin(state, sort);
	put(state, sort);
	perform(state, sort);
}
