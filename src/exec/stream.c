/*-------------------------------------------------------------------------
 *
 * stream.c
 *	  The rows of a GpuSort on their way to the node above.
 *
 * From the service they come in chunks, in order, and are shown where they lie.
 * Rows that the keys left undecided, and long rows, make a detour (ties.c, rows.c).
 *
 * Going back: a node that may be asked to scan backward keeps the rows it has given
 * out in a tuplestore, which spills beyond work_mem.  A marked position, below a
 * merge join, is one in the chunk at hand; rows are kept only when the reader
 * leaves that chunk, or rows come from elsewhere, before another is marked.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/executor.h"

#include "executor/executor.h"
#include "miscadmin.h"

/* From the next row on, rows given out are kept. */
void
gpusort_stream_keep(GpuSortState *state)
{
	MemoryContext caller = MemoryContextSwitchTo(state->sort_context);

	if (state->store == NULL)
	{
		state->store = tuplestore_begin_heap((state->eflags & EXEC_FLAG_BACKWARD) != 0, false, work_mem);
		tuplestore_set_eflags(state->store, state->eflags & EXEC_FLAG_BACKWARD ? state->eflags : 0);
		if (state->eflags & EXEC_FLAG_MARK)
			tuplestore_alloc_read_pointer(state->store, state->eflags & EXEC_FLAG_BACKWARD ? state->eflags : 0);
	}
	MemoryContextSwitchTo(caller);
	state->keeping = true;
}

/*
 * Rows from the marked one on are kept, because the reader cannot go back any
 * more: those that were given out since go into the store, before the row that is
 * the next one.
 */
static pg_noinline void
keep_from_mark(GpuSortState *state)
{
	GpuSortReader *reader = &state->reader;
	GpuSortReader here = *reader;
	uint32 given = state->mark.left - here.left;

	gpusort_stream_keep(state);
	reader->cursor = state->mark.cursor;
	reader->left = state->mark.left;
	for (uint32 i = 0; i < given; i++)
		tuplestore_puttupleslot(state->store, gpusort_slots_give(&state->slots, gpusort_reader_row(reader)));
	Assert(reader->cursor == here.cursor && reader->left == here.left);
	state->mark.set = false;
	/* The marked position is the store's beginning; ours is its end. */
	tuplestore_copy_read_pointer(state->store, 0, 1);
	(void) tuplestore_skiptuples(state->store, (int64) given + 1, true);
}

/* All rows have been given out: when nobody can ask for them again, the service need not keep them. */
static void
finish_stream(GpuSortState *state)
{
	if (state->eflags & (EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK))
		return;
	gpusort_client_end(state->client);
	gpusort_release_job_slot(state);
}

/* The next row from the service that is not simply the next one in the chunk at hand. */
static pg_noinline TupleTableSlot *
stream_next_special(GpuSortState *state, char *row)
{
	GpuSortFailure failure = {0};

	if (!(gpusort_row_flags(row) & GPUSORT_ROW_TIE_NEXT))
	{
		(void) gpusort_slots_load(&state->slots, row);
		state->row_given = true;
		return gpusort_slots_cut(&state->slots);
	}
	if (!gpusort_ties_collect(state->ties, &state->reader, row, &failure))
	{
		gpusort_fallback_lost(state, &failure);
		return NULL;
	}
	state->row_given = true;
	state->in_ties = true;
	return gpusort_ties_next(state->ties);
}

/* Goes to the next chunk; false after the last, with the slots empty, and when the sort started over. */
static pg_noinline bool
stream_next_chunk(GpuSortState *state)
{
	GpuSortFailure failure = {0};

	CHECK_FOR_INTERRUPTS();
	gpusort_slots_clear(&state->slots);
	if (gpusort_reader_next_chunk(&state->reader, &failure))
	{
		gpusort_show_progress(state, GPUSORT_PHASE_EMIT, state->reader.rows);
		return true;
	}
	if (failure.reason == GPUSORT_REASON_NONE)
		finish_stream(state);
	else
		gpusort_fallback_lost(state, &failure);
	return false;
}

/*
 * The next row of the stream, or an empty slot after the last.  NULL when the
 * sort started over, or when rows are kept from now on: the caller must look
 * again.
 */
static pg_attribute_always_inline TupleTableSlot *
stream_next(GpuSortState *state)
{
	GpuSortReader *reader = &state->reader;
	char *row;

	if (unlikely(state->in_ties))
	{
		TupleTableSlot *slot = gpusort_ties_next(state->ties);

		if (slot != NULL)
			return slot;
		state->in_ties = false;
	}

	if (unlikely(reader->left == 0))
	{
		if (state->mark.set)
		{
			keep_from_mark(state);
			return NULL;
		}
		if (!stream_next_chunk(state))
			return state->stage == GPUSORT_STAGE_STREAM ? state->slots.given : NULL;
	}
	if (unlikely(gpusort_row_flags(reader->cursor) & (GPUSORT_ROW_TIE_NEXT | GPUSORT_ROW_OVERFLOW)))
	{
		if (state->mark.set)
		{
			keep_from_mark(state);
			return NULL;
		}
		return stream_next_special(state, gpusort_reader_row(reader));
	}
	row = gpusort_reader_row(reader);
	state->row_given = true;
	return gpusort_slots_give(&state->slots, row);
}

/* The same for a node that may go back: rows given out are kept. */
static TupleTableSlot *
stored_next(GpuSortState *state, bool forward)
{
	TupleTableSlot *slot = state->slots.given;
	TupleTableSlot *row;

	if (!forward && tuplestore_ateof(state->store) && !state->stream_ended)
	{
		/* The row before the last one given is asked for: step over that one. */
		if (!tuplestore_advance(state->store, false))
			return ExecClearTuple(slot);
	}
	if ((!forward || !tuplestore_ateof(state->store)) &&
		tuplestore_gettupleslot(state->store, forward, false, slot))
		return slot;
	if (!forward || state->stream_ended)
		return ExecClearTuple(slot);

	row = stream_next(state);
	if (row == NULL)
		return NULL;
	if (TupIsNull(row))
		state->stream_ended = true;
	else
		tuplestore_puttupleslot(state->store, row);
	return row;
}

/* The next row, in whatever stage and direction. */
static pg_noinline TupleTableSlot *
next_row(GpuSortState *state)
{
	EState *estate = state->css.ss.ps.state;
	bool forward = ScanDirectionIsForward(estate->es_direction);
	TupleTableSlot *row;

	CHECK_FOR_INTERRUPTS();
	if (state->stage == GPUSORT_STAGE_INPUT)
	{
		/* Whatever direction was asked for, the child is read forward. */
		estate->es_direction = ForwardScanDirection;
		gpusort_sort_input(state);
		estate->es_direction = forward ? ForwardScanDirection : BackwardScanDirection;
	}
	while (state->stage == GPUSORT_STAGE_STREAM)
	{
		row = state->keeping ? stored_next(state, forward) : stream_next(state);
		if (row != NULL)
			return row;
	}
	Assert(state->stage == GPUSORT_STAGE_TUPLESORT);
	(void) tuplesort_gettupleslot(state->fallback, forward, false, state->slots.all, NULL);
	return gpusort_slots_cut(&state->slots);
}

TupleTableSlot *
gpusort_stream_row(CustomScanState *node)
{
	GpuSortState *state = (GpuSortState *) node;
	TupleTableSlot *row;

	/* Nothing here waits within a chunk, so interrupts are looked at between chunks. */
	if (likely(state->stage == GPUSORT_STAGE_STREAM && !state->keeping))
	{
		row = stream_next(state);
		if (likely(row != NULL))
			return row;
	}
	return next_row(state);
}

/* The same as the node's ExecProcNode: without a custom scan's own function before it. */
TupleTableSlot *
gpusort_stream_exec(PlanState *ps)
{
	return gpusort_stream_row((CustomScanState *) ps);
}

/*
 * Marks the position behind the row given out last.  Where that came from the
 * chunk at hand it is enough to note where it ended.
 */
void
gpusort_stream_mark(GpuSortState *state)
{
	bool in_chunk = !state->in_ties && state->slots.joined == NULL && !(state->eflags & EXEC_FLAG_BACKWARD);

	if (in_chunk && (!state->keeping || (tuplestore_ateof(state->store) && !state->stream_ended)))
	{
		if (state->keeping)
			tuplestore_clear(state->store);
		state->keeping = false;
		state->mark.set = true;
		state->mark.cursor = state->reader.cursor;
		state->mark.left = state->reader.left;
		return;
	}
	if (!state->keeping)
	{
		gpusort_stream_keep(state);
		(void) tuplestore_advance(state->store, true); /* to its end */
	}
	tuplestore_copy_read_pointer(state->store, 0, 1);
	tuplestore_trim(state->store);
}
