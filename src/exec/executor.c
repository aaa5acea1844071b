/*-------------------------------------------------------------------------
 *
 * executor.c
 *	  The GpuSort node at run time.
 *
 * The first row asked for makes the node read its child to the end and sort:
 *
 *	  INPUT --- rows to the service, sorted ---> STREAM
 *		|										   |
 *		|  few rows, refused, full, lost		   |  lost before a row was given
 *		+-----------------> TUPLESORT <------------+
 *
 * The first rows are kept back (first_rows.c).  If there are no others PostgreSQL
 * sorts them and the service never hears of it, so that a sort whose size was
 * badly overestimated, or one that is run again for each row of an outer plan,
 * costs what PostgreSQL's own costs.
 *
 * Over a Gather with GpuSortIngest below it (ingest.c), other processes put rows
 * into the same sort, and only what they could not put comes up to be added here.
 *
 * fallback.c has the ways to TUPLESORT.
 *
 * stream.c has the way from STREAM to the node above.  A plain rescan with
 * unchanged parameters has the service start again at the first row.
 *
 * Below a Limit only as many rows are asked for as that needs (bound.c); a rescan
 * that needs more sorts again.
 *
 * Memory: sort_context holds what belongs to one sort.  Resetting it closes the
 * connection, and with it everything in the service; so does an error, through
 * the reset callback of the client.  Temporary files belong to the resource
 * owner of the query.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/executor.h"

#include "executor/executor.h"
#include "gpusort.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"

static ExecutorStart_hook_type previous_executor_start = NULL;

/* How many GpuSort nodes this process has begun. */
static uint64 nodes_begun = 0;

/* The sort is done with, for those who look at gpusort_jobs.  Also a callback of sort_context. */
void
gpusort_release_job_slot(void *arg)
{
	GpuSortState *state = arg;

	gpusort_shared_job_end(state->job);
	state->job = NULL;
}

static double
ms_between(instr_time start, instr_time end)
{
	INSTR_TIME_SUBTRACT(end, start);
	return INSTR_TIME_GET_MILLISEC(end);
}

/* Adds what a sort in the service did to the statistics, once. */
static void
count_sort(GpuSortState *state)
{
	if (!state->sorted)
		return;
	state->sorted = false;
	gpusort_shared_count_sort(state->outcome.rows_in, state->outcome.bytes, state->outcome.tie_rows, &state->ms);
}

/* Brings the times up to date that reader and ties keep. */
static void
collect_times(GpuSortState *state)
{
	if (state->stage != GPUSORT_STAGE_STREAM)
		return;
	state->ms.gather = state->reader.gather_ms;
	state->ms.emit = state->reader.wait_ms;
	state->ms.ties = gpusort_ties_ms(state->ties);
}

/* Drops the sort, wherever it is; the next row asked for starts another. */
void
gpusort_end_sort(GpuSortState *state)
{
	collect_times(state);
	count_sort(state);
	gpusort_slots_clear(&state->slots);
	if (state->ties != NULL)
		gpusort_ties_reset(state->ties);
	if (state->fallback != NULL)
		tuplesort_end(state->fallback);
	if (state->store != NULL)
		tuplestore_end(state->store);
	gpusort_overflow_close(&state->slots.overflow);
	gpusort_first_rows_clear(&state->first);
	if (state->ingest != NULL)
		gpusort_ingest_reset(state->ingest);
	state->fallback = NULL;
	state->store = NULL;
	state->keeping = false;
	state->mark.set = false;
	state->ties = NULL;
	state->client = NULL;
	state->in_ties = false;
	state->row_given = false;
	state->stream_ended = false;
	state->stage = GPUSORT_STAGE_INPUT;
	MemoryContextReset(state->sort_context);
}

/*
 * Ends the input and waits for the order; false, with a reason, if the rows are
 * lost.
 */
bool
gpusort_sort_in_service(GpuSortState *state, GpuSortFailure *failure)
{
	uint64 rows = state->writer.rows;
	uint64 wanted;

	if (state->ingest != NULL)
		rows += gpusort_ingest_collect(state->ingest);
	if (!gpusort_writer_finish(&state->writer, failure))
		return false;
	gpusort_show_progress(state, GPUSORT_PHASE_SORT, 0);
	if (!gpusort_client_sort(state->client, &state->outcome, failure))
		return false;
	wanted = state->bound > 0 ? Min(state->bound, rows) : rows;
	if (state->outcome.rows_in != rows || state->outcome.rows < wanted)
	{
		failure->reason = GPUSORT_REASON_INTERNAL;
		snprintf(failure->text, sizeof(failure->text),
				 "the sort service got " UINT64_FORMAT " rows of " UINT64_FORMAT " and has " UINT64_FORMAT " of " UINT64_FORMAT,
				 state->outcome.rows_in, rows, state->outcome.rows, wanted);
		return false;
	}
	return true;
}

/* What the service is asked for, from the planner's estimates. */
static void
make_request(GpuSortState *state, GpuSortRequest *request)
{
	const GpuSortPlanInfo *info = &state->info;

	memset(request, 0, sizeof(*request));
	request->engine = gpusort_engine;
	request->key_words = state->keys->words;
	request->may_tie = state->keys->may_tie;
	request->estimated_rows = info->estimated_rows;
	request->estimated_bytes = info->estimated_rows *
		(gpusort_row_bytes(info->estimated_width) + state->keys->words * sizeof(uint64) + sizeof(uint32));
	request->limit = state->bound;
}

/* Begins a sort in the service; false when it is to be PostgreSQL's. */
static bool
begin_sort(GpuSortState *state, GpuSortFailure *failure)
{
	GpuSortRequest request;
	MemoryContext caller;

	make_request(state, &request);
	caller = MemoryContextSwitchTo(state->sort_context);
	state->client = gpusort_client_begin(&request, failure);
	if (state->client != NULL)
	{
		state->ties = gpusort_ties_create(state->info.columns + state->keys->decided,
										  state->info.ncolumns - state->keys->decided, &state->slots);
		state->engine = gpusort_client_engine(state->client);
		strlcpy(state->device, gpusort_client_device(state->client), sizeof(state->device));
		state->job = gpusort_shared_job_start(state->engine, state->device);
		state->job_callback.func = gpusort_release_job_slot;
		state->job_callback.arg = state;
		MemoryContextRegisterResetCallback(state->sort_context, &state->job_callback);
	}
	MemoryContextSwitchTo(caller);
	return state->client != NULL;
}

/* Reads the child to its end and sorts: from INPUT to one of the other stages. */
void
gpusort_sort_input(GpuSortState *state)
{
	PlanState *child = outerPlanState(&state->css);
	TupleTableSlot *stored = gpusort_stored_slot(child, state->form);
	GpuSortWriter *writer = &state->writer;
	GpuSortFailure failure = {0};
	instr_time start;
	instr_time taken;
	instr_time sorted;
	double waited;
	GpuSortPrefix *prefixes;
	bool heads_known;

	memset(&state->ms, 0, sizeof(state->ms));
	memset(&state->outcome, 0, sizeof(state->outcome));
	state->fallback_reason.reason = GPUSORT_REASON_NONE;
	state->bound = gpusort_bound_rows(state->limit);
	if (state->css.ss.ps.state->es_epq_active != NULL)
	{
		failure.reason = GPUSORT_REASON_RECHECK;
		strlcpy(failure.text, "a row is being rechecked after a concurrent update", sizeof(failure.text));
		gpusort_fallback_refused(state, &failure);
		return;
	}
	INSTR_TIME_SET_CURRENT(start);
	if (state->ingest == NULL)
	{
		int few = gpusort_force ? 0 : gpusort_min_rows;

		if (!gpusort_first_rows_read(&state->first, child, Max(few, state->keys->strings > 0 ? GPUSORT_SAMPLE_ROWS : 0)) &&
			state->first.count < few)
		{
			gpusort_fallback_few(state);
			return;
		}
	}
	prefixes = MemoryContextAlloc(state->sort_context, state->keys->strings * sizeof(GpuSortPrefix));
	heads_known = gpusort_prefixes_choose(state->keys, child, state->ingest == NULL ? &state->first : NULL,
										  state->info.estimated_rows, prefixes);
	gpusort_keys_lay_out(state->keys, prefixes, !heads_known);
	if (!begin_sort(state, &failure))
	{
		gpusort_fallback_refused(state, &failure);
		return;
	}

	gpusort_writer_init(writer, state->client, state->keys, state->form, &state->slots.overflow, state->job);
	if (state->ingest != NULL)
		gpusort_ingest_start(state->ingest, writer, gpusort_client_token(state->client), state->keys, !heads_known);
	for (;;)
	{
		TupleTableSlot *row = gpusort_first_rows_next(&state->first, child);

		if (TupIsNull(row))
			break;
		if (state->ingest != NULL)
			gpusort_ingest_settle_heads(state->ingest);
		if (unlikely(!gpusort_writer_add(writer, row, row == state->first.slot ? NULL : stored, &failure)))
		{
			if (gpusort_client_is_full(state->client))
				gpusort_fallback_full(state, row, &failure);
			else
				gpusort_fallback_lost(state, &failure);
			return;
		}
	}
	gpusort_first_rows_clear(&state->first);
	INSTR_TIME_SET_CURRENT(taken);
	if (!gpusort_sort_in_service(state, &failure))
	{
		gpusort_fallback_lost(state, &failure);
		return;
	}
	INSTR_TIME_SET_CURRENT(sorted);

	/* What SORT took beyond the sort itself was waiting for the last uploads. */
	waited = Max(ms_between(taken, sorted) - state->outcome.sort_ms, 0);
	state->ms.ingest = ms_between(start, taken) - writer->wait_ms;
	state->ms.upload_wait = writer->wait_ms + waited;
	state->ms.sort = state->outcome.sort_ms;
	state->sorted = true;
	gpusort_show_progress(state, GPUSORT_PHASE_EMIT, 0);

	gpusort_reader_init(&state->reader, state->client);
	if (state->eflags & EXEC_FLAG_BACKWARD)
		gpusort_stream_keep(state);
	state->stage = GPUSORT_STAGE_STREAM;
}

static void
begin_gpusort(CustomScanState *node, EState *estate, int eflags)
{
	GpuSortState *state = (GpuSortState *) node;
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
	 * Rows are the child's rows, or the first columns of them: no projection.
	 * They come as MinimalTuples, but for some where columns are hidden.  The
	 * parent's expressions are compiled after this and go by resultops.
	 */
	rows = ExecGetResultType(outerPlanState(node));
	state->form = gpusort_rowform_create(rows, state->info.visible);
	gpusort_slots_init(&state->slots, estate, state->form, rows, ps->ps_ResultTupleDesc);
	ps->resultops = &TTSOpsMinimalTuple;
	ps->resultopsset = true;
	ps->resultopsfixed = state->slots.cut == NULL;
	ps->ps_ProjInfo = NULL;
	ps->ExecProcNode = gpusort_stream_exec;

	state->ingest = gpusort_ingest_find(outerPlanState(node), &state->info);
	state->keys = gpusort_keys_create(state->info.columns, state->info.ncolumns);
	state->sort_context = AllocSetContextCreate(CurrentMemoryContext, "gpusort", ALLOCSET_DEFAULT_SIZES);
	gpusort_first_rows_init(&state->first, outerPlanState(node));
	state->stage = GPUSORT_STAGE_INPUT;
	MemoryContextSwitchTo(caller);
}

static void
end_gpusort(CustomScanState *node)
{
	GpuSortState *state = (GpuSortState *) node;

	gpusort_end_sort(state);
	MemoryContextDelete(state->first.context);
	MemoryContextDelete(state->sort_context);
	ExecEndNode(outerPlanState(node));
}

/* Are the rows sorted for as many as are wanted now? */
static bool
bound_suffices(const GpuSortState *state)
{
	uint64 wanted = gpusort_bound_rows(state->limit);

	return state->bound == 0 || (wanted > 0 && wanted <= state->bound);
}

static void
rescan_gpusort(CustomScanState *node)
{
	GpuSortState *state = (GpuSortState *) node;
	PlanState *child = outerPlanState(node);
	GpuSortFailure failure;

	gpusort_slots_clear(&state->slots);
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
			tuplesort_rescan(state->fallback);
			return;
		}
		if (state->eflags & EXEC_FLAG_BACKWARD)
		{
			tuplestore_rescan(state->store);
			return;
		}
		if (state->keeping)
			tuplestore_clear(state->store);
		state->keeping = false;
		state->mark.set = false;
		state->stream_ended = false;
		gpusort_ties_reset(state->ties);
		state->in_ties = false;
		state->row_given = false;
		if (gpusort_reader_rewind(&state->reader, &failure))
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
	GpuSortState *state = (GpuSortState *) node;

	Assert(state->eflags & EXEC_FLAG_MARK);
	if (state->stage == GPUSORT_STAGE_TUPLESORT)
		tuplesort_markpos(state->fallback);
	else if (state->stage == GPUSORT_STAGE_STREAM)
		gpusort_stream_mark(state);
}

static void
restore_gpusort(CustomScanState *node)
{
	GpuSortState *state = (GpuSortState *) node;

	Assert(state->eflags & EXEC_FLAG_MARK);
	if (state->stage == GPUSORT_STAGE_TUPLESORT)
		tuplesort_restorepos(state->fallback);
	else if (state->stage != GPUSORT_STAGE_STREAM)
		return;
	else if (state->keeping)
		tuplestore_copy_read_pointer(state->store, 1, 0);
	else
	{
		Assert(state->mark.set);
		state->reader.cursor = state->mark.cursor;
		state->reader.left = state->mark.left;
	}
}

static const CustomExecMethods exec_methods = {
	.CustomName = GPUSORT_NODE_NAME,
	.BeginCustomScan = begin_gpusort,
	.ExecCustomScan = gpusort_stream_row,
	.EndCustomScan = end_gpusort,
	.ReScanCustomScan = rescan_gpusort,
	.MarkPosCustomScan = mark_gpusort,
	.RestrPosCustomScan = restore_gpusort,
	.ExplainCustomScan = gpusort_explain,
};

/* The state of a GpuSort; NULL of any other node. */
GpuSortState *
gpusort_state_of(PlanState *ps)
{
	if (!IsA(ps, CustomScanState) || ((CustomScanState *) ps)->methods != &exec_methods)
		return NULL;
	return (GpuSortState *) ps;
}

/* What a WindowAgg above this node counts; NULL if it is no GpuSort. */
GpuSortRanks *
gpusort_ranks_of(PlanState *ps)
{
	GpuSortState *state = gpusort_state_of(ps);

	return state != NULL ? &state->ranks : NULL;
}

/* Has nodes that may be above a GpuSort look for one. */
static bool
visit(PlanState *ps, void *arg)
{
	if (IsA(ps, WindowAggState))
		gpusort_ranks_consider((WindowAggState *) ps);
	else if (IsA(ps, LimitState))
		gpusort_bound_consider((LimitState *) ps);
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
	GpuSortState *state = (GpuSortState *) newNode(sizeof(GpuSortState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpusort_scan_methods = {
	.CustomName = GPUSORT_NODE_NAME,
	.CreateCustomScanState = create_state,
};

/* To be called once, at load: lets plans be copied and read back, and nodes find each other. */
void
gpusort_executor_init(void)
{
	RegisterCustomScanMethods(&gpusort_scan_methods);
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
}
