/*-------------------------------------------------------------------------
 *
 * running_ranges.c
 *	  What a running window comes to in a range of its rows, for the ranges behind it.
 *
 * A total is of the last partition in a range, which is the one that can go on behind it: how many rows and groups of
 * peers that has, and the states of its aggregates.  It says whether there is another in the range, and has a row of
 * both, for the partition may have begun in a range before, and whether it has is for those to find out who know that
 * one.  It is bytes, as it goes to other processes.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/running_state.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Returns true if a range needs more of those before it than how many rows they have. */
bool
gpusort_running_needs_totals(const GpuSortRunning *running)
{
	return running->needs.totals || running->window->partEqfunction != NULL;
}

/* What a range comes to, as other processes get it; a row of its first and last partition follow, if there are any. */
typedef struct RangeTotal
{
	int64 rows;   /* of the last partition in it; 0: the range has none */
	int64 groups; /* of peers in these */
	bool whole;   /* that is all of the range */
} RangeTotal;

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
	return TupIsNull(row) ? NULL : gpusort_running_fit_row(running, row);
}

/*
 * Reads the rows of the range at hand, and returns what they come to, so many bytes in the current memory context.  The
 * window emits none of them.
 */
char *
gpusort_running_total(GpuSortRunning *running, Size *bytes)
{
	WindowAggState *window = running->window;
	const GpuSortRunningCounts *counts = &running->at_hand.counts;
	RangeTotal total = {.whole = true};
	StringInfoData result;
	TupleTableSlot *row;

	if (window->ss.ps.chgParam != NULL)
		ExecReScan(&window->ss.ps);
	running->goes_on = false;
	gpusort_running_start(running);
	while ((row = read_uncounted(running)) != NULL)
	{
		const bool first_row = counts->rows == 0;
		const bool first = first_row ||
			!gpusort_running_is_like(window, window->partEqfunction, window->first_part_slot, row);
		bool new_group = false;

		total.whole &= !first || first_row;
		if (first_row && window->partEqfunction != NULL)
			ExecCopySlot(running->range_first, row);
		if (running->by_groups)
		{
			new_group = first || !gpusort_running_is_like(window, window->ordEqfunction, running->first, row);
			if (new_group)
				ExecCopySlot(running->first, row);
		}
		gpusort_running_count_row(running, row, first, new_group);
		if (running->keeps)
			gpusort_running_advance(running, row, first);
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
			gpusort_running_function_put(&running->functions[i], &running->at_hand.states[i], window, running->states,
										 &result);
	}
	*bytes = result.len;
	return result.data;
}

/* There are so many rows before a range, of one partition, and nothing else is known of them. */
void
gpusort_running_reset(GpuSortRunning *running, int64 rows)
{
	gpusort_running_start_states(running, &running->before, running->before_states);
	running->before.counts.rows = rows;
	running->any_before = rows > 0;
	running->last_before = NULL;
}

/* Adds what the next range comes to, as total has put it, to what the rows before come to. */
void
gpusort_running_add(GpuSortRunning *running, const char *total)
{
	WindowAggState *window = running->window;
	GpuSortRunningTotals *before = &running->before;
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
			goes_on = gpusort_running_is_like(window, window->partEqfunction, running->kept, running->range_first);
		}
		ExecClearTuple(running->kept);
		ExecClearTuple(running->range_first);
	}
	if (!goes_on)
	{
		gpusort_running_start_states(running, before, running->before_states);
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

/* The range that is begun next goes on from the rows before it, of so many in all. */
void
gpusort_running_go_on(GpuSortRunning *running, int64 all_rows)
{
	running->goes_on = true;
	running->range_rows = all_rows;
}

/* No range goes on from others. */
void
gpusort_running_alone(GpuSortRunning *running)
{
	running->goes_on = false;
}
