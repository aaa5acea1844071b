/*-------------------------------------------------------------------------
 *
 * output.c
 *	  The GpuSortOutput node: runs the plan below it for ranges of sorted rows, in each process.
 *
 *	  GpuSortExchange			emits what the processes computed, in the order of the ranges
 *	    Gather
 *	      GpuSortOutput			in the leader and in each worker
 *	        plan
 *	          GpuSort			one or several (parallel/joint_sort.h)
 *	            partial plan
 *
 * In every process, in this order:
 *
 *	1. The GpuSorts put this process's part of the rows.  Workers register before
 *	   they read a row and sign off when their part is confirmed.  When its own part is in and
 *	   all who registered have signed off, the leader seals the ingest: a worker
 *	   that comes later must find nothing left for it.
 *	2. The leader has the rows sorted and cut into ranges.  Where the sort is by the C library's
 *	   collations all processes verify their order, each a part of it at a time (parallel/joint_check.c).
 *	   Then the leader tells the workers of the ranges.
 *	3. A worker claims the next range that is nobody's, has the plan start over on it,
 *	   writes what that gives to its row queue, and claims another, until there is none
 *	   left.  It asks the service for the rows of the range after next, so that it does not
 *	   wait for them.  The leader is GpuSortExchange's to lead: it claims a range when
 *	   that is the next to be emitted and nobody's, and its rows take no queue.
 *
 * The process whose range is being read always gets on:
 * it waits for nobody but the service and the reader of its queue.
 * With no workers the leader does everything, in one range.
 *
 * The plan starts over by a changed parameter, Gather's rescan_param, on which all nodes
 * from here to the GpuSorts depend; what is below these is not read again.
 *
 * Through Gather goes one empty row, so that it comes back when the ranges are there, or,
 * in the outcome SERIAL, every row: then the leader alone runs the plan, as a whole, with
 * PostgreSQL's sort in the GpuSorts.
 *
 * What is lost in any process is noted in shared memory, and ends the work of all:
 * without an error, so that the leader can fall back if nothing has been emitted.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/output.h"

#include "access/parallel.h"
#include "parallel/claims.h"
#include "parallel/joint_check.h"
#include "exec/partial_output.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "server/installation.h"

/* Where the row queue of a worker is. */
static void *
row_queue(GpuSortOutputShared *shared, int worker)
{
	return (char *) shared + CACHELINEALIGN(sizeof(GpuSortOutputShared)) + worker * gpusort_row_queue_bytes();
}

/* Has the plan below read the range that was asked for first; false if its rows are lost. */
static bool
begin_range(GpuSortOutputState *state, GpuSortFailure *failure)
{
	if (!gpusort_nodes_begin_range(&state->nodes, outerPlanState(state), failure))
		return false;
	gpusort_window_ranges_begin(&state->window, &state->nodes, &state->shared->window);
	return true;
}

/* Writes what the plan below makes of the range at hand to the queue; false if that is not wanted any more, or lost. */
static bool
write_range(GpuSortOutputState *state, GpuSortRowQueueWriter *writer)
{
	PlanState *ps = &state->css.ss.ps;
	PlanState *child = outerPlanState(state);
	double rows = 0;

	for (;;)
	{
		TupleTableSlot *row = ExecProcNode(child);

		if (unlikely(state->nodes.sorts.lost))
		{
			gpusort_joint_sorts_note_lost(&state->nodes.sorts, &state->shared->claims);
			return false;
		}
		if (TupIsNull(row))
			break;
		if (!gpusort_row_queue_put(writer, row))
			return false;
		rows++;
	}
	if (ps->instrument != NULL)
		InstrUpdateTupleCount(ps->instrument, rows);
	return gpusort_row_queue_end_range(writer);
}

/* Writes one range after another to the queue, until there is none left. */
static void
write_ranges(GpuSortOutputState *state, GpuSortRowQueueWriter *writer)
{
	GpuSortClaims *claims = &state->shared->claims;
	const int process = ParallelWorkerNumber + 1;
	int range = gpusort_claims_next(claims, process);
	GpuSortFailure failure = {0};

	if (range >= 0 && !gpusort_joint_sorts_ask(&state->nodes.sorts, range, &failure))
	{
		gpusort_claims_stop(claims, &failure);
		return;
	}
	while (range >= 0)
	{
		CHECK_FOR_INTERRUPTS();
		range = gpusort_claims_next(claims, process);
		if (!begin_range(state, &failure) ||
			(range >= 0 && !gpusort_joint_sorts_ask(&state->nodes.sorts, range, &failure)))
		{
			gpusort_claims_stop(claims, &failure);
			return;
		}
		if (!write_range(state, writer))
			return;
	}
}

/* Puts this worker's part of the rows, unless it has come too late to have one. */
static void
ingest_in_worker(GpuSortOutputState *state)
{
	GpuSortClaims *claims = &state->shared->claims;
	GpuSortFailure failure;
	bool whole;

	if (!gpusort_claims_register(claims))
	{
		if (!claims->stop && gpusort_joint_sorts_have_rows(&state->nodes.sorts))
			elog(ERROR, "a parallel worker has rows that came too late to be sorted");
		return;
	}
	if (!gpusort_joint_sorts_ingest(&state->nodes.sorts, &claims->stop, &whole, &failure))
		gpusort_claims_stop(claims, &failure);
	gpusort_claims_sign_off(claims);
}

/* Does its part of what is done with all rows before there are ranges to be claimed; false, with a reason: lost. */
static bool
follow(GpuSortOutputState *state, GpuSortPartsPhase phase, GpuSortFailure *failure)
{
	GpuSortOutputShared *shared = state->shared;

	if (phase == GPUSORT_PARTS_VERIFY)
		return gpusort_joint_check_follow(&state->nodes.sorts, &shared->claims, failure);
	gpusort_window_ranges_join(&state->window, &state->nodes, &shared->window);
	return gpusort_window_ranges_follow(&state->window, &state->nodes, &shared->window, &shared->claims, failure);
}

/* All that a worker does. */
static void
run_worker(GpuSortOutputState *state)
{
	GpuSortOutputShared *shared = state->shared;
	GpuSortClaims *claims;
	GpuSortFailure failure;
	GpuSortRowQueueWriter *writer;
	GpuSortPartsPhase phase;

	if (shared == NULL || shared->claims.stop)
		return;
	claims = &shared->claims;
	ingest_in_worker(state);
	phase = gpusort_claims_wait_parts(claims, GPUSORT_PARTS_NONE);
	if (claims->stop)
		return;
	if (!gpusort_joint_sorts_open(&state->nodes.sorts, &claims->stop, &failure))
	{
		/* It has put no rows, so the others, which may have emitted some, go on without it. */
		ereport(DEBUG1,
				(errmsg_internal("gpusort: a parallel worker leaves all ranges to others: %s", failure.text)));
		return;
	}
	for (; phase != GPUSORT_PARTS_NONE; phase = gpusort_claims_wait_parts(claims, phase))
	{
		if (!follow(state, phase, &failure))
			gpusort_claims_stop(claims, &failure);
	}
	if (!gpusort_claims_wait(claims))
		return;
	gpusort_window_ranges_join(&state->window, &state->nodes, &shared->window);
	writer = gpusort_row_queue_open_writer(row_queue(shared, ParallelWorkerNumber));
	write_ranges(state, writer);
	gpusort_row_queue_close_writer(writer);
	gpusort_joint_sorts_close(&state->nodes.sorts);
}

static void
create_shared(GpuSortOutputShared *shared, int nworkers)
{
	shared->build = gpusort_module_build();
	shared->nworkers = nworkers;
	shared->window = (GpuSortWindowShared){.totals = InvalidDsaPointer};
	gpusort_claims_create(&shared->claims);
}

/*
 * Returns how many processes may read ranges: workers that have come too late to ingest do, too.  Not in one
 * expression: of 1 + (flag ? pointer->number : 0) GCC 14.2 reads the number whatever the flag is.
 */
static int
processes(const GpuSortOutputState *state)
{
	if (!state->in_segment)
		return 1;
	return 1 + state->workers->nworkers_launched;
}

/* Ingests, with the workers that there are, and has the ranges made. */
static void
lead_ingest(GpuSortOutputState *state)
{
	EState *estate = state->css.ss.ps.state;
	GpuSortClaims *claims;
	GpuSortFailure failure;
	uint32 ranges = 0;
	bool whole;

	if (state->shared == NULL)
	{
		if (state->own == NULL)
			state->own = MemoryContextAllocZero(estate->es_query_cxt, sizeof(GpuSortOutputShared));
		state->shared = state->own;
		create_shared(state->shared, 0);
		gpusort_claims_start(&state->shared->claims, false);
	}
	claims = &state->shared->claims;
	if (!gpusort_joint_sorts_ingest(&state->nodes.sorts, &claims->stop, &whole, &failure))
		gpusort_claims_stop(claims, &failure);
	gpusort_claims_seal(claims);
	if (!claims->stop &&
		(!gpusort_joint_sorts_order(&state->nodes.sorts, processes(state), &ranges, &failure) ||
		 !gpusort_joint_sorts_open(&state->nodes.sorts, &claims->stop, &failure) ||
		 !gpusort_joint_check_lead(&state->nodes.sorts, claims, processes(state), &failure) ||
		 !gpusort_window_ranges_lead(&state->window, &state->nodes, &state->shared->window, claims, ranges, &failure)))
		gpusort_claims_stop(claims, &failure);
	if (claims->stop)
		state->outcome = GPUSORT_OUTPUT_FAILED;
	else
		gpusort_claims_publish(claims, ranges);
}

static TupleTableSlot *
exec_output(CustomScanState *node)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;

	if (IsParallelWorker())
	{
		run_worker(state);
		return NULL;
	}
	if (state->outcome == GPUSORT_OUTPUT_SERIAL)
		return ExecProcNode(outerPlanState(node));
	if (state->ingested)
		return NULL;
	state->ingested = true;
	lead_ingest(state);
	return ExecStoreAllNullTuple(state->empty_row);
}

static void
begin_output(CustomScanState *node, EState *estate, int eflags)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;
	PlanState *ps = &node->ss.ps;
	const GpuSortOutputInfo info = gpusort_output_plan_unpack((CustomScan *) ps->plan);
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);

	outerPlanState(node) = ExecInitNode(outerPlan(ps->plan), estate,
										eflags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));

	/* Rows that are passed on are in the child's slots, but for the empty one. */
	ps->resultops = ExecGetResultSlotOps(outerPlanState(node), NULL);
	ps->resultopsset = true;
	ps->resultopsfixed = false;
	ps->ps_ProjInfo = NULL;
	state->empty_row = ExecInitExtraTupleSlot(estate, ps->ps_ResultTupleDesc, &TTSOpsVirtual);
	gpusort_nodes_find(&state->nodes, outerPlanState(node), info.rescan_param);
	if (state->nodes.sorts.count == 0)
		elog(ERROR, "there is no GpuSort below GpuSortOutput");
	gpusort_window_ranges_init(&state->window, outerPlanState(node), &info, &state->nodes);
	MemoryContextSwitchTo(caller);
}

/* A rescan of Gather's: what the GpuSorts read is not read through the plan, so they are told here. */
static void
rescan_output(CustomScanState *node)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;
	PlanState *child = outerPlanState(node);
	MemoryContext caller = MemoryContextSwitchTo(child->state->es_query_cxt);

	gpusort_nodes_rescan(&state->nodes, node->ss.ps.chgParam);
	if (child->chgParam == NULL)
		ExecReScan(child);
	MemoryContextSwitchTo(caller);
}

static Size
estimate_shared(CustomScanState *node, ParallelContext *pcxt)
{
	return add_size(CACHELINEALIGN(sizeof(GpuSortOutputShared)), mul_size(pcxt->nworkers, gpusort_row_queue_bytes()));
}

/* Makes the workers' queues anew, before they start. */
static void
open_queues(GpuSortOutputState *state)
{
	GpuSortOutputShared *shared = state->shared;
	MemoryContext caller = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

	Assert(state->queues == NULL);
	state->queues = palloc(shared->nworkers * sizeof(GpuSortRowQueueReader *));
	for (int i = 0; i < shared->nworkers; i++)
	{
		gpusort_row_queue_create(row_queue(shared, i));
		state->queues[i] = gpusort_row_queue_open_reader(row_queue(shared, i));
	}
	MemoryContextSwitchTo(caller);
}

static void
close_queues(GpuSortOutputState *state)
{
	if (state->queues == NULL)
		return;
	for (int i = 0; i < state->shared->nworkers; i++)
		gpusort_row_queue_close_reader(state->queues[i]);
	pfree(state->queues);
	state->queues = NULL;
}

/* Before workers start, again or for the first time: nothing is claimed, and queues are empty. */
static void
reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;

	if (!state->in_segment)
		return;
	gpusort_window_ranges_free(&state->shared->window, node->ss.ps.state->es_query_dsa);
	gpusort_claims_start(&state->shared->claims, state->outcome == GPUSORT_OUTPUT_SERIAL);
	if (state->outcome != GPUSORT_OUTPUT_SERIAL)
		open_queues(state);
}

static void
initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;

	/* Without a segment there is but this process. */
	if (pcxt->seg == NULL)
		return;
	state->shared = coordinate;
	state->in_segment = true;
	state->workers = pcxt;
	create_shared(state->shared, pcxt->nworkers);
	reinitialize_shared(node, pcxt, coordinate);
}

static void
initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;

	/* After make install a worker may have loaded another module than its leader; it leaves everything to others. */
	if (((GpuSortOutputShared *) coordinate)->build == gpusort_module_build())
		state->shared = coordinate;
}

/*
 * The shared memory goes after this; workers that still run must end, and with the queues go the sorts in the service.
 */
static void
shutdown_output(CustomScanState *node)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;

	if (!state->in_segment)
		return;
	gpusort_output_stop(state);
	gpusort_joint_sorts_release(&state->nodes.sorts);
	state->in_segment = false;
	state->shared = NULL;
}

/* The same, where that has not been done; the GpuSorts end with the plan below. */
static void
end_output(CustomScanState *node)
{
	shutdown_output(node);
	ExecEndNode(outerPlanState(node));
}

static const CustomExecMethods exec_methods = {
	.CustomName = GPUSORT_OUTPUT_NODE_NAME,
	.BeginCustomScan = begin_output,
	.ExecCustomScan = exec_output,
	.EndCustomScan = end_output,
	.ReScanCustomScan = rescan_output,
	.EstimateDSMCustomScan = estimate_shared,
	.InitializeDSMCustomScan = initialize_shared,
	.ReInitializeDSMCustomScan = reinitialize_shared,
	.InitializeWorkerCustomScan = initialize_worker,
	.ShutdownCustomScan = shutdown_output,
};

static Node *
create_state(CustomScan *plan)
{
	GpuSortOutputState *state;

	if (gpusort_output_plan_unpack(plan).partial)
		return gpusort_partial_output_create_state();
	state = (GpuSortOutputState *) newNode(sizeof(GpuSortOutputState), T_CustomScanState);
	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpusort_output_scan_methods = {
	.CustomName = GPUSORT_OUTPUT_NODE_NAME,
	.CreateCustomScanState = create_state,
};

/* Returns the GpuSortOutput node below a Gather.  Errors: there is none. */
GpuSortOutputState *
gpusort_output_find(PlanState *gather)
{
	PlanState *ps = outerPlanState(gather);

	if (!IsA(gather, GatherState) || !IsA(ps, CustomScanState) || ((CustomScanState *) ps)->methods != &exec_methods)
		elog(ERROR, "there is no GpuSortOutput below GpuSortExchange");
	return (GpuSortOutputState *) ps;
}

/*
 * Begins the sorts in the service; to be called before Gather starts workers.
 * readers: processes with those, if all start.
 */
void
gpusort_output_begin(GpuSortOutputState *state, int readers)
{
	GpuSortFailure failure;

	state->ingested = false;
	state->nodes.started = false;
	state->window.passes = 0;
	gpusort_window_ranges_reset(&state->window);
	state->outcome = GPUSORT_OUTPUT_RANGES;
	if (gpusort_nodes_begin(&state->nodes, readers, &failure))
		return;
	gpusort_joint_sorts_refuse(&state->nodes.sorts, &failure);
	state->outcome = GPUSORT_OUTPUT_SERIAL;
}

/*
 * Returns the process that has claimed this range; if none has, claims it for
 * the leader.  All ranges before it must have been claimed.
 */
int
gpusort_output_claim(GpuSortOutputState *state, uint32 range)
{
	gpusort_joint_sorts_show(&state->nodes.sorts, range);
	return gpusort_claims_owner(&state->shared->claims, range);
}

/* Claims the next range for the leader; returns its number, or -1 if all have been claimed. */
int
gpusort_output_claim_next(GpuSortOutputState *state)
{
	return gpusort_claims_next(&state->shared->claims, GPUSORT_LEADER_PROCESS);
}

/* Returns the queue of a worker, open until stop. */
GpuSortRowQueueReader *
gpusort_output_queue(GpuSortOutputState *state, int process)
{
	return state->queues[process - 1];
}

/* Asks for the rows of a range that the leader has claimed; false if they are lost. */
bool
gpusort_output_ask(GpuSortOutputState *state, uint32 range)
{
	GpuSortFailure failure;

	if (gpusort_joint_sorts_ask(&state->nodes.sorts, range, &failure))
		return true;
	gpusort_claims_stop(&state->shared->claims, &failure);
	return false;
}

/* Has gpusort_output_row return the rows of the range that was asked for first; false if they are lost. */
bool
gpusort_output_begin_range(GpuSortOutputState *state)
{
	GpuSortFailure failure;

	if (begin_range(state, &failure))
		return true;
	gpusort_claims_stop(&state->shared->claims, &failure);
	return false;
}

/* Returns the next row of the range at hand, an empty slot or NULL after the last, and when rows are lost. */
TupleTableSlot *
gpusort_output_row(GpuSortOutputState *state)
{
	NodeInstrumentation *instrument = state->css.ss.ps.instrument;
	TupleTableSlot *row;

	if (instrument != NULL)
		InstrStartNode(instrument);
	row = ExecProcNode(outerPlanState(state));
	if (unlikely(state->nodes.sorts.lost))
	{
		gpusort_joint_sorts_note_lost(&state->nodes.sorts, &state->shared->claims);
		row = NULL;
	}
	if (instrument != NULL)
		InstrStopNode(instrument, TupIsNull(row) ? 0 : 1);
	return row;
}

/* No rows are wanted any more: has workers end. */
void
gpusort_output_stop(GpuSortOutputState *state)
{
	GpuSortFailure none = {0};

	if (!state->in_segment)
		return;
	gpusort_claims_stop(&state->shared->claims, &none);
	close_queues(state);
}

/*
 * All ranges have been emitted, and workers have ended: compares what was read with what was put, and ends the sorts.
 */
void
gpusort_output_finish(GpuSortOutputState *state)
{
	GpuSortFailure failure;

	if (!gpusort_joint_sorts_verify(&state->nodes.sorts, &failure))
	{
		state->shared->claims.failure = failure;
		gpusort_output_report_lost(state, true);
	}
	gpusort_joint_sorts_release(&state->nodes.sorts);
}

/*
 * Rows are lost, and none has been emitted: the leader is to run the plan alone when Gather is rescanned, which
 * must follow.  Errors: it would not give the same rows.
 */
void
gpusort_output_fall_back(GpuSortOutputState *state)
{
	const GpuSortFailure failure = state->shared->claims.failure;

	for (int i = 0; i < state->nodes.sorts.count; i++)
	{
		if (!state->nodes.nodes[i]->info.rescannable)
			gpusort_output_report_lost(state, false);
	}
	gpusort_output_stop(state);
	gpusort_joint_sorts_refuse(&state->nodes.sorts, &failure);
	gpusort_window_ranges_reset(&state->window);
	state->outcome = GPUSORT_OUTPUT_SERIAL;
}

/* Ends whatever is going on; what comes next is begin. */
void
gpusort_output_reset(GpuSortOutputState *state)
{
	gpusort_output_stop(state);
	gpusort_joint_sorts_end(&state->nodes.sorts);
	state->outcome = GPUSORT_OUTPUT_SERIAL;
	if (!state->in_segment)
		state->shared = NULL;
}

/* Ends the query: rows are lost, and there is no way to have them again. */
void
gpusort_output_report_lost(GpuSortOutputState *state, bool emitted)
{
	gpusort_sort_report_lost(emitted, &state->shared->claims.failure);
}
