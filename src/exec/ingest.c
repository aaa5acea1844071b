/*-------------------------------------------------------------------------
 *
 * ingest.c
 *	  The GpuSortIngest node: ingests rows below Gather, for a sort that the leader alone reads.
 *
 *	  GpuSort				begins the sort; reads Gather to its end; orders; emits
 *	    Gather
 *	      GpuSortIngest		in the leader and in each worker: rows to the service
 *	        partial plan
 *
 * The node reads its child to the end and returns nothing, so that no row goes
 * through Gather: a worker joins the sort with a connection of its own, the
 * leader writes with the GpuSort node's own writer.  What cannot be handed to
 * the service is returned like any row, and GpuSort takes it from there: all
 * rows when there is no sort, when it is full or lost; long rows, which stay in
 * a temporary file of the leader's.
 *
 * The processes are the participants of a parallel sort (parallel/participants.h), with which nothing is done but to
 * ingest it.  Each registers and signs off; the leader last, since it puts what others have passed up.  It orders the
 * rows, the others verify their order with it if that is necessary, and only the leader reads them then.
 *
 * Workers that are to verify wait below Gather, those of them that have handed over all of their rows.  So the leader's
 * node sends an empty row up whenever Gather asks for one: GpuSort can see then, between rows of other workers, that
 * every worker that Gather has still is one that waits.
 *
 * With no sort started, or none to join, the node passes its child's rows on.
 *
 * Where few rows are wanted, so that the service is not asked, each process finds those of its part that may be among
 * them (sort/top_rows.h), as far as the processes know together, and passes these on; GpuSort finds the first of all.
 *
 * What a process does for its part in the sort is in parallel_ingest.c.  If rows of a worker's are
 * missing the sum of what all have put shows it, and GpuSort starts over.
 *
 * THE SORT
 *	The sort of the GpuSort node runs in the leader.  Its source are the rows that come up through Gather; those that
 *	the participants have put are what others put (sort/sort.h has the order of calls).
 *
 * Memory: a worker's connections belong to the context of its sort.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/ingest.h"

#include "access/parallel.h"
#include "catalog/pg_type_d.h"
#include "commands/explain.h"
#include "exec/gather.h"
#include "exec/plan_source.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "parallel/participants.h"
#include "server/reasons.h"
#include "server/wait_events.h"
#include "sort/counted_rows.h"
#include "sort/fallback.h"
#include "storage/latch.h"

/* In dynamic shared memory, where the cutoff and the parallel sort's follow; if there are no workers the leader's. */
typedef struct IngestShared
{
	GpuSortClaims claims;
	bool stays; /* workers that have handed over all of their rows stay, to verify the order of all */

	/* what each process finds of its part; 0: there is a sort, or all rows go up */
	uint64 top;
	bool with_ties;
	pg_atomic_uint64 dropped; /* rows that were not passed on, of all processes */
} IngestShared;

#define CUTOFF_OFFSET CACHELINEALIGN(sizeof(IngestShared))
#define SHARED_BYTES  (CUTOFF_OFFSET + CACHELINEALIGN(gpusort_cutoff_shared_bytes()))

/* What the GpuSort above Gather has of the node. */
typedef struct IngestSource
{
	GpuSortPlanSource plan; /* must be first field: Gather's rows */
	GpuSortIngestState *ingest;
} IngestSource;

struct GpuSortIngestState
{
	CustomScanState css; /* must be first field */
	GpuSortPlanInfo info;
	GpuSortHeapRows *rows;
	GpuSortPlanSource child;       /* of part */
	GpuSortState *part;            /* this process's rows; in a worker, what it verifies the sort with */
	GpuSortSortSet set;            /* of the one sort */
	GpuSortParallelIngest *ingest; /* without a writer rows go up */
	IngestShared *shared;          /* NULL: a worker has no part in it */
	bool joins;                    /* a worker is to join the sort */
	bool finds_top;                /* this process is to find the first rows of its part */
	bool ended;                    /* the child has no more rows */
	bool passed;                   /* rows of it have gone up */

	/* the leader's */
	IngestSource source; /* of the sort above */
	GatherState *gather; /* above */
	IngestShared *own;   /* what is shared where there are no workers */
	bool holds;          /* an empty row goes up, again and again, when the child has no more */
	bool held;           /* one has */
	bool participates;   /* the leader has a part of the rows */
	uint64 top;          /* and with_ties: what is shared */
	bool with_ties;
	TupleTableSlot *empty_row;
	uint64 leader_rows; /* ingested by this node here */
	int nworkers;       /* entries in worker_rows; 0 before collect */
	uint64 *worker_rows;
};

/* Returns this process as a participant; processes is as there. */
static GpuSortParticipant
participant(GpuSortIngestState *state, int processes)
{
	return (GpuSortParticipant){.set = &state->set, .claims = &state->shared->claims, .processes = processes};
}

/*
 * Registers a worker, and joins the sort that the leader has begun.  If the worker cannot join, its rows go up through
 * Gather.  If its keys differ from the leader's, the sort ends.
 */
static void
join_sort(GpuSortIngestState *state)
{
	MemoryContext caller = MemoryContextSwitchTo(state->part->context);
	GpuSortFailure failure;

	state->joins = false;
	(void) gpusort_claims_register(&state->shared->claims);
	if (!gpusort_parallel_ingest_join(state->ingest, NULL, &failure))
	{
		ereport(DEBUG1,
				(errmsg_internal("gpusort: a parallel worker passes its rows on: %s", failure.text)));
		if (failure.reason == GPUSORT_REASON_COLLATION)
			gpusort_claims_stop(&state->shared->claims, &failure);
	}
	MemoryContextSwitchTo(caller);
}

/*
 * Hands over what this process has ingested; further rows go up.
 * Returns true in a worker whose rows are all in the sort.
 */
static bool
stop_writing(GpuSortIngestState *state)
{
	GpuSortFailure ignored;

	/*
	 * The leader's writer is GpuSort's to finish.  After a loss there is nobody to answer; the leader hears of it too.
	 */
	if (state->ingest->client != NULL)
		return gpusort_parallel_ingest_leave(state->ingest, &ignored);
	state->ingest->writer = NULL;
	return false;
}

/* Returns NULL after the last row; in a leader that has to be asked again, an empty row. */
static TupleTableSlot *
hold(GpuSortIngestState *state)
{
	if (!state->holds)
		return NULL;
	state->held = true;
	return ExecStoreAllNullTuple(state->empty_row);
}

/* Notes that there are no more rows, and does in a worker what else there is to do for the sort; returns as hold. */
static TupleTableSlot *
end_part(GpuSortIngestState *state)
{
	bool whole = stop_writing(state) && !state->passed;

	state->ended = true;
	if (IsParallelWorker() && state->shared != NULL)
	{
		const GpuSortParticipant own = participant(state, 0);

		gpusort_claims_sign_off(own.claims, whole);
		if (whole && state->shared->stays)
			(void) gpusort_participant_await_ranges(&own);
	}
	return hold(state);
}

/* Returns the next row of this process's part, to go up. */
static TupleTableSlot *
pass_row(GpuSortIngestState *state)
{
	const GpuSortRow *row;

	state->child.source.attributes = 0;
	row = gpusort_input_next(&state->part->input);
	state->passed = true;
	return row == NULL ? end_part(state) : gpusort_heap_rows_slot(state->rows, row);
}

/* Returns what the processes find together; NULL: there is but this one. */
static GpuSortCutoffShared *
shared_cutoff(const GpuSortIngestState *state)
{
	return state->shared == state->own ? NULL : (GpuSortCutoffShared *) ((char *) state->shared + CUTOFF_OFFSET);
}

/* Finds the first rows of this process's part, which are those that go up. */
static void
find_top(GpuSortIngestState *state)
{
	GpuSortState *part = state->part;

	state->finds_top = false;
	part->bound = state->shared->top;
	part->with_ties = state->shared->with_ties;
	(void) gpusort_sort_find_top(part, shared_cutoff(state));
	pg_atomic_fetch_add_u64(&state->shared->dropped, part->figures.dropped);
}

static TupleTableSlot *
exec_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	GpuSortWriter *writer;
	GpuSortFailure failure;
	uint64 rows_before;
	bool all;

	if (unlikely(state->finds_top))
		find_top(state);
	if (unlikely(state->joins))
		join_sort(state);
	if (state->ended || (state->holds && !state->participates && state->gather->nworkers_launched > 0))
		return hold(state);
	writer = state->ingest->writer;
	if (writer == NULL)
		return pass_row(state);

	rows_before = writer->rows;
	all = gpusort_parallel_ingest_rows(state->ingest, NULL, &failure);
	state->leader_rows += writer->rows - rows_before;
	if (all)
		return end_part(state);
	if (failure.reason != GPUSORT_REASON_NONE)
		(void) stop_writing(state);
	return pass_row(state);
}

/* Makes the rows of this process's part. */
static GpuSortHeapRows *
create_rows(PlanState *child, const GpuSortPlanInfo *info)
{
	TupleDesc all = ExecGetResultType(child);
	const int counts = list_length(info->counted);
	TupleDesc shown = CreateTemplateTupleDesc(info->visible + counts);

	for (int i = 1; i <= info->visible; i++)
		TupleDescCopyEntry(shown, i, all, i);
	for (int i = 1; i <= counts; i++)
		TupleDescInitEntry(shown, info->visible + i, NULL, INT8OID, -1, 0);
	TupleDescFinalize(shown);
	return counts > 0 ? gpusort_counted_rows_create(all, shown, info->counted) : gpusort_heap_rows_create(all, shown);
}

/* Makes this process's part in the sort: in the leader that of the GpuSort above Gather, which sets it. */
void
gpusort_ingest_set_sort(GpuSortIngestState *state, GpuSortState *sort)
{
	GpuSortParallelSort *parallel = gpusort_parallel_sort_create(sort, 0, &state->part->input);

	state->set = (GpuSortSortSet){0};
	gpusort_sort_set_add(&state->set, parallel);
	state->ingest = gpusort_parallel_sort_part(parallel);
}

static void
begin_ingest(CustomScanState *node, EState *estate, int eflags)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	PlanState *ps = &node->ss.ps;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);

	gpusort_plan_unpack((CustomScan *) ps->plan, &state->info);

	/* A worker has the flags of the whole statement, a cursor's say; but the child is only read forward. */
	outerPlanState(node) = ExecInitNode(outerPlan(ps->plan), estate,
										eflags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));

	/* Rows that are passed on are in slots of several kinds. */
	ps->resultops = &TTSOpsVirtual;
	ps->resultopsset = true;
	ps->resultopsfixed = false;
	ps->ps_ProjInfo = NULL;
	state->rows = create_rows(outerPlanState(node), &state->info);
	gpusort_plan_source_init(&state->child, outerPlanState(node), state->rows, state->info.columns,
							 state->info.ncolumns, false, NULL);
	state->part = gpusort_sort_create(&state->rows->rows, &state->child.source, state->info.columns,
									  state->info.ncolumns);
	state->empty_row = ExecInitExtraTupleSlot(estate, ps->ps_ResultTupleDesc, &TTSOpsVirtual);
	gpusort_ingest_set_sort(state, state->part);
	if (!IsParallelWorker())
	{
		state->own = palloc0(sizeof(IngestShared));
		gpusort_claims_create(&state->own->claims);
		state->shared = state->own;
	}
	MemoryContextSwitchTo(caller);
}

/* Ends a worker's connections; the leader's is GpuSort's. */
static void
end_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	gpusort_parallel_sort_drop(state->set.sorts[0]);
	gpusort_sort_drop(state->part);
	ExecEndNode(outerPlanState(node));
}

/*
 * Starts over with Gather, which reads all rows of the child again.  GpuSort says whether they go to a sort, by
 * begin_sort or gpusort_ingest_reset.
 */
static void
rescan_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	PlanState *child = outerPlanState(node);

	state->ended = false;
	gpusort_sort_end(state->part);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

/* Begins what the processes share anew, with the leader, which signs off last. */
static void
start_shared(GpuSortIngestState *state)
{
	state->shared->stays = state->holds;
	state->shared->top = state->top;
	state->shared->with_ties = state->with_ties;
	pg_atomic_init_u64(&state->shared->dropped, 0);
	if (state->top > 0 && state->shared != state->own)
		gpusort_top_rows_shared_init(shared_cutoff(state), state->top);
	gpusort_claims_start(&state->shared->claims);
	(void) gpusort_claims_register(&state->shared->claims);
}

static Size
estimate_shared(CustomScanState *node, ParallelContext *pcxt)
{
	const GpuSortIngestState *state = (GpuSortIngestState *) node;

	return add_size(SHARED_BYTES, gpusort_parallel_sort_estimate(state->set.sorts[0], pcxt->nworkers));
}

/* Tells workers, which are about to start for the first time, of the current sort, if there is one. */
static void
initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	/* Without a segment there is but this process. */
	if (pcxt->seg == NULL)
		return;
	state->shared = coordinate;
	gpusort_claims_create(&state->shared->claims);
	start_shared(state);
	gpusort_parallel_sort_initialize(state->set.sorts[0], (char *) coordinate + SHARED_BYTES, pcxt->seg,
									 pcxt->nworkers);
}

/* Does the same before they start again. */
static void
reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	start_shared(state);
	gpusort_parallel_sort_reinitialize(state->set.sorts[0]);
}

static void
initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	/* One of another build passes rows on. */
	if (!gpusort_claims_are_ours(coordinate))
		return;
	state->shared = coordinate;
	state->finds_top = state->shared->top > 0;
	state->joins = !state->finds_top;
	gpusort_parallel_sort_attach(state->set.sorts[0], (char *) coordinate + SHARED_BYTES);
}

/* Lets workers that have stayed end.  Gather must be read to its end then, or start over. */
static void
release_workers(GpuSortIngestState *state)
{
	state->holds = false;
	gpusort_claims_stop(&state->shared->claims, NULL);
}

/* Lets go of the shared memory, which goes after this.  What EXPLAIN tells has been collected. */
static void
shutdown_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	if (!IsParallelWorker())
		release_workers(state);
	gpusort_parallel_sort_detach(state->set.sorts[0]);
	state->shared = state->own;
}

static void
explain_ingest(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	uint64 rows = state->leader_rows;
	List *by_process;

	if (!es->analyze || state->top > 0)
		return;
	by_process = list_make1(psprintf("leader " UINT64_FORMAT, state->leader_rows));
	for (int i = 0; i < state->nworkers; i++)
	{
		rows += state->worker_rows[i];
		by_process = lappend(by_process, psprintf("worker %d " UINT64_FORMAT, i, state->worker_rows[i]));
	}
	ExplainPropertyUInteger("Rows Ingested", NULL, rows, es);
	if (es->verbose)
		ExplainPropertyList("Rows by Process", by_process, es);
}

static const CustomExecMethods ingest_exec_methods = {
	.CustomName = GPUSORT_INGEST_NODE_NAME,
	.BeginCustomScan = begin_ingest,
	.ExecCustomScan = exec_ingest,
	.EndCustomScan = end_ingest,
	.ReScanCustomScan = rescan_ingest,
	.EstimateDSMCustomScan = estimate_shared,
	.InitializeDSMCustomScan = initialize_shared,
	.ReInitializeDSMCustomScan = reinitialize_shared,
	.InitializeWorkerCustomScan = initialize_worker,
	.ShutdownCustomScan = shutdown_ingest,
	.ExplainCustomScan = explain_ingest,
};

static Node *
create_state(CustomScan *plan)
{
	GpuSortIngestState *state = (GpuSortIngestState *) newNode(sizeof(GpuSortIngestState), T_CustomScanState);

	state->css.methods = &ingest_exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpusort_ingest_scan_methods = {
	.CustomName = GPUSORT_INGEST_NODE_NAME,
	.CreateCustomScanState = create_state,
};

/*
 * Returns the GpuSortIngest node of a GpuSort over child; NULL if there is none.  It is an error if the two would not
 * make the same of a row.
 */
GpuSortIngestState *
gpusort_ingest_find(PlanState *child, const GpuSortPlanInfo *info)
{
	GpuSortIngestState *state;
	TupleDesc above;
	TupleDesc below;
	bool same;

	if (!IsA(child, GatherState) || !IsA(outerPlanState(child), CustomScanState) ||
		((CustomScanState *) outerPlanState(child))->methods != &ingest_exec_methods)
		return NULL;
	state = (GpuSortIngestState *) outerPlanState(child);
	state->gather = castNode(GatherState, child);

	above = child->ps_ResultTupleDesc;
	below = ExecGetResultType(outerPlanState(state));
	same = above->natts == below->natts && info->ncolumns == state->info.ncolumns &&
		info->visible == state->info.visible && equal(info->counted, state->info.counted);
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
		if (state->gather->nreaders <= gpusort_claims_waiting(&state->shared->claims))
			return NULL;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, 0, gpusort_wait_event(GPUSORT_WAIT_WORKERS));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Gives a row that came up, which the sort writes if there is one: the source's next_batch. */
static int
next_batch(GpuSortSource *source, GpuSortRow *rows, int n)
{
	GpuSortIngestState *state = ((IngestSource *) source)->ingest;
	TupleTableSlot *slot = next_row(state);

	if (TupIsNull(slot))
		return 0;
	/* If nobody has chosen common prefixes, there are none. */
	if (state->ingest->writer != NULL)
		gpusort_parallel_ingest_settle_common_prefixes(state->ingest);
	gpusort_plan_source_show(&state->source.plan, slot, rows);
	return 1;
}

/* Makes Gather start over, so that all rows come up, as there is no sort any more: the source's restart. */
static void
restart_source(GpuSortSource *source)
{
	gpusort_ingest_reset(((IngestSource *) source)->ingest);
	gpusort_plan_source_restart(source);
}

static const GpuSortSourceMethods source_methods = {
	.next_batch = next_batch,
	.restart = restart_source,
	.table_column = gpusort_plan_source_table_column,
};

/* Makes the source, of rows like these, for the sort of the GpuSort above Gather. */
GpuSortSource *
gpusort_ingest_source(GpuSortIngestState *state, const GpuSortHeapRows *rows, bool may_restart)
{
	gpusort_plan_source_init(&state->source.plan, &state->gather->ps, rows, state->info.columns, state->info.ncolumns,
							 may_restart, NULL);
	state->source.plan.source.methods = &source_methods;
	state->source.ingest = state;
	return &state->source.plan.source;
}

/* Forgets the sort: participants give their rows to the source from now on. */
void
gpusort_ingest_reset(GpuSortIngestState *state)
{
	release_workers(state);
	gpusort_parallel_ingest_reset(state->ingest);
	state->top = 0;
	state->finds_top = false;
	state->ended = false;
	state->leader_rows = 0;
	state->nworkers = 0;
}

/* Begins the sort, in the service if that is to be; the source is read after this. */
static void
begin_sort(GpuSortIngestState *state, GpuSortState *sort)
{
	const GatherState *gather = state->gather;
	const int participants = 1 + castNode(Gather, gather->ps.plan)->num_workers;
	GpuSortFailure failure;

	gpusort_ingest_reset(state);
	if (!gpusort_sort_set_begin(&state->set, participants, &failure))
	{
		gpusort_sort_begin_native(sort, &failure);
		return;
	}
	/* Empty rows do not go into expressions of Gather's, so no worker can be made to stay then. */
	state->holds = sort->service.parallel && gather->ps.ps_ProjInfo == NULL;
	state->participates = parallel_leader_participation;
	if (state->shared == state->own)
		start_shared(state);
}

/* Keeps what EXPLAIN tells; the source has ended. */
static void
note_figures(GpuSortIngestState *state)
{
	const GpuSortParallelIngestShared *shared = state->ingest->shared;

	if (shared == NULL)
		return;
	if (state->worker_rows == NULL)
		state->worker_rows = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt, shared->nworkers * sizeof(uint64));
	state->nworkers = shared->nworkers;
	for (int i = 0; i < state->nworkers; i++)
		state->worker_rows[i] = shared->put[i].rows;
}

/*
 * Reads the source to its end: all participants put their rows meanwhile, or PostgreSQL's sort takes them.  That gets
 * those in the service, too, if it is full, or a worker cannot make the sort's keys.
 */
static void
put_rows(GpuSortIngestState *state, GpuSortState *sort)
{
	GpuSortFailure reason;

	if (gpusort_sort_put_own(sort, &reason))
	{
		/* which are shared since Gather has begun */
		const GpuSortClaims *claims = &state->shared->claims;

		if (sort->native != NULL || !claims->stop)
			return;
		reason = claims->failure;
		gpusort_fallback_full(sort);
	}
	/* The service gives its rows when workers have left. */
	release_workers(state);
	gpusort_fallback_feed(sort);
	note_figures(state);
	gpusort_parallel_sort_take_back(state->set.sorts[0], &reason);
}

/* Ends the workers, and reads Gather to its end, so that their errors, counts and times come in: there are no rows. */
static void
end_workers(GpuSortIngestState *state)
{
	bool held = state->holds;

	release_workers(state);
	if (held && !TupIsNull(ExecProcNode(&state->gather->ps)))
		elog(ERROR, "a parallel worker has rows that came too late to be sorted");
}

/* Orders the rows that are put, with the workers that wait for that: from stage INPUT to SERVICE or NATIVE. */
static void
perform_sort(GpuSortIngestState *state, GpuSortState *sort)
{
	const GpuSortParticipant own = participant(state, 1 + gpusort_claims_waiting(&state->shared->claims));
	GpuSortFailure failure;
	bool good;

	if (sort->native != NULL)
	{
		gpusort_sort_perform(sort);
		return;
	}
	note_figures(state);
	gpusort_claims_sign_off(own.claims, true);
	good = gpusort_participant_await_ranges(&own);
	failure = own.claims->failure;
	end_workers(state);
	gpusort_sort_complete(sort, good, &failure);
}

/* Sorts the first rows of all participants, as each of them finds those of its part: from stage INPUT to TOP. */
static void
find_first(GpuSortIngestState *state, GpuSortState *sort)
{
	gpusort_ingest_reset(state);
	state->top = sort->bound;
	state->with_ties = sort->with_ties;
	state->finds_top = true;
	if (state->shared == state->own)
		start_shared(state);
	gpusort_sort_begin(sort);
	gpusort_sort_put(sort);
	gpusort_sort_perform(sort);
	sort->figures.dropped += pg_atomic_read_u64(&state->shared->dropped);
}

/* Sorts the rows of all participants, in the service, by PostgreSQL or here: from stage INPUT to one of the others. */
void
gpusort_ingest_sort(GpuSortIngestState *state, GpuSortState *sort)
{
	if (gpusort_sort_wants_top(sort))
	{
		find_first(state, sort);
		return;
	}
	begin_sort(state, sort);
	put_rows(state, sort);
	perform_sort(state, sort);
}
