/*-------------------------------------------------------------------------
 *
 * service_sort.c
 *	  One sort of a GpuSort in the service: its beginning, its order, its end.
 *
 * Legal order of calls: begin; then rows are added with the writer (input.c);
 * wait, which is where a query waits for the device; then rows are read with the
 * reader, until release, when none of them can be asked for again.  gpusort_end_sort
 * at any time: it drops whatever the node made of its child's rows.
 *
 * Memory: all of it is in sort_context.  Resetting that closes the connection, and
 * with it everything in the service; so does an error, through the reset callback
 * of the client.  Temporary files belong to the resource owner of the query.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/service_sort.h"

#include "client/elapsed.h"
#include "sort/row_tail.h"
#include "exec/bound.h"
#include "exec/ingest.h"
#include "sort/ties.h"
#include "settings.h"
#include "utils/memutils.h"

/* The sort is no longer shown in gpusort_jobs.  A callback of sort_context. */
static void
release_job_slot(void *arg)
{
	GpuSortServiceSort *service = arg;

	gpusort_shared_job_end(service->job);
	service->job = NULL;
}

/* Fills in what the service is asked for, from the planner's estimates. */
static void
make_request(const GpuSortScanState *state, GpuSortRequest *request)
{
	const GpuSortPlanInfo *info = &state->info;

	memset(request, 0, sizeof(*request));
	request->engine = gpusort_engine;
	request->key_words = state->keys->words;
	request->may_tie = state->keys->may_tie;
	request->estimated_rows = info->estimated_rows;
	request->estimated_bytes = info->estimated_rows *
		(gpusort_row_bytes(info->estimated_width) + state->keys->words * sizeof(uint64) + sizeof(uint32) +
		 (gpusort_verify_rows ? gpusort_tail_bytes(state->keys->words) : 0));
	/* Where the keys' order is to be verified all rows must be: what is left out may belong to the first. */
	request->limit = state->service.check_order ? 0 : state->bound;
	request->spill = gpusort_spill;
	request->shared = state->service.by_ranges;
	if (state->service.by_ranges)
		request->readers = state->shared != NULL ? state->service.readers : gpusort_ingest_processes(state->ingest);
}

/*
 * Returns true if so few of the rows are wanted that it pays to tell which are not while they are taken in: by their
 * keys, whose order is not to be verified then.
 */
static bool
drops_rows(const GpuSortScanState *state)
{
	return state->bound > 0 && state->bound <= state->info.estimated_rows / GPUSORT_ROWS_PER_WANTED &&
		!state->service.by_ranges && !state->service.check_order;
}

/*
 * Begins a sort in the service, and the writer that adds to it; the keys must be
 * laid out.  false, with a reason, when the sort is to be PostgreSQL's.
 */
bool
gpusort_service_sort_begin(GpuSortScanState *state, GpuSortFailure *failure)
{
	GpuSortServiceSort *service = &state->service;
	GpuSortFigures *figures = &state->figures;
	GpuSortRequest request;
	MemoryContext caller;

	memset(&figures->ms, 0, sizeof(figures->ms));
	memset(&figures->outcome, 0, sizeof(figures->outcome));
	figures->pairs = 0;
	figures->skipped = 0;
	figures->verify_ms = 0;
	service->check_order = gpusort_verify_collation && gpusort_keys_by_libc(state->keys);
	service->by_ranges = state->shared != NULL ||
		(service->check_order && state->ingest != NULL && gpusort_ingest_may_stay(state->ingest));
	make_request(state, &request);
	caller = MemoryContextSwitchTo(state->sort_context);
	service->job = gpusort_shared_job_start(state->info.estimated_rows);
	service->job_callback.func = release_job_slot;
	service->job_callback.arg = service;
	MemoryContextRegisterResetCallback(state->sort_context, &service->job_callback);
	service->client = gpusort_client_begin(&request, failure);
	if (service->client == NULL)
		release_job_slot(service);
	else
	{
		service->ties = gpusort_ties_create(state->info.columns + state->keys->exact_columns,
											state->info.ncolumns - state->keys->exact_columns, &state->slots);
		figures->engine = gpusort_client_engine(service->client);
		strlcpy(figures->device, gpusort_client_device(service->client), sizeof(figures->device));
		figures->verified = gpusort_verify_rows || !gpusort_client_has_ecc(service->client);
		figures->ms.queue = gpusort_client_queue_ms(service->client);
		gpusort_shared_job_begun(service->job, figures->engine, figures->device);
		gpusort_writer_init(&service->writer, service->client, state->keys, state->form, &state->slots.overflow,
							service->job, figures->verified);
		if (drops_rows(state))
			service->writer.cutoff = gpusort_cutoff_create(state->keys->words, state->bound);
	}
	MemoryContextSwitchTo(caller);
	return service->client != NULL;
}

/* Compares what came of the sort with what was put, and fills in what its rows must be. */
static bool
expect_outcome(const GpuSortScanState *state, const GpuSortPut *put, uint64 first, GpuSortExpected *expected,
			   GpuSortFailure *failure)
{
	const GpuSortOutcome *outcome = &state->figures.outcome;
	uint64 wanted = state->bound > 0 ? Min(state->bound, put->rows) : put->rows;

	*expected = (GpuSortExpected){
		.rows = outcome->rows,
		.bytes = outcome->bytes,
		.first = first,
		.in_runs = outcome->runs > 0,
		.tie_rows = outcome->tie_rows,
		.shared = state->service.by_ranges,
		.verified = state->figures.verified,
		.all = outcome->rows == put->rows,
		.key_words = state->keys->words,
		.sum = put->sum};
	if (state->keys->may_tie)
		expected->flags |= GPUSORT_ROW_KEY_TRUNCATED | GPUSORT_ROW_TIE_NEXT;
	if (state->slots.overflow.file != NULL)
		expected->flags |= GPUSORT_ROW_OVERFLOW;

	if (put->dropped > 0 && put->rows < state->bound)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   UINT64_FORMAT " rows were dropped and " UINT64_FORMAT " are left of " UINT64_FORMAT,
								   put->dropped, put->rows, state->bound);
	if (outcome->rows_in != put->rows || outcome->rows < wanted)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service got " UINT64_FORMAT " rows of " UINT64_FORMAT " and has " UINT64_FORMAT " of " UINT64_FORMAT,
								   outcome->rows_in, put->rows, outcome->rows, wanted);
	if (expected->all ? outcome->bytes != put->bytes : outcome->bytes > put->bytes)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service got rows of " UINT64_FORMAT " bytes and has " UINT64_FORMAT,
								   put->bytes, outcome->bytes);
	return true;
}

/*
 * Ends the input and waits for the order of the rows that this process has put, and of those that others have;
 * *expected is what they must be when they are read, from number first on.  false, with a reason, if they are lost.
 */
bool
gpusort_service_sort_order(GpuSortScanState *state, const GpuSortPut *others, uint64 first, GpuSortExpected *expected,
						   GpuSortFailure *failure)
{
	GpuSortServiceSort *service = &state->service;
	GpuSortPut put = gpusort_writer_put(&service->writer);

	put.rows += others->rows;
	put.truncated += others->truncated;
	put.bytes += others->bytes;
	put.sum += others->sum;
	put.dropped += others->dropped;
	state->figures.dropped = put.dropped;
	/* Where each key is whole it has no more of the C library's strings than ranks that strcoll has given. */
	service->check_order &= put.truncated > 0;
	if (!gpusort_writer_finish(&service->writer, failure))
		return false;
	gpusort_service_sort_show(state, GPUSORT_PHASE_SORT, 0);
	if (!gpusort_client_sort(service->client, first, &state->figures.outcome, failure))
		return false;
	if (service->writer.client != NULL) /* not where this process has put no rows */
		gpusort_writer_show(&service->writer, 0);
	return expect_outcome(state, &put, first, expected, failure);
}

/* The same; the reader is to be set before the first row that is wanted, most likely that of number first, by rewind. */
bool
gpusort_service_sort_wait(GpuSortScanState *state, uint64 first, GpuSortFailure *failure)
{
	GpuSortPut others = {0};
	GpuSortExpected expected;

	if (state->ingest != NULL)
		gpusort_ingest_collect(state->ingest, &others);
	if (!gpusort_service_sort_order(state, &others, first, &expected, failure))
		return false;
	gpusort_reader_init(&state->service.reader, state->service.client, &expected);
	return true;
}

/*
 * Returns the number of the first row that is to be read: those before it are dropped by a Limit above, which must be
 * about to ask for the first.  All are read where they are to be verified or kept, and where one of them may tie with
 * others: that is not known before they are sorted, unless none can.
 */
uint64
gpusort_service_sort_first(const GpuSortScanState *state, bool sorted)
{
	const GpuSortServiceSort *service = &state->service;
	const GpuSortOutcome *outcome = &state->figures.outcome;

	if ((state->eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)) || service->by_ranges || service->check_order || state->figures.verified)
		return 0;
	if (state->keys->may_tie && (!sorted || outcome->runs > 0 || outcome->tie_rows > 0))
		return 0;
	return gpusort_bound_offset(state->limit, &state->ranked.css.ss.ps);
}

/* Sets the reader before the first row that is to be read, again or for the first time; false, with a reason, if the sort is lost. */
bool
gpusort_service_sort_rewind(GpuSortScanState *state, GpuSortFailure *failure)
{
	uint64 first = gpusort_service_sort_first(state, true);

	state->figures.skipped = Min(first, state->figures.outcome.rows);
	return gpusort_reader_rewind(&state->service.reader, first, failure);
}

/* Notes the times of a sort that began at start, whose rows were all ingested at ingested, and are in order now. */
void
gpusort_service_sort_note_times(GpuSortScanState *state, instr_time start, instr_time ingested)
{
	GpuSortFigures *figures = &state->figures;
	double chunk_wait = state->service.writer.wait_ms;
	double waited = gpusort_ms_since(ingested);

	/* What was waited beyond the sort itself was for the last uploads. */
	figures->ms.ingest = gpusort_ms_between(start, ingested) - chunk_wait - figures->ms.queue;
	figures->ms.upload_wait = chunk_wait + Max(waited - figures->outcome.sort_ms, 0);
	figures->ms.sort = figures->outcome.sort_ms;
}

/* Ends the sort in the service, of which no row is wanted any more; it may have ended already. */
void
gpusort_service_sort_release(GpuSortScanState *state)
{
	if (state->service.client == NULL)
		return;
	gpusort_client_end(state->service.client);
	state->service.client = NULL;
	release_job_slot(&state->service);
}

/* Returns the times of the last sort, with those that reader and ties keep while rows are emitted. */
GpuSortTimes
gpusort_service_sort_times(const GpuSortScanState *state)
{
	GpuSortTimes ms = state->figures.ms;

	if (state->stage == GPUSORT_STAGE_STREAM)
	{
		ms.gather = state->service.reader.gather_ms;
		ms.emit = state->service.reader.wait_ms;
		ms.ties = gpusort_ties_ms(state->service.ties);
	}
	return ms;
}

/* Returns in how many runs the last sort was done; all at once is one. */
uint32
gpusort_service_sort_runs(const GpuSortScanState *state)
{
	return Max(state->figures.outcome.runs, 1);
}

/* Returns how many rows of the last sort need a tie-break; of one in runs, how many this process has seen since the first. */
uint64
gpusort_service_sort_tie_rows(const GpuSortScanState *state)
{
	const GpuSortOutcome *outcome = &state->figures.outcome;

	return outcome->runs > 0 ? state->service.reader.all_tie_rows : outcome->tie_rows;
}

/* Adds what a sort in the service did to the statistics, once. */
static void
report_sort(GpuSortScanState *state)
{
	const GpuSortOutcome *outcome = &state->figures.outcome;
	GpuSortStats sort;

	if (!state->service.unreported)
		return;
	state->service.unreported = false;
	sort = (GpuSortStats){
		.sorts = 1,
		.rows = outcome->rows_in + state->figures.dropped,
		.bytes = outcome->bytes,
		.temp_bytes = outcome->run_disk,
		.runs = gpusort_service_sort_runs(state),
		.tie_rows = gpusort_service_sort_tie_rows(state),
		.ms = gpusort_service_sort_times(state),
	};
	gpusort_stats_count_sort(&sort);
}

/* Drops the sort, in whatever stage it is; the next row asked for starts another. */
void
gpusort_end_sort(GpuSortScanState *state)
{
	report_sort(state);
	gpusort_slots_clear(&state->slots);
	if (state->service.ties != NULL)
		gpusort_ties_reset(state->service.ties);
	if (state->fallback.sort != NULL)
		tuplesort_end(state->fallback.sort);
	if (state->stream.store != NULL)
		tuplestore_end(state->stream.store);
	gpusort_overflow_close(&state->slots.overflow);
	gpusort_first_rows_clear(&state->first);
	if (state->ingest != NULL)
		gpusort_ingest_reset(state->ingest);
	state->fallback.sort = NULL;
	state->stream = (GpuSortRowStream){0};
	state->service.ties = NULL;
	state->service.check = NULL;
	gpusort_service_sort_release(state);
	state->stage = GPUSORT_STAGE_INPUT;
	MemoryContextReset(state->sort_context);
}
