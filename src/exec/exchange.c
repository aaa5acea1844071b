/*-------------------------------------------------------------------------
 *
 * exchange.c
 *	  The GpuSortExchange node: emits what processes compute of ranges of sorted rows, in order.
 *
 * It is above the Gather that starts the processes, and runs in the leader alone.
 * output.c tells what the others do.
 *
 * The first row asked for runs Gather, once, which begins the sorts in the service and comes
 * back when all rows have been put, sorted and cut into ranges.  Then the rows of one
 * range after another are emitted: a worker's range comes out of its queue; a range that
 * nobody has claimed yet comes straight from the plan below GpuSortOutput, in the leader.  At
 * the end Gather is read to its end, for the errors, counts and times of workers.
 *
 *	  BEGIN ---> BETWEEN <---> QUEUE, STASH, PLAN ---> ENDED
 *		|			|  lost before a row was emitted
 *		+--------> GATHER
 *		  refused
 *
 * While it waits for rows of a worker's range the leader computes the next range that nobody has
 * claimed, a few rows at a time, and puts what comes of it into a stash until that
 * range's turn: a tuplestore, which spills beyond work_mem.  So with few workers it is one of
 * them, and yet never keeps them waiting for longer than these rows take.
 *
 * Where the service takes no part, or has lost the rows before one was emitted, the rows
 * come through Gather, from the leader alone (stage GATHER).
 *
 * Rows are shown where they lie in a queue.  The node cannot go back, nor mark.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "parallel/claims.h"
#include "exec/explain.h"
#include "exec/gather.h"
#include "exec/output.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "node.h"
#include "server/reasons.h"
#include "server/wait_events.h"
#include "sort/heap_rows.h"
#include "storage/latch.h"
#include "utils/tuplestore.h"

/* Where the next row comes from. */
typedef enum ExchangeStage
{
	STAGE_BEGIN,   /* nowhere yet */
	STAGE_BETWEEN, /* the next range */
	STAGE_QUEUE,   /* the current range, a worker's */
	STAGE_STASH,   /* the current range, the leader's, as far as it has been stashed */
	STAGE_PLAN,    /* the same, straight from the plan */
	STAGE_GATHER,  /* Gather */
	STAGE_ENDED,   /* there is none */
	STAGE_STOPPED, /* nowhere any more */
} ExchangeStage;

/* The leader is so many ranges ahead at most: it should have something to do, but not what workers could have done. */
#define STASHED_RANGES_MAX 2

/* So many rows are stashed before the worker is looked after again. */
#define STASH_ROWS 32

/* One of the leader's ranges whose turn is to come. */
typedef struct StashedRange
{
	uint32 range;
	bool begun;    /* else it has been asked for, so that its rows are there when it is begun */
	bool complete; /* rows has all of it; else the plan has the rest */
	Tuplestorestate *rows;
} StashedRange;

typedef struct ExchangeState
{
	CustomScanState css; /* must be first field */
	GpuSortOutputState *output;
	TupleTableSlot *slot; /* rows of a queue */

	ExchangeStage stage;
	bool emitted; /* a row, since the beginning: too late to fall back */
	uint32 range; /* the current one, or in BETWEEN the next */
	uint32 ranges;
	int owner; /* process, of the current range */
	GpuSortRowQueueReader *queue;
	StashedRange stash[STASHED_RANGES_MAX]; /* in rising order; stores are kept for others when a range has been emitted */
	int stashed;

	int nprocesses;                 /* entries in figures */
	GpuSortProcessFigures *figures; /* by process, of the last time */
} ExchangeState;

/* Drops the first stashed range, which has been emitted; its store will do for another. */
static void
drop_stashed(ExchangeState *state)
{
	Tuplestorestate *store = state->stash[0].rows;

	ExecClearTuple(state->slot);
	tuplestore_clear(store);
	state->stashed--;
	memmove(state->stash, state->stash + 1, (STASHED_RANGES_MAX - 1) * sizeof(StashedRange));
	state->stash[STASHED_RANGES_MAX - 1].rows = store;
}

/* Throws away what is stashed. */
static void
end_stash(ExchangeState *state)
{
	ExecClearTuple(state->slot);
	for (int i = 0; i < STASHED_RANGES_MAX; i++)
	{
		if (state->stash[i].rows != NULL)
			tuplestore_end(state->stash[i].rows);
		state->stash[i].rows = NULL;
	}
	state->stashed = 0;
}

/* Makes the leader compute all, since rows are lost; it is an error if one has been emitted. */
static void
fall_back(ExchangeState *state)
{
	if (state->emitted)
		gpusort_output_report_lost(state->output, true);
	end_stash(state);
	gpusort_output_fall_back(state->output);
	ExecReScan(outerPlanState(state));
	state->stage = STAGE_GATHER;
}

/*
 * Runs Gather, so that the rows are put, sorted and cut.  Returns NULL, or where the service takes no part the first
 * row, or an empty slot.
 */
static TupleTableSlot *
begin_exchange(ExchangeState *state)
{
	GatherState *gather = castNode(GatherState, outerPlanState(state));
	TupleTableSlot *row;
	Size bytes;

	state->emitted = false;
	row = gpusort_gather_row(&gather->ps);
	if (state->output->stage == GPUSORT_OUTPUT_ALONE)
	{
		state->stage = STAGE_GATHER;
		return TupIsNull(row) ? state->slot : row;
	}
	gpusort_gather_uncount_row(&gather->ps);
	if (gpusort_output_has_failed(state->output))
	{
		fall_back(state);
		return NULL;
	}
	state->stage = STAGE_BETWEEN;
	state->range = 0;
	state->ranges = state->output->shared->claims.ranges;

	state->nprocesses = 1 + gather->nworkers_launched;
	bytes = state->nprocesses * sizeof(GpuSortProcessFigures);
	if (state->figures != NULL)
		pfree(state->figures);
	state->figures = MemoryContextAllocZero(gather->ps.state->es_query_cxt, bytes);
	return NULL;
}

/* Reads Gather to its end, so that workers' errors and counts come in. */
static void
drain_gather(ExchangeState *state)
{
	TupleTableSlot *row;

	do
	{
		row = gpusort_gather_row(outerPlanState(state));
	} while (!TupIsNull(row));
}

/* Begins the leader's current range, whose rows come from the plan; asked: it was asked for. */
static void
begin_own_range(ExchangeState *state, bool asked)
{
	if (asked && gpusort_output_begin_range(state->output))
		state->stage = STAGE_PLAN;
	else
		fall_back(state);
}

/* Goes to the next range, or to the end. */
static void
next_range(ExchangeState *state)
{
	if (state->range == state->ranges)
	{
		drain_gather(state);
		gpusort_output_finish(state->output);
		state->stage = STAGE_ENDED;
		return;
	}
	state->owner = gpusort_output_claim(state->output, state->range);
	Assert(state->owner < state->nprocesses);
	state->figures[state->owner].ranges++;
	if (state->owner != GPUSORT_LEADER_PROCESS)
	{
		state->queue = gpusort_output_queue(state->output, state->owner);
		state->stage = STAGE_QUEUE;
	}
	else if (state->stashed == 0)
		begin_own_range(state, gpusort_output_ask(state->output, state->range));
	else
	{
		Assert(state->stash[0].range == state->range);
		if (state->stash[0].begun)
			state->stage = STAGE_STASH;
		else
		{
			state->stashed = 0; /* the second is never asked for before the first has begun */
			begin_own_range(state, true);
		}
	}
}

/* Ends the current range, which has been emitted. */
static void
end_range(ExchangeState *state)
{
	state->range++;
	state->stage = STAGE_BETWEEN;
}

/* Notes that a worker has ended before its range has. */
static void
note_gone(ExchangeState *state)
{
	if (gpusort_output_has_failed(state->output))
	{
		fall_back(state);
		return;
	}
	/* It must have ended with an error, which comes in here. */
	gpusort_output_stop(state->output);
	drain_gather(state);
	elog(ERROR, "a parallel worker has ended before its rows have");
}

/* Claims the next range for the leader and asks for its rows; false if there is none, or enough are stashed. */
static bool
stash_next_range(ExchangeState *state)
{
	StashedRange *next = &state->stash[state->stashed];
	int range;

	if (state->stashed == STASHED_RANGES_MAX)
		return false;
	range = gpusort_output_claim_next(state->output);
	if (range < 0)
		return false;
	if (!gpusort_output_ask(state->output, range))
	{
		fall_back(state);
		return true;
	}
	if (next->rows == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

		next->rows = tuplestore_begin_heap(false, false, work_mem);
		MemoryContextSwitchTo(caller);
	}
	next->range = range;
	next->begun = false;
	next->complete = false;
	state->stashed++;
	return true;
}

/* Stashes some rows of the leader's ranges; false if there is nothing to do.  The rows may turn out to be lost. */
static bool
stash_rows(ExchangeState *state)
{
	StashedRange *first = &state->stash[0];

	while (first < state->stash + state->stashed && first->complete)
		first++;
	if (first == state->stash + state->stashed)
		return stash_next_range(state);
	if (!first->begun)
	{
		first->begun = true;
		if (gpusort_output_begin_range(state->output))
			(void) stash_next_range(state);
		else
			fall_back(state);
		return true;
	}
	for (int i = 0; i < STASH_ROWS; i++)
	{
		TupleTableSlot *row = gpusort_output_row(state->output);

		if (TupIsNull(row))
		{
			first->complete = true;
			if (gpusort_output_has_failed(state->output))
				fall_back(state);
			break;
		}
		tuplestore_puttupleslot(first->rows, row);
	}
	return true;
}

/* Emits the next row of the current stashed range; NULL if there is none, or the plan is to give it. */
static TupleTableSlot *
stashed_row(ExchangeState *state)
{
	StashedRange *first = &state->stash[0];

	if (tuplestore_gettupleslot(first->rows, true, false, state->slot))
		return state->slot;
	if (first->complete)
		end_range(state);
	else
		state->stage = STAGE_PLAN;
	drop_stashed(state);
	return NULL;
}

/* Emits the next row out of a worker's queue, and waits for it; NULL if the range has ended, or is lost. */
static TupleTableSlot *
queue_row(ExchangeState *state)
{
	for (;;)
	{
		MinimalTuple row;

		switch (gpusort_row_queue_next(state->queue, &row))
		{
			case GPUSORT_ROW_QUEUE_ROW:
				return gpusort_slot_show(state->slot, row);
			case GPUSORT_ROW_QUEUE_RANGE_END:
				end_range(state);
				return NULL;
			case GPUSORT_ROW_QUEUE_GONE:
				note_gone(state);
				return NULL;
			case GPUSORT_ROW_QUEUE_EMPTY:
				break;
		}
		if (!stash_rows(state))
		{
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, 0, gpusort_wait_event(GPUSORT_WAIT_EXCHANGE));
			ResetLatch(MyLatch);
		}
		CHECK_FOR_INTERRUPTS();
		if (state->stage != STAGE_QUEUE)
			return NULL;
	}
}

/* Emits the next row of the leader's range; NULL if the range has ended, or is lost. */
static TupleTableSlot *
plan_row(ExchangeState *state)
{
	TupleTableSlot *row = gpusort_output_row(state->output);

	if (likely(!TupIsNull(row)))
		return row;
	if (gpusort_output_has_failed(state->output))
		fall_back(state);
	else
		end_range(state);
	return NULL;
}

/* Emits the next row, whatever the stage; an empty slot after the last. */
static pg_noinline TupleTableSlot *
next_row(ExchangeState *state)
{
	CHECK_FOR_INTERRUPTS();
	ExecClearTuple(state->slot);
	for (;;)
	{
		TupleTableSlot *row = NULL;

		switch (state->stage)
		{
			case STAGE_BEGIN:
				row = begin_exchange(state);
				if (row != NULL)
					return row;
				break;
			case STAGE_BETWEEN:
				next_range(state);
				break;
			case STAGE_QUEUE:
				row = queue_row(state);
				break;
			case STAGE_STASH:
				row = stashed_row(state);
				break;
			case STAGE_PLAN:
				row = plan_row(state);
				break;
			case STAGE_GATHER:
				return gpusort_gather_row(outerPlanState(state));
			case STAGE_ENDED:
				return state->slot;
			case STAGE_STOPPED:
				elog(ERROR, "GpuSortExchange was asked for a row after it had been shut down");
		}
		if (row != NULL)
		{
			state->figures[state->owner].rows++;
			state->emitted = true;
			return row;
		}
	}
}

/* Emits the node's next row, as its ExecProcNode. */
static TupleTableSlot *
exec_exchange(PlanState *ps)
{
	ExchangeState *state = (ExchangeState *) ps;

	/* Nothing here waits within a batch of rows, so interrupts are looked at between batches. */
	if (likely(state->stage == STAGE_QUEUE && state->emitted))
	{
		MinimalTuple row = gpusort_row_queue_ready_row(state->queue);

		if (likely(row != NULL))
		{
			state->figures[state->owner].rows++;
			return gpusort_slot_show(state->slot, row);
		}
	}
	return next_row(state);
}

static void
begin_exchange_node(CustomScanState *node, EState *estate, int eflags)
{
	ExchangeState *state = (ExchangeState *) node;
	PlanState *ps = &node->ss.ps;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);

	Assert(!(eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
	outerPlanState(node) = ExecInitNode(outerPlan(ps->plan), estate, eflags & ~EXEC_FLAG_REWIND);
	state->output = gpusort_output_find(outerPlanState(node));

	/* Most rows are MinimalTuples in our slot, others are in those of the plan below. */
	state->slot = ExecInitExtraTupleSlot(estate, ps->ps_ResultTupleDesc, &TTSOpsMinimalTuple);
	ps->resultops = &TTSOpsMinimalTuple;
	ps->resultopsset = true;
	ps->resultopsfixed = false;
	ps->ps_ProjInfo = NULL;
	ps->ExecProcNode = exec_exchange;
	MemoryContextSwitchTo(caller);
}

static TupleTableSlot *
exec_exchange_node(CustomScanState *node)
{
	return exec_exchange(&node->ss.ps);
}

/* Throws the stash away; GpuSortOutput ends all else. */
static void
end_exchange_node(CustomScanState *node)
{
	end_stash((ExchangeState *) node);
	ExecEndNode(outerPlanState(node));
}

/* Starts over with Gather, and all below it: the next row asked for begins the sorts anew. */
static void
rescan_exchange_node(CustomScanState *node)
{
	ExchangeState *state = (ExchangeState *) node;
	PlanState *gather = outerPlanState(node);

	end_stash(state);
	state->output->lost.reason = GPUSORT_REASON_NONE;
	state->stage = STAGE_BEGIN;
	if (gather->chgParam == NULL)
		ExecReScan(gather);
}

/* Stops: Gather's shared memory is gone, and with it what was in the queues. */
static void
shutdown_exchange_node(CustomScanState *node)
{
	ExchangeState *state = (ExchangeState *) node;

	if (state->stage == STAGE_BEGIN || state->stage == STAGE_GATHER || !gpusort_output_is_shut_down(state->output))
		return;
	end_stash(state);
	if (state->stage != STAGE_ENDED)
		state->stage = STAGE_STOPPED;
}

static void
explain_exchange_node(CustomScanState *node, List *ancestors, ExplainState *es)
{
	ExchangeState *state = (ExchangeState *) node;
	GpuSortScanState *sort = gpusort_output_first_sort(state->output);

	/* which the sort is below, with the initPlans of all that is between */
	gpusort_explain_keys(sort, "Range Key", sort->info.range_columns, lcons(node->ss.ps.plan, list_copy(ancestors)), es);
	if (state->output->window.window != NULL)
		ExplainPropertyText("Across Ranges", gpusort_window_ranges_text(&state->output->window), es);
	if (!es->analyze || state->stage == STAGE_BEGIN || state->stage == STAGE_GATHER)
		return;
	ExplainPropertyUInteger("Ranges", NULL, state->ranges, es);
	if (state->output->window.window != NULL)
		ExplainPropertyInteger("Passes", NULL, state->output->window.passes, es);
	gpusort_explain_processes(state->figures, state->nprocesses, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = GPUSORT_EXCHANGE_NODE_NAME,
	.BeginCustomScan = begin_exchange_node,
	.ExecCustomScan = exec_exchange_node,
	.EndCustomScan = end_exchange_node,
	.ReScanCustomScan = rescan_exchange_node,
	.ShutdownCustomScan = shutdown_exchange_node,
	.ExplainCustomScan = explain_exchange_node,
};

static Node *
create_state(CustomScan *plan)
{
	ExchangeState *state = (ExchangeState *) newNode(sizeof(ExchangeState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpusort_exchange_scan_methods = {
	.CustomName = GPUSORT_EXCHANGE_NODE_NAME,
	.CreateCustomScanState = create_state,
};
