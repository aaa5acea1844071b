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
 * Where all ranges are the leader's (output.c) it goes through stage ALL once, in place of those between.
 *
 * While it waits for rows of a worker's range the leader computes the next range that nobody has
 * claimed, a few rows at a time, and puts what comes of it into a stash until that
 * range's turn: a tuplestore, which spills beyond work_mem.  So with few workers it is one of
 * them, and yet never keeps them waiting for longer than these rows take.
 *
 * A statement that is fetched from in parts has no workers, nor has an INSERT.  Where the plan was made for that the
 * node starts some itself (gather.h), and ends them before it emits the first row: it stores all rows before that.
 * Where all ranges are the leader's, as where no worker has started, it keeps what it needs of the shared memory,
 * unless rows are long or come through Gather.
 *
 * Where the service takes no part, or has lost the rows before one was emitted, the rows
 * come through Gather, from the leader alone (stage GATHER).
 *
 * Rows are shown where they lie in a queue.  The node cannot go back, nor mark.
 *
 * Where the rows are to leave the server at once, workers' queues and stashes are of bytes that rows were formed as.
 * Then a slot of the node's own stands for the bytes of some rows (gpusort_exchange_formed_rows), all others
 * are rows as ever, which have to be formed yet.
 *
 * Where the rows are a new table's, all processes put them into pages, and when all have ended one slot stands for all
 * rows.  Where an INSERT inserts them the node starts workers itself, as PostgreSQL runs it without, counts the rows
 * for ModifyTable, and emits none.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/exchange.h"

#include "access/parallel.h"
#include "catalog/pg_type_d.h"
#include "commands/explain.h"
#include "parallel/claims.h"
#include "exec/explain.h"
#include "exec/gather.h"
#include "exec/output.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "node.h"
#include "pgstat.h"
#include "server/reasons.h"
#include "server/wait_events.h"
#include "settings.h"
#include "sort/heap_rows.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

/* Where the next row comes from. */
typedef enum ExchangeStage
{
	STAGE_BEGIN,   /* nowhere yet */
	STAGE_BETWEEN, /* the next range */
	STAGE_QUEUE,   /* the current range, a worker's */
	STAGE_STASH,   /* the current range, the leader's, as far as it has been stashed */
	STAGE_PLAN,    /* the same, straight from the plan */
	STAGE_ALL,     /* all ranges at once, which are the leader's, straight from the plan */
	STAGE_GATHER,  /* Gather */
	STAGE_STORED,  /* the first stash, of rows as they are, where all were read before the first was emitted */
	STAGE_ENDED,   /* there is none */
	STAGE_STOPPED, /* nowhere any more */
} ExchangeStage;

/* The leader is so many ranges ahead at most: it should have something to do, but not what workers could have done. */
#define STASHED_RANGES_MAX 2

/* So many rows are stashed before the worker is looked after again; or of rows that were formed so many bytes. */
#define STASH_ROWS  32
#define STASH_BYTES (32 << 10)

/* The columns of a stash of formed rows: of how many the data are; 0: of one that was not formed, a MinimalTuple. */
typedef enum FormedColumn
{
	FORMED_ROWS,
	FORMED_DATA,
	FORMED_COLUMNS,
} FormedColumn;

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
	GpuSortBeginning beginning;
	TupleTableSlot *slot; /* rows of a queue */

	ExchangeStage stage;
	bool emitted; /* a row, since the beginning: too late to fall back */
	uint32 range; /* the current one, or in BETWEEN the next */
	uint32 ranges;
	int owner;        /* process, of the current range */
	uint64 uncounted; /* rows of stage ALL that the nodes below have not counted */
	GpuSortRowQueueReader *queue;
	StashedRange stash[STASHED_RANGES_MAX]; /* in rising order; stores are kept for others when a range has been emitted */
	int stashed;

	GpuSortFormer *former;      /* the leader's, if it forms rows; else NULL */
	TupleTableSlot *formed;     /* stands for formed_rows */
	TupleTableSlot *stash_slot; /* of a stash of formed rows; else NULL */
	GpuSortFormedRows formed_rows;
	Relation inserted_into; /* the table that an INSERT has filled; NULL: rows are no INSERT's, or ModifyTable's */

	int nprocesses;                 /* entries in figures */
	GpuSortProcessFigures *figures; /* by process, of the last time */
} ExchangeState;

/* Makes the nodes below count the rows that they have not counted yet. */
static void
count_below(ExchangeState *state)
{
	gpusort_output_count_rows(state->output, state->uncounted);
	state->uncounted = 0;
}

/* Empties the slots that may show what is in a stash, or in a queue. */
static void
clear_slots(ExchangeState *state)
{
	ExecClearTuple(state->slot);
	if (state->stash_slot != NULL)
		ExecClearTuple(state->stash_slot);
}

/* Drops the first stashed range, which has been emitted; its store will do for another. */
static void
drop_stashed(ExchangeState *state)
{
	Tuplestorestate *store = state->stash[0].rows;

	clear_slots(state);
	tuplestore_clear(store);
	state->stashed--;
	memmove(state->stash, state->stash + 1, (STASHED_RANGES_MAX - 1) * sizeof(StashedRange));
	state->stash[STASHED_RANGES_MAX - 1].rows = store;
}

/* Throws away what is stashed. */
static void
end_stash(ExchangeState *state)
{
	clear_slots(state);
	for (int i = 0; i < STASHED_RANGES_MAX; i++)
	{
		if (state->stash[i].rows != NULL)
			tuplestore_end(state->stash[i].rows);
		state->stash[i].rows = NULL;
	}
	state->stashed = 0;
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

/*
 * Makes the leader compute all, since rows are lost; it is an error if one has been emitted, or written to a new table,
 * which is known when all processes have ended.
 */
static void
fall_back(ExchangeState *state)
{
	GpuSortOutputShared *shared = state->output->shared;

	if (shared->into)
	{
		drain_gather(state);
		state->emitted = gpusort_new_table_is_begun(gpusort_output_into(shared));
	}
	if (state->emitted)
		gpusort_output_report_lost(state->output, true);
	count_below(state);
	end_stash(state);
	gpusort_output_fall_back(state->output);
	ExecReScan(outerPlanState(state));
	state->stage = STAGE_GATHER;
}

/* Begins with all ranges at once. */
static void
begin_all(ExchangeState *state)
{
	if (!gpusort_output_begin_all(state->output))
	{
		fall_back(state);
		return;
	}
	state->stage = STAGE_ALL;
	state->range = state->ranges;
	state->owner = GPUSORT_LEADER_PROCESS;
	state->figures[state->owner].ranges = state->ranges;
}

/* Counts rows of an INSERT, which ModifyTable does not see. */
static void
count_inserted(ExchangeState *state, uint64 rows)
{
	state->css.ss.ps.state->es_processed += rows;
	pgstat_count_heap_insert(state->inserted_into, rows);
}

/*
 * Lets all processes put the rows into a new table.  Shows what stands for all of them; NULL if there are none, they
 * are an INSERT's, or they were lost.
 */
static TupleTableSlot *
fill_table(ExchangeState *state)
{
	uint64 rows = 0;

	gpusort_output_put_into_table(state->output);
	drain_gather(state);
	if (gpusort_output_has_failed(state->output))
	{
		fall_back(state);
		return NULL;
	}
	gpusort_output_finish(state->output);
	memcpy(state->figures, state->output->shared->figures, state->nprocesses * sizeof(GpuSortProcessFigures));
	for (int i = 0; i < state->nprocesses; i++)
		rows += state->figures[i].rows;
	state->stage = STAGE_ENDED;
	if (rows == 0)
		return NULL;
	if (state->css.ss.ps.instrument != NULL)
		InstrUpdateTupleCount(state->css.ss.ps.instrument, (double) rows - (state->inserted_into == NULL ? 1 : 0));
	if (state->inserted_into != NULL)
	{
		count_inserted(state, rows);
		return NULL;
	}
	state->formed_rows = (GpuSortFormedRows){.rows = rows};
	return state->formed;
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
	if (gpusort_force && !state->output->shared->leads_all)
		gpusort_output_await_claim(state->output);
	if (state->output->shared->into)
		return fill_table(state);
	if (state->ranges > 0 && state->output->shared->leads_all)
		begin_all(state);
	return NULL;
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

/* Puts into a stash what stands for so many rows. */
static void
stash_data(ExchangeState *state, StashedRange *range, int rows, const char *data, Size length)
{
	bool nulls[FORMED_COLUMNS] = {false};
	Datum values[FORMED_COLUMNS];

	values[FORMED_ROWS] = Int32GetDatum(rows);
	values[FORMED_DATA] = PointerGetDatum(cstring_to_text_with_len(data, length));
	tuplestore_putvalues(range->rows, state->stash_slot->tts_tupleDescriptor, values, nulls);
	pfree(DatumGetPointer(values[FORMED_DATA]));
}

/* Stashes the rows that the leader has formed. */
static void
stash_formed(ExchangeState *state, StashedRange *range, int rows)
{
	const StringInfoData *bytes = &state->former->caught.bytes;

	if (rows == 0)
		return;
	stash_data(state, range, rows, bytes->data, bytes->len);
	gpusort_former_clear(state->former);
}

/* Stashes a row that was too long to be formed. */
static void
stash_long_row(ExchangeState *state, StashedRange *range, TupleTableSlot *row)
{
	bool should_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(row, &should_free);

	stash_data(state, range, 0, (const char *) tuple, tuple->t_len);
	if (should_free)
		heap_free_minimal_tuple(tuple);
}

/* Stashes some rows of a range of the leader's, which the plan gives; false if it has no more. */
static bool
stash_range(ExchangeState *state, StashedRange *range)
{
	GpuSortFormer *former = state->former;
	TupleTableSlot *row = NULL;
	int formed = 0;

	for (int i = 0; i < STASH_ROWS; i++)
	{
		row = gpusort_output_row(state->output);
		if (TupIsNull(row))
			break;
		if (former == NULL)
			tuplestore_puttupleslot(range->rows, row);
		else if (gpusort_former_row(former, row))
			formed++;
		else
		{
			stash_formed(state, range, formed);
			formed = 0;
			stash_long_row(state, range, row);
		}
		if (former != NULL && former->caught.bytes.len > STASH_BYTES)
			break;
	}
	stash_formed(state, range, formed);
	return !TupIsNull(row);
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
	if (!stash_range(state, first))
	{
		first->complete = true;
		if (gpusort_output_has_failed(state->output))
			fall_back(state);
	}
	return true;
}

/* Shows what stands for so many rows: the slot for formed ones, or the row if there are none. */
static TupleTableSlot *
show_formed(ExchangeState *state, bool own, uint32 rows, const char *data, Size length)
{
	if (rows > 0)
	{
		state->formed_rows = (GpuSortFormedRows){.data = data, .length = length, .rows = rows, .own = own};
		return state->formed;
	}
	/* data may not be aligned */
	return ExecStoreMinimalTuple(memcpy(palloc(length), data, length), state->slot, true);
}

/* Shows the next of a stash; NULL: there is none. */
static TupleTableSlot *
show_stashed(ExchangeState *state, Tuplestorestate *store)
{
	TupleTableSlot *slot = state->stash_slot;
	bytea *data;

	if (slot == NULL)
		return tuplestore_gettupleslot(store, true, false, state->slot) ? state->slot : NULL;
	if (!tuplestore_gettupleslot(store, true, false, slot))
		return NULL;
	slot_getallattrs(slot);
	data = (bytea *) DatumGetPointer(slot->tts_values[FORMED_DATA]);
	return show_formed(state, true, DatumGetInt32(slot->tts_values[FORMED_ROWS]), VARDATA_ANY(data),
					   VARSIZE_ANY_EXHDR(data));
}

/* Shows what was read from a queue. */
static TupleTableSlot *
show_queued(ExchangeState *state, MinimalTuple row)
{
	const GpuSortRowBytes *bytes = (const GpuSortRowBytes *) row;

	if (state->former == NULL)
		return gpusort_slot_show(state->slot, row);
	return show_formed(state, false, bytes->rows, bytes->data, bytes->bytes - offsetof(GpuSortRowBytes, data));
}

/* Emits the next row of the current stashed range; NULL if there is none, or the plan is to give it. */
static TupleTableSlot *
stashed_row(ExchangeState *state)
{
	StashedRange *first = &state->stash[0];
	TupleTableSlot *row = show_stashed(state, first->rows);

	if (row != NULL)
		return row;
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
				return show_queued(state, row);
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

/* Emits a row of the leader's range; it may be none: the range has ended, or is lost. */
static TupleTableSlot *
emit_own(ExchangeState *state, TupleTableSlot *row)
{
	if (likely(!TupIsNull(row)))
		return row;
	count_below(state);
	if (gpusort_output_has_failed(state->output))
		fall_back(state);
	else if (state->stage == STAGE_ALL)
		state->stage = STAGE_BETWEEN; /* behind the last */
	else
		end_range(state);
	return NULL;
}

/* Counts the row in a slot, or those that it stands for. */
static void
count_rows(ExchangeState *state, const TupleTableSlot *row)
{
	const uint64 rows = row == state->formed ? state->formed_rows.rows : 1;

	state->figures[state->owner].rows += rows;
	if (rows != 1 && state->css.ss.ps.instrument != NULL)
		InstrUpdateTupleCount(state->css.ss.ps.instrument, (double) rows - 1);
}

/* Finds the next row, whatever the stage; an empty slot after the last. */
static TupleTableSlot *
find_row(ExchangeState *state)
{
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
			case STAGE_ALL:
				row = emit_own(state, gpusort_output_row(state->output));
				break;
			case STAGE_GATHER:
				return gpusort_gather_row(outerPlanState(state));
			case STAGE_STORED:
				(void) tuplestore_gettupleslot(state->stash[0].rows, true, false, state->slot);
				return state->slot;
			case STAGE_ENDED:
				return state->slot;
			case STAGE_STOPPED:
				elog(ERROR, "GpuSortExchange was asked for a row after it had been shut down");
		}
		if (row != NULL)
		{
			count_rows(state, row);
			state->emitted = true;
			return row;
		}
	}
}

/*
 * Returns true if the node may start workers itself, in a statement that PostgreSQL runs without
 * (plan/finish/own_workers.c), and the leader gives its rows out, or an INSERT takes them.
 */
static bool
may_start_workers(const ExchangeState *state)
{
	return gpusort_parallel_cursors && state->output->starts_workers && state->former == NULL &&
		(state->output->into == NULL || state->inserted_into != NULL);
}

/* Reads all rows, of which the first is there.  If they are lost meanwhile, the leader computes all of them again. */
static void
store_rows(ExchangeState *state, TupleTableSlot *row)
{
	MemoryContext caller = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	Tuplestorestate *store = tuplestore_begin_heap(false, false, work_mem);

	MemoryContextSwitchTo(caller);
	while (!TupIsNull(row))
	{
		const bool alone = state->stage == STAGE_GATHER;

		CHECK_FOR_INTERRUPTS();
		tuplestore_puttupleslot(store, row);
		state->emitted = false; /* nobody has seen it */
		row = find_row(state);
		if (state->stage == STAGE_GATHER && !alone)
			tuplestore_clear(store);
	}
	end_stash(state);
	state->stash[0].rows = store;
	state->stage = STAGE_STORED;
}

/* Ends the workers that the node has started, before it emits the first row. */
static TupleTableSlot *
end_workers(ExchangeState *state, TupleTableSlot *row)
{
	bool kept = state->stage == STAGE_ENDED && state->output->into != NULL;

	if (state->stage == STAGE_ALL)
	{
		drain_gather(state);
		kept = gpusort_output_keep(state->output);
	}
	if (!kept)
		store_rows(state, row);
	gpusort_gather_end_workers(outerPlanState(state));
	return kept ? row : find_row(state);
}

/* Emits the next row; an empty slot after the last. */
static pg_noinline TupleTableSlot *
next_row(ExchangeState *state)
{
	TupleTableSlot *row;
	bool own_workers;

	CHECK_FOR_INTERRUPTS();
	own_workers = state->stage == STAGE_BEGIN && may_start_workers(state) &&
		gpusort_gather_begin_workers(outerPlanState(state), &state->beginning);
	row = find_row(state);
	return own_workers ? end_workers(state, row) : row;
}

/* Emits the node's next row, as its ExecProcNode. */
static TupleTableSlot *
exec_exchange(PlanState *ps)
{
	ExchangeState *state = (ExchangeState *) ps;

	/* Nothing here waits within a batch of rows, so interrupts are looked at between batches. */
	if (likely(state->stage == STAGE_QUEUE && state->emitted && state->former == NULL))
	{
		MinimalTuple row = gpusort_row_queue_ready_row(state->queue);

		if (likely(row != NULL))
		{
			state->figures[state->owner].rows++;
			return gpusort_slot_show(state->slot, row);
		}
	}
	else if (state->stage == STAGE_ALL && state->emitted)
	{
		const bool timed = (ps->state->es_instrument & INSTRUMENT_TIMER) != 0;
		TupleTableSlot *row = timed ? gpusort_output_row(state->output) : gpusort_output_uncounted_row(state->output);

		if (likely(!TupIsNull(row)))
		{
			state->figures[GPUSORT_LEADER_PROCESS].rows++;
			if (!timed)
				state->uncounted++;
			return row;
		}
		(void) emit_own(state, row);
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
	state->beginning = gpusort_gather_beginning();

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

/*
 * Starts over with Gather, and all below it: the next row asked for begins the sorts anew.  Rows that are stored are
 * emitted again, as what is below has come to its end for good (gather.h).
 */
static void
rescan_exchange_node(CustomScanState *node)
{
	ExchangeState *state = (ExchangeState *) node;
	PlanState *gather = outerPlanState(node);

	if (state->stage == STAGE_STORED)
	{
		Assert(gather->chgParam == NULL);
		ExecClearTuple(state->slot);
		tuplestore_rescan(state->stash[0].rows);
		return;
	}
	count_below(state);
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

	if (state->stage == STAGE_BEGIN || state->stage == STAGE_GATHER || state->stage == STAGE_STORED ||
		!gpusort_output_is_shut_down(state->output))
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

	count_below(state);

	/* which the sort is below, with the initPlans of all that is between */
	gpusort_explain_keys(sort, "Range Key", sort->info.range_columns, lcons(node->ss.ps.plan, list_copy(ancestors)), es);
	if (state->output->window.window != NULL)
		ExplainPropertyText("Across Ranges", gpusort_window_ranges_text(&state->output->window), es);
	if (!es->analyze || state->stage == STAGE_BEGIN || state->stage == STAGE_GATHER || state->figures == NULL)
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

/* Returns true if a node is a GpuSortExchange. */
bool
gpusort_is_exchange(const PlanState *ps)
{
	return IsA(ps, CustomScanState) && ((const CustomScanState *) ps)->methods == &exec_methods;
}

/* The descriptor of a stash of formed rows. */
static TupleDesc
formed_desc(void)
{
	TupleDesc desc = CreateTemplateTupleDesc(FORMED_COLUMNS);

	TupleDescInitEntry(desc, FORMED_ROWS + 1, NULL, INT4OID, -1, 0);
	TupleDescInitEntry(desc, FORMED_DATA + 1, NULL, BYTEAOID, -1, 0);
	TupleDescFinalize(desc);
	return desc;
}

/* Makes the slot that stands for rows. */
static void
stand_for_rows(ExchangeState *state)
{
	PlanState *ps = &state->css.ss.ps;

	state->formed = ExecInitExtraTupleSlot(ps->state, ps->ps_ResultTupleDesc, &TTSOpsVirtual);
	ExecStoreAllNullTuple(state->formed);
}

/*
 * Lets the processes form rows: workers by the format, the leader what it does ahead by its former.  Call it before
 * the node emits a row.
 */
void
gpusort_exchange_form_rows(PlanState *ps, const GpuSortFormat *format, GpuSortFormer *former)
{
	ExchangeState *state = (ExchangeState *) ps;

	Assert(state->stage == STAGE_BEGIN && state->former == NULL);
	state->former = former;
	state->output->format = format;
	stand_for_rows(state);
	state->stash_slot = ExecInitExtraTupleSlot(ps->state, formed_desc(), &TTSOpsMinimalTuple);
}

/* Returns true if a function of the plan may read tables that the statement does not name. */
bool
gpusort_exchange_reads_tables(const PlanState *ps)
{
	return ((const ExchangeState *) ps)->output->reads_tables;
}

/*
 * Lets the processes put all rows into a new table: inserted_into, if a ModifyTable above would insert them; else NULL.
 * Call it before the node emits a row.
 */
void
gpusort_exchange_fill_table(PlanState *ps, const GpuSortNewTable *table, Relation inserted_into)
{
	ExchangeState *state = (ExchangeState *) ps;

	Assert(state->stage == STAGE_BEGIN && state->former == NULL);
	state->output->into = table;
	state->inserted_into = inserted_into;
	stand_for_rows(state);
}

/* Returns the rows that a slot stands for which the node has emitted just now; NULL: it is a row. */
const GpuSortFormedRows *
gpusort_exchange_formed_rows(const PlanState *ps, const TupleTableSlot *slot)
{
	const ExchangeState *state = (const ExchangeState *) ps;

	return slot == state->formed ? &state->formed_rows : NULL;
}
