/*-------------------------------------------------------------------------
 *
 * ranks.c
 *	  row_number(), rank() and dense_rank() over rows that GpuSort emits.
 *
 * A WindowAgg puts every row into a tuplestore, because a window function may
 * look at any row of its partition.  That takes ten times as long as GpuSort takes
 * to emit the row.  These three functions look at nothing but the row before, so a
 * WindowAgg that has only these above a GpuSort gets another way to run: rows pass
 * through, and are compared with the first of their partition and of their peers.
 *
 * It stays PostgreSQL's node: plans, EXPLAIN, rescans (which set all_first) and the
 * end are its own; only what computes the next row (ExecProcNode) is changed, after
 * the executor has started.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/ranks.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"

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

/* Counts row, the next of the input. */
static void
count_row(WindowAggState *window, GpuSortRankCounters *counters, TupleTableSlot *row)
{
	bool first = counters->row_number == 0;

	if (first || !is_like(window, window->partEqfunction, window->first_part_slot, row))
	{
		if (window->partEqfunction != NULL)
			ExecCopySlot(window->first_part_slot, row);
		counters->row_number = counters->rank = counters->dense_rank = 1;
		first = true;
	}
	else
		counters->row_number++;

	if (!counters->by_peers)
		return;
	if (first || !is_like(window, window->ordEqfunction, window->temp_slot_1, row))
	{
		if (window->ordEqfunction != NULL)
			ExecCopySlot(window->temp_slot_1, row);
		if (!first)
		{
			counters->rank = counters->row_number;
			counters->dense_rank++;
		}
	}
}

/* The node's ExecProcNode. */
static TupleTableSlot *
exec_ranks(PlanState *ps)
{
	WindowAggState *window = castNode(WindowAggState, ps);
	GpuSortRankCounters *counters = &((GpuSortRankedScan *) outerPlanState(ps))->counters;
	ExprContext *context = ps->ps_ExprContext;
	TupleTableSlot *row;

	CHECK_FOR_INTERRUPTS();
	if (window->all_first)
	{
		window->all_first = false;
		counters->row_number = 0;
		counters->ended = false;
	}
	if (counters->ended)
		return NULL;
	row = ExecProcNode(outerPlanState(ps));
	if (TupIsNull(row))
	{
		counters->ended = true;
		return NULL;
	}
	count_row(window, counters, row);

	ResetExprContext(context);
	for (int i = 0; i < window->numfuncs; i++)
	{
		context->ecxt_aggvalues[i] = Int64GetDatum(*counters->values[i]);
		context->ecxt_aggnulls[i] = false;
	}
	context->ecxt_outertuple = row;
	return ExecProject(ps->ps_ProjInfo);
}

/* Returns where the value of a window function is counted; NULL of others. */
static const int64 *
counter_of(GpuSortRankCounters *counters, const WindowFunc *function)
{
	switch (function->winfnoid)
	{
		case F_ROW_NUMBER:
			return &counters->row_number;
		case F_RANK_:
			counters->by_peers = true;
			return &counters->rank;
		case F_DENSE_RANK_:
			counters->by_peers = true;
			return &counters->dense_rank;
		default:
			return NULL;
	}
}

/*
 * Changes how window, the node above a GpuSort, computes its rows, if all of its
 * functions are such, and nothing else is asked of it.  Both must have been begun.
 */
void
gpusort_ranks_consider(WindowAggState *window, GpuSortRankedScan *scan)
{
	const WindowAgg *plan = (const WindowAgg *) window->ss.ps.plan;
	GpuSortRankCounters *counters = &scan->counters;
	ListCell *cell;

	if (!scan->css.ss.ps.resultopsfixed || plan->plan.qual != NIL || plan->runCondition != NIL ||
		plan->startOffset != NULL || plan->endOffset != NULL || window->numaggs > 0)
		return;
	counters->by_peers = false;
	counters->values = MemoryContextAlloc(window->ss.ps.state->es_query_cxt, window->numfuncs * sizeof(int64 *));
	foreach(cell, window->funcs)
	{
		const WindowFuncExprState *function = lfirst_node(WindowFuncExprState, cell);
		const int64 *counter = counter_of(counters, function->wfunc);

		if (counter == NULL)
			return;
		counters->values[function->wfuncno] = counter;
	}
	ExecSetExecProcNode(&window->ss.ps, exec_ranks);
}
