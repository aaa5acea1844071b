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

#include "exec/bound.h"
#include "exec/fallback.h"
#include "exec/ingest.h"
#include "exec/prefixes.h"
#include "exec/service_sort.h"
#include "exec/shared_sort.h"
#include "settings.h"

/* Keeps the first rows back; true if there are no others, and they are too few for the service. */
static bool
has_few_rows(GpuSortScanState *state)
{
	int few = gpusort_force ? 0 : gpusort_min_rows;
	int sample = state->keys->strings > 0 ? GPUSORT_SAMPLE_ROWS : 0;

	return !gpusort_first_rows_read(&state->first, gpusort_child(state), Max(few, sample)) && state->first.count < few;
}

/* Lays the keys out; true if the common prefixes of their strings are left to GpuSortIngest to choose. */
static bool
lay_out_keys(GpuSortScanState *state)
{
	GpuSortFirstRows *first = state->ingest == NULL ? &state->first : NULL;
	GpuSortPrefix *prefixes = MemoryContextAlloc(state->sort_context, state->keys->strings * sizeof(GpuSortPrefix));
	bool common_later = !gpusort_prefixes_choose(state->keys, gpusort_child(state), first, state->info.estimated_rows,
												 prefixes);

	gpusort_keys_lay_out(state->keys, prefixes, common_later);
	return common_later;
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
		TupleTableSlot *row = gpusort_first_rows_next(&state->first, child);

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

/* Has the rows sorted that were ingested since start; false if it came to a fallback. */
static bool
sort_rows(GpuSortScanState *state, instr_time start)
{
	GpuSortFailure failure = {0};
	instr_time ingested;

	INSTR_TIME_SET_CURRENT(ingested);
	if (!gpusort_service_sort_wait(state, &failure))
	{
		gpusort_fallback_lost(state, &failure);
		return false;
	}

	gpusort_service_sort_note_times(state, start, ingested);
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

	memset(&state->figures.ms, 0, sizeof(state->figures.ms));
	memset(&state->figures.outcome, 0, sizeof(state->figures.outcome));
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
	common_later = lay_out_keys(state);
	if (!gpusort_service_sort_begin(state, &failure))
	{
		gpusort_fallback_refused(state, &failure);
		return;
	}
	if (state->ingest != NULL)
		gpusort_ingest_start(state->ingest, &state->service.writer, state->keys, common_later);
	if (!ingest_rows(state) || !sort_rows(state, start))
		return;
	gpusort_service_sort_show(state, GPUSORT_PHASE_EMIT, 0);
	state->stage = GPUSORT_STAGE_STREAM;
}
