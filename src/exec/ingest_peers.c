/*-------------------------------------------------------------------------
 *
 * ingest_peers.c
 *	  The GpuSortIngest node as the sort of the GpuSort above Gather sees it, in the leader.
 *
 * It is the sort's source, of rows that come up through Gather, and its peers, the processes that put the others
 * (sort/peers.h tells the order of calls).
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
#include "sort/sort.h"
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
	if (state->joint.writer != NULL)
		gpusort_joint_ingest_settle_common_prefixes(&state->joint);
	gpusort_plan_source_show(&state->source.plan, slot, rows);
	return 1;
}

static const GpuSortSourceMethods source_methods = {
	.next_batch = next_batch,
	.restart = gpusort_plan_source_restart,
	.table_column = gpusort_plan_source_table_column,
};

/* The peers' methods, of the GpuSort in the leader: peers.h tells what each does. */

static void
peers_reset(GpuSortPeers *peers)
{
	GpuSortIngestState *state = ((IngestPeers *) peers)->ingest;

	gpusort_ingest_stop(state);
	gpusort_joint_ingest_reset(&state->joint);
	state->ended = false;
	state->leader_rows = 0;
	state->nworkers = 0;
}

static void
peers_start(GpuSortPeers *peers, GpuSortState *sort, bool common_later)
{
	GpuSortIngestState *state = ((IngestPeers *) peers)->ingest;

	peers_reset(peers);
	gpusort_joint_ingest_start(&state->joint, &sort->service.writer, sort->keys, common_later);
	state->holds = sort->service.shared;
	state->participates = parallel_leader_participation;
}

static void
peers_collect(GpuSortPeers *peers, GpuSortPut *put)
{
	GpuSortIngestState *state = ((IngestPeers *) peers)->ingest;
	const GpuSortJointIngestShared *shared = state->joint.shared;

	state->joint.writer = NULL;
	if (shared == NULL)
		return;
	if (state->worker_rows == NULL)
		state->worker_rows = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt, shared->nworkers * sizeof(uint64));
	state->nworkers = shared->nworkers;
	for (int i = 0; i < state->nworkers; i++)
		state->worker_rows[i] = shared->put[i].rows;
	gpusort_joint_ingest_collect(&state->joint, put);
}

static bool
peers_may_verify(GpuSortPeers *peers)
{
	GpuSortIngestState *state = ((IngestPeers *) peers)->ingest;

	return state->holds && stayed(state) > 0;
}

static bool
peers_verify(GpuSortPeers *peers, GpuSortState *sort, uint64 *pairs, GpuSortFailure *failure)
{
	GpuSortIngestState *state = ((IngestPeers *) peers)->ingest;
	GpuSortServiceSort *service = &sort->service;
	GpuSortOrderReader own = {.check = service->check, .reader = &service->reader, .client = service->client};
	GpuSortClaims *claims = &state->shared->claims;
	GpuSortOrderedRows *rows = &state->shared->rows;
	int processes = 1 + stayed(state);

	rows->expected = own.reader->expected;
	if (!gpusort_order_cut(own.client, rows, processes, failure))
		return false;
	gpusort_claims_begin_parts(claims, GPUSORT_PARTS_VERIFY, gpusort_order_parts(rows, processes));
	if (!gpusort_order_check_parts(&own, rows, claims, failure))
		return false;
	gpusort_claims_finish_parts(claims);
	*failure = claims->failure;
	*pairs = rows->pairs;
	return !claims->stop;
}

/* Reads Gather to its end, too: workers' errors, counts and times come in.  Errors: there is a row. */
static bool
peers_finish(GpuSortPeers *peers, GpuSortFailure *failure)
{
	GpuSortIngestState *state = ((IngestPeers *) peers)->ingest;
	bool held = state->holds;

	gpusort_ingest_stop(state);
	if (held && !TupIsNull(ExecProcNode(&state->gather->ps)))
		elog(ERROR, "a parallel worker has rows that came too late to be sorted");
	if (state->joint.shared == NULL || !state->joint.shared->libc_differs)
		return true;
	return gpusort_failure_set(failure, GPUSORT_REASON_COLLATION,
							   "processes of the sort have different versions of a locale of the C library");
}

static void
peers_stop(GpuSortPeers *peers)
{
	gpusort_ingest_stop(((IngestPeers *) peers)->ingest);
}

static const GpuSortPeersMethods peers_methods = {
	.start = peers_start,
	.collect = peers_collect,
	.may_verify = peers_may_verify,
	.verify = peers_verify,
	.finish = peers_finish,
	.stop = peers_stop,
	.reset = peers_reset,
};

/* Returns what the sort of the GpuSort above Gather, of rows like these, has of the node. */
void
gpusort_ingest_connect(GpuSortIngestState *state, const GpuSortHeapRows *rows, bool may_restart,
					   GpuSortSource **source, GpuSortPeers **peers)
{
	GatherState *gather = state->gather;

	gpusort_plan_source_init(&state->source.plan, &gather->ps, rows, state->info.columns, state->info.ncolumns,
							 may_restart);
	state->source.plan.source.methods = &source_methods;
	state->source.ingest = state;
	state->peers.peers.methods = &peers_methods;
	/* Empty rows do not go into expressions of Gather's, so workers cannot be had to stay then. */
	state->peers.peers.verifiers = gather->ps.ps_ProjInfo == NULL ? 1 + castNode(Gather, gather->ps.plan)->num_workers : 0;
	state->peers.ingest = state;
	*source = &state->source.plan.source;
	*peers = &state->peers.peers;
}
