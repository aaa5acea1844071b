/*-------------------------------------------------------------------------
 *
 * service_sort.c
 *	  A sort's part in the service: its beginning, its order, its end.
 *
 * Legal order of calls: begin; then rows are added with the writer (the kind's put_rows);
 * wait, which is where a query waits for the device; then rows are read with the
 * reader, until release, when none of them can be asked for again.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/service_sort.h"

#include "client/elapsed.h"
#include "server/jobs.h"
#include "server/reasons.h"
#include "server/statistics.h"
#include "settings.h"
#include "sort/collation_check.h"
#include "sort/row_tail.h"
#include "sort/ties.h"
#include "utils/memutils.h"

/* The sort is no longer shown in gpusort_jobs.  A callback of sort_context. */
static void
release_job_slot(void *arg)
{
	GpuSortServiceSort *service = arg;

	gpusort_shared_job_end(service->job);
	service->job = NULL;
}

/* Returns true if each row gets a tail (row_tail.h), whatever memory it is sorted in. */
static bool
wants_tails(const GpuSortState *sort)
{
	return gpusort_verify_rows || sort->stays;
}

/*
 * Returns how many rows of each group the service may leave at least; 0: it must give all rows.  A key that has not all
 * columns that tell groups apart says nothing of them.
 */
static uint32
run_rows(const GpuSortState *sort)
{
	if (sort->rows->counted || sort->bound > 0 || sort->service.check_order || sort->group.columns > sort->keys->encoded)
		return 0;
	return sort->group.rows;
}

/*
 * Returns true if rows may be left out whose keys are truncated, but not in the columns that tell groups apart: then
 * all come whose keys equal the last wanted one's.  There are many of these where a later column has few values, whose
 * ranks do not truncate the key.
 */
static bool
leaves_truncated_out(const GpuSortKeys *keys, int group_columns)
{
	for (int i = group_columns; keys->encoded == keys->count && i < keys->count; i++)
	{
		if (keys->columns[i].rank_bits > 0)
			return false;
	}
	return group_columns <= keys->exact_columns || !keys->may_tie;
}

/* Fills in what the service is asked for, from the planner's estimates. */
static void
make_request(const GpuSortState *sort, int participants, GpuSortRequest *request)
{
	memset(request, 0, sizeof(*request));
	request->engine = gpusort_engine;
	request->key_words = sort->keys->words;
	request->may_tie = sort->keys->may_tie;
	request->estimated_rows = sort->estimated_rows;
	request->estimated_bytes = sort->estimated_rows *
		(gpusort_row_bytes(sort->estimated_width) + sort->keys->words * sizeof(uint64) + sizeof(uint32) +
		 (wants_tails(sort) ? gpusort_tail_bytes(sort->keys->words) : 0));
	/* To verify the keys' order the service must return all rows: one that it left out may belong to the first. */
	request->limit = sort->service.check_order ? 0 : gpusort_sort_bound(sort);
	if (sort->service.run_rows > 0)
	{
		/* 0 is in all bits of the last word behind the last column */
		request->run_bits = sort->group.columns < sort->keys->encoded
			? gpusort_keys_range_bits(sort->keys, sort->group.columns)
			: 64 * sort->keys->words;
		request->run_rows = sort->service.run_rows;
		request->run_peers = sort->group.peers;
		request->run_exact = leaves_truncated_out(sort->keys, sort->group.columns);
	}
	request->spill = gpusort_spill;
	request->shared = sort->service.parallel;
	request->readers = participants;
	if (sort->rows->counted)
		request->estimated_bytes += sort->estimated_rows * sizeof(uint64);
	if (sort->rows->counted && !sort->service.check_order)
	{
		request->run_bits = 64 * sort->keys->words;
		request->run_rows = 1;
		request->run_counts = 1;
	}
}

/*
 * Returns true if so few of the rows are wanted that it pays to drop others by their keys while they are taken in.  The
 * keys' order must not need a verification then.
 */
static bool
drops_rows(const GpuSortState *sort)
{
	const uint64 bound = gpusort_sort_bound(sort);

	return bound > 0 && bound <= sort->estimated_rows / GPUSORT_ROWS_PER_WANTED &&
		!sort->service.parallel && !sort->service.check_order;
}

/* Returns true if no row is wanted that is equal to another in all columns that are sorted by. */
static bool
drops_repeats(const GpuSortState *sort)
{
	return sort->service.run_rows == 1 && !sort->group.peers && sort->group.columns == sort->ncolumns;
}

/* Returns true if the order of the rows is to be verified: that by abbreviated keys always is. */
bool
gpusort_service_sort_checks_order(const GpuSortState *sort)
{
	return gpusort_keys_are_abbreviated(sort->keys) || (gpusort_verify_collation && gpusort_keys_by_libc(sort->keys));
}

/* Makes what orders runs of equal keys, by the columns that these do not decide. */
static GpuSortTies *
create_ties(GpuSortState *sort)
{
	const int exact = sort->keys->exact_columns;

	return gpusort_ties_create(sort->columns + exact, sort->ncolumns - exact, sort->rows);
}

/*
 * Begins a sort in the service, and the writer that adds to it; the keys must be laid out.  participants: how many
 * processes read the rows, if all start, in a parallel sort; 0: it is not parallel.  false, with a reason, when
 * PostgreSQL is to sort.
 */
bool
gpusort_service_sort_begin(GpuSortState *sort, int participants, GpuSortFailure *failure)
{
	GpuSortServiceSort *service = &sort->service;
	GpuSortFigures *figures = &sort->figures;
	GpuSortRequest request;
	MemoryContext caller;

	memset(&figures->ms, 0, sizeof(figures->ms));
	memset(&figures->outcome, 0, sizeof(figures->outcome));
	figures->pairs = 0;
	figures->skipped = 0;
	figures->verify_ms = 0;
	service->check_order = gpusort_service_sort_checks_order(sort);
	service->run_rows = run_rows(sort);
	service->parallel = participants > 0;
	make_request(sort, participants, &request);
	caller = MemoryContextSwitchTo(sort->context);
	service->job = gpusort_shared_job_start(sort->estimated_rows);
	service->job_callback.func = release_job_slot;
	service->job_callback.arg = service;
	MemoryContextRegisterResetCallback(sort->context, &service->job_callback);
	service->client = gpusort_client_begin(&request, failure);
	if (service->client == NULL)
		release_job_slot(service);
	else
	{
		service->ties = create_ties(sort);
		figures->engine = gpusort_client_engine(service->client);
		strlcpy(figures->device, gpusort_client_device(service->client), sizeof(figures->device));
		figures->verified = wants_tails(sort) || !gpusort_client_has_ecc(service->client);
		figures->ms.queue = gpusort_client_queue_ms(service->client);
		gpusort_shared_job_begun(service->job, figures->engine, figures->device);
		gpusort_writer_init(&service->writer, service->client, sort->keys, &sort->rows->overflow, service->job,
							figures->verified);
		if (drops_rows(sort))
			service->writer.cutoff = gpusort_cutoff_create(sort->keys->words, sort->bound);
		else if (drops_repeats(sort))
			service->writer.repeats = gpusort_repeats_create(sort->keys->words);
	}
	MemoryContextSwitchTo(caller);
	return service->client != NULL;
}

/*
 * Joins, in another process, a parallel sort: to read it, as expected says, or where that is NULL to have it sorted
 * before; the keys must be laid out.  verified: rows have tails.  Returns false, with a reason, if it cannot.
 */
bool
gpusort_service_sort_join(GpuSortState *sort, uint64 token, uint32 generation, const GpuSortExpected *expected,
						  bool verified, GpuSortFailure *failure)
{
	GpuSortServiceSort *service = &sort->service;
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	service->client = gpusort_client_join(token, generation, true, failure);
	if (service->client != NULL)
	{
		service->ties = create_ties(sort);
		service->parallel = true;
		service->check_order = gpusort_service_sort_checks_order(sort);
		service->run_rows = run_rows(sort);
		sort->figures.verified = verified;
		if (expected != NULL)
			gpusort_reader_init(&service->reader, service->client, expected);
	}
	MemoryContextSwitchTo(caller);
	return service->client != NULL;
}

/* Lets this process read a parallel sort, whose rows are in order; unreported: it also tells the statistics. */
void
gpusort_service_sort_open(GpuSortState *sort, const GpuSortExpected *expected, bool unreported)
{
	gpusort_reader_init(&sort->service.reader, sort->service.client, expected);
	sort->service.unreported = unreported;
}

/*
 * Learns what came of a parallel sort, which any process has had sorted, for EXPLAIN and the statistics, unless that is
 * known here.
 */
void
gpusort_service_sort_learn(GpuSortState *sort, const GpuSortOutcome *outcome, const GpuSortTimes *ms, uint64 pairs)
{
	if (sort->figures.outcome.key_bits == 0)
	{
		sort->figures.outcome = *outcome;
		sort->figures.ms = *ms;
		sort->service.unreported = true;
	}
	sort->figures.pairs = pairs;
}

/* Makes what verifies the order of rows under collations of the C library, unless there is one. */
void
gpusort_service_sort_create_check(GpuSortState *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	if (sort->service.check == NULL)
		sort->service.check = gpusort_collation_check_create(sort->keys, sort->rows);
	MemoryContextSwitchTo(caller);
}

/* Notes that the order has been verified, by whatever processes. */
void
gpusort_service_sort_note_check(GpuSortState *sort, uint64 pairs, double ms)
{
	sort->figures.pairs = pairs;
	sort->figures.verify_ms = ms;
}

/* Compares what came of the sort with what was put, and fills in what its rows must be. */
static bool
expect_outcome(const GpuSortState *sort, const GpuSortPut *put, uint64 first, GpuSortExpected *expected,
			   GpuSortFailure *failure)
{
	const GpuSortOutcome *outcome = &sort->figures.outcome;
	const uint64 bound = gpusort_sort_bound(sort);
	const uint64 run_rows = sort->rows->counted ? 1 : sort->service.run_rows;
	const uint64 fewest = bound > 0 ? bound : run_rows;
	uint64 wanted = fewest > 0 ? Min(fewest, put->rows) : put->rows;

	*expected = (GpuSortExpected){
		.rows = outcome->rows,
		.bytes = outcome->bytes,
		.first = first,
		.in_runs = outcome->runs > 0,
		.tie_rows = outcome->tie_rows,
		.parallel = sort->service.parallel,
		.verified = sort->figures.verified,
		.all = outcome->rows == put->rows,
		.counted = sort->rows->counted ? put->rows : 0,
		.key_words = sort->keys->words,
		.sum = put->sum};
	if (sort->keys->may_tie)
		expected->flags |= GPUSORT_ROW_KEY_TRUNCATED | GPUSORT_ROW_TIE_NEXT;
	if (sort->rows->overflow.file != NULL)
		expected->flags |= GPUSORT_ROW_OVERFLOW;

	if (put->dropped > 0 && put->rows < bound)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   UINT64_FORMAT " rows were dropped and " UINT64_FORMAT " are left of " UINT64_FORMAT,
								   put->dropped, put->rows, bound);
	if (outcome->rows_in != put->rows || outcome->rows < wanted)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service got " UINT64_FORMAT " rows of " UINT64_FORMAT " and has " UINT64_FORMAT
								   " of " UINT64_FORMAT,
								   outcome->rows_in, put->rows, outcome->rows, wanted);
	if (expected->all ? outcome->bytes != put->bytes : outcome->bytes > put->bytes)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service was sent " UINT64_FORMAT " bytes of rows and has " UINT64_FORMAT,
								   put->bytes, outcome->bytes);
	return true;
}

/*
 * Ends the input and waits for the order of the rows that this process has put, and of those that others have;
 * *expected is what they must be when they are read, from number first on.  false, with a reason, if they are lost.
 */
bool
gpusort_service_sort_order(GpuSortState *sort, const GpuSortPut *others, uint64 first, GpuSortExpected *expected,
						   GpuSortFailure *failure)
{
	GpuSortServiceSort *service = &sort->service;
	GpuSortPut put = gpusort_writer_put(&service->writer);

	put.rows += others->rows;
	put.truncated += others->truncated;
	put.bytes += others->bytes;
	put.sum += others->sum;
	put.dropped += others->dropped;
	sort->figures.dropped = put.dropped;
	/* Where each key is whole it has no more of the C library's strings than ranks that strcoll has given. */
	service->check_order &= put.truncated > 0;
	if (!gpusort_writer_finish(&service->writer, failure))
		return false;
	gpusort_service_sort_show(sort, GPUSORT_PHASE_SORT, 0);
	if (!gpusort_client_sort(service->client, first, &sort->figures.outcome, failure))
		return false;
	if (service->writer.client != NULL) /* not where this process has put no rows */
		gpusort_writer_show(&service->writer, 0);
	return expect_outcome(sort, &put, first, expected, failure);
}

/*
 * The same; then rewind must set the reader before the first row that is wanted, most likely that of number first.
 */
bool
gpusort_service_sort_wait(GpuSortState *sort, const GpuSortPut *others, uint64 first, GpuSortFailure *failure)
{
	GpuSortExpected expected;

	if (!gpusort_service_sort_order(sort, others, first, &expected, failure))
		return false;
	gpusort_reader_init(&sort->service.reader, sort->service.client, &expected);
	return true;
}

/*
 * Returns the number of the first row to read; nobody needs the rows before it.  All are read if they must be verified,
 * or if one of them may tie with others, which is not known before they are sorted.
 */
uint64
gpusort_service_sort_first(const GpuSortState *sort, bool sorted)
{
	const GpuSortServiceSort *service = &sort->service;
	const GpuSortOutcome *outcome = &sort->figures.outcome;

	if (service->parallel || service->check_order || sort->figures.verified)
		return 0;
	if (sort->keys->may_tie && (!sorted || outcome->runs > 0 || outcome->tie_rows > 0))
		return 0;
	return sort->offset;
}

/*
 * Sets the reader before the first row to read, again or for the first time.  Returns false, with a reason, if the sort
 * is lost.
 */
bool
gpusort_service_sort_rewind(GpuSortState *sort, GpuSortFailure *failure)
{
	uint64 first = gpusort_service_sort_first(sort, true);

	sort->figures.skipped = Min(first, sort->figures.outcome.rows);
	return gpusort_reader_rewind(&sort->service.reader, first, failure);
}

/* Notes the times of a sort whose rows were all ingested at ingested, and are in order now. */
void
gpusort_service_sort_note_times(GpuSortState *sort, instr_time ingested)
{
	GpuSortFigures *figures = &sort->figures;
	double chunk_wait = sort->service.writer.wait_ms;
	double waited = gpusort_ms_since(ingested);

	/* What was waited beyond the sort itself was for the last uploads. */
	figures->ms.ingest = gpusort_ms_between(sort->begun, ingested) - chunk_wait - figures->ms.queue;
	figures->ms.upload_wait = chunk_wait + Max(waited - figures->outcome.sort_ms, 0);
	figures->ms.sort = figures->outcome.sort_ms;
}

/* Ends the sort in the service, of which no row is wanted any more; it may have ended already. */
void
gpusort_service_sort_release(GpuSortState *sort)
{
	if (sort->service.client == NULL)
		return;
	gpusort_client_end(sort->service.client);
	sort->service.client = NULL;
	release_job_slot(&sort->service);
}

/* Returns the times of the last sort, with those that reader and ties keep while rows are emitted. */
GpuSortTimes
gpusort_service_sort_times(const GpuSortState *sort)
{
	GpuSortTimes ms = sort->figures.ms;

	if (sort->stage == GPUSORT_STAGE_SERVICE)
	{
		ms.gather = sort->service.reader.gather_ms;
		ms.emit = sort->service.reader.wait_ms;
		ms.ties = gpusort_ties_ms(sort->service.ties);
	}
	return ms;
}

/* Returns in how many runs the last sort was done; all at once is one. */
uint32
gpusort_service_sort_runs(const GpuSortState *sort)
{
	return Max(sort->figures.outcome.runs, 1);
}

/*
 * Returns how many rows of the last sort need a tie-break;
 * of one in runs, how many this process has seen since the first.
 */
uint64
gpusort_service_sort_tie_rows(const GpuSortState *sort)
{
	const GpuSortOutcome *outcome = &sort->figures.outcome;

	return outcome->runs > 0 ? sort->service.reader.all_tie_rows : outcome->tie_rows;
}

/* Adds what a sort in the service did to the statistics, once. */
static void
report_sort(GpuSortState *sort)
{
	const GpuSortOutcome *outcome = &sort->figures.outcome;
	GpuSortStats stats;

	if (!sort->service.unreported)
		return;
	sort->service.unreported = false;
	stats = (GpuSortStats){
		.sorts = 1,
		.rows = outcome->rows_in + sort->figures.dropped,
		.bytes = outcome->bytes,
		.temp_bytes = outcome->run_disk,
		.runs = gpusort_service_sort_runs(sort),
		.tie_rows = gpusort_service_sort_tie_rows(sort),
		.ms = gpusort_service_sort_times(sort),
	};
	gpusort_stats_count_sort(&stats);
}

/* Drops the sort, in whatever stage it is; the next is begin.  The source must be read from its start then. */
void
gpusort_sort_end(GpuSortState *sort)
{
	report_sort(sort);
	gpusort_rows_clear(sort->rows);
	if (sort->service.ties != NULL)
		gpusort_ties_reset(sort->service.ties);
	if (sort->native != NULL)
		tuplesort_end(sort->native);
	gpusort_overflow_close(&sort->rows->overflow);
	gpusort_input_clear(&sort->input);
	sort->native = NULL;
	sort->emitted = sort->in_ties = sort->range_ended = sort->finds_top = false;
	sort->service.ties = NULL;
	sort->service.check = NULL;
	gpusort_service_sort_release(sort);
	sort->stage = GPUSORT_STAGE_INPUT;
	MemoryContextReset(sort->context);
}
