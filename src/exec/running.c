/*-------------------------------------------------------------------------
 *
 * running.c
 *	  Windows over rows that GpuSort emits, whose functions follow from what the rows before come to.
 *
 * A WindowAgg puts every row into a tuplestore, because a window function may look at any row of its partition.  That
 * takes several times as long as GpuSort takes to emit the row, and needs all of a partition in one process.  Of the
 * functions that facts/windows.c calls running, a row's values follow from counts and states that are kept for the rows
 * before, and from the current row up to the last of its peers.  So a WindowAgg that has only these above a GpuSort
 * gets another way to run.  The GpuSort's plan says so (GPUSORT_USE_RUNNING).
 *
 * It stays PostgreSQL's node: plans, EXPLAIN, rescans (which set all_first) and the end are its own, and its
 * expressions are evaluated, in its contexts; only what computes the next row (ExecProcNode) is changed, after the
 * executor has started.
 *
 * Where a frame ends with the current row (ROWS), or rows are only numbered, they pass through; of a partition no more
 * from the first on for which the window's run condition is false.  Otherwise the rows of a group of peers are read to
 * their end, and kept, before the first of them is emitted: one in a slot, several in a tuplestore, which spills beyond
 * work_mem.
 *
 * RANGES
 *	Several processes can run it, each for ranges of the rows, none of which begins within a group of peers.  What a
 *	range comes to (total) is added to what those before it do (add), which a range goes on from (go_on).
 *
 *	A total is of the last partition in a range, which is the one that can go on behind it: how many rows and groups of
 *	peers that has, and the states of its aggregates.  It says whether there is another in the range, and has a row of
 *	both, for the partition may have begun in a range before, and only those who know that one can find out whether it
 *	has.  It is bytes, as it goes to other processes.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/running.h"

#include "access/htup_details.h"
#include "exec/running_functions.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

/* Numbers of rows in the partition of the current row. */
typedef struct RunningCounts
{
	int64 rows;   /* up to it; 0: there is none yet */
	int64 rank;   /* number of the first of its peers */
	int64 groups; /* of peers up to it */
} RunningCounts;

/* What rows come to, as far as the partition of the last of them goes. */
typedef struct RunningTotals
{
	RunningCounts counts;
	GpuSortRunningValue *states; /* by number of the function */
} RunningTotals;

struct GpuSortRunning
{
	ExecProcNodeMtd native; /* how the WindowAgg runs by itself */
	WindowAggState *window;
	GpuSortScanState *scan;
	int count;
	GpuSortRunningFunction *functions; /* by number */
	bool keeps;                        /* some have a state, or a value */
	bool by_row;                       /* frames end with the current row, not with its last peer */
	bool ahead;                        /* a row's values need the last of its peers */
	bool by_peers;                     /* the first of them */
	bool by_groups;                    /* how many groups of peers there are */

	/* up to the current row */
	RunningTotals current;
	MemoryContext states; /* what current's are in */
	MemoryContext values; /* what comes of them: of a row, or of a group of peers */
	bool ended;
	bool skips;     /* the window's condition, on which it gives out rows of a partition, has become false in this one */
	bool natively;  /* the node runs by itself, until it starts over */
	int64 all_rows; /* of the partition; -1: not known */

	/* where a group of peers is read before it is emitted */
	TupleTableSlot *first; /* of the current group */
	TupleTableSlot *next;  /* of the next; empty: it has not been read */
	Tuplestorestate *group;
	TupleTableSlot *kept; /* a row of group */
	int64 group_rows;     /* of the current group; in group if there are several */
	int64 emitted;        /* of these */

	/* by ranges */
	RunningTotals before; /* what the rows before the current range come to */
	MemoryContext before_states;
	bool any_before;             /* there are some */
	MinimalTuple last_before;    /* one of the partition of the last of them, in before_states; NULL: there is but one */
	bool goes_on;                /* the current range goes on from there, when it is begun */
	int64 range_rows;            /* all_rows for ranges */
	TupleTableSlot *range_first; /* the first row of a range */
};

/* What a range comes to, as other processes get it; a row of its first and last partition follow, if there are any. */
typedef struct RangeTotal
{
	int64 rows;   /* of the last partition in it; 0: the range has none */
	int64 groups; /* of peers in these */
	bool whole;   /* that is all of the range */
} RangeTotal;

/* Returns true if row is equal to first in the columns that equal compares; NULL compares none. */
static inline bool
is_like(WindowAggState *window, ExprState *equal, TupleTableSlot *first, TupleTableSlot *row)
{
	ExprContext *context = window->tmpcontext;

	if (equal == NULL)
		return true;
	context->ecxt_innertuple = first;
	context->ecxt_outertuple = row;
	return ExecQualAndReset(equal, context);
}

/* Sets states to what they are at the beginning of a partition, in that memory context, which has nothing else. */
static void
start_states(const GpuSortRunning *running, RunningTotals *totals, MemoryContext states)
{
	MemoryContext caller;

	totals->counts = (RunningCounts){0};
	MemoryContextReset(states);
	caller = MemoryContextSwitchTo(states);
	for (int i = 0; running->keeps && i < running->count; i++)
		totals->states[i] = gpusort_running_function_start(&running->functions[i]);
	MemoryContextSwitchTo(caller);
}

/* Counts row, the next of the input: begins a partition with it, or a group of peers, where it is the first of one. */
static inline void
count_row(GpuSortRunning *running, TupleTableSlot *row, bool new_partition, bool new_group)
{
	RunningCounts *counts = &running->current.counts;

	if (new_partition)
	{
		if (running->window->partEqfunction != NULL)
			ExecCopySlot(running->window->first_part_slot, row);
		start_states(running, &running->current, running->states);
	}
	counts->rows++;
	if (new_group)
	{
		counts->rank = counts->rows;
		counts->groups++;
	}
}

/* Starts before the first row, or that of a range, which goes on from the rows before it if it is to. */
static void
start(GpuSortRunning *running)
{
	WindowAggState *window = running->window;

	window->all_first = false;
	running->ended = false;
	running->skips = false;
	running->group_rows = running->emitted = 0;
	ExecClearTuple(running->first);
	ExecClearTuple(running->next);
	start_states(running, &running->current, running->states);
	running->all_rows = running->goes_on ? running->range_rows : -1;
	if (!running->goes_on || !running->any_before)
		return;
	running->current.counts = running->before.counts;
	for (int i = 0; running->keeps && i < running->count; i++)
		gpusort_running_function_add(&running->functions[i], &running->current.states[i], true,
									 &running->before.states[i], window, running->states);
	if (window->partEqfunction != NULL)
		ExecForceStoreMinimalTuple(running->last_before, window->first_part_slot, false);
}

/* Adds row to the states. */
static void
add_row(GpuSortRunning *running, TupleTableSlot *row, bool first)
{
	WindowAggState *window = running->window;

	window->tmpcontext->ecxt_outertuple = row;
	for (int i = 0; i < running->count; i++)
		gpusort_running_function_advance(&running->functions[i], &running->current.states[i], first, window,
										 running->states);
	ResetExprContext(window->tmpcontext);
}

/* Returns the value of ntile() for the row of that number, from 1. */
static int32
tile_of(int64 tiles, int64 rows, int64 row)
{
	const int64 size = rows / tiles;
	const int64 larger = rows % tiles; /* so many of the first have a row more */
	const int64 before = row - 1;

	if (before < larger * (size + 1))
		return before / (size + 1) + 1;
	return larger + (before - larger * (size + 1)) / size + 1;
}

/* Sets the value of a function if it depends on the numbers of the row and of its last peer alone; else false. */
static bool
set_row_value(GpuSortRunning *running, int i, int64 row, int64 with_peers, Datum *value)
{
	const RunningCounts *counts = &running->current.counts;
	const GpuSortRunningFunction *function = &running->functions[i];

	switch (function->kind)
	{
		case GPUSORT_RUNNING_ROW_NUMBER:
			*value = Int64GetDatum(row);
			return true;
		case GPUSORT_RUNNING_RANK:
			*value = Int64GetDatum(counts->rank);
			return true;
		case GPUSORT_RUNNING_DENSE_RANK:
			*value = Int64GetDatum(counts->groups);
			return true;
		case GPUSORT_RUNNING_PERCENT_RANK:
			*value = Float8GetDatum(running->all_rows <= 1 ? 0.0
														   : (float8) (counts->rank - 1) / (float8) (running->all_rows - 1));
			return true;
		case GPUSORT_RUNNING_CUME_DIST:
			*value = Float8GetDatum((float8) with_peers / (float8) running->all_rows);
			return true;
		case GPUSORT_RUNNING_NTILE:
			*value = Int32GetDatum(tile_of(function->tiles, running->all_rows, row));
			return true;
		case GPUSORT_RUNNING_COUNT:
			*value = Int64GetDatum(running->by_row ? row : with_peers);
			return true;
		default:
			return false;
	}
}

/* Sets the values of the functions that keep something; they are valid until the next call. */
static void
set_kept_values(GpuSortRunning *running)
{
	ExprContext *context = running->window->ss.ps.ps_ExprContext;
	MemoryContext caller;

	if (!running->keeps)
		return;
	MemoryContextReset(running->values);
	caller = MemoryContextSwitchTo(running->values);
	for (int i = 0; i < running->count; i++)
	{
		GpuSortRunningValue value;

		if (running->functions[i].kind < GPUSORT_RUNNING_AGGREGATE)
			continue;
		value = gpusort_running_function_value(&running->functions[i], &running->current.states[i], running->window,
											   running->states);
		context->ecxt_aggvalues[i] = value.value;
		context->ecxt_aggnulls[i] = value.is_null;
	}
	MemoryContextSwitchTo(caller);
}

/* Emits a row of that number in its partition; with_peers: how many rows there are up to the last of its peers. */
static TupleTableSlot *
emit(GpuSortRunning *running, TupleTableSlot *row, int64 number, int64 with_peers)
{
	PlanState *ps = &running->window->ss.ps;
	ExprContext *context = ps->ps_ExprContext;

	ResetExprContext(context);
	for (int i = 0; i < running->count; i++)
	{
		if (set_row_value(running, i, number, with_peers, &context->ecxt_aggvalues[i]))
			context->ecxt_aggnulls[i] = false;
	}
	context->ecxt_outertuple = row;
	return ExecProject(ps->ps_ProjInfo);
}

/* Returns a row of the input as the kind of tuple that the window's expressions take. */
static inline TupleTableSlot *
fit_row(GpuSortRunning *running, TupleTableSlot *row)
{
	return likely(running->scan->css.ss.ps.resultopsfixed) ? row : ExecCopySlot(running->window->ss.ss_ScanTupleSlot, row);
}

/* Reads the next row of the input; NULL if there is none. */
static inline TupleTableSlot *
read_row(GpuSortRunning *running)
{
	TupleTableSlot *row = ExecProcNode(&running->scan->css.ss.ps);

	return TupIsNull(row) ? NULL : fit_row(running, row);
}

/* Counts the next row of the input, and sets what it comes to, where that needs nothing of the rows behind it. */
static void
pass_row(GpuSortRunning *running, TupleTableSlot *row, bool first)
{
	WindowAggState *window = running->window;
	bool new_group = false;

	if (running->by_peers)
	{
		/* A range begins with a group of peers. */
		new_group = first || TupIsNull(running->first) ||
			!is_like(window, window->ordEqfunction, running->first, row);
		if (new_group && (window->ordEqfunction != NULL || TupIsNull(running->first)))
			ExecCopySlot(running->first, row);
	}
	count_row(running, row, first, new_group);
	if (running->keeps)
	{
		add_row(running, row, first);
		set_kept_values(running);
	}
}

/* Returns true if the window gives out a row that has been computed, and with it the rest of its partition. */
static inline bool
is_wanted(GpuSortRunning *running, TupleTableSlot *result)
{
	WindowAggState *window = running->window;
	ExprContext *context = window->ss.ps.ps_ExprContext;

	if (window->runcondition == NULL)
		return true;
	context->ecxt_scantuple = result;
	return ExecQual(window->runcondition, context);
}

/* Computes the node's next row where it needs nothing of those behind it. */
static TupleTableSlot *
exec_by_row(GpuSortRunning *running)
{
	WindowAggState *window = running->window;
	const RunningCounts *counts = &running->current.counts;
	TupleTableSlot *row;

	while ((row = read_row(running)) != NULL)
	{
		const bool first =
			counts->rows == 0 || !is_like(window, window->partEqfunction, window->first_part_slot, row);
		TupleTableSlot *result;

		if (running->skips && !first)
			continue;
		pass_row(running, row, first);
		result = emit(running, row, counts->rows, counts->rows);
		running->skips = !is_wanted(running, result);
		if (likely(!running->skips))
			return result;
	}
	running->ended = true;
	return NULL;
}

/* Puts a row that is no longer the first of its group into the store, and those before it. */
static void
store_group_row(GpuSortRunning *running, TupleTableSlot *row)
{
	if (running->group_rows == 1)
	{
		if (running->group == NULL)
		{
			MemoryContext caller = MemoryContextSwitchTo(running->window->ss.ps.state->es_query_cxt);

			running->group = tuplestore_begin_heap(false, false, work_mem);
			MemoryContextSwitchTo(caller);
		}
		tuplestore_clear(running->group);
		tuplestore_puttupleslot(running->group, running->first);
	}
	tuplestore_puttupleslot(running->group, row);
}

/* Reads the next group of peers to its end; false if there is none. */
static bool
read_group(GpuSortRunning *running)
{
	WindowAggState *window = running->window;
	TupleTableSlot *row = running->next;
	TupleTableSlot *spare = running->first;
	bool first;

	if (TupIsNull(row))
	{
		row = read_row(running);
		if (row == NULL)
			return false;
		ExecCopySlot(running->next, row);
	}
	running->first = running->next;
	running->next = ExecClearTuple(spare);
	running->group_rows = 0;
	running->emitted = 0;
	first = running->current.counts.rows == 0 ||
		!is_like(window, window->partEqfunction, window->first_part_slot, running->first);
	row = running->first;
	do
	{
		if (running->group_rows > 0)
			store_group_row(running, row);
		count_row(running, row, first && running->group_rows == 0, running->group_rows == 0);
		if (running->keeps && !running->by_row)
			add_row(running, row, first && running->group_rows == 0);
		running->group_rows++;
		row = read_row(running);
	} while (row != NULL && is_like(window, window->partEqfunction, running->first, row) &&
			 is_like(window, window->ordEqfunction, running->first, row));
	if (row != NULL)
		ExecCopySlot(running->next, row);
	else
		running->ended = true;
	if (!running->by_row)
		set_kept_values(running);
	return true;
}

/* Computes the node's next row where the rows of a group of peers are read first. */
static TupleTableSlot *
exec_by_group(GpuSortRunning *running)
{
	const int64 with_peers = running->current.counts.rows;
	TupleTableSlot *row = running->first;
	int64 number;

	if (running->group_rows > 1 && !tuplestore_gettupleslot(running->group, true, false, running->kept))
		elog(ERROR, "a row of a group of peers is missing");
	if (running->group_rows > 1)
		row = running->kept;
	number = with_peers - running->group_rows + ++running->emitted;
	if (running->keeps && running->by_row)
	{
		add_row(running, row, number == 1);
		set_kept_values(running);
	}
	return emit(running, row, number, with_peers);
}

/* Computes the node's next row, as its ExecProcNode. */
static TupleTableSlot *
exec_running(PlanState *ps)
{
	WindowAggState *window = castNode(WindowAggState, ps);
	GpuSortRunning *running = ((GpuSortScanState *) outerPlanState(ps))->running;

	CHECK_FOR_INTERRUPTS();
	if (unlikely(window->all_first))
	{
		/* How many rows there are is known while they are read by ranges. */
		running->natively = running->scan->info.use.rows && !running->goes_on;
		if (!running->natively)
			start(running);
	}
	if (running->natively)
		return running->native(ps);
	if (!running->ahead)
		return running->ended ? NULL : exec_by_row(running);
	if (running->emitted < running->group_rows)
		return exec_by_group(running);
	if (!running->ended && read_group(running))
		return exec_by_group(running);
	running->ended = true;
	return NULL;
}

/* Returns true if a range needs more of those before it than how many rows they have. */
bool
gpusort_running_needs_totals(const GpuSortRunning *running)
{
	return running->scan->info.use.totals || running->window->partEqfunction != NULL;
}

static void
put_row(TupleTableSlot *slot, StringInfo bytes)
{
	bool should_free;
	MinimalTuple row = ExecFetchSlotMinimalTuple(slot, &should_free);

	appendBinaryStringInfo(bytes, (char *) row, row->t_len);
	if (should_free)
		pfree(row);
}

/* Returns a copy of a row in the current memory context, and moves *bytes behind it. */
static MinimalTuple
get_row(const char **bytes)
{
	uint32 length;
	MinimalTuple row;

	memcpy(&length, *bytes, sizeof(length));
	row = palloc(length);
	memcpy(row, *bytes, length);
	*bytes += length;
	return row;
}

/* Reads the next row of the range, which EXPLAIN counts when it is read again. */
static TupleTableSlot *
read_uncounted(GpuSortRunning *running)
{
	PlanState *scan = &running->scan->css.ss.ps;
	TupleTableSlot *row;

	if (scan->chgParam != NULL)
		ExecReScan(scan);
	row = scan->ExecProcNodeReal(scan);
	return TupIsNull(row) ? NULL : fit_row(running, row);
}

/*
 * Reads the rows of the current range, and returns what they come to, *bytes bytes in the current memory context.  The
 * window emits none of them.
 */
char *
gpusort_running_total(GpuSortRunning *running, Size *bytes)
{
	WindowAggState *window = running->window;
	const RunningCounts *counts = &running->current.counts;
	RangeTotal total = {.whole = true};
	StringInfoData result;
	TupleTableSlot *row;

	if (window->ss.ps.chgParam != NULL)
		ExecReScan(&window->ss.ps);
	running->goes_on = false;
	start(running);
	while ((row = read_uncounted(running)) != NULL)
	{
		const bool first_row = counts->rows == 0;
		const bool first = first_row ||
			!is_like(window, window->partEqfunction, window->first_part_slot, row);
		bool new_group = false;

		total.whole &= !first || first_row;
		if (first_row && window->partEqfunction != NULL)
			ExecCopySlot(running->range_first, row);
		if (running->by_groups)
		{
			new_group = first || !is_like(window, window->ordEqfunction, running->first, row);
			if (new_group)
				ExecCopySlot(running->first, row);
		}
		count_row(running, row, first, new_group);
		if (running->keeps)
			add_row(running, row, first);
		CHECK_FOR_INTERRUPTS();
	}
	initStringInfo(&result);
	total.rows = counts->rows;
	total.groups = counts->groups;
	appendBinaryStringInfo(&result, (char *) &total, sizeof(total));
	if (total.rows > 0 && window->partEqfunction != NULL)
	{
		put_row(running->range_first, &result);
		put_row(window->first_part_slot, &result);
	}
	for (int i = 0; total.rows > 0 && i < running->count; i++)
	{
		if (running->functions[i].kind >= GPUSORT_RUNNING_AGGREGATE)
			gpusort_running_function_put(&running->functions[i], &running->current.states[i], window, running->states,
										 &result);
	}
	*bytes = result.len;
	return result.data;
}

/* Sets what the rows before a range come to: there are so many, of one partition, and nothing else is known. */
void
gpusort_running_reset(GpuSortRunning *running, int64 rows)
{
	start_states(running, &running->before, running->before_states);
	running->before.counts.rows = rows;
	running->any_before = rows > 0;
	running->last_before = NULL;
}

/* Adds what the next range comes to, as gpusort_running_total has put it, to what the rows before come to. */
void
gpusort_running_add(GpuSortRunning *running, const char *total)
{
	WindowAggState *window = running->window;
	RunningTotals *before = &running->before;
	MinimalTuple last_row = NULL;
	RangeTotal range;
	MemoryContext caller;
	bool goes_on;

	memcpy(&range, total, sizeof(range));
	total += sizeof(range);
	if (range.rows == 0)
		return;
	MemoryContextReset(running->values);
	caller = MemoryContextSwitchTo(running->values);
	goes_on = running->any_before && range.whole;
	if (window->partEqfunction != NULL)
	{
		ExecForceStoreMinimalTuple(get_row(&total), running->range_first, false);
		last_row = get_row(&total);
		if (goes_on)
		{
			ExecForceStoreMinimalTuple(running->last_before, running->kept, false);
			goes_on = is_like(window, window->partEqfunction, running->kept, running->range_first);
		}
		ExecClearTuple(running->kept);
		ExecClearTuple(running->range_first);
	}
	if (!goes_on)
	{
		start_states(running, before, running->before_states);
		if (last_row != NULL)
		{
			MemoryContextSwitchTo(running->before_states);
			running->last_before = memcpy(palloc(last_row->t_len), last_row, last_row->t_len);
			MemoryContextSwitchTo(running->values);
		}
	}
	before->counts.rows += range.rows;
	before->counts.groups += range.groups;
	for (int i = 0; i < running->count; i++)
	{
		GpuSortRunningFunction *function = &running->functions[i];
		GpuSortRunningValue state;

		if (function->kind < GPUSORT_RUNNING_AGGREGATE)
			continue;
		state = gpusort_running_function_get(function, &total, window, running->before_states);
		gpusort_running_function_add(function, &before->states[i], !goes_on, &state, window, running->before_states);
	}
	running->any_before = true;
	MemoryContextSwitchTo(caller);
}

/* Makes the range that is begun next go on from the rows before it, of so many rows in all. */
void
gpusort_running_go_on(GpuSortRunning *running, int64 all_rows)
{
	running->goes_on = true;
	running->range_rows = all_rows;
}

/* Makes no range go on from others. */
void
gpusort_running_alone(GpuSortRunning *running)
{
	running->goes_on = false;
}

/* Lets go of what may be in a file, when the plan has ended; running: NULL for a window that does not run so. */
void
gpusort_running_end(GpuSortRunning *running)
{
	if (running == NULL || running->group == NULL)
		return;
	ExecClearTuple(running->kept);
	tuplestore_end(running->group);
	running->group = NULL;
}

/* Notes what the functions need. */
static void
add_function(GpuSortRunning *running, GpuSortRunningFunction *function, const WindowFuncExprState *expr)
{
	gpusort_running_function_init(function, expr);
	running->keeps |= function->kind >= GPUSORT_RUNNING_AGGREGATE;
	running->by_groups |= function->kind == GPUSORT_RUNNING_DENSE_RANK;
	running->by_peers |= function->kind == GPUSORT_RUNNING_RANK || function->kind == GPUSORT_RUNNING_DENSE_RANK ||
		function->kind == GPUSORT_RUNNING_PERCENT_RANK;
	running->ahead |= function->kind == GPUSORT_RUNNING_CUME_DIST ||
		(!running->by_row && function->kind >= GPUSORT_RUNNING_COUNT);
}

/* Changes how window, the node above a GpuSort, computes its rows, all of them running.  Both must have been begun. */
void
gpusort_running_begin(WindowAggState *window, GpuSortScanState *scan)
{
	EState *estate = window->ss.ps.state;
	TupleDesc desc = window->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
	GpuSortRunning *running = palloc0(sizeof(GpuSortRunning));
	ListCell *cell;

	running->native = window->ss.ps.ExecProcNodeReal;
	running->window = window;
	running->scan = scan;
	running->count = window->numfuncs;
	running->functions = palloc0(window->numfuncs * sizeof(GpuSortRunningFunction));
	running->current.states = palloc0(window->numfuncs * sizeof(GpuSortRunningValue));
	running->before.states = palloc0(window->numfuncs * sizeof(GpuSortRunningValue));
	running->by_row = (window->frameOptions & FRAMEOPTION_ROWS) != 0;
	foreach(cell, window->funcs)
	{
		const WindowFuncExprState *expr = lfirst_node(WindowFuncExprState, cell);

		/* Equal ones have one number. */
		if (running->functions[expr->wfuncno].expr == NULL)
			add_function(running, &running->functions[expr->wfuncno], expr);
	}
	running->states = AllocSetContextCreate(CurrentMemoryContext, "gpusort running states", ALLOCSET_SMALL_SIZES);
	running->values = AllocSetContextCreate(CurrentMemoryContext, "gpusort running values", ALLOCSET_SMALL_SIZES);
	running->before_states = AllocSetContextCreate(CurrentMemoryContext, "gpusort states before", ALLOCSET_SMALL_SIZES);
	running->first = ExecInitExtraTupleSlot(estate, desc, &TTSOpsMinimalTuple);
	running->next = ExecInitExtraTupleSlot(estate, desc, &TTSOpsMinimalTuple);
	running->kept = ExecInitExtraTupleSlot(estate, desc, &TTSOpsMinimalTuple);
	running->range_first = ExecInitExtraTupleSlot(estate, desc, &TTSOpsMinimalTuple);
	MemoryContextSwitchTo(caller);
	scan->running = running;
	ExecSetExecProcNode(&window->ss.ps, exec_running);
}
