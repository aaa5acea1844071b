/*-------------------------------------------------------------------------
 *
 * fallback.c
 *	  The ways of a sort to PostgreSQL's own.
 *
 * When there are few rows, or the service refuses the sort, no more than the
 * first rows have been read, and they are still here: PostgreSQL's sort begins, and takes them when the source
 * is read (feed).  When the service's memory
 * is full, the rows that it has are sorted and read back into PostgreSQL's sort, to
 * those still to come; the source is not read again.  When the service is lost the
 * source is, provided that it gives the same rows again;
 * otherwise, and once a row has been given out, the query ends with an error.  When the rows are not in
 * PostgreSQL's order, under a collation of the C library, they are read back and none is given out before.
 *
 * Each of the five leaves native begun, and but for few and refused fed; sort.c performs it.  Where several processes
 * have parts of the rows and the service refuses, each sorts its part, as workers of CREATE INDEX do, and one of them
 * merges the parts.  A sort read by ranges
 * begins none: a loss is told to those above, who decide what comes of it (parallel/sort_set.h).
 *
 *-------------------------------------------------------------------------
 */
#include "sort/fallback.h"

#include "miscadmin.h"
#include "server/reasons.h"
#include "server/statistics.h"
#include "settings.h"
#include "sort/service_sort.h"

/* Begins PostgreSQL's sort, of this process alone (NULL) or of several. */
static void
begin_native(GpuSortState *sort, SortCoordinate coordinate)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);
	int options = TUPLESORT_NONE;

	if (sort->may_reread)
		options |= TUPLESORT_RANDOMACCESS;
	if (gpusort_sort_bound(sort) > 0)
		options |= TUPLESORT_ALLOWBOUNDED;
	sort->native = sort->rows->kind->tuplesort_begin(sort->rows, sort->columns, sort->ncolumns, false,
													 coordinate, options);
	if (gpusort_sort_bound(sort) > 0)
		tuplesort_set_bound(sort->native, gpusort_sort_bound(sort));
	MemoryContextSwitchTo(caller);
}

/* Notes why PostgreSQL has to sort. */
static void
note_fallback(GpuSortState *sort, const GpuSortFailure *failure)
{
	sort->reason = *failure;
	gpusort_stats_count_fallback(failure->reason);
	if (gpusort_log_decisions)
		ereport(LOG,
				(errmsg("gpusort: falling back to tuplesort: %s", failure->text),
				 failure->reason == GPUSORT_REASON_COLLATION
					 ? errhint("Collations of ICU, and \"C\", do not depend on the C library.")
					 : 0));
}

/* Feeds PostgreSQL's sort with the first rows, and with those that the source still has. */
void
gpusort_fallback_feed(GpuSortState *sort)
{
	const GpuSortRow *row;

	while ((row = gpusort_input_next(&sort->input)) != NULL)
		sort->rows->kind->tuplesort_put(sort->rows, sort->native, row);
	gpusort_input_clear(&sort->input);
}

/* To be called when the first rows are all there are, and too few for the service: no failure, nor counted as one. */
void
gpusort_fallback_few(GpuSortState *sort)
{
	(void) gpusort_failure_set(&sort->reason, GPUSORT_REASON_FEW_ROWS, "there are fewer rows than gpusort.min_rows");
	gpusort_stats_count_small_sort();
	if (gpusort_log_decisions && !sort->few_logged)
		ereport(LOG,
				(errmsg("gpusort: sorting with tuplesort: %d rows are fewer than gpusort.min_rows", sort->input.first.count)));
	sort->few_logged = true;
	begin_native(sort, NULL);
}

/* To be called when the service takes no part in the sort; the first rows may have been read. */
void
gpusort_fallback_refused(GpuSortState *sort, const GpuSortFailure *failure)
{
	begin_native(sort, NULL);
	note_fallback(sort, failure);
}

/*
 * To be called in each of several processes when the service takes no part: sorts the rows of the source, which are
 * this process's part, and leaves them to the one that merges the parts.
 */
void
gpusort_fallback_part(GpuSortState *sort, Sharedsort *shared)
{
	SortCoordinateData coordinate = {.isWorker = true, .nParticipants = -1, .sharedsort = shared};

	begin_native(sort, &coordinate);
	gpusort_fallback_feed(sort);
	tuplesort_performsort(sort->native);
	tuplesort_end(sort->native);
	sort->native = NULL;
}

/* To be called in one of them when all so many parts are sorted, why they were: PostgreSQL's sort has all rows then. */
void
gpusort_fallback_merge(GpuSortState *sort, Sharedsort *shared, int parts, const GpuSortFailure *failure)
{
	SortCoordinateData coordinate = {.nParticipants = parts, .sharedsort = shared};

	begin_native(sort, &coordinate);
	note_fallback(sort, failure);
}

/*
 * Ends the query: the rows of a sort are lost, and there is no way
 * to have them again; emitted: since some have been given out.
 */
void
gpusort_sort_report_lost(bool emitted, const GpuSortFailure *failure)
{
	const char *why = emitted ? "Rows have been returned already" : "The rows cannot be read a second time";

	if (failure->reason == GPUSORT_REASON_VERIFY)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the sort service returned other rows than it was given: %s", failure->text),
				 errdetail("Reason: %s.", gpusort_reason_name(failure->reason)),
				 errhint("%s. Run the query again. If it recurs, set gpusort.enable = off; a device or the machine may be faulty.",
						 why)));
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("the sort service lost the rows of a running sort: %s", failure->text),
			 errdetail("Reason: %s.", gpusort_reason_name(failure->reason)),
			 errhint("%s. Run the query again. If it recurs, set gpusort.enable = off and report it.", why)));
}

/*
 * Reads the source again, when the service has lost the rows, or their order.  It is an error if the source cannot be
 * read again, or a row has been given out.  A sort read by ranges has no more rows then.
 */
void
gpusort_fallback_lost(GpuSortState *sort, const GpuSortFailure *failure)
{
	GpuSortSource *source = sort->input.source;
	GpuSortFailure reason = *failure;

	if (sort->lost != NULL)
	{
		sort->stage = GPUSORT_STAGE_LOST;
		sort->reason = reason;
		*sort->lost = true;
		return;
	}
	if (sort->emitted || !source->may_restart)
		gpusort_sort_report_lost(sort->emitted, &reason);

	sort->service.unreported = false;
	gpusort_sort_end(sort);
	note_fallback(sort, &reason);
	source->methods->restart(source);
	begin_native(sort, NULL);
	gpusort_fallback_feed(sort);
}

/* Reads the rows that the service has sorted back into PostgreSQL's sort; false if they are lost. */
static bool
read_back(GpuSortState *sort, GpuSortFailure *failure)
{
	GpuSortReader *reader = &sort->service.reader;
	GpuSortRows *rows = sort->rows;

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
			rows->kind->tuplesort_put_back(rows, sort->native, row, false, 0);
		}
		gpusort_rows_clear(rows);
	}
	if (failure->reason != GPUSORT_REASON_NONE)
		return false;
	gpusort_service_sort_release(sort);
	gpusort_overflow_close(&rows->overflow);
	return true;
}

/* To be called when the service takes no more rows: those it has, and those that the input still has, must follow. */
void
gpusort_fallback_full(GpuSortState *sort)
{
	begin_native(sort, NULL);
}

/*
 * Reads the rows that the service has, which is full, as that says, and has them in order, back into PostgreSQL's sort;
 * false, with a reason, if they are lost.
 */
bool
gpusort_fallback_read_back(GpuSortState *sort, const GpuSortFailure *full, GpuSortFailure *failure)
{
	if (!read_back(sort, failure))
		return false;
	note_fallback(sort, full);
	return true;
}

/*
 * To be called when the rows, none of which has been given out, are in the keys' order and not in PostgreSQL's: those
 * that the service has go into PostgreSQL's sort.
 */
void
gpusort_fallback_disordered(GpuSortState *sort, const GpuSortFailure *disordered)
{
	GpuSortFailure reason = *disordered;
	GpuSortFailure failure;

	begin_native(sort, NULL);
	if (!read_back(sort, &failure))
	{
		gpusort_fallback_lost(sort, &failure);
		return;
	}
	note_fallback(sort, &reason);
}
