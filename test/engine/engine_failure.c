/*-------------------------------------------------------------------------
 *
 * engine_failure.c
 *	  Bad chunks, cancelled sorts, too little memory, and calls of CUDA that fail.  See
 *	  engine_test.h.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine_test.h"

/* Rounds of calls that fail. */
#define FAULTS 8

typedef enum Damage
{
	DAMAGE_OFFSET_BEYOND,
	DAMAGE_OFFSET_AT_END,
	DAMAGE_OFFSET_HUGE,
	DAMAGE_MISALIGNED,
	DAMAGE_LENGTH_ZERO,
	DAMAGE_LENGTH_SHORT,
	DAMAGE_LENGTH_BEYOND,
	DAMAGE_LENGTH_HUGE,
	DAMAGE_TOO_MANY_ROWS,
	DAMAGE_ROWS_BEYOND_RESERVE,
	DAMAGE_TOO_MANY_BYTES,
	DAMAGE_COUNT
} Damage;

static const char *const damage_names[DAMAGE_COUNT] = {
	"offset beyond the records",
	"offset at their end",
	"offset of 2^32 - 8",
	"misaligned offset",
	"length 0",
	"length 7",
	"length beyond the records",
	"length of 2^32 - 1",
	"more rows than bytes hold",
	"more rows than reserved",
	"more bytes than a chunk has",
};

/* One chunk damaged so between good ones. */
static void
damage_chunk(Damage damage)
{
	CaseSpec spec = {.rows = 9000, .key_words = 2, .length_max = 48, .chunk_rows = 3000};
	GpuSortRequest request = sort_case_request(&spec);
	SortCase rows;
	CaseFailure failure = {.text = ""};
	GpuSortError error = {.reason = GPUSORT_REASON_NONE};
	GpuSortOutcome outcome;
	GpuSort *sort;
	GpuSortPlace place;
	char title[100];
	int result = 0;
	bool passed = true;

	snprintf(title, sizeof(title), "bad chunk: %s", damage_names[damage]);
	sort_case_make(&rows, &spec, rig_random(&test.seed));
	if (test.ops->begin(test.engine, &request, &sort_case_never_cancelled, &sort, &place, &error) != 0)
	{
		case_failed(&failure, "begin: %s", error.text);
		test_report(false, title, &failure);
		sort_case_free(&rows);
		return;
	}
	for (int i = 0; i < 3 && result == 0; i++)
	{
		RigChunk chunk;
		uint32_t victim = rig_random_below(&test.seed, 3000);
		uint32_t *offset;
		uint32_t *length;
		uint32_t rows_max = 3000;

		memset(test.pool, 0x5C, GPUSORT_CHUNK_BYTES);
		rig_chunk_start(&chunk, test.pool);
		for (int r = 0; r < 3000; r++)
			sort_case_write(&rows, i * 3000 + r, &chunk);
		if (i == 1)
		{
			offset = gpusort_chunk_offset(test.pool, victim);
			length = (uint32_t *) (test.pool + *offset + 16);
			switch (damage)
			{
				case DAMAGE_OFFSET_BEYOND:
					*offset = chunk.bytes + 64;
					break;
				case DAMAGE_OFFSET_AT_END:
					*offset = chunk.bytes - 16;
					break;
				case DAMAGE_OFFSET_HUGE:
					*offset = UINT32_MAX - 7;
					break;
				case DAMAGE_MISALIGNED:
					*offset += 4;
					break;
				case DAMAGE_LENGTH_ZERO:
					*length = 0;
					break;
				case DAMAGE_LENGTH_SHORT:
					*length = 7;
					break;
				case DAMAGE_LENGTH_BEYOND:
					*length = chunk.bytes - *offset - 16 + 1;
					break;
				case DAMAGE_LENGTH_HUGE:
					*length = UINT32_MAX;
					break;
				case DAMAGE_TOO_MANY_ROWS:
					rows_max = gpusort_chunk_rows_most(spec.key_words);
					chunk.rows = rows_max;
					break;
				case DAMAGE_ROWS_BEYOND_RESERVE:
					rows_max = chunk.rows - 1;
					break;
				case DAMAGE_TOO_MANY_BYTES:
					chunk.bytes = UINT32_MAX - 7;
					break;
				case DAMAGE_COUNT:
					break;
			}
		}
		if (test.ops->reserve(sort, rows_max, &error) != 0)
			passed = case_failed(&failure, "reserve: %s", error.text);
		result = test.ops->put(sort, test.pool, chunk.rows, chunk.bytes, rows_max, &error);
	}
	if (result == 0)
		result = test.ops->sort(sort, &outcome, &error);
	test.ops->end(sort);
	sort_case_free(&rows);
	if (result == 0)
		passed = case_failed(&failure, "the chunk was taken");
	else if (error.reason != GPUSORT_REASON_BAD_CHUNK)
		passed = case_failed(&failure, "reason %d: %s", error.reason, error.text);
	test_report(passed, title, &failure);
}

void
test_damage(void)
{
	for (int i = 0; i < DAMAGE_COUNT; i++)
		damage_chunk(i);
}

/*
 * What a sort takes of what it needs: processor time on the host, where others may have the processors, and time on a
 * device.
 */
static double
taken_ms(void)
{
	struct timespec now;

	if (test.ops->kind != GPUSORT_ENGINE_HOST)
		return rig_milliseconds();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* A flag that another thread sets after a while. */
typedef struct Canceller
{
	int cancelled;
	useconds_t after;
	double when;
} Canceller;

static void *
cancel_later(void *argument)
{
	Canceller *canceller = argument;

	usleep(canceller->after);
	canceller->when = taken_ms();
	__atomic_store_n(&canceller->cancelled, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Cancels a sort after so many microseconds. */
static void
cancel_after(useconds_t after)
{
	CaseSpec spec = {.rows = 100000, .key_words = 3, .length_max = 100};
	GpuSortRequest request = sort_case_request(&spec);
	Canceller canceller = {.after = after};
	pthread_t thread;
	SortCase rows;
	CaseFailure failure = {.text = ""};
	GpuSortError error = {.reason = GPUSORT_REASON_NONE};
	GpuSortOutcome outcome;
	GpuSortEmitted emitted;
	GpuSort *sort;
	uint64_t first = 0;
	uint64_t key[3];
	RigChunk chunk;
	GpuSortPlace place;
	char title[64];
	double took;
	int result = 0;

	snprintf(title, sizeof(title), "cancelled after %u us", after);
	sort_case_make(&rows, &spec, rig_random(&test.seed));
	rig_chunk_start(&chunk, test.pool);
	for (uint64_t row = 0; row < spec.rows && sort_case_write(&rows, row, &chunk); row++)
		;
	sort_case_free(&rows);

	if (test.ops->begin(test.engine, &request, &canceller.cancelled, &sort, &place, &error) != 0)
	{
		case_failed(&failure, "begin: %s", error.text);
		test_report(false, title, &failure);
		return;
	}
	if (pthread_create(&thread, NULL, cancel_later, &canceller) != 0)
	{
		perror("pthread_create");
		exit(2);
	}

	/* Some way in, then round and round the output until it is cancelled. */
	for (int i = 0; i < 20 && result == 0; i++)
	{
		result = test.ops->reserve(sort, chunk.rows, &error);
		if (result == 0)
			result = test.ops->put(sort, test.pool, chunk.rows, chunk.bytes, chunk.rows, &error);
	}
	if (result == 0)
		result = test.ops->sort(sort, &outcome, &error);
	while (result == 0)
	{
		result = test.ops->emit(sort, first, outcome.rows, false, test.pool + GPUSORT_CHUNK_BYTES, &emitted, &error);
		if (result == 0)
			result = test.ops->keys_at(sort, &first, 1, key, &error);
		if (result == 0)
			result = test.ops->rows_below(sort, 100, key, 1, &first, &error);
		first = result == 0 && !emitted.last ? first + emitted.rows : 0;
	}
	test.ops->end(sort);
	took = taken_ms();
	pthread_join(thread, NULL);
	took -= canceller.when;
	if (!canceller.cancelled || error.reason == GPUSORT_REASON_NONE || took > test.patience_ms)
		case_failed(&failure, "reason %d, %s, %.0f ms later", error.reason, error.text, took);
	test_report(failure.text[0] == '\0', title, &failure);
}

void
test_cancel(void)
{
	for (useconds_t after = 0; after < 60000; after = 3 * after + 100)
		cancel_after(after);
}

void
test_memory(GpuSortEngineConfig config, uint32_t device)
{
	char devices[16];
	CaseSpec spec = {.rows = 2000000, .key_words = 1, .length_max = 88, .truncated_percent = 3};
	GpuSortRequest request = sort_case_request(&spec);
	const uint32_t rows_max = gpusort_chunk_rows_most(spec.key_words);
	CaseFailure failure = {.text = ""};
	GpuSortError error;
	GpuSort *sorts[2];
	GpuSort *sort;
	GpuSortPlace place;

	snprintf(devices, sizeof(devices), "%u", device);
	config.devices = devices;
	config.memory_limit = UINT64_C(96) << 20;
	if (test.ops->open(&config, &test.engine, &error) != 0)
	{
		case_failed(&failure, "open: %s", error.text);
		test_report(false, "opened with a limit", &failure);
		return;
	}
	test_report(true, "opened with a limit", &failure);

	request.estimated_rows = spec.rows;
	request.estimated_bytes = spec.rows * 96;
	if (test.ops->begin(test.engine, &request, &sort_case_never_cancelled, &sort, &place, &error) == 0)
	{
		test.ops->end(sort);
		case_failed(&failure, "the sort began");
	}
	else if (error.reason != GPUSORT_REASON_MEMORY_LIMIT || strstr(error.text, "gpusort.") == NULL)
		case_failed(&failure, "reason %d: %s", error.reason, error.text);
	test_report(failure.text[0] == '\0', "an estimate beyond the limit is refused, with the setting's name", &failure);

	/* More than once, to find memory that is not given back. */
	for (int i = 0; i < 3; i++)
		test_case("what fits within the limit is sorted", spec);

	/* Two at once share it: the first to ask gets it, but for what every sort is sure of. */
	failure.text[0] = '\0';
	request.estimated_rows = 0;
	request.estimated_bytes = 0;
	for (int i = 0; i < 2; i++)
	{
		if (test.ops->begin(test.engine, &request, &sort_case_never_cancelled, &sorts[i], &place, &error) != 0)
		{
			case_failed(&failure, "begin: %s", error.text);
			sorts[i] = NULL;
		}
	}
	if (failure.text[0] == '\0')
	{
		int reserves = 0;

		while (reserves < 1000 && test.ops->reserve(sorts[0], rows_max, &error) == 0)
			reserves++;
		if (reserves == 0 || reserves == 1000 ||
			(error.reason != GPUSORT_REASON_MEMORY_LIMIT && error.reason != GPUSORT_REASON_MEMORY_BUSY))
			case_failed(&failure, "%d reserves, then reason %d: %s", reserves, error.reason, error.text);
		for (reserves = 0; reserves < 10 && test.ops->reserve(sorts[1], rows_max, &error) == 0;)
			reserves++;
		if (reserves == 10)
			case_failed(&failure, "the second sort got memory as well");
		else if (error.reason != GPUSORT_REASON_MEMORY_BUSY)
			case_failed(&failure, "the second sort was not told that others use the memory: reason %d", error.reason);
	}
	for (int i = 0; i < 2; i++)
		if (sorts[i] != NULL)
			test.ops->end(sorts[i]);
	test_report(failure.text[0] == '\0', "a sort takes no memory that another holds", &failure);

	test_idle("all memory is given back");
	test.ops->close(test.engine);
}

void
test_faults(GpuSortEngineConfig config, void (*emulate_fail)(long call))
{
	CaseSpec spec = {
		.rows = 1200,
		.key_words = 2,
		.keys = RIG_KEYS_SUFFIX,
		.length_max = 60,
		.chunk_rows = 200,
		.truncated_percent = 20,
	};

	for (int i = 0; i < FAULTS; i++)
	{
		uint64_t call = 1 + rig_random_below(&test.seed, 50u << rig_random_below(&test.seed, 5));
		GpuSortDevice devices[64];
		CaseFailure failure = {.text = ""};
		GpuSortError error;
		char title[64];
		bool passed;
		int count;

		if (test.ops->open(&config, &test.engine, &error) != 0)
		{
			case_failed(&failure, "open: %s", error.text);
			test_report(false, "opened for a fault", &failure);
			return;
		}
		spec.limit = rig_random_below(&test.seed, 2) ? 0 : 500;
		emulate_fail((long) call);
		passed = sort_case_run(&spec, rig_random(&test.seed), test.ops, test.engine, test.pool, &failure);
		if (!passed && (strstr(failure.text, "launch failure") != NULL || strstr(failure.text, "out of memory") != NULL))
			passed = true;
		emulate_fail(0);

		count = test.ops->describe(test.engine, devices, 64);
		for (int d = 0; d < count; d++)
			if (devices[d].jobs != 0 || devices[d].memory_used != 0)
				passed = case_failed(&failure, "device %d: %u jobs, %llu bytes", d, devices[d].jobs,
									 (unsigned long long) devices[d].memory_used);
		test.ops->close(test.engine);
		snprintf(title, sizeof(title), "call %llu fails", (unsigned long long) call);
		test_report(passed, title, &failure);
	}
}

void
test_several(GpuSortEngineConfig config)
{
	static const char *const names[] = {
		"a sort that outgrows its device goes on to others",
		"a sort that is expected to outgrow a device begins on several",
		"a sort that outgrows all devices gives out what was put",
	};
	CaseSpec spec = {.key_words = 2, .keys = RIG_KEYS_SUFFIX, .length_max = 12000, .truncated_percent = 20};
	CaseFailure failure = {.text = ""};
	GpuSortDevice devices[64];
	GpuSortError error;
	int count;

	config.memory_limit = UINT64_C(84) << 20;
	if (test.ops->open(&config, &test.engine, &error) != 0)
	{
		case_failed(&failure, "open: %s", error.text);
		test_report(false, "opened with a limit on each device", &failure);
		return;
	}
	count = test.ops->describe(test.engine, devices, 64);
	if (devices[0].sort_limit > devices[0].memory_limit)
	{
		for (int i = 0; i < 3; i++)
		{
			/* a device has room for about 3300 rows; a quarter of its memory is kept for other sorts */
			spec.rows = (i < 2 ? 2600 : 5000) * (uint64_t) count;
			spec.reserve_ahead = i == 1;
			spec.fits = i < 2 ? 1 : -1;
			spec.keys = i == 2 ? RIG_KEYS_EQUAL : RIG_KEYS_SUFFIX;
			test_whole_case(names[i], spec);
		}
		test_idle("all memory of all devices is given back");
	}
	test.ops->close(test.engine);
}
