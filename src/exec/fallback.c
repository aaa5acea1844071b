/*-------------------------------------------------------------------------
 *
 * fallback.c
 *	  The ways of a GpuSort to PostgreSQL's own sort.
 *
 * When there are few rows, or the service refuses the sort, no more than the
 * first rows have been read, and they are still here.  When its memory
 * is full, the rows that it has are sorted and read back into the tuplesort, to
 * those still to come; the child is not read again.  When the service is lost the
 * child is, provided that the planner found that it gives the same rows again;
 * otherwise, and once a row has been emitted, the query ends with an error.  When the rows are not in
 * PostgreSQL's order, under a collation of the C library, they are read back and none is emitted before.
 *
 * Each of the five leaves the node in GPUSORT_STAGE_TUPLESORT, but for a loss of rows that
 * several processes read: those above decide what comes of it (shared_sort.c).
 *
 *-------------------------------------------------------------------------
 */
#include "exec/fallback.h"

#include "exec/ingest.h"
#include "exec/service_sort.h"
#include "exec/shared_sort.h"
#include "sort/ties.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "settings.h"

static void
begin_tuplesort(GpuSortScanState *state)
{
	MemoryContext caller = MemoryContextSwitchTo(state->sort_context);
	int options = TUPLESORT_NONE;

	if (state->eflags & (EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK))
		options |= TUPLESORT_RANDOMACCESS;
	if (state->bound > 0)
		options |= TUPLESORT_ALLOWBOUNDED;
	state->fallback.sort = gpusort_tuplesort_begin(state->slots.all->tts_tupleDescriptor, state->info.columns,
												   state->info.ncolumns, options);
	if (state->bound > 0)
		tuplesort_set_bound(state->fallback.sort, state->bound);
	MemoryContextSwitchTo(caller);
}

/* Notes why PostgreSQL has to sort. */
static void
note_fallback(GpuSortScanState *state, const GpuSortFailure *failure)
{
	state->fallback.reason = *failure;
	gpusort_stats_count_fallback(failure->reason);
	if (gpusort_log_decisions)
		ereport(LOG,
				(errmsg("gpusort: falling back to tuplesort: %s", failure->text),
				 failure->reason != GPUSORT_REASON_COLLATION ? 0 : errhint("Collations of ICU, and \"C\", do not depend on the C library.")));
}

/* Puts the first rows, and what the child still has, into the tuplesort. */
static void
feed_tuplesort(GpuSortScanState *state)
{
	PlanState *child = gpusort_child(state);

	for (;;)
	{
		TupleTableSlot *row = gpusort_first_rows_next(&state->first, child);

		if (TupIsNull(row))
			break;
		tuplesort_puttupleslot(state->fallback.sort, row);
	}
}

static void
finish_tuplesort(GpuSortScanState *state)
{
	gpusort_first_rows_clear(&state->first);
	tuplesort_performsort(state->fallback.sort);
	state->stage = GPUSORT_STAGE_TUPLESORT;
}

/* To be called when the first rows are all there are, and too few for the service: no failure, nor counted as one. */
void
gpusort_fallback_few(GpuSortScanState *state)
{
	state->fallback.reason.reason = GPUSORT_REASON_FEW_ROWS;
	strlcpy(state->fallback.reason.text, "there are fewer than gpusort.min_rows", sizeof(state->fallback.reason.text));
	gpusort_stats_count_small_sort();
	if (gpusort_log_decisions && !state->fallback.few_logged)
		ereport(LOG,
				(errmsg("gpusort: sorting with tuplesort: %d rows are fewer than gpusort.min_rows", state->first.count)));
	state->fallback.few_logged = true;
	begin_tuplesort(state);
	feed_tuplesort(state);
	finish_tuplesort(state);
}

/* To be called when the service takes no part in the sort; the first rows may have been read. */
void
gpusort_fallback_refused(GpuSortScanState *state, const GpuSortFailure *failure)
{
	begin_tuplesort(state);
	note_fallback(state, failure);
	feed_tuplesort(state);
	finish_tuplesort(state);
}

/* Ends the query: the rows of a sort are lost, and there is no way to have them again. */
void
gpusort_report_lost(GpuSortScanState *state, const GpuSortFailure *failure)
{
	const char *why = state->stream.emitted ? "Rows have been returned already" : "The rows cannot be read a second time";

	if (failure->reason == GPUSORT_REASON_VERIFY)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("gpusort got other rows back than it put: %s", failure->text),
				 errdetail("Reason: %s.", gpusort_reason_name(failure->reason)),
				 errhint("%s. Run the query again, with gpusort.enable = off if it recurs: a device or the machine may be faulty.",
						 why)));
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("gpusort lost the rows of a running sort: %s", failure->text),
			 errdetail("Reason: %s.", gpusort_reason_name(failure->reason)),
			 errhint("%s. Run the query again, with gpusort.enable = off if it recurs.", why)));
}

/*
 * To be called when the service has lost the rows, or their order: reads the child again.  Errors: it
 * cannot be read again, or a row has been emitted.  Of a shared sort there are no more rows then.
 */
void
gpusort_fallback_lost(GpuSortScanState *state, const GpuSortFailure *failure)
{
	GpuSortFailure reason = *failure;
	PlanState *child = gpusort_child(state);

	if (state->shared != NULL)
	{
		gpusort_shared_sort_lose(state, failure);
		return;
	}
	if (state->stream.emitted || !state->info.rescannable)
		gpusort_report_lost(state, &reason);

	state->service.unreported = false;
	gpusort_end_sort(state);
	note_fallback(state, &reason);
	if (child->chgParam == NULL)
		ExecReScan(child);
	begin_tuplesort(state);
	feed_tuplesort(state);
	finish_tuplesort(state);
}

/* Reads the rows that the service has sorted back into the tuplesort; false if they are lost. */
static bool
read_back(GpuSortScanState *state, GpuSortFailure *failure)
{
	GpuSortReader *reader = &state->service.reader;

	if (!gpusort_reader_rewind(reader, 0, failure))
		return false;
	while (gpusort_reader_next_chunk(reader, failure))
	{
		CHECK_FOR_INTERRUPTS();
		while (!gpusort_reader_at_end(reader))
		{
			char *row = gpusort_reader_row(reader);

			if (row == NULL)
			{
				*failure = reader->failure;
				return false;
			}
			tuplesort_puttupleslot(state->fallback.sort, gpusort_slots_load(&state->slots, row));
		}
		gpusort_slots_clear(&state->slots);
	}
	if (failure->reason != GPUSORT_REASON_NONE)
		return false;
	gpusort_service_sort_release(state);
	gpusort_overflow_close(&state->slots.overflow);
	return true;
}

/*
 * To be called when the service takes no more rows, with the one that it did not
 * take: those it has, row, and the rest of the child's go into the tuplesort.  The
 * service's come first, so that it is free for others; but other processes that add
 * rows must have ended before they can be had.
 */
void
gpusort_fallback_full(GpuSortScanState *state, TupleTableSlot *row, const GpuSortFailure *full)
{
	GpuSortFailure reason = *full;
	GpuSortFailure failure;

	begin_tuplesort(state);
	if (state->ingest != NULL)
		gpusort_ingest_let_go(state->ingest);
	else if (!gpusort_service_sort_wait(state, 0, &failure) || !read_back(state, &failure))
	{
		gpusort_fallback_lost(state, &failure);
		return;
	}
	tuplesort_puttupleslot(state->fallback.sort, row);
	feed_tuplesort(state);
	if (state->ingest != NULL && (!gpusort_service_sort_wait(state, 0, &failure) || !read_back(state, &failure)))
	{
		gpusort_fallback_lost(state, &failure);
		return;
	}
	note_fallback(state, &reason);
	finish_tuplesort(state);
}

/*
 * To be called when the rows, none of which has been emitted, are in the keys' order and not in PostgreSQL's: those
 * that the service has go into the tuplesort.
 */
void
gpusort_fallback_disordered(GpuSortScanState *state, const GpuSortFailure *disordered)
{
	GpuSortFailure reason = *disordered;
	GpuSortFailure failure;

	begin_tuplesort(state);
	if (!read_back(state, &failure))
	{
		gpusort_fallback_lost(state, &failure);
		return;
	}
	note_fallback(state, &reason);
	finish_tuplesort(state);
}
