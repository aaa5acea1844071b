/*-------------------------------------------------------------------------
 *
 * executor.c
 *	  The GpuSort node at run time: its callbacks, and what nodes above it change.
 *
 * The first row asked for makes the node read its child to the end and sort:
 *
 *	  INPUT --- rows to the service, sorted ---> STREAM
 *		|										   |
 *		|  few rows, refused, full, lost		   |  lost before a row was emitted
 *		+-----------------> TUPLESORT <------------+
 *
 * Each file of exec/ includes those below it only:
 *
 *	  executor.c		the callbacks
 *	  stream.c			rows to the node above; explain.c: what happened
 *	  input.c			INPUT: the child's rows to the service
 *	  fallback.c		the ways to TUPLESORT
 *	  shared_sort.c		a sort whose rows several processes put and read; sort_set.c, joint_ingest.c
 *	  collation_check.c	is it in order for the C library; order_check.c, joint_check.c
 *	  service_sort.c	one sort in the service, its wait, its figures, its end
 *	  scan_state.h		the node's state
 *	  ingest.c			the node below Gather; prefixes.c: what is in the keys
 *	  ties.c, first_rows.c, bound.c, ranks.c
 *
 * The nodes above a sort whose rows several processes read are in exchange.c and output.c, or in partial_output.c, with
 * claims.c.  They drive such a GpuSort: its rows are put before one is asked for.
 *
 * A plain rescan with unchanged parameters has the service start again at the
 * first row.  Below a Limit only as many rows are asked for as that needs
 * (bound.c); a rescan that needs more sorts again.
 *
 * Memory: sort_context holds what belongs to one sort (service_sort.c); everything
 * else belongs to the query.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/executor.h"

#include "exec/bound.h"
#include "exec/explain.h"
#include "exec/fallback.h"
#include "exec/ingest.h"
#include "exec/partial_output.h"
#include "exec/scan_state.h"
#include "exec/service_sort.h"
#include "exec/shared_sort.h"
#include "exec/stream.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

static ExecutorStart_hook_type previous_executor_start = NULL;

/* How many GpuSort nodes this process has begun. */
static uint64 nodes_begun = 0;

static void
begin_gpusort(CustomScanState *node, EState *estate, int eflags)
{
	GpuSortScanState *state = (GpuSortScanState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	PlanState *ps = &node->ss.ps;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
	TupleDesc rows;

	nodes_begun++;
	gpusort_plan_unpack(plan, &state->info);
	state->eflags = eflags;

	/* Whatever is asked of this node, the child is only read forward. */
	outerPlanState(node) = ExecInitNode(outerPlan(plan), estate,
										eflags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));

	/*
	 * Rows are the child's rows, or their visible attributes: no projection.
	 * They come as MinimalTuples, but for some where attributes are resjunk.  The
	 * parent's expressions are compiled after this and go by resultops.
	 */
	rows = ExecGetResultType(outerPlanState(node));
	state->form = gpusort_rowform_create(rows, state->info.visible);
	gpusort_slots_init(&state->slots, estate, state->form, rows, ps->ps_ResultTupleDesc);
	ps->resultops = &TTSOpsMinimalTuple;
	ps->resultopsset = true;
	ps->resultopsfixed = state->slots.projected == NULL;
	ps->ps_ProjInfo = NULL;
	ps->ExecProcNode = gpusort_stream_exec;

	state->ingest = gpusort_ingest_find(outerPlanState(node), &state->info);
	state->keys = gpusort_keys_create(state->info.columns, state->info.ncolumns);
	state->sort_context = AllocSetContextCreate(CurrentMemoryContext, "gpusort", ALLOCSET_DEFAULT_SIZES);
	gpusort_first_rows_init(&state->first, outerPlanState(node));
	if (plan->scan.plan.parallel_aware)
		gpusort_shared_sort_create(state);
	state->stage = GPUSORT_STAGE_INPUT;
	MemoryContextSwitchTo(caller);
}

static void
end_gpusort(CustomScanState *node)
{
	GpuSortScanState *state = (GpuSortScanState *) node;

	if (state->shared != NULL)
		gpusort_shared_sort_drop(state);
	gpusort_end_sort(state);
	MemoryContextDelete(state->first.context);
	MemoryContextDelete(state->sort_context);
	ExecEndNode(outerPlanState(node));
}

/* Returns true if the rows are sorted for as many as are wanted now. */
static bool
bound_suffices(const GpuSortScanState *state)
{
	uint64 wanted = gpusort_bound_rows(state->limit);

	return state->bound == 0 || (wanted > 0 && wanted <= state->bound);
}

static void
rescan_gpusort(CustomScanState *node)
{
	GpuSortScanState *state = (GpuSortScanState *) node;
	PlanState *child = outerPlanState(node);
	GpuSortFailure failure;

	gpusort_slots_clear(&state->slots);
	if (state->shared != NULL && (state->stage == GPUSORT_STAGE_STREAM || state->stage == GPUSORT_STAGE_LOST))
	{
		/* The rows are those of the range that GpuSortOutput has begun (stream.c). */
		if (node->ss.ps.chgParam == NULL)
			elog(ERROR, "GpuSort cannot start over within a range");
		return;
	}
	if (state->stage == GPUSORT_STAGE_INPUT)
	{
		if (child->chgParam == NULL)
			ExecReScan(child);
		return;
	}

	if (child->chgParam == NULL && bound_suffices(state) &&
		(state->eflags & (EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)))
	{
		if (state->stage == GPUSORT_STAGE_TUPLESORT)
		{
			tuplesort_rescan(state->fallback.sort);
			return;
		}
		if (gpusort_stream_rewind(state, &failure))
			return;
		if (!state->info.rescannable)
			gpusort_report_lost(state, &failure);
	}

	/* The rows are others now, or gone: sort again. */
	gpusort_end_sort(state);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

static void
mark_gpusort(CustomScanState *node)
{
	GpuSortScanState *state = (GpuSortScanState *) node;

	Assert(state->eflags & EXEC_FLAG_MARK);
	if (state->stage == GPUSORT_STAGE_TUPLESORT)
		tuplesort_markpos(state->fallback.sort);
	else if (state->stage == GPUSORT_STAGE_STREAM)
		gpusort_stream_mark(state);
}

static void
restore_gpusort(CustomScanState *node)
{
	GpuSortScanState *state = (GpuSortScanState *) node;

	Assert(state->eflags & EXEC_FLAG_MARK);
	if (state->stage == GPUSORT_STAGE_TUPLESORT)
		tuplesort_restorepos(state->fallback.sort);
	else if (state->stage == GPUSORT_STAGE_STREAM)
		gpusort_stream_restore(state);
}

static const CustomExecMethods exec_methods = {
	.CustomName = GPUSORT_NODE_NAME,
	.BeginCustomScan = begin_gpusort,
	.ExecCustomScan = gpusort_stream_row,
	.EndCustomScan = end_gpusort,
	.ReScanCustomScan = rescan_gpusort,
	.MarkPosCustomScan = mark_gpusort,
	.RestrPosCustomScan = restore_gpusort,
	.EstimateDSMCustomScan = gpusort_shared_sort_estimate,
	.InitializeDSMCustomScan = gpusort_shared_sort_initialize,
	.ReInitializeDSMCustomScan = gpusort_shared_sort_reinitialize,
	.InitializeWorkerCustomScan = gpusort_shared_sort_initialize_worker,
	.ShutdownCustomScan = gpusort_shared_sort_shutdown,
	.ExplainCustomScan = gpusort_explain,
};

/* Returns the state of a GpuSort; NULL of any other node, and of NULL. */
static GpuSortScanState *
state_of(PlanState *ps)
{
	if (ps == NULL || !IsA(ps, CustomScanState) || ((CustomScanState *) ps)->methods != &exec_methods)
		return NULL;
	return (GpuSortScanState *) ps;
}

/* Shows nodes that may be above a GpuSort to it, and to a GpuSortOutput the Gather above it, which is arg. */
static bool
visit(PlanState *ps, void *arg)
{
	GpuSortScanState *state;

	if (IsA(ps, WindowAggState) && (state = state_of(outerPlanState(ps))) != NULL)
		gpusort_ranks_consider((WindowAggState *) ps, &state->ranked);
	else if (IsA(ps, LimitState) && (state = state_of(gpusort_bound_node((LimitState *) ps))) != NULL)
		state->limit = (LimitState *) ps;
	if (IsA(ps, GatherState) || IsA(ps, GatherMergeState))
		arg = ps;
	else if (arg != NULL)
		gpusort_partial_output_note_gather(ps, arg);
	return planstate_tree_walker(ps, visit, arg);
}

static void
executor_start(QueryDesc *query, int eflags)
{
	uint64 nodes = nodes_begun;

	if (previous_executor_start)
		previous_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	if (nodes_begun != nodes && query->planstate != NULL)
		(void) visit(query->planstate, NULL);
}

static Node *
create_state(CustomScan *plan)
{
	GpuSortScanState *state = (GpuSortScanState *) newNode(sizeof(GpuSortScanState), T_CustomScanState);

	state->ranked.css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpusort_scan_methods = {
	.CustomName = GPUSORT_NODE_NAME,
	.CreateCustomScanState = create_state,
};

/* To be called once, at load: lets plans of both nodes be copied and read back, and nodes find each other. */
void
gpusort_executor_init(void)
{
	RegisterCustomScanMethods(&gpusort_scan_methods);
	RegisterCustomScanMethods(&gpusort_ingest_scan_methods);
	RegisterCustomScanMethods(&gpusort_output_scan_methods);
	RegisterCustomScanMethods(&gpusort_exchange_scan_methods);
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
}
