/*-------------------------------------------------------------------------
 *
 * executor.c
 *	  The GpuSort node at run time: its callbacks, and what nodes above it change.
 *
 * When the first row is asked for, the node sorts its child's rows (sort/sort.h).
 * Each file of exec/ includes those below it only:
 *
 *	  executor.c		the callbacks
 *	  stream.c			rows to the node above; explain.c: what happened
 *	  ingest.c			the node below Gather, and the sort above; gather.c
 *	  scan_state.h		the node's state
 *	  plan_source.c		the child's rows, as the source of a sort; page_source.c: by the page of a table
 *	  range_scan.c		which ranges of its blocks are read; block_ranges.c: what an index says of them
 *	  page_quals.c		a scan's conditions, for a page; tuple_columns.c: its tuples' values
 *	  bound.c			what a Limit above wants
 *	  running.c			a WindowAgg above, where rows before tell all that it computes; running_functions.c: its functions
 *	  percentiles.c		what an Agg above reads by the numbers of rows, with hypothetical.c; numbered_rows.c
 *
 * The nodes above a sort whose rows several processes read are in output.c, with output_share.c and nodes.c, and
 * exchange.c; rows_out.c has their rows formed as what a client gets, with fetch_out.c and ahead.c for those of a
 * FETCH, and window_ranges.c is for windows that go on from range to range.  They drive such a GpuSort: its rows are
 * put before one is asked for.
 *
 * The outer side of a merge join stays in stage INPUT, without a row, where the inner side has none (stream.c).
 *
 * At a plain rescan with unchanged parameters the service starts again at the
 * first row.  Below a Limit only as many rows are asked for as that needs
 * (bound.c); a rescan that needs more sorts again.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/executor.h"

#include "access/parallel.h"
#include "exec/ahead.h"
#include "exec/bound.h"
#include "exec/explain.h"
#include "exec/ingest.h"
#include "exec/output.h"
#include "exec/percentiles.h"
#include "exec/rows_out.h"
#include "exec/running.h"
#include "exec/scan_state.h"
#include "exec/stream.h"
#include "exec/unique.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "shards/transaction.h"
#include "sort/counted_rows.h"

static ExecutorStart_hook_type previous_executor_start = NULL;
static ExecutorEnd_hook_type previous_executor_end = NULL;

/* How many GpuSort nodes this process has begun. */
static uint64 nodes_begun = 0;

/* Makes the sort of the child's rows. */
static void
make_sort(GpuSortScanState *state)
{
	const GpuSortPlanInfo *info = &state->info;
	PlanState *child = gpusort_child(state);
	GpuSortSource *source = &state->source.source;
	const bool ranges = OidIsValid(info->block_index.index) && (state->eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0;

	state->ingest = gpusort_ingest_find(child, info);
	if (state->ingest == NULL)
		gpusort_plan_source_init(&state->source, child, state->rows, info->columns, info->ncolumns, info->rescannable,
								 ranges ? &info->block_index : NULL);
	else
		source = gpusort_ingest_source(state->ingest, state->rows, info->rescannable);
	state->sort = gpusort_sort_create(&state->rows->rows, source, info->columns, info->ncolumns);
	if (state->ingest != NULL)
		gpusort_ingest_set_sort(state->ingest, state->sort);
	state->sort->group = gpusort_bound_of_groups(&info->kept, gpusort_plan_state(state)->state->es_param_list_info);
	state->sort->estimated_rows = info->estimated_rows;
	state->sort->estimated_width = info->estimated_width;
	state->sort->may_reread = (state->eflags & (EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)) != 0;
	if (gpusort_plan_state(state)->plan->parallel_aware)
		state->parallel = gpusort_parallel_sort_create(state->sort, info->range_columns, NULL);
}

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
	state->beginning = gpusort_gather_beginning();

	/* Whatever is asked of this node, the child is only read forward. */
	outerPlanState(node) = ExecInitNode(outerPlan(plan), estate,
										eflags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));

	/*
	 * Rows are the child's rows, or their visible attributes, or with their numbers: no projection.
	 * They come as MinimalTuples, but for some where attributes are resjunk, or there are numbers.  The
	 * parent's expressions are compiled after this and go by resultops.
	 */
	rows = ExecGetResultType(outerPlanState(node));
	state->rows = state->info.counted != NIL
		? gpusort_counted_rows_create(rows, ps->ps_ResultTupleDesc, state->info.counted)
		: gpusort_heap_rows_create(rows, ps->ps_ResultTupleDesc);
	ps->resultops = &TTSOpsMinimalTuple;
	ps->resultopsset = true;
	ps->resultopsfixed = state->rows->projected == NULL && state->info.counted == NIL;
	ps->ps_ProjInfo = NULL;
	ps->ExecProcNode = gpusort_stream_exec;

	make_sort(state);
	MemoryContextSwitchTo(caller);
}

/* Drops the sort, and this process's part in another's: their connections to the service end with that. */
static void
end_gpusort(CustomScanState *node)
{
	GpuSortScanState *state = (GpuSortScanState *) node;

	if (state->parallel != NULL)
		gpusort_parallel_sort_drop(state->parallel);
	gpusort_ahead_drop(state);
	gpusort_stream_end(state);
	gpusort_sort_drop(state->sort);
	gpusort_running_end(state->running);
	ExecEndNode(outerPlanState(node));
}

/* Returns true if the rows are sorted for as many as are wanted now. */
static bool
bound_suffices(const GpuSortScanState *state)
{
	uint64 wanted = gpusort_bound_rows(state->limit, state->sort->with_ties);

	return state->sort->bound == 0 || (wanted > 0 && wanted <= state->sort->bound);
}

/*
 * Goes back to the first row where the rows are the same and all that are wanted are there.  Else drops the sort, and
 * reads the child again when the next row is asked for; rescans the child here, unless a changed parameter makes it
 * start over by itself.  A parallel sort stays as it is: GpuSortOutput begins its ranges, and drops its rows.
 */
static void
rescan_gpusort(CustomScanState *node)
{
	GpuSortScanState *state = (GpuSortScanState *) node;
	PlanState *child = outerPlanState(node);
	GpuSortStage stage = state->sort->stage;
	GpuSortFailure failure;

	gpusort_ahead_drop(state);
	gpusort_rows_clear(&state->rows->rows);
	if (state->parallel != NULL && (stage == GPUSORT_STAGE_SERVICE || stage == GPUSORT_STAGE_LOST))
	{
		/* The rows are those of the range that GpuSortOutput has begun. */
		if (node->ss.ps.chgParam == NULL)
			elog(ERROR, "GpuSort cannot start over within a range");
		return;
	}
	if (stage == GPUSORT_STAGE_INPUT)
	{
		const GpuSortFirstRows *first = &state->sort->input.first;

		/* The outer side of a join has looked for the first row: that, or that there is none, would come again. */
		if (state->parallel == NULL && (first->count > 0 || first->ended))
		{
			if (child->chgParam == NULL)
				return;
			gpusort_sort_end(state->sort);
		}
		if (child->chgParam == NULL)
			ExecReScan(child);
		return;
	}
	if (child->chgParam == NULL && bound_suffices(state) && state->sort->may_reread)
	{
		if (gpusort_stream_rewind(state, &failure))
			return;
		if (!state->info.rescannable)
			gpusort_sort_report_lost(state->sort->emitted, &failure);
	}

	/* The rows are others now, or gone: sort again. */
	gpusort_stream_end(state);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

static void
mark_gpusort(CustomScanState *node)
{
	GpuSortScanState *state = (GpuSortScanState *) node;

	Assert(state->eflags & EXEC_FLAG_MARK);
	gpusort_stream_mark(state);
}

static void
restore_gpusort(CustomScanState *node)
{
	GpuSortScanState *state = (GpuSortScanState *) node;

	Assert(state->eflags & EXEC_FLAG_MARK);
	gpusort_stream_restore(state);
}

/* Returns the bytes that the processes of a parallel sort share; other GpuSorts share nothing. */
static Size
estimate_gpusort(CustomScanState *node, ParallelContext *pcxt)
{
	GpuSortScanState *state = (GpuSortScanState *) node;

	return state->parallel == NULL ? 0 : gpusort_parallel_sort_estimate(state->parallel, pcxt->nworkers);
}

/* Publishes the sort, if it has been begun, in the leader, before workers start for the first time. */
static void
initialize_gpusort(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortScanState *state = (GpuSortScanState *) node;

	/* Without a segment there is but this process. */
	if (state->parallel != NULL && pcxt->seg != NULL)
		gpusort_parallel_sort_initialize(state->parallel, coordinate, pcxt->seg, pcxt->nworkers);
}

/* Does the same before they start again; drops all long rows, and forgets what was put and read. */
static void
reinitialize_gpusort(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortScanState *state = (GpuSortScanState *) node;

	if (state->parallel != NULL)
		gpusort_parallel_sort_reinitialize(state->parallel);
}

static void
initialize_gpusort_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuSortScanState *state = (GpuSortScanState *) node;

	/* GpuSortOutput has found out whether the leader's module is ours, and does not use the node if it is another. */
	if (state->parallel != NULL)
		gpusort_parallel_sort_attach(state->parallel, coordinate);
}

/*
 * Lets go of the shared memory, which goes after this: drops the long rows in it, and keeps what EXPLAIN tells.  The
 * sort stays until end or rescan.
 */
static void
shutdown_gpusort(CustomScanState *node)
{
	GpuSortScanState *state = (GpuSortScanState *) node;

	if (state->parallel != NULL)
		gpusort_parallel_sort_detach(state->parallel);
}

static const CustomExecMethods exec_methods = {
	.CustomName = GPUSORT_NODE_NAME,
	.BeginCustomScan = begin_gpusort,
	.ExecCustomScan = gpusort_stream_row,
	.EndCustomScan = end_gpusort,
	.ReScanCustomScan = rescan_gpusort,
	.MarkPosCustomScan = mark_gpusort,
	.RestrPosCustomScan = restore_gpusort,
	.EstimateDSMCustomScan = estimate_gpusort,
	.InitializeDSMCustomScan = initialize_gpusort,
	.ReInitializeDSMCustomScan = reinitialize_gpusort,
	.InitializeWorkerCustomScan = initialize_gpusort_worker,
	.ShutdownCustomScan = shutdown_gpusort,
	.ExplainCustomScan = gpusort_explain,
};

/* Returns a GpuSort's state; NULL for any other node, and for NULL. */
static GpuSortScanState *
state_of(PlanState *ps)
{
	if (ps == NULL || !IsA(ps, CustomScanState) || ((CustomScanState *) ps)->methods != &exec_methods)
		return NULL;
	return (GpuSortScanState *) ps;
}

/*
 * Makes the outer side of a merge join look at the inner one first, where that is expected to have fewer rows, and
 * without them none is wanted.
 */
static void
consider_join(MergeJoinState *join)
{
	GpuSortScanState *outer = state_of(outerPlanState(join));
	GpuSortScanState *inner = state_of(innerPlanState(join));

	if (outer == NULL || inner == NULL || outer->parallel != NULL || inner->parallel != NULL)
		return;
	if (!join->mj_FillOuter && inner->info.estimated_rows < outer->info.estimated_rows)
		outer->inner = inner;
}

/* Returns true if a GpuSort, which may be NULL, says that the node above makes this of the order. */
static bool
is_used(const GpuSortScanState *state, GpuSortUseKind kind)
{
	return state != NULL && state->info.use.kind == kind;
}

/* Shows a Limit the GpuSorts below it of which it wants first rows alone. */
static void
show_limit(LimitState *limit, PlanState *ps)
{
	GpuSortScanState *state = state_of(ps);
	PlanState **children;
	int count = gpusort_bound_children(ps, &children);

	if (state != NULL)
		state->limit = limit;
	for (int i = 0; i < count; i++)
		show_limit(limit, children[i]);
}

/* Shows nodes that may be above a GpuSort to it, and to a GpuSortOutput the Gather above it, which is arg. */
static bool
visit(PlanState *ps, void *arg)
{
	GpuSortScanState *state;

	if (IsA(ps, WindowAggState) && is_used(state = state_of(outerPlanState(ps)), GPUSORT_USE_RUNNING))
		gpusort_running_begin((WindowAggState *) ps, state);
	else if (IsA(ps, AggState) && is_used(state = state_of(outerPlanState(ps)), GPUSORT_USE_NUMBERS))
		gpusort_percentiles_begin((AggState *) ps, state);
	else if (IsA(ps, UniqueState) && (state = state_of(outerPlanState(ps))) != NULL)
		gpusort_unique_begin((UniqueState *) ps, state);
	else if (IsA(ps, LimitState))
		show_limit((LimitState *) ps, outerPlanState(ps));
	else if (IsA(ps, MergeJoinState))
		consider_join((MergeJoinState *) ps);
	if (IsA(ps, GatherState) || IsA(ps, GatherMergeState))
		arg = ps;
	else if (arg != NULL)
		gpusort_output_note_gather(ps, arg);
	return planstate_tree_walker(ps, visit, arg);
}

/* Gives the states of our nodes this tag. */
static bool
set_tag(PlanState *ps, void *tag)
{
	if (gpusort_node_is_ours(ps->plan) || gpusort_node_is_shard_scan(ps->plan) || gpusort_node_is_task_scan(ps->plan))
		ps->type = *(const NodeTag *) tag;
	return planstate_tree_walker(ps, set_tag, tag);
}

/*
 * Returns true if a plan is not run, but shown as one that was.  In EXPLAIN (ANALYZE) Citus does so with a statement's
 * subplans, having run them, and sets the numbers of their rows: for that it takes any CustomScanState for its own, and
 * would read behind ours.  Until the end ours are mere ScanStates, which PostgreSQL and Citus treat as those of other
 * nodes: what walks over states, and what shows them, goes by the plan.
 */
static bool
is_shown_as_run(const QueryDesc *query, int eflags)
{
	return (eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0 && query->planstate != NULL &&
		(query->instrument_options & (INSTRUMENT_TIMER | INSTRUMENT_ROWS)) != 0;
}

/* Lets a statement run without workers: what reads alone may start commands, which parallel mode forbids. */
static void
run_alone(QueryDesc *query)
{
	PlannedStmt *stmt = MemoryContextAlloc(GetMemoryChunkContext(query), sizeof(PlannedStmt));

	*stmt = *query->plannedstmt;
	stmt->parallelModeNeeded = false;
	query->plannedstmt = stmt;
}

static void
executor_start(QueryDesc *query, int eflags)
{
	const uint64 alone = gpusort_shards_alone();
	uint64 nodes = nodes_begun;
	NodeTag tag = T_ScanState;

	if (previous_executor_start)
		previous_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	if (gpusort_shards_alone() != alone)
		run_alone(query);
	gpusort_shards_note_start(query->plannedstmt, (eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0);
	if (nodes_begun != nodes && query->planstate != NULL)
		(void) visit(query->planstate, NULL);
	if (is_shown_as_run(query, eflags))
		(void) set_tag(query->planstate, &tag);
}

static void
executor_end(QueryDesc *query)
{
	NodeTag tag = T_CustomScanState;

	if (is_shown_as_run(query, query->estate->es_top_eflags))
		(void) set_tag(query->planstate, &tag);
	gpusort_shards_note_end();
	if (previous_executor_end)
		previous_executor_end(query);
	else
		standard_ExecutorEnd(query);
}

static Node *
create_state(CustomScan *plan)
{
	GpuSortScanState *state = (GpuSortScanState *) newNode(sizeof(GpuSortScanState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpusort_scan_methods = {
	.CustomName = GPUSORT_NODE_NAME,
	.CreateCustomScanState = create_state,
};

/* Lets plans of both nodes be copied and read back, and nodes find each other; to be called once, at load. */
void
gpusort_executor_init(void)
{
	RegisterCustomScanMethods(&gpusort_scan_methods);
	RegisterCustomScanMethods(&gpusort_ingest_scan_methods);
	RegisterCustomScanMethods(&gpusort_output_scan_methods);
	RegisterCustomScanMethods(&gpusort_exchange_scan_methods);
	RegisterCustomScanMethods(&gpusort_shard_scan_methods);
	RegisterCustomScanMethods(&gpusort_task_scan_methods);
	gpusort_task_plans_init();
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	previous_executor_end = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
	gpusort_rows_out_init();
}
