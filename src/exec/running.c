/*-------------------------------------------------------------------------
 *
 * running.c
 *	  Windows over rows that GpuSort emits, whose functions follow from what the rows before come to.
 *
 * A WindowAgg puts every row into a tuplestore, because a window function may look at any row of its partition.  That
 * takes several times as long as GpuSort takes to emit the row, and needs all of a partition in one process.  Of the
 * functions that facts/windows.c calls running, a row's values follow from counts and states that are kept for the rows
 * before, and from the row at hand up to the last of its peers.  So a WindowAgg that has only these above a GpuSort
 * gets another way to run.
 *
 * It stays PostgreSQL's node: plans, EXPLAIN, rescans (which set all_first) and the end are its own, and its
 * expressions are evaluated, in its contexts; only what computes the next row (ExecProcNode) is changed, after the
 * executor has started.
 *
 * Where a frame ends with the row at hand (ROWS), or rows are only numbered, they pass through.  Else the rows of a
 * group of peers are read to their end, and kept, before the first of them is emitted: one in a slot, several in a
 * tuplestore, which spills beyond work_mem.
 *
 * Several processes can run it, each for ranges of the rows, none of which begins within a group of peers.  What a
 * range comes to (total) is added to what those before it do (add), which a range goes on from (go_on).
 *
 *-------------------------------------------------------------------------
 */
#include "exec/running.h"

#include "access/htup_details.h"
#include "exec/running_state.h"
#include "executor/executor.h"
#include "facts/windows.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

/* Sets states to what they are at the beginning of a partition, in that memory context, which has nothing else. */
void
gpusort_running_start_states(const GpuSortRunning *running, GpuSortRunningTotals *totals, MemoryContext states)
{
	MemoryContext caller;

	totals->counts = (GpuSortRunningCounts){0};
	MemoryContextReset(states);
	caller = MemoryContextSwitchTo(states);
	for (int i = 0; running->keeps && i < running->count; i++)
		totals->states[i] = gpusort_running_function_start(&running->functions[i]);
	MemoryContextSwitchTo(caller);
}

/* Before the first row, or that of a range, which goes on from the rows before it if it is to. */
void
gpusort_running_start(GpuSortRunning *running)
{
	WindowAggState *window = running->window;

	window->all_first = false;
	running->ended = false;
	running->group_rows = running->emitted = 0;
	ExecClearTuple(running->first);
	ExecClearTuple(running->next);
	gpusort_running_start_states(running, &running->at_hand, running->states);
	running->all_rows = running->goes_on ? running->range_rows : -1;
	if (!running->goes_on || !running->any_before)
		return;
	running->at_hand.counts = running->before.counts;
	for (int i = 0; running->keeps && i < running->count; i++)
		gpusort_running_function_add(&running->functions[i], &running->at_hand.states[i], true,
									 &running->before.states[i], window, running->states);
	if (window->partEqfunction != NULL)
		ExecForceStoreMinimalTuple(running->last_before, window->first_part_slot, false);
}

/* Adds row to the states. */
void
gpusort_running_advance(GpuSortRunning *running, TupleTableSlot *row, bool first)
{
	WindowAggState *window = running->window;

	window->tmpcontext->ecxt_outertuple = row;
	for (int i = 0; i < running->count; i++)
		gpusort_running_function_advance(&running->functions[i], &running->at_hand.states[i], first, window,
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

/* Sets the value of a function that depends on the row alone, of so many rows with its last peer; false: another. */
static bool
set_row_value(GpuSortRunning *running, int i, int64 row, int64 with_peers, Datum *value)
{
	const GpuSortRunningCounts *counts = &running->at_hand.counts;
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

/* Has the functions that keep something give what it comes to; it is valid until the next call. */
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
		value = gpusort_running_function_value(&running->functions[i], &running->at_hand.states[i], running->window,
											   running->states);
		context->ecxt_aggvalues[i] = value.value;
		context->ecxt_aggnulls[i] = value.is_null;
	}
	MemoryContextSwitchTo(caller);
}

/* Emits a row, of that number in its partition, with as many rows before it and with its peers. */
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

/* Reads the next row of the input; NULL: there is none. */
static inline TupleTableSlot *
read_row(GpuSortRunning *running)
{
	TupleTableSlot *row = ExecProcNode(&running->scan->css.ss.ps);

	return TupIsNull(row) ? NULL : gpusort_running_fit_row(running, row);
}

/* The node's ExecProcNode where a row needs nothing of those behind it. */
static TupleTableSlot *
exec_by_row(GpuSortRunning *running)
{
	WindowAggState *window = running->window;
	const GpuSortRunningCounts *counts = &running->at_hand.counts;
	TupleTableSlot *row = read_row(running);
	bool first;
	bool new_group = false;

	if (row == NULL)
	{
		running->ended = true;
		return NULL;
	}
	first = counts->rows == 0 || !gpusort_running_is_like(window, window->partEqfunction, window->first_part_slot, row);
	if (running->by_peers)
	{
		/* A range begins with a group of peers. */
		new_group = first || TupIsNull(running->first) ||
			!gpusort_running_is_like(window, window->ordEqfunction, running->first, row);
		if (new_group && (window->ordEqfunction != NULL || TupIsNull(running->first)))
			ExecCopySlot(running->first, row);
	}
	gpusort_running_count_row(running, row, first, new_group);
	if (running->keeps)
	{
		gpusort_running_advance(running, row, first);
		set_kept_values(running);
	}
	return emit(running, row, counts->rows, counts->rows);
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

/* Reads the next group of peers to its end; false: there is none. */
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
	first = running->at_hand.counts.rows == 0 ||
		!gpusort_running_is_like(window, window->partEqfunction, window->first_part_slot, running->first);
	row = running->first;
	do
	{
		if (running->group_rows > 0)
			store_group_row(running, row);
		gpusort_running_count_row(running, row, first && running->group_rows == 0, running->group_rows == 0);
		if (running->keeps && !running->by_row)
			gpusort_running_advance(running, row, first && running->group_rows == 0);
		running->group_rows++;
		row = read_row(running);
	} while (row != NULL && gpusort_running_is_like(window, window->partEqfunction, running->first, row) &&
			 gpusort_running_is_like(window, window->ordEqfunction, running->first, row));
	if (row != NULL)
		ExecCopySlot(running->next, row);
	else
		running->ended = true;
	if (!running->by_row)
		set_kept_values(running);
	return true;
}

/* The node's ExecProcNode where the rows of a group of peers are read first. */
static TupleTableSlot *
exec_by_group(GpuSortRunning *running)
{
	const int64 with_peers = running->at_hand.counts.rows;
	TupleTableSlot *row = running->first;
	int64 number;

	if (running->group_rows > 1 && !tuplestore_gettupleslot(running->group, true, false, running->kept))
		elog(ERROR, "a row of a group of peers is missing");
	if (running->group_rows > 1)
		row = running->kept;
	number = with_peers - running->group_rows + ++running->emitted;
	if (running->keeps && running->by_row)
	{
		gpusort_running_advance(running, row, number == 1);
		set_kept_values(running);
	}
	return emit(running, row, number, with_peers);
}

/* The node's ExecProcNode. */
static TupleTableSlot *
exec_running(PlanState *ps)
{
	WindowAggState *window = castNode(WindowAggState, ps);
	GpuSortRunning *running = ((GpuSortScanState *) outerPlanState(ps))->running;

	CHECK_FOR_INTERRUPTS();
	if (unlikely(window->all_first))
	{
		/* How many rows there are is known while they are read by ranges. */
		running->natively = running->needs.rows && !running->goes_on;
		if (!running->natively)
			gpusort_running_start(running);
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

/* The plan has ended: lets go of what may be in a file.  running: NULL of a window that does not run so. */
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

/*
 * Changes how window, the node above a GpuSort, computes its rows, if all that it computes is running.  Both must have
 * been begun.
 */
void
gpusort_running_consider(WindowAggState *window, GpuSortScanState *scan)
{
	EState *estate = window->ss.ps.state;
	const WindowAgg *plan = (const WindowAgg *) window->ss.ps.plan;
	const GpuSortWindowNeeds needs = gpusort_window_plan_needs(plan);
	TupleDesc desc = window->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	MemoryContext caller;
	GpuSortRunning *running;
	ListCell *cell;

	if (needs.rule != GPUSORT_WINDOW_RUNNING)
		return;
	caller = MemoryContextSwitchTo(estate->es_query_cxt);
	running = palloc0(sizeof(GpuSortRunning));
	running->native = window->ss.ps.ExecProcNodeReal;
	running->window = window;
	running->scan = scan;
	running->needs = needs;
	running->count = window->numfuncs;
	running->functions = palloc0(window->numfuncs * sizeof(GpuSortRunningFunction));
	running->at_hand.states = palloc0(window->numfuncs * sizeof(GpuSortRunningValue));
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
