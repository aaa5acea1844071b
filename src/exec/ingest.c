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
 * Where the order of the rows is to be verified (joint_check.c), workers that have handed over all of
 * their rows stay, below Gather, until they have verified their parts.  The leader's node then
 * sends an empty row up whenever Gather asks for one, so that GpuSort can see, between rows
 * of workers that do not stay, whether all others have: every worker that Gather knows of has stayed then.
 *
 * Legal order of calls of the GpuSort node: find once; then for each sort start,
 * before Gather runs, next until there is no row, and collect; where workers stay, check_order
 * and finish, or let_go at any time; reset at any time.  With
 * no sort started, or none to join, the node passes its child's rows on.
 *
 * What a process does for its part in the sort is in joint_ingest.c.  If rows of a worker's are
 * missing the sum of what all have put shows it, and GpuSort starts over.
 *
 * Memory: a worker's connection belongs to the context of the query.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/ingest.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "sort/first_rows.h"
#include "exec/gather.h"
#include "parallel/joint_ingest.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "server/installation.h"
#include "server/shared.h"
#include "server/wait_events.h"
#include "storage/latch.h"
#include "utils/memutils.h"

/* In dynamic shared memory. */
typedef struct IngestShared
{
	uint64 build; /* of the leader's module: one of another build knows no more of this */
	bool stays;   /* workers that have handed over all of their rows stay, to verify the order of all */
	GpuSortClaims claims;
	GpuSortOrderedRows rows;
	GpuSortJointShared joint; /* variable length: must be last field */
} IngestShared;

struct GpuSortIngestState
{
	CustomScanState css; /* must be first field */
	GpuSortPlanInfo info;
	GpuSortJointIngest joint; /* without a writer rows go up */
	GpuSortFirstRows first;
	IngestShared *shared; /* NULL: there are no workers */
	const GpuSortRowForm *form;
	bool is_member; /* a worker is to join the sort */
	bool ended;     /* the child has no more rows */
	bool passed;    /* rows of it have gone up */

	/* the leader's */
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

	state->form = gpusort_rowform_create(ExecGetResultType(outerPlanState(state)), state->info.visible);
	state->is_member = false;
	if (!gpusort_joint_ingest_join(&state->joint, state->form, NULL, &failure))
		ereport(DEBUG1,
				(errmsg_internal("gpusort: a parallel worker passes its rows on: %s", failure.text)));
	MemoryContextSwitchTo(caller);
}

/* Hands over what this process has ingested; further rows go up.  Returns true in a worker whose rows are all in the sort. */
static bool
stop_writing(GpuSortIngestState *state)
{
	GpuSortFailure ignored;
	bool left = false;

	/* The leader's writer is GpuSort's to finish.  After a loss there is nobody to answer; the leader hears of it too. */
	if (state->joint.client != NULL)
		left = gpusort_joint_ingest_leave(&state->joint, &ignored);
	state->joint.writer = NULL;
	return left;
}

/* Verifies, in a worker, parts of the sorted rows; false, with a reason, if they are out of order, or lost. */
static bool
check_parts(GpuSortIngestState *state, GpuSortFailure *failure)
{
	IngestShared *shared = state->shared;
	GpuSortSlots slots = {.form = state->form}; /* there are no long rows, and none is shown */
	GpuSortReader reader;
	GpuSortOrderReader own = {.reader = &reader};
	bool good;

	own.client = gpusort_client_join(shared->joint.token, shared->joint.generation, true, failure);
	if (own.client == NULL)
	{
		ereport(DEBUG1,
				(errmsg_internal("gpusort: a parallel worker verifies no rows: %s", failure->text)));
		return true;
	}
	own.check = gpusort_collation_check_create(state->joint.keys, &slots);
	good = gpusort_order_check_parts(&own, &shared->rows, &shared->claims, failure);
	gpusort_client_end(own.client);
	return good;
}

/* All rows of this worker are in the sort: stays until it is sorted, to verify it, or the leader wants nothing more. */
static void
stay(GpuSortIngestState *state)
{
	GpuSortClaims *claims = &state->shared->claims;
	MemoryContext caller = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	GpuSortFailure failure;

	gpusort_claims_sign_off(claims);
	if (gpusort_claims_wait_parts(claims) && !check_parts(state, &failure))
		gpusort_claims_stop(claims, &failure);
	MemoryContextSwitchTo(caller);
}

/* There are no more rows: returns NULL, or in a leader that is to be asked again an empty row. */
static TupleTableSlot *
hold(GpuSortIngestState *state)
{
	state->ended = true;
	if (!state->holds)
		return NULL;
	state->held = true;
	return ExecStoreAllNullTuple(state->empty_row);
}

static TupleTableSlot *
exec_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	PlanState *child = outerPlanState(node);
	GpuSortWriter *writer;
	GpuSortFailure failure;
	TupleTableSlot *row;
	uint64 rows_before;

	if (unlikely(state->is_member))
		join_sort(state);
	if (state->ended || (state->holds && !state->participates && state->gather->nworkers_launched > 0))
		return hold(state);
	writer = state->joint.writer;
	if (writer == NULL)
	{
		row = gpusort_first_rows_next(&state->first, child);
		state->passed = true;
		return TupIsNull(row) ? hold(state) : row;
	}

	rows_before = writer->rows;
	row = gpusort_joint_ingest_rows(&state->joint, child, NULL, &failure);
	state->leader_rows += writer->rows - rows_before;
	if (!TupIsNull(row))
	{
		if (failure.reason != GPUSORT_REASON_NONE)
			(void) stop_writing(state);
		state->passed = true;
		return row;
	}
	if (stop_writing(state) && state->shared->stays && !state->passed)
		stay(state);
	return hold(state);
}

static void
begin_ingest(CustomScanState *node, EState *estate, int eflags)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	PlanState *ps = &node->ss.ps;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);

	gpusort_plan_unpack((CustomScan *) ps->plan, &state->info);
	outerPlanState(node) = ExecInitNode(outerPlan(ps->plan), estate, eflags);

	/* Rows that are passed on are in the child's slots, or in that of the first rows. */
	ps->resultops = ExecGetResultSlotOps(outerPlanState(node), NULL);
	ps->resultopsset = true;
	ps->resultopsfixed = false;
	ps->ps_ProjInfo = NULL;
	state->joint.keys = gpusort_keys_create(state->info.columns, state->info.ncolumns);
	gpusort_first_rows_init(&state->first, outerPlanState(node));
	state->joint.first = &state->first;
	state->empty_row = ExecInitExtraTupleSlot(estate, ps->ps_ResultTupleDesc, &TTSOpsVirtual);
	MemoryContextSwitchTo(caller);
}

static void
end_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	if (state->joint.client != NULL)
		gpusort_client_end(state->joint.client);
	ExecEndNode(outerPlanState(node));
}

static void
rescan_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	PlanState *child = outerPlanState(node);

	state->ended = false;
	gpusort_first_rows_clear(&state->first);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

/* The first rows of the sort that is under way are wanted, not all. */
static bool
is_bounded(const GpuSortIngestState *state)
{
	return state->joint.writer != NULL && state->joint.writer->cutoff != NULL;
}

static Size
estimate_shared(CustomScanState *node, ParallelContext *pcxt)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	return add_size(offsetof(IngestShared, joint),
					gpusort_joint_ingest_bytes(state->joint.keys, pcxt->nworkers, is_bounded(state)));
}

static void
reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	state->shared->stays = state->holds;
	gpusort_claims_start(&state->shared->claims, false);
	gpusort_joint_ingest_publish(&state->joint);
}

static void
initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	IngestShared *shared = coordinate;

	shared->build = gpusort_module_build();
	gpusort_claims_create(&shared->claims);
	gpusort_joint_ingest_create(&shared->joint, pcxt->nworkers, is_bounded(state));
	state->shared = shared;
	state->joint.shared = &shared->joint;
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
	state->joint.shared = &shared->joint;
	state->is_member = true;
}

/* The shared memory goes after this. */
static void
shutdown_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	if (!IsParallelWorker())
		gpusort_ingest_let_go(state);
	state->shared = NULL;
	state->joint.shared = NULL;
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

static const CustomExecMethods exec_methods = {
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

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpusort_ingest_scan_methods = {
	.CustomName = GPUSORT_INGEST_NODE_NAME,
	.CreateCustomScanState = create_state,
};

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
		((CustomScanState *) outerPlanState(child))->methods != &exec_methods)
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

/* Workers that have signed off are there still. */
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
 * Rows go to a sort from now on: in this process by writer, which is the
 * caller's until reset or collect, as are its keys; in workers that start after
 * this by joining.  common_later: the keys have no common prefixes yet, but are laid
 * out for some.  stay: workers stay until finish, to verify the order.
 */
void
gpusort_ingest_start(GpuSortIngestState *state, GpuSortWriter *writer, GpuSortKeys *keys, bool common_later, bool stay)
{
	gpusort_ingest_reset(state);
	gpusort_joint_ingest_start(&state->joint, writer, keys, common_later);
	state->holds = stay;
	state->participates = parallel_leader_participation;
}

/* Returns true if workers can be had to stay: empty rows do not go into expressions of Gather's. */
bool
gpusort_ingest_may_stay(const GpuSortIngestState *state)
{
	return state->gather->ps.ps_ProjInfo == NULL;
}

/* Returns how many processes take rows in, if all workers that are planned start. */
int
gpusort_ingest_processes(const GpuSortIngestState *state)
{
	return 1 + castNode(Gather, state->gather->ps.plan)->num_workers;
}

/*
 * Returns the next row that came up; an empty slot, or NULL, when all processes have taken their rows in: then workers
 * may have stayed.
 */
TupleTableSlot *
gpusort_ingest_next(GpuSortIngestState *state)
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

/*
 * Has the order of the rows verified by all processes that are there; reader is the leader's, which has been asked for
 * nothing, and check its own.  Adds up the pairs compared in *pairs.  false, with a reason, if rows are out of order, or lost.
 */
bool
gpusort_ingest_check_order(GpuSortIngestState *state, const GpuSortOrderReader *own, uint64 *pairs, GpuSortFailure *failure)
{
	GpuSortClaims *claims = &state->shared->claims;
	GpuSortOrderedRows *rows = &state->shared->rows;
	int processes = 1 + stayed(state);

	rows->expected = own->reader->expected;
	if (!gpusort_order_cut(own->client, rows, processes, failure))
		return false;
	gpusort_claims_begin_parts(claims, gpusort_order_parts(rows, processes));
	if (!gpusort_order_check_parts(own, rows, claims, failure))
		return false;
	gpusort_claims_finish_parts(claims);
	*failure = claims->failure;
	*pairs = rows->pairs;
	return !claims->stop;
}

/* Returns how many workers have stayed to verify the rows. */
int
gpusort_ingest_stayed(const GpuSortIngestState *state)
{
	return state->holds ? stayed(state) : 0;
}

/* Returns true if a worker has other versions of the C library's locales. */
bool
gpusort_ingest_is_strange(const GpuSortIngestState *state)
{
	return state->joint.shared != NULL && state->joint.shared->strange_libc;
}

/* Workers that have stayed are to end.  Gather must be read to its end then, or start over. */
void
gpusort_ingest_let_go(GpuSortIngestState *state)
{
	GpuSortFailure none = {0};

	state->holds = false;
	if (state->shared != NULL)
		gpusort_claims_stop(&state->shared->claims, &none);
}

/* The same, and reads Gather to its end: workers' errors, counts and times come in.  Errors: there is a row. */
void
gpusort_ingest_finish(GpuSortIngestState *state)
{
	bool held = state->holds;

	gpusort_ingest_let_go(state);
	if (held && !TupIsNull(ExecProcNode(&state->gather->ps)))
		elog(ERROR, "a parallel worker has rows that came too late to be sorted");
}

/* The caller is about to write a row that came up: if nobody has chosen common prefixes there are to be none. */
void
gpusort_ingest_settle_common_prefixes(GpuSortIngestState *state)
{
	gpusort_joint_ingest_settle_common_prefixes(&state->joint);
}

/* Gather has ended: adds what workers have put to *put. */
void
gpusort_ingest_collect(GpuSortIngestState *state, GpuSortPut *put)
{
	const GpuSortJointShared *shared = state->joint.shared;

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

/* There is no sort any more: rows go up, in workers that start after this too. */
void
gpusort_ingest_reset(GpuSortIngestState *state)
{
	gpusort_ingest_let_go(state);
	gpusort_joint_ingest_reset(&state->joint);
	state->ended = false;
	state->leader_rows = 0;
	state->nworkers = 0;
}
