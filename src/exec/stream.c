/*-------------------------------------------------------------------------
 *
 * stream.c
 *	  Emits the rows of a GpuSort to the node above.
 *
 * When the first row is asked for, the sort is done (sort/sort.h).  Rows that lie in a chunk are shown there, by a path
 * of their own, without a call; the sort shows all others, among them the few that a Limit wants.  Those before an
 * OFFSET right above do not come: with the first row that does, the Limit is told that they have been passed (bound.c).
 *
 * PostgreSQL reads the outer side of a merge join first, to its end.  Where the join gives nothing without rows of the
 * inner side, and that is expected to have fewer, the outer one looks for the inner one's first row before it reads its
 * own, and reads none if there is none.
 *
 * Where the statement runs without workers, there may be some for this: they are started when the first row is asked
 * for, and have ended when it is given out (gather.c).
 *
 * Going back: a node that may be asked to scan backward, as that of each cursor that is not said to be NO SCROLL,
 * counts the rows that it emits.  When it is asked for the first time it reads them again from the service, into a
 * tuplestore, which spills beyond work_mem, and keeps there what it emits from then on.  A marked position, below
 * a merge join, is one in the current chunk; rows are kept only when the reader
 * leaves that chunk, or rows come from elsewhere, before another is marked.  Rows whose
 * resjunk attributes are cut off when they are emitted are kept from the first mark on.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/stream.h"

#include "exec/bound.h"
#include "exec/gather.h"
#include "exec/ingest.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "server/reasons.h"

/* Keeps the rows that are emitted from the next one on. */
static void
keep_rows(GpuSortScanState *state)
{
	MemoryContext caller = MemoryContextSwitchTo(gpusort_plan_state(state)->state->es_query_cxt);

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

/* Returns what the node emits of a row in a chunk. */
static pg_attribute_always_inline TupleTableSlot *
show(GpuSortScanState *state, char *row)
{
	GpuSortRows *rows = &state->rows->rows;

	return likely(!rows->counted) ? gpusort_heap_rows_show(state->rows, row) : rows->kind->show(rows, row);
}

/*
 * Keeps the rows from the marked one on, because the reader cannot go back any more: puts those that were emitted since
 * into the store, before the next row.
 */
static pg_noinline void
keep_from_mark(GpuSortScanState *state)
{
	GpuSortReader *reader = &state->sort->service.reader;
	GpuSortRowStream *stream = &state->stream;
	uint32 emitted = gpusort_reader_rows_since(reader, stream->mark);

	keep_rows(state);
	gpusort_reader_restore(reader, stream->mark);
	for (uint32 i = 0; i < emitted; i++)
	{
		char *row = gpusort_reader_row(reader);

		if (row == NULL)
			gpusort_sort_report_lost(state->sort->emitted, &reader->failure);
		tuplestore_puttupleslot(stream->store, show(state, row));
	}
	Assert(gpusort_reader_rows_since(reader, stream->mark) == emitted);
	stream->marked = false;
	/* The marked position is the store's beginning; ours is its end. */
	tuplestore_copy_read_pointer(stream->store, 0, 1);
	(void) tuplestore_skiptuples(stream->store, (int64) emitted + 1, true);
}

/*
 * Emits the next row where it is not a plain one in the current chunk: it begins another chunk, has not been verified
 * yet, needs a tie-break or lies in the overflow file, or there is none.  Returns NULL as stream_next does.
 */
static pg_noinline TupleTableSlot *
stream_next_other(GpuSortScanState *state)
{
	GpuSortState *sort = state->sort;
	GpuSortReader *reader = &sort->service.reader;
	bool first = !sort->emitted;
	TupleTableSlot *row;

	if (state->stream.marked && (gpusort_reader_at_end(reader) || !gpusort_reader_next_is_plain(reader)))
	{
		keep_from_mark(state);
		return NULL;
	}
	row = gpusort_sort_next_other(sort, true);
	if (row == NULL)
	{
		if (state->eflags & EXEC_FLAG_BACKWARD)
			state->stream.ended = true;
		return sort->stage == GPUSORT_STAGE_SERVICE ? state->rows->visible : NULL;
	}
	state->stream.emitted++;
	if (sort->stage == GPUSORT_STAGE_SERVICE && first && reader->expected.first > 0)
		gpusort_bound_pass(state->limit, reader->expected.first);
	return row;
}

/*
 * Emits the next row of the stream, or an empty slot after the last.  Returns NULL when the sort is PostgreSQL's now,
 * or lost, or when rows are kept from now on: the caller must look again.
 */
static pg_attribute_always_inline TupleTableSlot *
stream_next(GpuSortScanState *state)
{
	GpuSortState *sort = state->sort;
	char *row;

	if (unlikely(sort->in_ties))
	{
		TupleTableSlot *slot = gpusort_sort_next_tied(sort);

		if (slot != NULL)
		{
			state->stream.emitted++;
			return slot;
		}
	}
	row = gpusort_reader_plain_row(&sort->service.reader);
	if (unlikely(row == NULL))
		return stream_next_other(state);
	sort->emitted = true;
	state->stream.emitted++;
	return show(state, row);
}

/*
 * Keeps the rows that were emitted, which the service gives again, and those that will be: the node is asked to go
 * back for the first time.
 */
static pg_noinline void
keep_emitted(GpuSortScanState *state)
{
	GpuSortRowStream *stream = &state->stream;
	GpuSortState *sort = state->sort;
	const uint64 emitted = stream->emitted;
	const bool ended = stream->ended;
	GpuSortFailure failure;

	if (!gpusort_sort_rewind(sort, &failure))
		gpusort_sort_report_lost(true, &failure);
	sort->emitted = true; /* too late to fall back */
	stream->emitted = 0;
	keep_rows(state);
	(void) tuplestore_advance(stream->store, true); /* to its end */
	while (stream->emitted < emitted)
	{
		TupleTableSlot *row = stream_next(state);

		CHECK_FOR_INTERRUPTS();
		if (TupIsNull(row))
			elog(ERROR, "rows that were emitted are not there any more");
		tuplestore_puttupleslot(stream->store, row);
	}
	stream->ended = ended;
}

/* Emits the next row, for a node that may go back: keeps the rows that are emitted. */
static TupleTableSlot *
stored_next(GpuSortScanState *state, bool forward)
{
	TupleTableSlot *slot = state->rows->visible;
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

/* Returns how many of the first rows need not be emitted, as a Limit drops them and nobody goes back to them. */
static uint64
offset(const GpuSortScanState *state)
{
	if (state->eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK))
		return 0;
	return gpusort_bound_offset(state->limit, &state->css.ss.ps);
}

/* Reads the child to its end and sorts the rows: from stage INPUT to one of the others. */
static void
sort_input(GpuSortScanState *state)
{
	GpuSortState *sort = state->sort;
	GpuSortRangeScan *ranges = gpusort_plan_source_ranges(&state->source);
	GpuSortFailure failure;

	if (state->workers_ended)
		elog(ERROR, "GpuSort cannot start its workers again");
	sort->with_ties =
		gpusort_bound_has_ties(state->limit, gpusort_plan_state(state), state->info.columns, state->info.ncolumns);
	sort->bound = gpusort_bound_rows(state->limit, sort->with_ties);
	sort->offset = offset(state);
	sort->led = ranges != NULL;
	if (ranges != NULL)
		gpusort_range_scan_begin(ranges, gpusort_sort_wants_top(sort));
	if (state->parallel != NULL)
		/* Rows that several processes read are put before one is asked for; this process is to sort alone. */
		gpusort_sort_begin_native(sort, gpusort_parallel_sort_refusal(state->parallel));
	else if (gpusort_plan_state(state)->state->es_epq_active != NULL)
	{
		(void) gpusort_failure_set(&failure, GPUSORT_REASON_RECHECK, "a row is being rechecked after a concurrent update");
		gpusort_sort_begin_native(sort, &failure);
	}
	else if (state->ingest != NULL)
	{
		gpusort_ingest_sort(state->ingest, sort);
		return;
	}
	else
		gpusort_sort_begin(sort);
	gpusort_sort_put(sort);
	gpusort_sort_perform(sort);
}

/*
 * Sorts the rows, if they are not sorted yet, for a node above that reads them by their numbers; true if the service
 * has them, and gives them again.
 */
bool
gpusort_stream_sort(GpuSortScanState *state)
{
	PlanState *ps = gpusort_plan_state(state);

	if (ps->chgParam != NULL)
		ExecReScan(ps);
	if (state->sort->stage == GPUSORT_STAGE_INPUT)
		sort_input(state);
	if (state->sort->stage != GPUSORT_STAGE_SERVICE)
		return false;
	state->sort->may_reread = true;
	return true;
}

/*
 * Returns true if the inner side of a join has no row.  Its first row tells, which is kept back, or where workers take
 * its rows in the whole sort.  As below a hash join, functions in the side that is not read are not called.
 */
static bool
is_empty(GpuSortScanState *inner)
{
	PlanState *ps = gpusort_plan_state(inner);
	GpuSortState *sort = inner->sort;

	if (ps->chgParam != NULL)
		ExecReScan(ps); /* as the join would have it, when it asks for a row */
	if (sort->stage == GPUSORT_STAGE_INPUT && inner->ingest == NULL)
	{
		if (!gpusort_sort_is_empty(sort))
			return false;
		/* It has been executed, though the join will not ask it for a row. */
		if (ps->instrument != NULL)
		{
			InstrStartNode(ps->instrument);
			InstrStopNode(ps->instrument, 0);
		}
		return true;
	}
	if (sort->stage == GPUSORT_STAGE_INPUT)
	{
		if (ps->instrument != NULL)
			InstrStartNode(ps->instrument);
		sort_input(inner);
		if (ps->instrument != NULL)
			InstrStopNode(ps->instrument, 0);
	}
	return sort->stage == GPUSORT_STAGE_SERVICE && sort->figures.outcome.rows == 0;
}

/* Drops the rows emitted that were kept for going back. */
static void
drop_store(GpuSortRowStream *stream)
{
	if (stream->store != NULL)
		tuplestore_end(stream->store);
	*stream = (GpuSortRowStream){0};
}

/* Emits the next row out of PostgreSQL's sort, which keeps all of them; NULL if there is none. */
static TupleTableSlot *
next_native(GpuSortScanState *state, bool forward)
{
	if (unlikely(state->stream.store != NULL))
		drop_store(&state->stream);
	return gpusort_sort_next_native(state->sort, forward);
}

/* Ends the workers that this node has started.  Up to here a sort that is lost could have its rows again. */
static void
end_workers(GpuSortScanState *state)
{
	gpusort_gather_end_workers(gpusort_child(state));
	state->workers_ended = true;
	state->sort->input.source->may_restart = false;
	state->info.rescannable = false;
}

/* Emits the next row, in whatever stage and direction. */
static pg_noinline TupleTableSlot *
next_row(GpuSortScanState *state)
{
	EState *estate = gpusort_plan_state(state)->state;
	GpuSortState *sort = state->sort;
	bool forward = ScanDirectionIsForward(estate->es_direction);
	bool own_workers = false;
	TupleTableSlot *row = NULL;

	CHECK_FOR_INTERRUPTS();
	if (sort->stage == GPUSORT_STAGE_INPUT)
	{
		/* Whatever direction was asked for, the child is read forward. */
		estate->es_direction = ForwardScanDirection;
		if (state->inner == NULL || !is_empty(state->inner))
		{
			own_workers = state->info.starts_workers &&
				gpusort_gather_begin_workers(gpusort_child(state), &state->beginning);
			sort_input(state);
		}
		estate->es_direction = forward ? ForwardScanDirection : BackwardScanDirection;
		/* a mark is a position in the store, where the node may go back */
		if (sort->stage == GPUSORT_STAGE_SERVICE && (state->eflags & EXEC_FLAG_BACKWARD) &&
			(state->eflags & EXEC_FLAG_MARK))
			keep_rows(state);
	}
	if (!forward && sort->stage == GPUSORT_STAGE_SERVICE && !state->stream.keeping)
		keep_emitted(state);
	while (row == NULL && sort->stage == GPUSORT_STAGE_SERVICE)
		row = state->stream.keeping ? stored_next(state, forward) : stream_next(state);
	if (row == NULL && sort->stage == GPUSORT_STAGE_NATIVE)
		row = next_native(state, forward);
	if (row == NULL && sort->stage == GPUSORT_STAGE_TOP)
		row = gpusort_sort_next_top(sort, forward);
	if (own_workers)
		end_workers(state);
	return row != NULL ? row : ExecClearTuple(state->rows->visible);
}

/* Returns true if the row before is asked for. */
static inline bool
goes_back(const GpuSortScanState *state)
{
	return unlikely(state->eflags & EXEC_FLAG_BACKWARD) &&
		!ScanDirectionIsForward(state->css.ss.ps.state->es_direction);
}

/* Emits the next row, an empty slot after the last, as the ExecCustomScan callback; it is an error if rows are lost. */
TupleTableSlot *
gpusort_stream_row(CustomScanState *node)
{
	GpuSortScanState *state = (GpuSortScanState *) node;
	TupleTableSlot *row;

	/* Nothing here waits within a chunk, so interrupts are looked at between chunks. */
	if (likely(state->sort->stage == GPUSORT_STAGE_SERVICE && !state->stream.keeping && !goes_back(state)))
	{
		row = stream_next(state);
		if (likely(row != NULL))
			return row;
	}
	return next_row(state);
}

/* Does the same as the node's ExecProcNode, without a custom scan's own function before it. */
TupleTableSlot *
gpusort_stream_exec(PlanState *ps)
{
	return gpusort_stream_row((CustomScanState *) ps);
}

/* Marks the position behind the row emitted last.  Where that came from the current chunk the reader's mark will do. */
void
gpusort_stream_mark(GpuSortScanState *state)
{
	GpuSortState *sort = state->sort;
	GpuSortRowStream *stream = &state->stream;
	bool in_chunk = !sort->in_ties && state->rows->joined == NULL && !(state->eflags & EXEC_FLAG_BACKWARD);

	if (sort->stage == GPUSORT_STAGE_NATIVE)
		tuplesort_markpos(sort->native);
	if (sort->stage != GPUSORT_STAGE_SERVICE)
		return;
	if (in_chunk && (!stream->keeping || (tuplestore_ateof(stream->store) && !stream->ended)))
	{
		if (stream->keeping)
			tuplestore_clear(stream->store);
		stream->keeping = false;
		stream->marked = true;
		stream->mark = gpusort_reader_mark(&sort->service.reader);
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
	GpuSortState *sort = state->sort;
	GpuSortRowStream *stream = &state->stream;

	if (sort->stage == GPUSORT_STAGE_NATIVE)
		tuplesort_restorepos(sort->native);
	if (sort->stage != GPUSORT_STAGE_SERVICE)
		return;
	if (stream->keeping)
	{
		tuplestore_copy_read_pointer(stream->store, 1, 0);
		return;
	}
	Assert(stream->marked);
	gpusort_reader_restore(&sort->service.reader, stream->mark);
}

/* Starts over with the sort, before the first row, without a mark. */
void
gpusort_stream_start_over(GpuSortScanState *state)
{
	GpuSortRowStream *stream = &state->stream;

	if (stream->keeping)
		tuplestore_clear(stream->store);
	stream->keeping = false;
	stream->marked = false;
	stream->ended = false;
	stream->emitted = 0;
}

/*
 * Goes back to the first row that is wanted; false, with a reason, if rows are lost.  The node must have been begun for
 * that.
 */
bool
gpusort_stream_rewind(GpuSortScanState *state, GpuSortFailure *failure)
{
	if (state->sort->stage == GPUSORT_STAGE_SERVICE && (state->eflags & EXEC_FLAG_BACKWARD) && state->stream.keeping)
	{
		tuplestore_rescan(state->stream.store);
		return true;
	}
	gpusort_stream_start_over(state);
	state->sort->offset = offset(state);
	if (!gpusort_sort_rewind(state->sort, failure))
		return false;

	/* Who may go back, and starts over again, may do so often: the service takes milliseconds, the store none. */
	if (state->sort->stage == GPUSORT_STAGE_SERVICE && (state->eflags & EXEC_FLAG_BACKWARD) && state->stream.rewound)
		keep_rows(state);
	state->stream.rewound = true;
	return true;
}

/* Ends the sort and drops its rows; the next row asked for starts another sort. */
void
gpusort_stream_end(GpuSortScanState *state)
{
	drop_store(&state->stream);
	gpusort_sort_end(state->sort);
	if (state->ingest != NULL)
		gpusort_ingest_reset(state->ingest);
}
