/*-------------------------------------------------------------------------
 *
 * output.c
 *	  The GpuSortOutput node: runs the plan below it for ranges of sorted rows, in each participant of a parallel plan.
 *
 *	  GpuSortExchange			Gather, or Gather Merge
 *	    Gather					  plan				partial joins, aggregates
 *	      GpuSortOutput			    GpuSortOutput	in the leader and in each worker
 *	        plan				      plan
 *	          GpuSort			        GpuSort		one or several (parallel/sort_set.h)
 *	            partial plan			  partial plan
 *
 * What the participants do until ranges of the sorted rows can be read is in parallel/participants.h.  Then each
 * claims a range, makes the plan below start over on it, and claims another, until there is none left.  It asks the
 * service for the rows of the next range before it reads one, so that it does not wait for them.  What the plan makes
 * of a range goes
 *
 *	  - to the node above in the same process, in a partial plan.  As in any partial plan, each row comes from one
 *		process, and there is no order over all.
 *	  - where a table that nobody else sees is all that rows go to, into pages of it (pages/heap_pages.h), which every
 *		process writes.  Ranges are the leader's as they are any worker's then.
 *	  - else in a worker to its row queue, which GpuSortExchange reads: rows, or the bytes that they leave the server
 *		as, where the leader has said so (rows_out.c).  It claims and reads the leader's ranges itself, without a
 *		queue (exchange.c).
 *
 * The plan starts over by a changed parameter, Gather's rescan_param, on which all nodes from here to the GpuSorts
 * depend; what is below these is not read again.
 *
 * WHO SORTS.  Below a GpuSortExchange the leader does: it is sure to come, and its node sends one empty row up through
 * Gather when the ranges are there.  In a partial plan any process does: the leader may come last, since it reads what
 * workers send first, or never, where no more rows are wanted.  Its connection keeps the sorts until Gather has ended
 * its workers.  Where the service lets no worker order the sorts, workers wait for the leader, who comes while rows
 * are wanted; with parallel_leader_participation off it would not, so the service takes no part then.
 *
 * READ BY THE LEADER.  Where a plan runs by ranges only because forming rows as bytes takes time, and they are neither
 * formed nor a new table's, as it turns out, workers end when the rows are in order, and the leader reads all of them
 * in one go.  So it does where GpuSortExchange has asked for workers itself, and has got none: it need not store rows
 * that nobody else computes.
 *
 * NO DEADLOCK.  The process whose range is being read waits for nobody but the service and the reader of its queue.
 *
 * WITHOUT THE SERVICE.  Where it takes no part, which is known before workers start, one process runs the plan as a
 * whole, with PostgreSQL's sort in the GpuSorts, and the others give no rows: as the plans below are partial ones, that
 * process gets all of their rows.  It is the leader, or in a partial plan the first to come.
 *
 * LOST ROWS.  What is lost in any process is noted in shared memory, and ends the work of all.  Below a
 * GpuSortExchange that is no error: if nothing has been emitted it makes the leader run the plan alone.  In a partial
 * plan nothing can be read again, so the query ends with an error.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/output.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "exec/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "parallel/participants.h"
#include "server/reasons.h"
#include "server/statistics.h"
#include "server/wait_events.h"
#include "storage/latch.h"

/* A worker waits so long before it raises the error that rows are lost. */
#define OTHER_ERRORS_MS 200

/* What nobody is woken for is looked at so often. */
#define STEP_MS 10

/* Returns this process's number among those that claim ranges. */
static int
own_process(void)
{
	return ParallelWorkerNumber + 1; /* GPUSORT_LEADER_PROCESS in the leader */
}

/* Waits for a step, or until the latch is set. */
static void
wait_step(GpuSortWait wait)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, STEP_MS, gpusort_wait_event(wait));
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/*
 * Waits until it is known by what another process has failed, if rows are lost because it has: it told the leader so
 * before its connection to the service closed.  The leader ends this process then, or finds an error to raise.
 */
static void
wait_for_other_errors(void)
{
	CHECK_FOR_INTERRUPTS();
	for (int i = 0; IsParallelWorker() && i < OTHER_ERRORS_MS / STEP_MS; i++)
		wait_step(GPUSORT_WAIT_RANGES);
}

/* The participant's total makes windows go on from one range to the next, where they do. */
static bool
total(void *arg, bool ordered, uint32 ranges, GpuSortFailure *failure)
{
	GpuSortOutputState *state = arg;
	GpuSortWindowShared *shared = &state->shared->window;
	GpuSortClaims *claims = &state->shared->claims;

	if (state->shared->leads_all)
	{
		gpusort_window_ranges_lead_all(&state->window, &state->nodes);
		return true;
	}
	if (ordered)
		return gpusort_window_ranges_lead(&state->window, &state->nodes, shared, claims, ranges, failure);
	gpusort_window_ranges_join(&state->window, &state->nodes, shared);
	return gpusort_window_ranges_follow(&state->window, &state->nodes, shared, claims, failure);
}

/* Returns true if GpuSortExchange has asked for workers to compute rows for it, and none has started. */
static bool
lacks_workers(const GpuSortOutputState *state)
{
	return state->starts_workers && state->workers != NULL && state->workers->nworkers_launched == 0 &&
		!state->shared->formed && !state->shared->into;
}

/* Takes part in what comes before ranges; the stage says what came of it. */
static void
participate(GpuSortOutputState *state)
{
	GpuSortOutputShared *shared = state->shared;
	const GpuSortParticipant own = {
		.set = &state->nodes.set,
		.claims = &shared->claims,
		/* a worker does not know how many have started */
		.processes = state->workers != NULL ? 1 + state->workers->nworkers_launched : shared->nprocesses,
		.total = total,
		.arg = state};

	if (lacks_workers(state))
		shared->leads_all = true;
	if (!shared->claims.stop)
		gpusort_participant_ingest(&own);
	state->stage = GPUSORT_OUTPUT_ENDED;
	if (!gpusort_participant_await_ranges(&own))
		return;
	if (IsParallelWorker() && shared->leads_all)
	{
		gpusort_sort_set_close(&state->nodes.set);
		return;
	}
	if (!gpusort_participant_open(&own))
		return;
	state->stage = GPUSORT_OUTPUT_RANGES;
	if (IsParallelWorker())
		gpusort_window_ranges_join(&state->window, &state->nodes, &shared->window);
}

/* Returns true if this process is the one that runs the plan alone. */
static bool
takes_all(GpuSortOutputState *state)
{
	return state->partial ? gpusort_claims_take_all(&state->shared->claims) : !IsParallelWorker();
}

/* Begins, when the first row is asked for. */
static void
begin(GpuSortOutputState *state)
{
	state->stage = GPUSORT_OUTPUT_ENDED;
	if (state->shared == NULL && IsParallelWorker())
	{
		/* Others may take the end of its rows for the end of all: so does a parallel Append. */
		if (state->partial)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("a parallel worker has loaded another build of gpusort than its leader"),
					 errhint("Run the query again in a new session.")));
		return;
	}
	if (state->shared == NULL)
		gpusort_output_begin_without_workers(state);
	state->nodes.set.workers_order = state->partial;
	if (!state->shared->alone)
		participate(state);
	else if (takes_all(state))
	{
		gpusort_sort_set_refuse(&state->nodes.set, &state->shared->claims.failure);
		state->stage = GPUSORT_OUTPUT_ALONE;
	}
}

/* Makes the plan below start over on the range that was asked for first; false if its rows are lost. */
bool
gpusort_output_begin_range(GpuSortOutputState *state)
{
	GpuSortFailure failure;

	if (!gpusort_nodes_begin_range(&state->nodes, outerPlanState(state), &failure))
	{
		gpusort_claims_stop(&state->shared->claims, &failure);
		return false;
	}
	gpusort_window_ranges_begin(&state->window, &state->nodes, &state->shared->window);
	return true;
}

/* Asks for the rows of a range that this process has claimed; false if they are lost. */
bool
gpusort_output_ask(GpuSortOutputState *state, uint32 range)
{
	GpuSortFailure failure;

	if (gpusort_sort_set_ask(&state->nodes.set, range, &failure))
		return true;
	gpusort_claims_stop(&state->shared->claims, &failure);
	return false;
}

/* Asks for the rows of the next range, if there is one, and makes it this process's; false if rows are lost. */
static bool
ask_next(GpuSortOutputState *state)
{
	state->asked = gpusort_claims_next(&state->shared->claims, own_process());
	return state->asked < 0 || gpusort_output_ask(state, state->asked);
}

/* Goes to the range that was asked for; false if there is none, or rows are lost. */
static bool
next_range(GpuSortOutputState *state)
{
	CHECK_FOR_INTERRUPTS();
	/* What is left of the range before must be given up before another is asked for. */
	return state->asked >= 0 && gpusort_output_begin_range(state) && ask_next(state);
}

/* Returns the next row of the current range; an empty slot or NULL after the last, and when rows are lost. */
static TupleTableSlot *
next_row(GpuSortOutputState *state)
{
	TupleTableSlot *row = ExecProcNode(outerPlanState(state));

	if (likely(!state->nodes.set.lost))
		return row;
	gpusort_sort_set_note_lost(&state->nodes.set, &state->shared->claims);
	return NULL;
}

/* A worker's way to its leader. */
typedef struct RowWriter
{
	GpuSortOutputState *state;
	GpuSortRowQueueWriter *queue;
	GpuSortFormer *former; /* NULL: rows go as rows */
	uint64 formed_rows;
	uint64 formed_bytes;
} RowWriter;

/* Puts a row into the queue; false if it is not wanted any more. */
static inline bool
write_row(RowWriter *writer, TupleTableSlot *row)
{
	GpuSortFormer *former = writer->former;

	if (former == NULL)
		return gpusort_row_queue_put(writer->queue, row);
	gpusort_former_clear(former);
	if (!gpusort_former_row(former, row))
		return gpusort_row_queue_put_row_among_bytes(writer->queue, row);
	writer->formed_rows++;
	writer->formed_bytes += former->caught.bytes.len;
	return gpusort_row_queue_put_bytes(writer->queue, former->caught.bytes.data, former->caught.bytes.len);
}

/* Writes the rows of the current range to the queue; false if they are lost, or not wanted any more. */
static bool
write_range(RowWriter *writer)
{
	GpuSortOutputState *state = writer->state;
	PlanState *ps = &state->css.ss.ps;
	double rows = 0;

	for (;;)
	{
		TupleTableSlot *row = next_row(state);

		if (TupIsNull(row))
			break;
		if (!write_row(writer, row))
			return false;
		rows++;
	}
	if (state->nodes.set.lost)
		return false;
	if (ps->instrument != NULL)
		InstrUpdateTupleCount(ps->instrument, rows);
	return gpusort_row_queue_end_range(writer->queue);
}

/* Writes one range after another to this worker's queue, until there is none left; a GpuSortFormerCallback. */
static void
write_ranges(GpuSortFormer *former, void *arg)
{
	GpuSortOutputState *state = arg;
	RowWriter writer = {
		.state = state,
		.queue = gpusort_row_queue_open_writer(gpusort_output_queue_place(state->shared, ParallelWorkerNumber),
											   &state->shared->queues, ParallelWorkerNumber, former != NULL),
		.former = former,
	};

	if (ask_next(state))
	{
		while (next_range(state) && write_range(&writer))
			;
	}
	if (writer.formed_rows > 0)
		gpusort_stats_count_formed(writer.formed_rows, writer.formed_bytes);
	gpusort_row_queue_close_writer(writer.queue);
	gpusort_sort_set_close(&state->nodes.set);
}

/* Puts the rows of the current range into pages; returns how many, or -1 if they are lost, or not wanted any more. */
static int64
put_range(GpuSortOutputState *state, GpuSortHeapPages *pages)
{
	int64 rows = 0;

	for (;;)
	{
		TupleTableSlot *row = IsParallelWorker() ? next_row(state) : gpusort_output_row(state);

		if (TupIsNull(row))
			break;
		gpusort_heap_pages_put(pages, row);
		rows++;
	}
	if (state->nodes.set.lost || gpusort_output_has_failed(state))
		return -1;
	gpusort_heap_pages_end(pages);
	return rows;
}

/* Puts one range after another into pages of the new table, until there is none left. */
void
gpusort_output_put_into_table(GpuSortOutputState *state)
{
	GpuSortOutputShared *shared = state->shared;
	GpuSortProcessFigures *own = &shared->figures[own_process()];
	GpuSortHeapPages *pages =
		gpusort_heap_pages_open(gpusort_output_into(shared), &shared->claims.stop, state->css.ss.ps.state);
	NodeInstrumentation *instrument = state->css.ss.ps.instrument;
	bool more = ask_next(state);
	uint64 count;

	while (more)
	{
		const int range = state->asked;
		int64 rows = -1;

		if (next_range(state))
		{
			if (!IsParallelWorker())
				gpusort_sort_set_show(&state->nodes.set, range);
			gpusort_heap_pages_begin(pages, range);
			rows = put_range(state, pages);
		}
		more = rows >= 0;
		if (!more)
			break;
		own->ranges++;
		own->rows += rows;
	}
	count = gpusort_heap_pages_close(pages);
	if (!IsParallelWorker())
		return;
	if (instrument != NULL)
		InstrUpdateTupleCount(instrument, own->rows);
	if (own->rows > 0)
		gpusort_stats_count_formed(own->rows, count * BLCKSZ);
	gpusort_sort_set_close(&state->nodes.set);
}

/* Writes the rows of a worker's ranges to where they go. */
static void
write_all(GpuSortOutputState *state)
{
	const GpuSortFormat *format = gpusort_output_format(state->shared);

	if (state->shared->into)
		gpusort_output_put_into_table(state);
	else if (format == NULL)
		write_ranges(NULL, state);
	else
		gpusort_with_former(format, ExecGetResultType(outerPlanState(state)), write_ranges, state);
}

/* Returns the node's next row below a GpuSortExchange: one empty row, or where the leader is alone all rows. */
static TupleTableSlot *
exec_below_exchange(GpuSortOutputState *state)
{
	bool first = state->stage == GPUSORT_OUTPUT_BEGIN;

	if (first)
		begin(state);
	if (state->stage == GPUSORT_OUTPUT_ALONE)
		return ExecProcNode(outerPlanState(state));
	if (!first)
		return NULL;
	if (!IsParallelWorker())
		return ExecStoreAllNullTuple(state->empty_row);
	if (state->stage == GPUSORT_OUTPUT_RANGES)
		write_all(state);
	return NULL;
}

/* Ends a partial plan in this process, of which no rows are wanted any more; it is an error if they are lost. */
static void
end_partial(GpuSortOutputState *state)
{
	const GpuSortClaims *claims = &state->shared->claims;

	state->stage = GPUSORT_OUTPUT_ENDED;
	if (!claims->stop || claims->failure.reason == GPUSORT_REASON_NONE)
		return;
	wait_for_other_errors();
	gpusort_sort_report_lost(claims->published, &claims->failure);
}

/* Goes to the next range of a partial plan, or to the end. */
static void
next_partial_range(GpuSortOutputState *state)
{
	if (next_range(state))
	{
		state->shared->figures[own_process()].ranges++;
		return;
	}
	end_partial(state);
	if (state->shared->claims.stop)
		return;
	if (IsParallelWorker())
		gpusort_sort_set_close(&state->nodes.set);
	else if (state->workers == NULL)
		gpusort_output_finish(state);
}

/* Emits the node's next row in a partial plan, as its ExecProcNode. */
static TupleTableSlot *
exec_partial(PlanState *ps)
{
	GpuSortOutputState *state = (GpuSortOutputState *) ps;

	for (;;)
	{
		TupleTableSlot *row;

		switch (state->stage)
		{
			case GPUSORT_OUTPUT_BEGIN:
				begin(state);
				if (state->stage == GPUSORT_OUTPUT_ENDED || (state->stage == GPUSORT_OUTPUT_RANGES && !ask_next(state)))
					end_partial(state);
				else if (state->stage == GPUSORT_OUTPUT_RANGES)
					next_partial_range(state);
				break;
			case GPUSORT_OUTPUT_RANGES:
				row = next_row(state);
				if (likely(!TupIsNull(row)))
				{
					state->shared->figures[own_process()].rows++;
					return row;
				}
				if (state->nodes.set.lost)
					end_partial(state);
				else
					next_partial_range(state);
				break;
			case GPUSORT_OUTPUT_ALONE:
				return ExecProcNode(outerPlanState(state));
			case GPUSORT_OUTPUT_ENDED:
				return NULL;
		}
	}
}

/* Emits the next row, as the ExecCustomScan callback. */
static TupleTableSlot *
exec_output(CustomScanState *node)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;

	return state->partial ? exec_partial(&node->ss.ps) : exec_below_exchange(state);
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
	state->partial = info.partial;
	state->only_formed = info.only_formed;
	state->reads_tables = info.reads_tables;
	state->starts_workers = info.starts_workers;
	if (state->partial)
		ps->ExecProcNode = exec_partial;
	else
		state->empty_row = ExecInitExtraTupleSlot(estate, ps->ps_ResultTupleDesc, &TTSOpsVirtual);
	gpusort_nodes_find(&state->nodes, outerPlanState(node), info.rescan_param);
	if (state->nodes.set.count == 0)
		elog(ERROR, "there is no GpuSort below GpuSortOutput");
	state->nodes.set.workers_order = state->partial;
	gpusort_window_ranges_init(&state->window, outerPlanState(node), &info, &state->nodes);
	MemoryContextSwitchTo(caller);
}

/* Starts over with Gather; what the GpuSorts read is not read through the plan, so they are told here. */
static void
rescan_output(CustomScanState *node)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;
	PlanState *child = outerPlanState(node);
	MemoryContext caller = MemoryContextSwitchTo(child->state->es_query_cxt);

	if (IsParallelWorker() && state->stage != GPUSORT_OUTPUT_BEGIN)
		elog(ERROR, "GpuSortOutput cannot start over while Gather does not");
	gpusort_nodes_rescan(&state->nodes, node->ss.ps.chgParam);
	/* With workers the sorts have been begun anew (output_share.c). */
	if (state->workers == NULL && !IsParallelWorker())
	{
		gpusort_sort_set_end(&state->nodes.set);
		state->shared = NULL;
		state->stage = GPUSORT_OUTPUT_BEGIN;
	}
	if (child->chgParam == NULL)
		ExecReScan(child);
	MemoryContextSwitchTo(caller);
}

/* Ends workers that wait; the GpuSorts end with the plan below. */
static void
end_output(CustomScanState *node)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;

	gpusort_output_stop(state);
	state->workers = NULL;
	state->shared = NULL;
	ExecEndNode(outerPlanState(node));
}

/* Tells about a partial plan; GpuSortExchange tells about others. */
static void
explain_output(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuSortOutputState *state = (GpuSortOutputState *) node;
	GpuSortScanState *sort = gpusort_output_first_sort(state);

	if (!state->partial)
		return;
	gpusort_explain_keys(sort, "Range Key", sort->info.range_columns, ancestors, es);
	if (!es->analyze)
		return;
	if (state->shared != NULL)
		gpusort_output_take_figures(state); /* there are no workers, else that has been done */
	if (state->nprocesses == 0)
		return;
	ExplainPropertyUInteger("Ranges", NULL, state->ranges, es);
	gpusort_explain_processes(state->figures, state->nprocesses, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = GPUSORT_OUTPUT_NODE_NAME,
	.BeginCustomScan = begin_output,
	.ExecCustomScan = exec_output,
	.EndCustomScan = end_output,
	.ReScanCustomScan = rescan_output,
	.EstimateDSMCustomScan = gpusort_output_estimate_shared,
	.InitializeDSMCustomScan = gpusort_output_initialize_shared,
	.ReInitializeDSMCustomScan = gpusort_output_reinitialize_shared,
	.InitializeWorkerCustomScan = gpusort_output_initialize_worker,
	.ShutdownCustomScan = gpusort_output_shutdown,
	.ExplainCustomScan = explain_output,
};

static Node *
create_state(CustomScan *plan)
{
	GpuSortOutputState *state = (GpuSortOutputState *) newNode(sizeof(GpuSortOutputState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpusort_output_scan_methods = {
	.CustomName = GPUSORT_OUTPUT_NODE_NAME,
	.CreateCustomScanState = create_state,
};

/*
 * Tells a GpuSortOutput below a Gather or Gather Merge, when the executor has begun, which one that is; passes other
 * nodes over.
 */
void
gpusort_output_note_gather(PlanState *ps, PlanState *gather)
{
	if (IsA(ps, CustomScanState) && ((CustomScanState *) ps)->methods == &exec_methods)
		((GpuSortOutputState *) ps)->gather = gather;
}

/* Returns the GpuSortOutput node below a Gather; it is an error if there is none. */
GpuSortOutputState *
gpusort_output_find(PlanState *gather)
{
	PlanState *ps = outerPlanState(gather);

	if (!IsA(gather, GatherState) || !IsA(ps, CustomScanState) || ((CustomScanState *) ps)->methods != &exec_methods)
		elog(ERROR, "there is no GpuSortOutput below GpuSortExchange");
	gpusort_output_note_gather(ps, gather);
	return (GpuSortOutputState *) ps;
}

/* Returns true if a worker that was launched has not ended, as far as the postmaster says. */
static bool
worker_runs(const ParallelContext *workers)
{
	for (int i = 0; i < workers->nworkers_launched; i++)
	{
		BackgroundWorkerHandle *handle = workers->worker[i].bgwhandle;
		pid_t pid;

		if (handle != NULL && GetBackgroundWorkerPid(handle, &pid) != BGWH_STOPPED)
			return true;
	}
	return false;
}

/*
 * Waits until a worker has claimed the first range, or none is left to do it: for tests, whose few rows the leader
 * would have read before a worker has started.  No leader is faster for not waiting, as it waits for the start of its
 * workers at the end.
 */
void
gpusort_output_await_claim(GpuSortOutputState *state)
{
	if (state->workers == NULL)
		return;
	while (!gpusort_claims_begun(&state->shared->claims) && worker_runs(state->workers))
		wait_step(GPUSORT_WAIT_EXCHANGE);
}

/*
 * Returns the process that has claimed this range; if none has, claims it for the leader.  All ranges before it must
 * have been claimed.
 */
int
gpusort_output_claim(GpuSortOutputState *state, uint32 range)
{
	gpusort_sort_set_show(&state->nodes.set, range);
	return gpusort_claims_owner(&state->shared->claims, range);
}

/* Claims the next range for the leader; returns its number, or -1 if all have been claimed. */
int
gpusort_output_claim_next(GpuSortOutputState *state)
{
	return gpusort_claims_next(&state->shared->claims, GPUSORT_LEADER_PROCESS);
}

/* Returns the queue of a worker, open until no more rows are wanted. */
GpuSortRowQueueReader *
gpusort_output_queue(GpuSortOutputState *state, int process)
{
	return state->queues[process - 1];
}

/* Returns the next row of the leader's current range; an empty slot or NULL after the last, and when rows are lost. */
TupleTableSlot *
gpusort_output_row(GpuSortOutputState *state)
{
	NodeInstrumentation *instrument = state->css.ss.ps.instrument;
	TupleTableSlot *row;

	if (instrument != NULL)
		InstrStartNode(instrument);
	row = next_row(state);
	if (instrument != NULL)
		InstrStopNode(instrument, TupIsNull(row) ? 0 : 1);
	return row;
}

/*
 * Does the same as gpusort_output_row for another than the first of all rows, but counts nothing, which takes as long
 * as the row.
 */
TupleTableSlot *
gpusort_output_uncounted_row(GpuSortOutputState *state)
{
	PlanState *below = outerPlanState(state);
	TupleTableSlot *row = below->ExecProcNodeReal(below);

	if (likely(!state->nodes.set.lost))
		return row;
	gpusort_sort_set_note_lost(&state->nodes.set, &state->shared->claims);
	return NULL;
}

/* Counts so many of these rows, for EXPLAIN. */
void
gpusort_output_count_rows(GpuSortOutputState *state, uint64 rows)
{
	PlanState *ps = &state->css.ss.ps;

	if (ps->instrument == NULL)
		return;
	InstrUpdateTupleCount(ps->instrument, (double) rows);
	InstrUpdateTupleCount(outerPlanState(ps)->instrument, (double) rows);
}

/* Makes the plan below start over on all rows, which are the leader's to read; false if they are lost. */
bool
gpusort_output_begin_all(GpuSortOutputState *state)
{
	GpuSortFailure failure;

	if (gpusort_sort_set_ask_all(&state->nodes.set, &failure))
		return gpusort_output_begin_range(state);
	gpusort_claims_stop(&state->shared->claims, &failure);
	return false;
}

/*
 * Makes the leader run the plan alone when Gather is rescanned, which must follow: rows are lost, and none has been
 * emitted.  It is an error if the plan would not give the same rows.
 */
void
gpusort_output_fall_back(GpuSortOutputState *state)
{
	for (int i = 0; i < state->nodes.set.count; i++)
	{
		if (!state->nodes.nodes[i]->info.rescannable)
			gpusort_output_report_lost(state, false);
	}
	state->lost = state->shared->claims.failure;
	Assert(state->lost.reason != GPUSORT_REASON_NONE);
}

/* Ends the query: rows are lost, and there is no way to have them again. */
void
gpusort_output_report_lost(GpuSortOutputState *state, bool emitted)
{
	gpusort_sort_report_lost(emitted, &state->shared->claims.failure);
}
