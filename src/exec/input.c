/*-------------------------------------------------------------------------
 *
 * input.c
 *	  Reads a GpuSort's child to its end, and has the rows sorted.
 *
 * The first rows are kept back (first_rows.c).  If there are no others PostgreSQL
 * sorts them and the service never hears of it, so that a sort whose size was
 * badly overestimated, or one that is run again for each row of an outer plan,
 * costs what PostgreSQL's own costs.  Otherwise they help to choose what of the
 * strings goes into the keys (prefixes.c), and are ingested like the rest.
 *
 * Over a Gather with GpuSortIngest below it (ingest.c), other processes add rows
 * to the same sort, and only what they could not add comes up to be added here.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/input.h"

#include "client/elapsed.h"
#include "exec/bound.h"
#include "sort/collation_check.h"
#include "exec/fallback.h"
#include "sort/few_values.h"
#include "exec/ingest.h"
#include "sort/prefixes.h"
#include "exec/service_sort.h"
#include "exec/shared_sort.h"
#include "settings.h"

/* Keeps the first rows back; true if there are no others, and they are too few for the service. */
static bool
has_few_rows(GpuSortScanState *state)
{
	int few = gpusort_force ? 0 : gpusort_min_rows;
	int sample = state->keys->strings > 0 ? Max(GPUSORT_SAMPLE_ROWS, gpusort_few_values_rows(state->keys)) : 0;

	return !gpusort_first_rows_read(&state->first, gpusort_child(state), Max(few, sample)) && state->first.count < few;
}

/*
 * Lays the keys out; *common_later says whether the common prefixes of their strings are left to GpuSortIngest to
 * choose.  false, with a reason, if the keys are not worth it.
 */
static bool
lay_out_keys(GpuSortScanState *state, bool *common_later, GpuSortFailure *failure)
{
	GpuSortFirstRows *first = state->ingest == NULL ? &state->first : NULL;
	GpuSortPrefix *prefixes = MemoryContextAlloc(state->sort_context, state->keys->strings * sizeof(GpuSortPrefix));

	*common_later = !gpusort_prefixes_choose(state->keys, gpusort_child(state), first, state->info.estimated_rows, prefixes);
	gpusort_keys_lay_out(state->keys, prefixes, *common_later);
	return !gpusort_prefixes_tell_little(state->keys, prefixes, failure);
}

/* Adds the child's rows to the sort in the service; false if it came to a fallback. */
static bool
ingest_rows(GpuSortScanState *state)
{
	PlanState *child = gpusort_child(state);
	TupleTableSlot *stored = gpusort_stored_slot(child, state->form);
	GpuSortWriter *writer = &state->service.writer;
	GpuSortFailure failure = {0};

	for (;;)
	{
		TupleTableSlot *row = state->ingest != NULL ? gpusort_ingest_next(state->ingest)
													: gpusort_first_rows_next(&state->first, child);

		if (TupIsNull(row))
			break;
		if (state->ingest != NULL)
			gpusort_ingest_settle_common_prefixes(state->ingest);
		if (unlikely(!gpusort_writer_add(writer, row, row == state->first.slot ? NULL : stored, &failure)))
		{
			if (gpusort_client_is_full(state->service.client))
				gpusort_fallback_full(state, row, &failure);
			else
				gpusort_fallback_lost(state, &failure);
			return false;
		}
	}
	gpusort_first_rows_clear(&state->first);
	return true;
}

/* Verifies the order of all rows, by this process or by all that took rows in. */
static bool
check_rows(GpuSortScanState *state, GpuSortFailure *failure)
{
	GpuSortServiceSort *service = &state->service;
	MemoryContext caller = MemoryContextSwitchTo(state->sort_context);

	service->check = gpusort_collation_check_create(state->keys, &state->slots);
	MemoryContextSwitchTo(caller);
	gpusort_service_sort_show(state, GPUSORT_PHASE_VERIFY, 0);
	/* Long rows are in a file of this process. */
	if (state->ingest != NULL && gpusort_ingest_stayed(state->ingest) > 0 && state->slots.overflow.file == NULL)
	{
		GpuSortOrderReader own = {.check = service->check, .reader = &service->reader, .client = service->client};

		return gpusort_ingest_check_order(state->ingest, &own, &state->figures.pairs, failure);
	}
	return gpusort_reader_rewind(&service->reader, 0, failure) &&
		gpusort_collation_check_rows(service->check, &service->reader, PG_UINT64_MAX, &state->figures.pairs, failure);
}

/*
 * Verifies that the rows are in order under collations of the C library, if that is to be done, and sets the reader before
 * the first that is wanted; false, with a reason, if they are not, or lost.  Workers have ended then.
 */
static bool
check_order(GpuSortScanState *state, GpuSortFailure *failure)
{
	bool good = true;
	instr_time start;

	INSTR_TIME_SET_CURRENT(start);
	if (state->service.check_order)
		good = check_rows(state, failure);
	if (state->ingest != NULL)
		gpusort_ingest_finish(state->ingest);
	state->figures.verify_ms = gpusort_ms_since(start);
	state->service.reader.wait_ms = 0; /* it is in that */
	if (good && state->ingest != NULL && gpusort_ingest_is_strange(state->ingest))
		good = gpusort_failure_set(failure, GPUSORT_REASON_COLLATION,
								   "processes of the sort have different versions of a locale of the C library");
	return good && gpusort_service_sort_rewind(state, failure);
}

/* Has the rows sorted that were ingested since start; false if it came to a fallback. */
static bool
sort_rows(GpuSortScanState *state, instr_time start)
{
	GpuSortFailure failure = {0};
	instr_time ingested;

	INSTR_TIME_SET_CURRENT(ingested);
	if (!gpusort_service_sort_wait(state, gpusort_service_sort_first(state, false), &failure))
	{
		gpusort_fallback_lost(state, &failure);
		return false;
	}

	gpusort_service_sort_note_times(state, start, ingested);
	if (!check_order(state, &failure))
	{
		if (failure.reason == GPUSORT_REASON_COLLATION)
			gpusort_fallback_disordered(state, &failure);
		else
			gpusort_fallback_lost(state, &failure);
		return false;
	}
	state->service.unreported = true;
	return true;
}

/* Reads the child to its end and sorts: from stage INPUT to one of the others. */
void
gpusort_sort_input(GpuSortScanState *state)
{
	GpuSortFailure failure = {0};
	instr_time start;
	bool common_later;

	state->fallback.reason.reason = GPUSORT_REASON_NONE;
	state->bound = gpusort_bound_rows(state->limit);
	if (state->shared != NULL)
	{
		/* Rows that several processes read are put before one is asked for; this process is to sort alone. */
		gpusort_fallback_refused(state, gpusort_shared_sort_failure(state));
		return;
	}
	if (gpusort_plan_state(state)->state->es_epq_active != NULL)
	{
		failure.reason = GPUSORT_REASON_RECHECK;
		strlcpy(failure.text, "a row is being rechecked after a concurrent update", sizeof(failure.text));
		gpusort_fallback_refused(state, &failure);
		return;
	}
	if (!gpusort_allowed)
	{
		failure.reason = GPUSORT_REASON_NOT_ALLOWED;
		strlcpy(failure.text, "gpusort.allowed is off", sizeof(failure.text));
		gpusort_fallback_refused(state, &failure);
		return;
	}

	INSTR_TIME_SET_CURRENT(start);
	if (state->ingest == NULL && has_few_rows(state))
	{
		gpusort_fallback_few(state);
		return;
	}
	if (!lay_out_keys(state, &common_later, &failure) || !gpusort_collation_check_allows(state->keys, &failure) ||
		!gpusort_service_sort_begin(state, &failure))
	{
		gpusort_fallback_refused(state, &failure);
		return;
	}
	if (state->ingest != NULL)
		gpusort_ingest_start(state->ingest, &state->service.writer, state->keys, common_later, state->service.by_ranges);
	if (!ingest_rows(state) || !sort_rows(state, start))
		return;
	gpusort_service_sort_show(state, GPUSORT_PHASE_EMIT, 0);
	state->stage = GPUSORT_STAGE_STREAM;
}
