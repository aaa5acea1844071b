/*-------------------------------------------------------------------------
 *
 * stream.c
 *	  Emits the rows of a GpuSort to the node above.
 *
 * The first row asked for has the input sorted (input.c).  From the service rows
 * come in chunks, in order, and are shown where they lie.  Rows that need a
 * tie-break, and long rows, make a detour (ties.c, overflow.c).  Those before an OFFSET right above do
 * not come: with the first row that does, the Limit is told that they have been passed (bound.c).
 *
 * Going back: a node that may be asked to scan backward keeps the rows it has
 * emitted in a tuplestore, which spills beyond work_mem.  A marked position, below
 * a merge join, is one in the chunk at hand; rows are kept only when the reader
 * leaves that chunk, or rows come from elsewhere, before another is marked.  Rows whose
 * resjunk attributes are cut off when they are emitted are kept from the first mark on.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/stream.h"

#include "exec/bound.h"
#include "exec/fallback.h"
#include "exec/input.h"
#include "exec/service_sort.h"
#include "exec/shared_sort.h"
#include "sort/ties.h"
#include "miscadmin.h"

/* From the next row on, rows emitted are kept. */
static void
keep_rows(GpuSortScanState *state)
{
	MemoryContext caller = MemoryContextSwitchTo(state->sort_context);

	if (state->stream.store == NULL)
	{
		state->stream.store = tuplestore_begin_heap((state->eflags & EXEC_FLAG_BACKWARD) != 0, false, work_mem);
		tuplestore_set_eflags(state->stream.store, state->eflags & EXEC_FLAG_BACKWARD ? state->eflags : 0);
		if (state->eflags & EXEC_FLAG_MARK)
			tuplestore_alloc_read_pointer(state->stream.store, state->eflags & EXEC_FLAG_BACKWARD ? state->eflags : 0);
	}
	MemoryContextSwitchTo(caller);
	state->stream.keeping = true;
}

/*
 * Rows from the marked one on are kept, because the reader cannot go back any
 * more: those that were emitted since go into the store, before the row that is
 * the next one.
 */
static pg_noinline void
keep_from_mark(GpuSortScanState *state)
{
	GpuSortReader *reader = &state->service.reader;
	GpuSortRowStream *stream = &state->stream;
	uint32 emitted = gpusort_reader_rows_since(reader, stream->mark);

	keep_rows(state);
	gpusort_reader_restore(reader, stream->mark);
	for (uint32 i = 0; i < emitted; i++)
	{
		char *row = gpusort_reader_row(reader);

		if (row == NULL)
			gpusort_report_lost(state, &reader->failure);
		tuplestore_puttupleslot(stream->store, gpusort_slots_emit(&state->slots, row));
	}
	Assert(gpusort_reader_rows_since(reader, stream->mark) == emitted);
	stream->marked = false;
	/* The marked position is the store's beginning; ours is its end. */
	tuplestore_copy_read_pointer(stream->store, 0, 1);
	(void) tuplestore_skiptuples(stream->store, (int64) emitted + 1, true);
}

/* All rows, or those of the range at hand, have been emitted: when nobody can ask for them again, the service need not keep them. */
static void
finish_stream(GpuSortScanState *state)
{
	if (state->shared != NULL)
		state->stream.range_ended = true;
	else if (!(state->eflags & (EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)))
		gpusort_service_sort_release(state);
}

/* Goes to the next chunk; false, with the slots empty, after the last one and when the sort started over. */
static pg_noinline bool
stream_next_chunk(GpuSortScanState *state)
{
	GpuSortFailure failure = {0};

	CHECK_FOR_INTERRUPTS();
	gpusort_slots_clear(&state->slots);
	if (state->stream.range_ended)
		return false;
	if (state->shared != NULL && gpusort_shared_sort_is_stopped(state))
	{
		gpusort_shared_sort_lose(state, &failure);
		return false;
	}
	if (gpusort_reader_next_chunk(&state->service.reader, &failure))
	{
		if (state->shared == NULL)
			gpusort_service_sort_show(state, GPUSORT_PHASE_EMIT, state->service.reader.rows);
		return true;
	}
	if (failure.reason == GPUSORT_REASON_NONE)
		finish_stream(state);
	else
		gpusort_fallback_lost(state, &failure);
	return false;
}

/* Emits the first row of a run that needs a tie-break and begins with row; NULL: the sort started over. */
static TupleTableSlot *
stream_next_run(GpuSortScanState *state, char *row)
{
	GpuSortFailure failure = {0};

	if (!gpusort_ties_collect(state->service.ties, &state->service.reader, row, &failure))
	{
		gpusort_fallback_lost(state, &failure);
		return NULL;
	}
	state->stream.emitted = true;
	state->stream.in_ties = true;
	return gpusort_ties_next(state->service.ties);
}

/*
 * Emits the next row where it is not a plain one in the chunk at hand: it begins another chunk, has not
 * been verified yet, needs a tie-break or lies in the overflow file, or there is none.  NULL as stream_next.
 */
static pg_noinline TupleTableSlot *
stream_next_other(GpuSortScanState *state)
{
	GpuSortReader *reader = &state->service.reader;
	char *row;

	if (state->stream.marked && (gpusort_reader_at_end(reader) || !gpusort_reader_next_is_plain(reader)))
	{
		keep_from_mark(state);
		return NULL;
	}
	if (gpusort_reader_at_end(reader) && !stream_next_chunk(state))
		return state->stage == GPUSORT_STAGE_STREAM ? state->slots.visible : NULL;

	row = gpusort_reader_row(reader);
	if (row == NULL)
	{
		gpusort_fallback_lost(state, &reader->failure);
		return NULL;
	}
	if (!state->stream.emitted && reader->expected.first > 0)
		gpusort_bound_pass(state->limit, reader->expected.first);
	if (gpusort_row_flags(row) & GPUSORT_ROW_TIE_NEXT)
		return stream_next_run(state, row);
	state->stream.emitted = true;
	if (gpusort_row_flags(row) & GPUSORT_ROW_OVERFLOW)
	{
		(void) gpusort_slots_load(&state->slots, row);
		return gpusort_slots_project(&state->slots);
	}
	return gpusort_slots_emit(&state->slots, row);
}

/*
 * Emits the next row of the stream, or an empty slot after the last.  NULL when
 * the sort started over, or when rows are kept from now on: the caller must look
 * again.
 */
static pg_attribute_always_inline TupleTableSlot *
stream_next(GpuSortScanState *state)
{
	char *row;

	if (unlikely(state->stream.in_ties))
	{
		TupleTableSlot *slot = gpusort_ties_next(state->service.ties);

		if (slot != NULL)
			return slot;
		state->stream.in_ties = false;
	}
	row = gpusort_reader_plain_row(&state->service.reader);
	if (unlikely(row == NULL))
		return stream_next_other(state);
	state->stream.emitted = true;
	return gpusort_slots_emit(&state->slots, row);
}

/* The same for a node that may go back: rows emitted are kept. */
static TupleTableSlot *
stored_next(GpuSortScanState *state, bool forward)
{
	TupleTableSlot *slot = state->slots.visible;
	TupleTableSlot *row;

	if (!forward && tuplestore_ateof(state->stream.store) && !state->stream.ended)
	{
		/* The row before the last one emitted is asked for: step over that one. */
		if (!tuplestore_advance(state->stream.store, false))
			return ExecClearTuple(slot);
	}
	if ((!forward || !tuplestore_ateof(state->stream.store)) &&
		tuplestore_gettupleslot(state->stream.store, forward, false, slot))
		return slot;
	if (!forward || state->stream.ended)
		return ExecClearTuple(slot);

	row = stream_next(state);
	if (row == NULL)
		return NULL;
	if (TupIsNull(row))
		state->stream.ended = true;
	else
		tuplestore_puttupleslot(state->stream.store, row);
	return row;
}

/* Emits the next row, in whatever stage and direction. */
static pg_noinline TupleTableSlot *
next_row(GpuSortScanState *state)
{
	EState *estate = gpusort_plan_state(state)->state;
	bool forward = ScanDirectionIsForward(estate->es_direction);
	TupleTableSlot *row;

	CHECK_FOR_INTERRUPTS();
	if (state->stage == GPUSORT_STAGE_INPUT)
	{
		/* Whatever direction was asked for, the child is read forward. */
		estate->es_direction = ForwardScanDirection;
		gpusort_sort_input(state);
		estate->es_direction = forward ? ForwardScanDirection : BackwardScanDirection;
		if (state->stage == GPUSORT_STAGE_STREAM && (state->eflags & EXEC_FLAG_BACKWARD))
			keep_rows(state);
	}
	while (state->stage == GPUSORT_STAGE_STREAM)
	{
		row = state->stream.keeping ? stored_next(state, forward) : stream_next(state);
		if (row != NULL)
			return row;
	}
	if (state->stage == GPUSORT_STAGE_LOST)
		return ExecClearTuple(state->slots.visible);
	Assert(state->stage == GPUSORT_STAGE_TUPLESORT);
	(void) tuplesort_gettupleslot(state->fallback.sort, forward, false, state->slots.all, NULL);
	return gpusort_slots_project(&state->slots);
}

/* The ExecCustomScan callback: emits the next row, an empty slot after the last.  Errors: the rows are lost. */
TupleTableSlot *
gpusort_stream_row(CustomScanState *node)
{
	GpuSortScanState *state = (GpuSortScanState *) node;
	TupleTableSlot *row;

	/* Nothing here waits within a chunk, so interrupts are looked at between chunks. */
	if (likely(state->stage == GPUSORT_STAGE_STREAM && !state->stream.keeping))
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

/* Marks the position behind the row emitted last.  Where that came from the chunk at hand the reader's will do. */
void
gpusort_stream_mark(GpuSortScanState *state)
{
	GpuSortRowStream *stream = &state->stream;
	bool in_chunk = !stream->in_ties && state->slots.joined == NULL && !(state->eflags & EXEC_FLAG_BACKWARD);

	if (in_chunk && (!stream->keeping || (tuplestore_ateof(stream->store) && !stream->ended)))
	{
		if (stream->keeping)
			tuplestore_clear(stream->store);
		stream->keeping = false;
		stream->marked = true;
		stream->mark = gpusort_reader_mark(&state->service.reader);
		return;
	}
	if (!stream->keeping)
	{
		keep_rows(state);
		(void) tuplestore_advance(stream->store, true); /* to its end */
	}
	tuplestore_copy_read_pointer(stream->store, 0, 1);
	tuplestore_trim(stream->store);
}

/* Goes back to the marked position. */
void
gpusort_stream_restore(GpuSortScanState *state)
{
	GpuSortRowStream *stream = &state->stream;

	if (stream->keeping)
	{
		tuplestore_copy_read_pointer(stream->store, 1, 0);
		return;
	}
	Assert(stream->marked);
	gpusort_reader_restore(&state->service.reader, stream->mark);
}

/* There is no row emitted, nor one to go back to. */
static void
start_over(GpuSortScanState *state)
{
	GpuSortRowStream *stream = &state->stream;

	if (stream->keeping)
		tuplestore_clear(stream->store);
	stream->keeping = false;
	stream->marked = false;
	stream->ended = false;
	stream->range_ended = false;
	stream->in_ties = false;
	stream->emitted = false;
	gpusort_ties_reset(state->service.ties);
}

/* Goes back to the first row that is wanted; false, with a reason, if the sort is lost.  The node must have been begun for that. */
bool
gpusort_stream_rewind(GpuSortScanState *state, GpuSortFailure *failure)
{
	if (state->eflags & EXEC_FLAG_BACKWARD)
	{
		tuplestore_rescan(state->stream.store);
		return true;
	}
	start_over(state);
	return gpusort_service_sort_rewind(state, failure);
}

/*
 * Of a shared sort: the next rows are those of the next range asked for.  false, with a reason, if they
 * are lost.
 */
bool
gpusort_stream_begin_range(GpuSortScanState *state, GpuSortFailure *failure)
{
	gpusort_slots_clear(&state->slots);
	start_over(state);
	state->stage = GPUSORT_STAGE_STREAM;
	return gpusort_reader_begin_range(&state->service.reader, failure);
}

/*
 * Has a plan over shared sorts read the range that was asked for first; false, with a reason, if its rows are lost.
 * *started: it has read one, so that it must start over.
 */
bool
gpusort_stream_begin_ranges(GpuSortSharedSorts *sorts, PlanState *plan, int rescan_param, bool *started, GpuSortFailure *failure)
{
	for (int i = 0; i < sorts->count; i++)
	{
		if (!gpusort_stream_begin_range(sorts->sorts[i], failure))
			return false;
	}
	if (*started)
	{
		MemoryContext caller = MemoryContextSwitchTo(plan->state->es_query_cxt);

		plan->chgParam = bms_add_member(plan->chgParam, rescan_param);
		MemoryContextSwitchTo(caller);
	}
	*started = true;
	return true;
}
