/*-------------------------------------------------------------------------
 *
 * sort.c
 *	  A sort: rows of any source in, the same in order out.
 *
 *	  INPUT --- rows to the service, sorted ---> SERVICE
 *		|										   |
 *		|  few rows, refused, full, lost,		   |  lost before a row was given out
 *		|  disordered							   |
 *		+------------------> NATIVE <--------------+
 *
 * Where few rows are wanted the way is from INPUT to TOP (top_rows.c), unless they do not fit work_mem.
 *
 * The first rows are kept back (input.c).  If there are no others PostgreSQL
 * sorts them and the service never hears of it, so that a sort whose size was
 * badly overestimated, or one that is run again for each row of an outer plan,
 * costs what PostgreSQL's own costs.  Otherwise they help to choose what of the
 * strings goes into the keys (prefixes.c), and are ingested like the rest.
 *
 * From the service rows come in chunks, in order, and are shown where they lie.  Rows that need a
 * tie-break, and long rows, make a detour (ties.c, overflow.c).
 *
 *-------------------------------------------------------------------------
 */
#include "sort/sort.h"

#include "client/elapsed.h"
#include "miscadmin.h"
#include "server/jobs.h"
#include "server/reasons.h"
#include "settings.h"
#include "sort/collation_check.h"
#include "sort/fallback.h"
#include "sort/few_values.h"
#include "sort/prefixes.h"
#include "sort/service_sort.h"
#include "sort/ties.h"
#include "utils/memutils.h"

/*
 * Makes a sort of the source's rows, of the kind of rows, by these columns, which belong to the sort.
 * All belongs to the current memory context.
 */
GpuSortState *
gpusort_sort_create(GpuSortRows *rows, GpuSortSource *source, GpuSortColumn *columns, int ncolumns)
{
	GpuSortState *sort = palloc0(sizeof(GpuSortState));

	sort->rows = rows;
	sort->columns = columns;
	sort->ncolumns = ncolumns;
	sort->keys = gpusort_keys_create(columns, ncolumns);
	sort->context = AllocSetContextCreate(CurrentMemoryContext, "gpusort", ALLOCSET_DEFAULT_SIZES);
	gpusort_input_init(&sort->input, source, rows);
	return sort;
}

/*
 * Returns true if the source has no row.  The first one is kept
 * back for the sort, which has not been begun.
 */
bool
gpusort_sort_is_empty(GpuSortState *sort)
{
	Assert(sort->stage == GPUSORT_STAGE_INPUT && sort->native == NULL);
	return !gpusort_input_read_first(&sort->input, 1);
}

/* Keeps the first rows back; true if there are no others, and they are too few for the service. */
static bool
has_few_rows(GpuSortState *sort)
{
	int few = gpusort_force ? 0 : gpusort_min_rows;
	int sample = sort->keys->sized > 0 ? Max(GPUSORT_SAMPLE_ROWS, gpusort_few_values_rows(sort->keys)) : 0;

	return !gpusort_input_read_first(&sort->input, Max(few, sample)) && sort->input.first.count < few;
}

/* Lays the keys out by a look at the first rows; false, with a reason, if the keys are not worth it. */
static bool
lay_out_keys(GpuSortState *sort, GpuSortFailure *failure)
{
	GpuSortPrefix *prefixes = MemoryContextAlloc(sort->context, sort->keys->sized * sizeof(GpuSortPrefix));
	bool enough = gpusort_prefixes_choose(sort->keys, &sort->input, true, sort->estimated_rows, prefixes);

	gpusort_keys_lay_out(sort->keys, prefixes, !enough);
	return !gpusort_prefixes_too_many_ties(sort->keys, prefixes, failure);
}

/* Returns true if this process is to find the rows that are wanted by itself. */
bool
gpusort_sort_wants_top(const GpuSortState *sort)
{
	return sort->bound > 0 && gpusort_allowed &&
		gpusort_top_rows_fit(sort->bound, sort->estimated_rows, sort->estimated_width, sort->led);
}

/* Begins to find the rows that are wanted. */
static void
begin_top(GpuSortState *sort)
{
	MemoryContext caller;

	if (sort->top == NULL)
	{
		caller = MemoryContextSwitchTo(GetMemoryChunkContext(sort));
		sort->top = gpusort_top_rows_create(sort->rows, sort->columns, sort->ncolumns);
		MemoryContextSwitchTo(caller);
	}
	gpusort_top_rows_begin(sort->top, sort->bound, sort->with_ties, sort->context);
	sort->finds_top = true;
}

/*
 * Finds the first of the source's rows, and makes them its first ones, which are the next that it gives; the others are
 * dropped; shared: with other processes, of whose rows the first are wanted, or NULL.  false: they do not fit work_mem,
 * and rows that have not been looked at follow them.
 */
bool
gpusort_sort_find_top(GpuSortState *sort, GpuSortCutoffShared *shared)
{
	bool fits;

	begin_top(sort);
	if (shared != NULL)
		gpusort_top_rows_share(sort->top, shared);
	fits = gpusort_top_rows_collect(sort->top, &sort->input);
	gpusort_top_rows_give_back(sort->top, &sort->input, fits);
	sort->figures.dropped = gpusort_top_rows_seen(sort->top) - sort->input.first.count;
	sort->finds_top = false;
	return fits;
}

/* Begins a sort of all rows, in the service; if it does not take the sort, PostgreSQL's. */
static void
begin_all(GpuSortState *sort)
{
	GpuSortFailure failure = {0};

	if (has_few_rows(sort))
		gpusort_fallback_few(sort);
	else if (!lay_out_keys(sort, &failure) || !gpusort_collation_check_allows(sort->keys, &failure) ||
			 !gpusort_service_sort_begin(sort, 0, &failure))
		gpusort_fallback_refused(sort, &failure);
}

/*
 * Begins a sort: in this process alone, in the service, or by PostgreSQL if the service does not take it.  Rows of
 * the source may have been read then.
 */
void
gpusort_sort_begin(GpuSortState *sort)
{
	GpuSortFailure failure = {0};

	Assert(sort->stage == GPUSORT_STAGE_INPUT && sort->native == NULL);
	sort->reason.reason = GPUSORT_REASON_NONE;
	INSTR_TIME_SET_CURRENT(sort->begun);
	if (!gpusort_allowed)
	{
		(void) gpusort_failure_set(&failure, GPUSORT_REASON_NOT_ALLOWED, "gpusort.allowed is off");
		gpusort_fallback_refused(sort, &failure);
	}
	else if (gpusort_sort_wants_top(sort))
		begin_top(sort);
	else
		begin_all(sort);
}

/* Begins a sort that PostgreSQL is to do, and why. */
void
gpusort_sort_begin_native(GpuSortState *sort, const GpuSortFailure *reason)
{
	Assert(sort->stage == GPUSORT_STAGE_INPUT && sort->native == NULL);
	gpusort_fallback_refused(sort, reason);
}

/*
 * Reads the source to its end.  Returns false, with a reason, if the service is full before.  PostgreSQL's sort has
 * begun then: the caller must feed the rest of the source to it, and call take_back.
 */
bool
gpusort_sort_put_own(GpuSortState *sort, GpuSortFailure *full)
{
	GpuSortServiceSort *service = &sort->service;

	if (sort->native != NULL)
		gpusort_fallback_feed(sort);
	else if (sort->rows->kind->put_rows(sort->rows, &service->writer, &sort->input, NULL, full))
		gpusort_input_clear(&sort->input);
	else if (gpusort_client_is_full(service->client))
	{
		gpusort_fallback_full(sort);
		return false;
	}
	else
		gpusort_fallback_lost(sort, full);
	return true;
}

/*
 * Moves the rows that the full service has, of this process and others, who have ended, into PostgreSQL's sort; false
 * if they are lost: that has all rows of the source, then.
 */
bool
gpusort_sort_take_back(GpuSortState *sort, const GpuSortPut *others, const GpuSortFailure *full)
{
	GpuSortFailure failure;

	if (gpusort_service_sort_wait(sort, others, 0, &failure) && gpusort_fallback_read_back(sort, full, &failure))
		return true;
	gpusort_fallback_lost(sort, &failure);
	return false;
}

/* Reads the source to its end. */
void
gpusort_sort_put(GpuSortState *sort)
{
	const GpuSortPut none = {0};
	GpuSortFailure full;

	if (sort->finds_top)
	{
		if (gpusort_top_rows_collect(sort->top, &sort->input))
			return;
		gpusort_top_rows_give_back(sort->top, &sort->input, false);
		sort->finds_top = false;
		begin_all(sort);
	}
	/* The service's rows come first, so that it is free for others. */
	if (!gpusort_sort_put_own(sort, &full) && gpusort_sort_take_back(sort, &none, &full))
		gpusort_fallback_feed(sort);
}

/* Sorts the rows that PostgreSQL's sort has. */
static void
perform_native(GpuSortState *sort)
{
	tuplesort_performsort(sort->native);
	sort->stage = GPUSORT_STAGE_NATIVE;
}

/* Verifies the order of the rows if that is necessary; false, with a reason, if they are not in order, or lost. */
static bool
check_order(GpuSortState *sort, GpuSortFailure *failure)
{
	GpuSortServiceSort *service = &sort->service;
	uint64 pairs = 0;
	instr_time start;

	if (!service->check_order)
		return true;
	INSTR_TIME_SET_CURRENT(start);
	gpusort_service_sort_create_check(sort);
	gpusort_service_sort_show(sort, GPUSORT_PHASE_VERIFY, 0);
	if (!gpusort_reader_rewind(&service->reader, 0, failure) ||
		!gpusort_collation_check_rows(service->check, &service->reader, PG_UINT64_MAX, &pairs, failure))
		return false;
	gpusort_service_sort_note_check(sort, pairs, gpusort_ms_since(start));
	return true;
}

/*
 * The rows are in order, and verified if that is wanted: from stage INPUT to SERVICE, with the reader
 * before the first row that is wanted, or NATIVE.  good, or as failure says.
 */
void
gpusort_sort_complete(GpuSortState *sort, bool good, const GpuSortFailure *failure)
{
	GpuSortFailure reason = *failure;

	sort->service.reader.wait_ms = 0; /* it is in the time of the verification */
	sort->service.unreported = good && gpusort_service_sort_rewind(sort, &reason);
	if (sort->service.unreported)
	{
		gpusort_service_sort_show(sort, GPUSORT_PHASE_EMIT, 0);
		sort->stage = GPUSORT_STAGE_SERVICE;
		return;
	}
	if (reason.reason == GPUSORT_REASON_COLLATION)
		gpusort_fallback_disordered(sort, &reason);
	else
		gpusort_fallback_lost(sort, &reason);
	perform_native(sort);
}

/* Puts the rows that were found into order, and notes what is told of them. */
static void
perform_top(GpuSortState *sort)
{
	GpuSortFigures *figures = &sort->figures;

	gpusort_top_rows_sort(sort->top);
	sort->stage = GPUSORT_STAGE_TOP;
	memset(&figures->ms, 0, sizeof(figures->ms));
	memset(&figures->outcome, 0, sizeof(figures->outcome));
	figures->ms.ingest = gpusort_ms_since(sort->begun);
	figures->outcome.rows_in = gpusort_top_rows_copied(sort->top);
	figures->dropped = gpusort_top_rows_seen(sort->top) - figures->outcome.rows_in;
	figures->outcome.rows = gpusort_top_rows_count(sort->top);
	sort->service.unreported = true;
}

/* Sorts the rows that were put, and waits for that: from stage INPUT to SERVICE, NATIVE or TOP. */
void
gpusort_sort_perform(GpuSortState *sort)
{
	const GpuSortPut none = {0};
	GpuSortFailure failure = {0};
	instr_time ingested;
	bool good;

	if (sort->finds_top)
	{
		perform_top(sort);
		return;
	}
	if (sort->native != NULL)
	{
		perform_native(sort);
		return;
	}
	INSTR_TIME_SET_CURRENT(ingested);
	good = gpusort_service_sort_wait(sort, &none, gpusort_service_sort_first(sort, false), &failure);
	if (good)
	{
		gpusort_service_sort_note_times(sort, ingested);
		good = check_order(sort, &failure);
	}
	gpusort_sort_complete(sort, good, &failure);
}

/* The service's rows cannot be read, or need not, as failure says: PostgreSQL sorts, if that can be. */
static void
lose(GpuSortState *sort, const GpuSortFailure *failure)
{
	gpusort_fallback_lost(sort, failure);
	if (sort->native != NULL)
		perform_native(sort);
}

/*
 * All rows, or those of the current range, have been given out:
 * when nobody can ask for them again, the service need not keep them.
 */
static void
finish(GpuSortState *sort)
{
	if (sort->lost != NULL)
		sort->range_ended = true;
	else if (!sort->may_reread)
		gpusort_service_sort_release(sort);
}

/* Goes to the next chunk; false, with nothing shown, after the last one and when rows are lost. */
static pg_noinline bool
next_chunk(GpuSortState *sort)
{
	GpuSortFailure failure = {0};

	CHECK_FOR_INTERRUPTS();
	gpusort_rows_clear(sort->rows);
	if (sort->range_ended)
		return false;
	if (sort->lost != NULL && *sort->stop)
	{
		lose(sort, &failure);
		return false;
	}
	if (gpusort_reader_next_chunk(&sort->service.reader, &failure))
	{
		if (sort->lost == NULL)
			gpusort_service_sort_show(sort, GPUSORT_PHASE_EMIT, sort->service.reader.rows);
		return true;
	}
	if (failure.reason == GPUSORT_REASON_NONE)
		finish(sort);
	else
		lose(sort, &failure);
	return false;
}

/* Shows the first row of a run that needs a tie-break and begins with row; NULL: rows are lost. */
static void *
next_run(GpuSortState *sort, char *row)
{
	GpuSortFailure failure = {0};

	if (!gpusort_ties_collect(sort->service.ties, &sort->service.reader, row, &failure))
	{
		lose(sort, &failure);
		return NULL;
	}
	sort->emitted = true;
	return gpusort_sort_next_tied(sort);
}

/* Shows the next row out of the service, whatever it is; NULL after the last, and when rows are lost. */
static void *
next_in_service(GpuSortState *sort)
{
	GpuSortReader *reader = &sort->service.reader;
	char *row;

	if (gpusort_reader_at_end(reader) && !next_chunk(sort))
		return NULL;
	row = gpusort_reader_row(reader);
	if (row == NULL)
	{
		lose(sort, &reader->failure);
		return NULL;
	}
	if (gpusort_row_flags(row) & GPUSORT_ROW_TIE_NEXT)
		return next_run(sort, row);
	sort->emitted = true;
	return sort->rows->kind->show(sort->rows, gpusort_rows_fetch(sort->rows, row));
}

/* gpusort_sort_next where the next row is not a plain one in the current chunk. */
pg_noinline void *
gpusort_sort_next_other(GpuSortState *sort, bool forward)
{
	void *row;

	if (sort->stage == GPUSORT_STAGE_SERVICE)
	{
		Assert(forward);
		if (sort->in_ties)
		{
			row = gpusort_sort_next_tied(sort);
			if (row != NULL)
				return row;
		}
		row = next_in_service(sort);
		if (row != NULL || sort->stage == GPUSORT_STAGE_SERVICE)
			return row;
	}
	if (sort->stage == GPUSORT_STAGE_LOST)
		return NULL;
	if (sort->stage == GPUSORT_STAGE_TOP)
		return gpusort_sort_next_top(sort, forward);
	Assert(sort->stage == GPUSORT_STAGE_NATIVE);
	return gpusort_sort_next_native(sort, forward);
}

/* The next row is the first: of all, or of a range. */
static void
start_over(GpuSortState *sort)
{
	sort->range_ended = false;
	sort->in_ties = false;
	sort->emitted = false;
	gpusort_ties_reset(sort->service.ties);
}

/*
 * Goes back to the first row that is wanted; may_reread must have been set.  false, with a reason, if rows are lost:
 * then end is legal alone.
 */
bool
gpusort_sort_rewind(GpuSortState *sort, GpuSortFailure *failure)
{
	gpusort_rows_clear(sort->rows);
	if (sort->stage == GPUSORT_STAGE_NATIVE)
	{
		tuplesort_rescan(sort->native);
		return true;
	}
	if (sort->stage == GPUSORT_STAGE_TOP)
	{
		gpusort_top_rows_rewind(sort->top);
		return true;
	}
	start_over(sort);
	return gpusort_service_sort_rewind(sort, failure);
}

/*
 * Goes, in a parallel sort, to the next range that its reader was asked for, whose rows are the next ones.  false, with
 * a reason, if they are lost.
 */
bool
gpusort_sort_begin_range(GpuSortState *sort, GpuSortFailure *failure)
{
	gpusort_rows_clear(sort->rows);
	start_over(sort);
	sort->stage = GPUSORT_STAGE_SERVICE;
	return gpusort_reader_begin_range(&sort->service.reader, failure);
}

/* Ends the sort, and drops what of its memory is large. */
void
gpusort_sort_drop(GpuSortState *sort)
{
	gpusort_sort_end(sort);
	MemoryContextDelete(sort->input.first.context);
	MemoryContextDelete(sort->context);
}
