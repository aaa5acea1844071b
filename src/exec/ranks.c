/*-------------------------------------------------------------------------
 *
 * ranks.c
 *	  row_number(), rank() and dense_rank() over rows that GpuSort gives out.
 *
 * A WindowAgg puts every row into a tuplestore, because a window function may look
 * at any row of its partition.  That takes ten times as long as GpuSort takes to
 * give the row out.  These three functions look at nothing but the row before, so
 * a WindowAgg that has only these above a GpuSort gets another way to run: rows
 * pass through, and are compared with the first of their partition and of their
 * peers.
 *
 * It stays PostgreSQL's node: plans, EXPLAIN, rescans (which set all_first) and the
 * end are its own; only what computes the next row (ExecProcNode) is changed, after
 * the executor has started.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/ranks.h"

#include "exec/executor.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"

/* Is row equal to first in the columns that equal compares?  NULL compares none. */
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
count_row(WindowAggState *window, GpuSortRanks *ranks, TupleTableSlot *row)
{
	bool first = ranks->row_number == 0;

	if (first || !is_like(window, window->partEqfunction, window->first_part_slot, row))
	{
		if (window->partEqfunction != NULL)
			ExecCopySlot(window->first_part_slot, row);
		ranks->row_number = ranks->rank = ranks->dense_rank = 1;
		first = true;
	}
	else
		ranks->row_number++;

	if (!ranks->by_peers)
		return;
	if (first || !is_like(window, window->ordEqfunction, window->temp_slot_1, row))
	{
		if (window->ordEqfunction != NULL)
			ExecCopySlot(window->temp_slot_1, row);
		if (!first)
		{
			ranks->rank = ranks->row_number;
			ranks->dense_rank++;
		}
	}
}

/* The node's ExecProcNode. */
static TupleTableSlot *
exec_ranks(PlanState *ps)
{
	WindowAggState *window = castNode(WindowAggState, ps);
	GpuSortRanks *ranks = gpusort_ranks_of(outerPlanState(ps));
	ExprContext *context = ps->ps_ExprContext;
	TupleTableSlot *row;

	CHECK_FOR_INTERRUPTS();
	if (window->all_first)
	{
		window->all_first = false;
		ranks->row_number = 0;
		ranks->ended = false;
	}
	if (ranks->ended)
		return NULL;
	row = ExecProcNode(outerPlanState(ps));
	if (TupIsNull(row))
	{
		ranks->ended = true;
		return NULL;
	}
	count_row(window, ranks, row);

	ResetExprContext(context);
	for (int i = 0; i < window->numfuncs; i++)
	{
		context->ecxt_aggvalues[i] = Int64GetDatum(*ranks->values[i]);
		context->ecxt_aggnulls[i] = false;
	}
	context->ecxt_outertuple = row;
	return ExecProject(ps->ps_ProjInfo);
}

/* Where the value of a window function is counted; NULL: of others. */
static const int64 *
counter_of(GpuSortRanks *ranks, const WindowFunc *function)
{
	switch (function->winfnoid)
	{
		case F_ROW_NUMBER:
			return &ranks->row_number;
		case F_RANK_:
			ranks->by_peers = true;
			return &ranks->rank;
		case F_DENSE_RANK_:
			ranks->by_peers = true;
			return &ranks->dense_rank;
		default:
			return NULL;
	}
}

/* Changes a node over GpuSort if all of its functions are such, and nothing else is asked of it. */
void
gpusort_ranks_consider(WindowAggState *window)
{
	const WindowAgg *plan = (const WindowAgg *) window->ss.ps.plan;
	PlanState *child = outerPlanState(window);
	GpuSortRanks *ranks = gpusort_ranks_of(child);
	ListCell *cell;

	if (ranks == NULL || !child->resultopsfixed || plan->plan.qual != NIL || plan->runCondition != NIL ||
		plan->startOffset != NULL || plan->endOffset != NULL || window->numaggs > 0)
		return;
	ranks->by_peers = false;
	ranks->values = MemoryContextAlloc(window->ss.ps.state->es_query_cxt, window->numfuncs * sizeof(int64 *));
	foreach(cell, window->funcs)
	{
		const WindowFuncExprState *function = lfirst_node(WindowFuncExprState, cell);
		const int64 *counter = counter_of(ranks, function->wfunc);

		if (counter == NULL)
			return;
		ranks->values[function->wfuncno] = counter;
	}
	ExecSetExecProcNode(&window->ss.ps, exec_ranks);
}
