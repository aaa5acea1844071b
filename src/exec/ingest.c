/*-------------------------------------------------------------------------
 *
 * ingest.c
 *	  The GpuSortIngest node: ingests rows below Gather.
 *
 *	  GpuSort				begins the sort; reads Gather to its end; sorts; emits
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
 * Where the order of the rows is to be verified (order_check.c), workers that have handed over all of
 * their rows stay, below Gather, until they have verified their parts.  The leader's node then
 * sends an empty row up whenever Gather asks for one, so that GpuSort can see, between rows
 * of workers that do not stay, whether all others have: every worker that Gather knows of has stayed then.
 *
 * With no sort started, or none to join, the node passes its child's rows on.
 *
 * What a process does for its part in the sort is in parallel_ingest.c.  If rows of a worker's are
 * missing the sum of what all have put shows it, and GpuSort starts over.
 *
 * THE SORT
 *	The sort of the GpuSort node runs in the leader.  Its source are the rows that come up through Gather; those that
 *	the participants have put are what others put (sort/sort.h has the order of calls).
 *
 * Memory: a worker's connection belongs to the context of the query.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/ingest.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "exec/gather.h"
#include "exec/plan_source.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "parallel/order_check.h"
#include "parallel/parallel_ingest.h"
#include "server/installation.h"
#include "server/reasons.h"
#include "server/wait_events.h"
#include "sort/fallback.h"
#include "sort/service_sort.h"
#include "storage/latch.h"

/* In dynamic shared memory. */
typedef struct IngestShared
{
	uint64 build; /* of the leader's module: one of another build knows no more of this */
	bool stays;   /* workers that have handed over all of their rows stay, to verify the order of all */
	GpuSortClaims claims;
	GpuSortOrderedRows rows;
	GpuSortParallelIngestShared ingest; /* variable length: must be last field */
} IngestShared;

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
	GpuSortParallelIngest ingest; /* without a writer rows go up */
	GpuSortHeapRows *rows;
	GpuSortPlanSource child; /* of input */
	GpuSortInput input;
	IngestShared *shared; /* NULL: there are no workers */
	bool joins;           /* a worker is to join the sort */
	bool ended;           /* the child has no more rows */
	bool passed;          /* rows of it have gone up */

	/* the leader's */
	IngestSource source; /* of the sort above */
	GatherState *gather; /* above */
	bool holds;          /* an empty row goes up, again and again, when the child has no more */
	bool held;           /* one has */
	bool participates;   /* the leader has a part of the rows */
	TupleTableSlot *empty_row;
	uint64 leader_rows; /* ingested by this node here */
	int nworkers;       /* entries in worker_rows; 0 before collect */
	uint64 *worker_rows;
};

/* Joins the sort that the leader has begun; if that is not to be, rows go up. */
static void
join_sort(GpuSortIngestState *state)
{
	MemoryContext caller = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	GpuSortFailure failure;

	state->joins = false;
	if (!gpusort_parallel_ingest_join(&state->ingest, NULL, &failure))
		ereport(DEBUG1,
				(errmsg_internal("gpusort: a parallel worker passes its rows on: %s", failure.text)));
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
	bool left = false;

	/*
	 * The leader's writer is GpuSort's to finish.  After a loss there is nobody to answer; the leader hears of it too.
	 */
	if (state->ingest.client != NULL)
		left = gpusort_parallel_ingest_leave(&state->ingest, &ignored);
	state->ingest.writer = NULL;
	return left;
}

/* Verifies, in a worker, parts of the sorted rows; false, with a reason, if they are out of order, or lost. */
static bool
check_parts(GpuSortIngestState *state, GpuSortFailure *failure)
{
	IngestShared *shared = state->shared;
	GpuSortReader reader;
	GpuSortOrderReader own = {.reader = &reader};
	bool good;

	own.client = gpusort_client_join(shared->ingest.token, shared->ingest.generation, true, failure);
	if (own.client == NULL)
	{
		ereport(DEBUG1,
				(errmsg_internal("gpusort: a parallel worker verifies no rows: %s", failure->text)));
		return true;
	}
	own.check = gpusort_collation_check_create(state->ingest.keys, &state->rows->rows); /* there are no long ones */
	good = gpusort_order_check_parts(&own, &shared->rows, &shared->claims, failure);
	gpusort_client_end(own.client);
	return good;
}

/* Stays, in a worker whose rows are all put, to verify the order once there is one, unless no more rows are wanted. */
static void
stay(GpuSortIngestState *state)
{
	GpuSortClaims *claims = &state->shared->claims;
	MemoryContext caller = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	GpuSortFailure failure;

	gpusort_claims_sign_off(claims, true);
	if (gpusort_claims_await_task(claims, false, GPUSORT_PARTS_NONE) == GPUSORT_TASK_VERIFY &&
		!check_parts(state, &failure))
		gpusort_claims_stop(claims, &failure);
	MemoryContextSwitchTo(caller);
}

/* Notes that there are no more rows; returns NULL, or in a leader that is to be asked again an empty row. */
static TupleTableSlot *
hold(GpuSortIngestState *state)
{
	state->ended = true;
	if (!state->holds)
		return NULL;
	state->held = true;
	return ExecStoreAllNullTuple(state->empty_row);
}

/* Returns the next row of this process's part, to go up. */
static TupleTableSlot *
pass_row(GpuSortIngestState *state)
{
	const GpuSortRow *row;

	state->child.source.attributes = 0;
	row = gpusort_input_next(&state->input);
	state->passed = true;
	return row == NULL ? hold(state) : gpusort_heap_rows_slot(state->rows, row);
}

static TupleTableSlot *
exec_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	GpuSortWriter *writer;
	GpuSortFailure failure;
	uint64 rows_before;
	bool all;

	if (unlikely(state->joins))
		join_sort(state);
	if (state->ended || (state->holds && !state->participates && state->gather->nworkers_launched > 0))
		return hold(state);
	writer = state->ingest.writer;
	if (writer == NULL)
		return pass_row(state);

	rows_before = writer->rows;
	all = gpusort_parallel_ingest_rows(&state->ingest, NULL, &failure);
	state->leader_rows += writer->rows - rows_before;
	if (!all)
	{
		if (failure.reason != GPUSORT_REASON_NONE)
			(void) stop_writing(state);
		return pass_row(state);
	}
	if (stop_writing(state) && state->shared->stays && !state->passed)
		stay(state);
	return hold(state);
}

/* Makes the rows of this process's part. */
static GpuSortHeapRows *
create_rows(PlanState *child, int visible)
{
	TupleDesc all = ExecGetResultType(child);
	TupleDesc shown = CreateTemplateTupleDesc(visible);

	for (int i = 1; i <= visible; i++)
		TupleDescCopyEntry(shown, i, all, i);
	TupleDescFinalize(shown);
	return gpusort_heap_rows_create(all, shown);
}

static void
begin_ingest(CustomScanState *node, EState *estate, int eflags)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	PlanState *ps = &node->ss.ps;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);

	gpusort_plan_unpack((CustomScan *) ps->plan, &state->info);
	outerPlanState(node) = ExecInitNode(outerPlan(ps->plan), estate, eflags);

	/* Rows that are passed on are in slots of several kinds. */
	ps->resultops = &TTSOpsVirtual;
	ps->resultopsset = true;
	ps->resultopsfixed = false;
	ps->ps_ProjInfo = NULL;
	state->ingest.keys = gpusort_keys_create(state->info.columns, state->info.ncolumns);
	state->rows = create_rows(outerPlanState(node), state->info.visible);
	gpusort_plan_source_init(&state->child, outerPlanState(node), state->rows, state->info.columns,
							 state->info.ncolumns, false);
	gpusort_input_init(&state->input, &state->child.source, &state->rows->rows);
	state->ingest.input = &state->input;
	state->empty_row = ExecInitExtraTupleSlot(estate, ps->ps_ResultTupleDesc, &TTSOpsVirtual);
	MemoryContextSwitchTo(caller);
}

/* Ends a worker's connection; the leader's is GpuSort's. */
static void
end_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	if (state->ingest.client != NULL)
		gpusort_client_end(state->ingest.client);
	gpusort_rows_clear(&state->rows->rows);
	ExecEndNode(outerPlanState(node));
}

/*
 * Starts over with Gather: all rows of the child are to be read again.  GpuSort says whether they go to a sort, by
 * begin_sort or gpusort_ingest_reset.
 */
static void
rescan_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	PlanState *child = outerPlanState(node);

	state->ended = false;
	gpusort_rows_clear(&state->rows->rows);
	gpusort_input_clear(&state->input);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

/* Returns true if the sort that is under way is to give its first rows, not all. */
static bool
is_bounded(const GpuSortIngestState *state)
{
	return state->ingest.writer != NULL && state->ingest.writer->cutoff != NULL;
}

static Size
estimate_shared(CustomScanState *node, ParallelContext *pcxt)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	return add_size(offsetof(IngestShared, ingest),
					gpusort_parallel_ingest_bytes(state->ingest.keys, pcxt->nworkers, is_bounded(state)));
}

/* Tells workers, which are about to start, again or for the first time, of the current sort, if there is one. */
static void
reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	state->shared->stays = state->holds;
	gpusort_claims_start(&state->shared->claims);
	gpusort_parallel_ingest_publish(&state->ingest);
}

static void
initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	IngestShared *shared = coordinate;

	shared->build = gpusort_module_build();
	gpusort_claims_create(&shared->claims);
	gpusort_parallel_ingest_create(&shared->ingest, pcxt->nworkers, is_bounded(state));
	state->shared = shared;
	state->ingest.shared = &shared->ingest;
	reinitialize_shared(node, pcxt, coordinate);
}

static void
initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	IngestShared *shared = coordinate;

	/* After make install a worker may have loaded another module than its leader; it passes rows on. */
	if (shared->build != gpusort_module_build())
		return;
	state->shared = shared;
	state->ingest.shared = &shared->ingest;
	state->joins = true;
}

/* Lets workers that have stayed end.  Gather must be read to its end then, or start over. */
static void
release_workers(GpuSortIngestState *state)
{
	GpuSortFailure none = {0};

	state->holds = false;
	if (state->shared != NULL)
		gpusort_claims_stop(&state->shared->claims, &none);
}

/* Lets go of the shared memory, which goes after this.  What EXPLAIN tells has been collected. */
static void
shutdown_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	if (!IsParallelWorker())
		release_workers(state);
	state->shared = NULL;
	state->ingest.shared = NULL;
}

static void
explain_ingest(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	uint64 rows = state->leader_rows;
	List *by_process;

	if (!es->analyze)
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

/* Gives a row that came up, which the sort writes if there is one: the source's next_batch. */
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
							 may_restart);
	state->source.plan.source.methods = &source_methods;
	state->source.ingest = state;
	return &state->source.plan.source;
}

/* Forgets the sort: participants give their rows to the source from now on. */
void
gpusort_ingest_reset(GpuSortIngestState *state)
{
	release_workers(state);
	gpusort_parallel_ingest_reset(&state->ingest);
	state->ended = false;
	state->leader_rows = 0;
	state->nworkers = 0;
}

/* Begins the sort, in the service if that is to be; the source is read after this. */
static void
begin_sort(GpuSortIngestState *state, GpuSortState *sort)
{
	const GatherState *gather = state->gather;
	/* Empty rows do not go into expressions of Gather's, so no worker can be made to stay then. */
	const int checkers = gather->ps.ps_ProjInfo == NULL ? 1 + castNode(Gather, gather->ps.plan)->num_workers : 0;
	bool common_later;

	gpusort_ingest_reset(state);
	if (!gpusort_sort_begin_with_others(sort, checkers, &common_later))
		return;
	gpusort_parallel_ingest_start(&state->ingest, &sort->service.writer, sort->keys, common_later);
	state->holds = sort->service.parallel;
	state->participates = parallel_leader_participation;
}

/* Returns what participants have put, but for the leader's part; the source has ended. */
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

/* Reads the source to its end: all participants put their rows meanwhile, or PostgreSQL's sort takes them. */
static void
put_rows(GpuSortIngestState *state, GpuSortState *sort)
{
	GpuSortFailure full;
	GpuSortPut others;

	if (gpusort_sort_put_own(sort, &full))
		return;
	/* The service gives its rows when workers have left. */
	release_workers(state);
	gpusort_fallback_feed(sort);
	others = collect(state);
	(void) gpusort_sort_take_back(sort, &others, &full);
}

/* Verifies the order with the workers that have stayed; false, with a reason, if rows are out of order, or lost. */
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

/* Verifies the order, where that is to be done; false, with a reason, if rows are out of order, or lost. */
static bool
check_order(GpuSortIngestState *state, GpuSortState *sort, GpuSortFailure *failure)
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
 * Ends the workers, and reads Gather to its end, so that their errors, counts and times come in.  false, with a reason,
 * if the keys of one of them may have been others than ours.  It is an error if there is a row.
 */
static bool
end_workers(GpuSortIngestState *state, GpuSortFailure *failure)
{
	bool held = state->holds;

	release_workers(state);
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

/* Sorts the rows that are put: from stage INPUT to SERVICE or NATIVE. */
static void
perform_sort(GpuSortIngestState *state, GpuSortState *sort)
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
	good = check_order(state, sort, &failure);
	if (!end_workers(state, &theirs) && good)
	{
		failure = theirs;
		good = false;
	}
	gpusort_sort_complete(sort, ordered, good, &failure);
}

/* Sorts the rows of all participants, in the service or by PostgreSQL: from stage INPUT to SERVICE or NATIVE. */
void
gpusort_ingest_sort(GpuSortIngestState *state, GpuSortState *sort)
{
	begin_sort(state, sort);
	put_rows(state, sort);
	perform_sort(state, sort);
}
