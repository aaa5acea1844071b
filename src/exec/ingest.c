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
 * To the sort of the GpuSort node this is its source, of rows that come up through Gather (ingest_sort.c).  With
 * no sort started, or none to join, the node passes its child's rows on.
 *
 * What a process does for its part in the sort is in parallel_ingest.c.  If rows of a worker's are
 * missing the sum of what all have put shows it, and GpuSort starts over.
 *
 * Memory: a worker's connection belongs to the context of the query.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/ingest_state.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "server/installation.h"

/* Joins the sort that the leader has begun; if that is not to be, rows go up. */
static void
join_sort(GpuSortIngestState *state)
{
	MemoryContext caller = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	GpuSortFailure failure;

	state->is_member = false;
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

/* All rows of this worker are in the sort: stays until it is sorted, to verify it, or the leader wants nothing more. */
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

	if (unlikely(state->is_member))
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
 * Gather starts over: all rows of the child are to be read again.
 * Whether they go to a sort is GpuSort's to say, by reset and start.
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

/* The first rows of the sort that is under way are wanted, not all. */
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

/*
 * Before workers start, again or for the first time:
 * the sort that they are to join is the one at hand, if there is one.
 */
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
	state->is_member = true;
}

/* The shared memory goes after this: workers that have stayed end.  What EXPLAIN tells has been collected. */
static void
shutdown_ingest(CustomScanState *node)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;

	if (!IsParallelWorker())
		gpusort_ingest_stop(state);
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

const CustomExecMethods gpusort_ingest_exec_methods = {
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

	state->css.methods = &gpusort_ingest_exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpusort_ingest_scan_methods = {
	.CustomName = GPUSORT_INGEST_NODE_NAME,
	.CreateCustomScanState = create_state,
};
