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
 * Legal order of calls of the GpuSort node: find once; then for each sort start,
 * before Gather runs, and collect, after it has ended; reset at any time.  With
 * no sort started, or none to join, the node passes its child's rows on.
 *
 * All must make the same keys.  How much of its strings is in the key is settled by
 * the leader before workers start, but the common prefixes that keys leave out
 * (encode.c) may be left to whoever comes first: every process keeps its first rows
 * back, chooses by these, and takes the choice of the first one to say.
 *
 * A worker tells of its rows when the service has confirmed them, once, in its
 * entry of shared memory.  If any are missing the sum shows it, and GpuSort
 * starts over.
 *
 * Memory: a worker's connection belongs to the context of the query.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/ingest.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "exec/first_rows.h"
#include "exec/prefixes.h"
#include "executor/executor.h"
#include "server/installation.h"
#include "server/shared.h"
#include "utils/memutils.h"

/*
 * In dynamic shared memory.  The leader writes it before workers start; then each
 * worker writes its own entry, which the leader reads when the worker has ended.
 */
typedef struct IngestShared
{
	uint64 build;        /* of the leader's module: one of another build knows no more of this */
	uint64 token;        /* of the sort to join; 0: none */
	uint32 generation;   /* of the service that sorts */
	GpuSortJobSlot *job; /* as in GpuSortWriter; at the same address in every process */
	bool verified;       /* rows have tails */
	int nworkers;
	bool common_later; /* the common prefixes are anybody's to choose */
	LWLock lock;       /* guards the common prefixes, and this: */
	bool common_chosen;
	GpuSortPut put[FLEXIBLE_ARRAY_MEMBER]; /* by ParallelWorkerNumber; then a GpuSortPrefix for each string column */
} IngestShared;

struct GpuSortIngestState
{
	CustomScanState css; /* must be first field */
	GpuSortPlanInfo info;
	IngestShared *shared;  /* NULL: no workers */
	GpuSortWriter *writer; /* where rows go; NULL: up */
	GpuSortKeys *keys;     /* the writer's */
	GpuSortFirstRows first;
	bool settled; /* the common prefixes of our keys are everybody's */

	/* a worker's own */
	bool is_member; /* it is to join, or has */
	GpuSortClient *client;
	GpuSortWriter own_writer;

	/* the leader's */
	uint64 token; /* of the sort, for workers */
	uint32 generation;
	bool common_later;
	bool verified;
	GpuSortJobSlot *job;
	uint64 leader_rows; /* ingested by this node here */
	int nworkers;       /* entries in worker_rows; 0 before collect */
	uint64 *worker_rows;
};

static Size
prefixes_offset(int nworkers)
{
	return MAXALIGN(offsetof(IngestShared, put) + nworkers * sizeof(GpuSortPut));
}

static GpuSortPrefix *
shared_prefixes(IngestShared *shared)
{
	return (GpuSortPrefix *) ((char *) shared + prefixes_offset(shared->nworkers));
}

/* Makes the common prefixes of our keys those of the process that chose first: others, or ours. */
static void
settle_common_prefixes(GpuSortIngestState *state, const GpuSortPrefix *ours)
{
	IngestShared *shared = state->shared;
	GpuSortPrefix *chosen;

	state->settled = true;
	if (shared == NULL)
	{
		gpusort_keys_set_common_prefixes(state->keys, ours);
		return;
	}
	chosen = shared_prefixes(shared);
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	if (!shared->common_chosen)
		memcpy(chosen, ours, state->keys->strings * sizeof(GpuSortPrefix));
	shared->common_chosen = true;
	gpusort_keys_set_common_prefixes(state->keys, chosen);
	LWLockRelease(&shared->lock);
}

/* Looks at our first rows, to settle the common prefixes. */
static void
choose_common_prefixes(GpuSortIngestState *state)
{
	PlanState *child = outerPlanState(state);
	GpuSortPrefix *ours = palloc(state->keys->strings * sizeof(GpuSortPrefix));

	(void) gpusort_first_rows_read(&state->first, child, GPUSORT_SAMPLE_ROWS);
	/* The leader has looked at statistics, which say too little: so they are not worth another look. */
	(void) gpusort_prefixes_choose(state->keys, child, &state->first, 0, ours);
	for (int i = 0; i < state->keys->strings; i++)
		ours[i].length = state->keys->prefixes[i].length;
	settle_common_prefixes(state, ours);
	pfree(ours);
}

/* Joins the sort that the leader has begun; if that is not to be, rows go up. */
static void
join_sort(GpuSortIngestState *state)
{
	EState *estate = state->css.ss.ps.state;
	GpuSortFailure failure;
	MemoryContext caller;

	state->is_member = false;
	if (state->shared->token == 0)
		return;
	caller = MemoryContextSwitchTo(estate->es_query_cxt);
	state->client = gpusort_client_join(state->shared->token, state->shared->generation, false, &failure);
	if (state->client != NULL)
	{
		LWLockAcquire(&state->shared->lock, LW_SHARED);
		gpusort_keys_lay_out(state->keys, shared_prefixes(state->shared), state->shared->common_later);
		state->settled = state->shared->common_chosen;
		LWLockRelease(&state->shared->lock);
		gpusort_writer_init(&state->own_writer, state->client, state->keys,
							gpusort_rowform_create(ExecGetResultType(outerPlanState(state)), state->info.visible),
							NULL, state->shared->job, state->shared->verified);
		state->writer = &state->own_writer;
	}
	else
		ereport(DEBUG1,
				(errmsg_internal("gpusort: a parallel worker passes its rows on: %s", failure.text)));
	MemoryContextSwitchTo(caller);
}

/* Hands over what this process has ingested; further rows go up. */
static void
stop_writing(GpuSortIngestState *state)
{
	GpuSortWriter *writer = state->writer;
	GpuSortFailure failure;

	state->writer = NULL;
	if (state->client == NULL)
		return; /* the leader's writer is GpuSort's to finish */

	/* After a loss there is nobody to answer; the leader hears of it too. */
	if ((writer->failure.reason == GPUSORT_REASON_NONE || gpusort_client_is_full(state->client)) &&
		gpusort_writer_finish(writer, &failure) && gpusort_client_leave(state->client, &failure))
		state->shared->put[ParallelWorkerNumber] = gpusort_writer_put(writer);
	gpusort_client_end(state->client);
	state->client = NULL;
}

static TupleTableSlot *
exec_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	PlanState *child = outerPlanState(node);
	TupleTableSlot *row;
	TupleTableSlot *stored;
	GpuSortWriter *writer;
	uint64 rows_before;

	if (unlikely(state->is_member))
		join_sort(state);
	if (state->writer == NULL)
		return gpusort_first_rows_next(&state->first, child);
	if (unlikely(!state->settled))
		choose_common_prefixes(state);

	writer = state->writer;
	stored = gpusort_stored_slot(child, writer->form);
	rows_before = writer->rows;
	for (;;)
	{
		GpuSortFailure failure;

		row = gpusort_first_rows_next(&state->first, child);
		if (TupIsNull(row))
		{
			stop_writing(state);
			break;
		}
		if (unlikely(!gpusort_writer_add(writer, row, row == state->first.slot ? NULL : stored, &failure)))
		{
			if (failure.reason != GPUSORT_REASON_NONE)
				stop_writing(state);
			break;
		}
	}
	state->leader_rows += writer->rows - rows_before;
	return row;
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
	state->keys = gpusort_keys_create(state->info.columns, state->info.ncolumns);
	gpusort_first_rows_init(&state->first, outerPlanState(node));
	MemoryContextSwitchTo(caller);
}

static void
end_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	if (state->client != NULL)
		gpusort_client_end(state->client);
	ExecEndNode(outerPlanState(node));
}

static void
rescan_ingest(CustomScanState *node)
{
	PlanState *child = outerPlanState(node);

	gpusort_first_rows_clear(&((GpuSortIngestState *) node)->first);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

static Size
estimate_shared(CustomScanState *node, ParallelContext *pcxt)
{
	return add_size(prefixes_offset(pcxt->nworkers),
					mul_size(((GpuSortIngestState *) node)->keys->strings, sizeof(GpuSortPrefix)));
}

static void
reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	state->shared->token = state->token;
	state->shared->generation = state->generation;
	state->shared->job = state->job;
	state->shared->verified = state->verified;
	state->shared->common_later = state->common_later;
	state->shared->common_chosen = !state->common_later;
	memcpy(shared_prefixes(state->shared), state->keys->prefixes, state->keys->strings * sizeof(GpuSortPrefix));
	memset(state->shared->put, 0, state->shared->nworkers * sizeof(GpuSortPut));
}

static void
initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	state->shared = coordinate;
	state->shared->build = gpusort_module_build();
	state->shared->nworkers = pcxt->nworkers;
	gpusort_shared_init_lock(&state->shared->lock);
	reinitialize_shared(node, pcxt, coordinate);
}

static void
initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	/* After make install a worker may have loaded another module than its leader; it passes rows on. */
	if (((IngestShared *) coordinate)->build != gpusort_module_build())
		return;
	state->shared = coordinate;
	state->is_member = true;
}

/* The shared memory goes after this. */
static void
shutdown_ingest(CustomScanState *node)
{
	((GpuSortIngestState *) node)->shared = NULL;
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

/*
 * Rows go to a sort from now on: in this process by writer, which is the
 * caller's until reset or collect, as are its keys; in workers that start after
 * this by joining.  common_later: the keys have no common prefixes yet, but are laid
 * out for some.
 */
void
gpusort_ingest_start(GpuSortIngestState *state, GpuSortWriter *writer, GpuSortKeys *keys, bool common_later)
{
	gpusort_ingest_reset(state);
	state->writer = writer;
	state->keys = keys;
	state->common_later = common_later;
	state->settled = !common_later;
	state->token = gpusort_client_token(writer->client);
	state->generation = gpusort_client_generation(writer->client);
	state->job = writer->job;
	state->verified = writer->tail > 0;
}

/* The caller is about to write a row that came up: if nobody has chosen common prefixes there are to be none. */
void
gpusort_ingest_settle_common_prefixes(GpuSortIngestState *state)
{
	if (likely(state->settled))
		return;
	settle_common_prefixes(state, state->keys->prefixes);
}

/* Gather has ended: adds what workers have put to *put. */
void
gpusort_ingest_collect(GpuSortIngestState *state, GpuSortPut *put)
{
	state->writer = NULL;
	if (state->shared == NULL)
		return;
	if (state->worker_rows == NULL)
		state->worker_rows = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt,
												state->shared->nworkers * sizeof(uint64));
	state->nworkers = state->shared->nworkers;
	for (int i = 0; i < state->nworkers; i++)
	{
		const GpuSortPut *by_worker = &state->shared->put[i];

		state->worker_rows[i] = by_worker->rows;
		put->rows += by_worker->rows;
		put->bytes += by_worker->bytes;
		put->sum += by_worker->sum;
	}
}

/* There is no sort any more: rows go up, in workers that start after this too. */
void
gpusort_ingest_reset(GpuSortIngestState *state)
{
	state->writer = NULL;
	state->token = 0;
	state->job = NULL;
	state->common_later = false;
	state->leader_rows = 0;
	state->nworkers = 0;
}
