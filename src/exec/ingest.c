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
#include "exec/first_rows.h"
#include "exec/joint_ingest.h"
#include "executor/executor.h"
#include "server/installation.h"
#include "server/shared.h"
#include "utils/memutils.h"

/* In dynamic shared memory. */
typedef struct IngestShared
{
	uint64 build; /* of the leader's module: one of another build knows no more of this */
	GpuSortJointShared joint;
} IngestShared;

struct GpuSortIngestState
{
	CustomScanState css; /* must be first field */
	GpuSortPlanInfo info;
	GpuSortJointIngest joint; /* without a writer rows go up */
	GpuSortFirstRows first;
	bool is_member; /* a worker is to join the sort */

	/* the leader's */
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
	const GpuSortRowForm *form = gpusort_rowform_create(ExecGetResultType(outerPlanState(state)), state->info.visible);

	state->is_member = false;
	if (!gpusort_joint_ingest_join(&state->joint, form, NULL, &failure))
		ereport(DEBUG1,
				(errmsg_internal("gpusort: a parallel worker passes its rows on: %s", failure.text)));
	MemoryContextSwitchTo(caller);
}

/* Hands over what this process has ingested; further rows go up. */
static void
stop_writing(GpuSortIngestState *state)
{
	GpuSortFailure ignored;

	/* The leader's writer is GpuSort's to finish.  After a loss there is nobody to answer; the leader hears of it too. */
	if (state->joint.client != NULL)
		(void) gpusort_joint_ingest_leave(&state->joint, &ignored);
	state->joint.writer = NULL;
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
	writer = state->joint.writer;
	if (writer == NULL)
		return gpusort_first_rows_next(&state->first, child);

	rows_before = writer->rows;
	row = gpusort_joint_ingest_rows(&state->joint, child, NULL, &failure);
	state->leader_rows += writer->rows - rows_before;
	if (TupIsNull(row) || failure.reason != GPUSORT_REASON_NONE)
		stop_writing(state);
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
	state->joint.keys = gpusort_keys_create(state->info.columns, state->info.ncolumns);
	gpusort_first_rows_init(&state->first, outerPlanState(node));
	state->joint.first = &state->first;
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
	PlanState *child = outerPlanState(node);

	gpusort_first_rows_clear(&((GpuSortIngestState *) node)->first);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

static Size
estimate_shared(CustomScanState *node, ParallelContext *pcxt)
{
	return add_size(offsetof(IngestShared, joint),
					gpusort_joint_ingest_bytes(((GpuSortIngestState *) node)->joint.keys, pcxt->nworkers));
}

static void
reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	gpusort_joint_ingest_publish(&((GpuSortIngestState *) node)->joint);
}

static void
initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	IngestShared *shared = coordinate;

	shared->build = gpusort_module_build();
	gpusort_joint_ingest_create(&shared->joint, pcxt->nworkers);
	state->joint.shared = &shared->joint;
	gpusort_joint_ingest_publish(&state->joint);
}

static void
initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuSortIngestState *state = (GpuSortIngestState *) node;
	IngestShared *shared = coordinate;

	/* After make install a worker may have loaded another module than its leader; it passes rows on. */
	if (shared->build != gpusort_module_build())
		return;
	state->joint.shared = &shared->joint;
	state->is_member = true;
}

/* The shared memory goes after this. */
static void
shutdown_ingest(CustomScanState *node)
{
	((GpuSortIngestState *) node)->joint.shared = NULL;
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
	gpusort_joint_ingest_start(&state->joint, writer, keys, common_later);
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
	gpusort_joint_ingest_reset(&state->joint);
	state->leader_rows = 0;
	state->nworkers = 0;
}
