/*-------------------------------------------------------------------------
 *
 * engine_test.c
 *	  An engine against the order that is right, without service or PostgreSQL.
 *
 *	engine_test --engine host
 *	engine_test --engine cuda --library PATH
 *		--devices LIST		as gpusort.devices
 *		--seed N			to repeat a run; else a fresh one, printed
 *		--rounds N			cases with everything random (100)
 *		--rows N			rows of the largest cases (1000000)
 *		--most N			no case has more rows than that; for slow engines
 *		--chunk N			no chunk of a case has more rows than that
 *		--only NAMES		of: shapes limits random threads damage cancel memory faults several
 *		--patience N		how soon a cancelled call has to return (500 ms)
 *
 * Prints TAP.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "sort_case.h"

#define THREADS          8
#define CASES_PER_THREAD 6
#define FAULTS           8

/* Two for each thread. */
#define POOL_CHUNKS (2 * THREADS)

static const GpuSortEngineOps *ops;
static GpuSortEngine *engine;
static char *pool;
static uint64_t seed;
static int patience_ms = 500;
static uint64_t most_rows = UINT64_MAX;
static uint32_t most_chunk_rows = 0;
static int tests_run;
static int tests_failed;

static void
report(bool passed, const char *name, const CaseFailure *failure)
{
	tests_run++;
	printf("%s %d - %s\n", passed ? "ok" : "not ok", tests_run, name);
	if (!passed)
	{
		tests_failed++;
		printf("# %s\n", failure->text);
	}
	fflush(stdout);
}

static void
run_whole_case(const char *name, CaseSpec spec)
{
	CaseFailure failure;
	bool passed = sort_case_run(&spec, rig_random(&seed), ops, engine, pool, &failure);

	report(passed, name, &failure);
}

/* Within what --most and --chunk say. */
static void
run_case(const char *name, CaseSpec spec)
{
	if (spec.rows > most_rows)
		spec.rows = most_rows;
	if (spec.chunk_rows == 0)
		spec.chunk_rows = most_chunk_rows;
	run_whole_case(name, spec);
}

/* Everything random, within what stays quick. */
static CaseSpec
random_spec(uint64_t *state)
{
	static const uint32_t lengths[] = {8, 16, 17, 64, 100, 150, 1000, 70000};
	CaseSpec spec = {
		.rows = rig_random_below(state, 3) ? rig_random_below(state, 3000) : rig_random_below(state, 30),
		.key_words = rig_random_below(state, 4) ? 1 + rig_random_below(state, 4) : 1 + rig_random_below(state, 32),
		.keys = rig_random_below(state, RIG_KEYS_COUNT),
		.lengths = rig_random_below(state, 3),
		.length_max = lengths[rig_random_below(state, 8)],
		.truncated_percent = rig_random_below(state, 2) ? rig_random_below(state, 101) : 0,
		.overflow_percent = rig_random_below(state, 2) ? 10 : 0,
		.chunk_rows = rig_random_below(state, 2) ? 1 + rig_random_below(state, 500) : 0,
		.reserve_ahead = rig_random_below(state, 2),
	};

	if (rig_random_below(state, 3) == 0)
		spec.limit = 1 + rig_random_below(state, rig_random_below(state, 2) ? 20 : spec.rows + 2);

	if (spec.length_max == 70000 && spec.rows > 500)
		spec.rows = 500;
	if (spec.truncated_percent == 0)
		spec.claim_no_ties = rig_random_below(state, 2);
	return spec;
}

static void
describe_spec(const CaseSpec *spec, char *text, size_t size)
{
	snprintf(text, size, "%llu rows, limit %llu, %u words %s, lengths %d to %u, %u%% truncated keys, %u per chunk%s",
			 (unsigned long long) spec->rows, (unsigned long long) spec->limit, spec->key_words, rig_keys_names[spec->keys], spec->lengths,
			 spec->length_max, spec->truncated_percent, spec->chunk_rows, spec->claim_no_ties ? ", no ties" : "");
}

/* Shapes and distributions that are hard in some way. */
static void
test_shapes(uint64_t large)
{
	static const uint32_t widths[] = {1, 2, 3, 5, 32};
	static const uint64_t counts[] = {2, 31, 32, 33, 255, 257, 1023, 8192, 8193, 70001};

	run_case("no rows", (CaseSpec){.rows = 0, .key_words = 1, .length_max = 16});
	run_case("one row", (CaseSpec){.rows = 1, .key_words = 1, .length_max = 16, .truncated_percent = 100});
	run_case("one row of the least length", (CaseSpec){.rows = 1, .key_words = 32, .length_max = 8});
	for (int i = 0; i < 10; i++)
	{
		char name[64];

		snprintf(name, sizeof(name), "%llu rows", (unsigned long long) counts[i]);
		run_case(name, (CaseSpec){.rows = counts[i], .key_words = 1, .keys = RIG_KEYS_FEW, .length_max = 24, .truncated_percent = 30});
	}
	for (int w = 0; w < 5; w++)
	{
		for (int k = 0; k < RIG_KEYS_COUNT; k++)
		{
			CaseSpec spec = {.rows = 20000, .key_words = widths[w], .keys = k, .lengths = LENGTHS_SPREAD, .length_max = 60, .truncated_percent = k % 2 ? 50 : 0, .overflow_percent = 5};
			char name[160];

			describe_spec(&spec, name, sizeof(name));
			run_case(name, spec);
		}
	}
	run_case("rows of the least length, chunks full of them",
			 (CaseSpec){.rows = 500000, .key_words = 1, .length_max = 8});
	run_case("rows of 16 bytes to 1 MiB",
			 (CaseSpec){.rows = 2000, .key_words = 2, .lengths = LENGTHS_SKEWED, .length_max = 1 << 20, .truncated_percent = 20, .keys = RIG_KEYS_FEW});
	run_case("rows of up to 1 MiB",
			 (CaseSpec){.rows = 60, .key_words = 1, .lengths = LENGTHS_SPREAD, .length_max = 1 << 20});
	run_case("rows that fill a chunk each",
			 (CaseSpec){.rows = 12, .key_words = 1, .length_max = GPUSORT_CHUNK_BYTES - 16});
	run_case("rows of just over half a chunk",
			 (CaseSpec){.rows = 12, .key_words = 3, .length_max = GPUSORT_CHUNK_BYTES / 2 + 1});
	run_case("many chunks of one row",
			 (CaseSpec){.rows = 3000, .key_words = 1, .length_max = 50, .chunk_rows = 1, .keys = RIG_KEYS_FEW, .truncated_percent = 50});
	run_case("ties in all rows, over many chunks",
			 (CaseSpec){.rows = 300000, .key_words = 2, .keys = RIG_KEYS_EQUAL, .length_max = 60, .truncated_percent = 100});
	run_case("ties in few rows of long runs",
			 (CaseSpec){.rows = 300000, .key_words = 1, .keys = RIG_KEYS_HIGH_BIT, .length_max = 60, .truncated_percent = 1});
	run_case("many rows, random keys",
			 (CaseSpec){.rows = large, .key_words = 1, .length_max = 88, .overflow_percent = 1});
	run_case("many rows, runs of four",
			 (CaseSpec){.rows = large, .key_words = 2, .keys = RIG_KEYS_SUFFIX, .lengths = LENGTHS_SPREAD, .length_max = 100, .truncated_percent = 10});
	run_case("many rows, skewed keys",
			 (CaseSpec){.rows = large, .key_words = 1, .keys = RIG_KEYS_SKEWED, .length_max = 60, .truncated_percent = 10});
	run_case("many rows, wide keys",
			 (CaseSpec){.rows = large / 4, .key_words = 5, .length_max = 40});
	run_case("many rows that are in order",
			 (CaseSpec){.rows = large, .key_words = 1, .keys = RIG_KEYS_SORTED, .length_max = 60, .claim_no_ties = true});
	run_case("many rows in reverse order",
			 (CaseSpec){.rows = large, .key_words = 1, .keys = RIG_KEYS_REVERSED, .length_max = 60});
}

/* The first rows only; where rows may tie, up to the end of a run. */
static void
test_limits(void)
{
	for (int t = 0; t < 2; t++)
	{
		run_case("the first row of many", (CaseSpec){.rows = 70000, .key_words = 2, .length_max = 60, .limit = 1, .claim_no_ties = t});
		run_case("the first 1000 rows of many",
				 (CaseSpec){.rows = 70000, .key_words = 1, .length_max = 60, .limit = 1000, .truncated_percent = t ? 0 : 50, .keys = RIG_KEYS_SUFFIX, .claim_no_ties = t});
		run_case("a limit within a long run",
				 (CaseSpec){.rows = 70000, .key_words = 2, .length_max = 60, .limit = 12345, .keys = RIG_KEYS_FEW, .truncated_percent = t ? 0 : 50, .claim_no_ties = t});
		run_case("a limit within equal rows",
				 (CaseSpec){.rows = 70000, .key_words = 1, .length_max = 60, .limit = 5, .keys = RIG_KEYS_EQUAL, .truncated_percent = t ? 0 : 5, .claim_no_ties = t});
		run_case("a limit next to all rows",
				 (CaseSpec){.rows = 2000, .key_words = 5, .length_max = 60, .limit = 1999, .claim_no_ties = t});
		run_case("the first of rows in reverse order",
				 (CaseSpec){.rows = 2000, .key_words = 1, .length_max = 60, .limit = 100, .keys = RIG_KEYS_REVERSED, .claim_no_ties = t});
	}
}

static void
test_random(int rounds)
{
	for (int i = 0; i < rounds; i++)
	{
		uint64_t state = rig_random(&seed);
		CaseSpec spec = random_spec(&state);
		char name[160];
		char full[200];

		describe_spec(&spec, name, sizeof(name));
		snprintf(full, sizeof(full), "random: %s", name);
		run_case(full, spec);
	}
}

typedef struct ThreadWork
{
	pthread_t thread;
	uint64_t state;
	char *chunks;
	CaseFailure failure;
	bool passed;
} ThreadWork;

static void *
run_thread(void *argument)
{
	ThreadWork *work = argument;

	work->passed = true;
	for (int i = 0; i < CASES_PER_THREAD && work->passed; i++)
	{
		CaseSpec spec = random_spec(&work->state);

		spec.rows += i % 2 ? 60000 : 0;
		if (spec.length_max > 150)
			spec.length_max = 150;
		if (spec.rows > most_rows)
			spec.rows = most_rows;
		work->passed = sort_case_run(&spec, rig_random(&work->state), ops, engine, work->chunks, &work->failure);
	}
	return NULL;
}

static void
test_threads(void)
{
	ThreadWork work[THREADS];
	bool passed = true;
	CaseFailure failure = {.text = ""};

	for (int i = 0; i < THREADS; i++)
	{
		work[i].state = rig_random(&seed);
		work[i].chunks = pool + 2 * i * GPUSORT_CHUNK_BYTES;
		if (pthread_create(&work[i].thread, NULL, run_thread, &work[i]) != 0)
		{
			perror("pthread_create");
			exit(2);
		}
	}
	for (int i = 0; i < THREADS; i++)
	{
		pthread_join(work[i].thread, NULL);
		if (!work[i].passed)
		{
			passed = false;
			failure = work[i].failure;
		}
	}
	report(passed, "several sorts at once", &failure);
}

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
	"more bytes than a chunk has",
};

/* One bad chunk between good ones: put or sort must say so. */
static void
test_damage(Damage damage)
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
	sort_case_make(&rows, &spec, rig_random(&seed));
	if (ops->begin(engine, &request, &sort_case_never_cancelled, &sort, &place, &error) != 0)
	{
		case_failed(&failure, "begin: %s", error.text);
		report(false, title, &failure);
		sort_case_free(&rows);
		return;
	}
	for (int i = 0; i < 3 && result == 0; i++)
	{
		RigChunk chunk;
		uint32_t victim = rig_random_below(&seed, 3000);
		uint32_t *offset;
		uint32_t *length;

		memset(pool, 0x5C, GPUSORT_CHUNK_BYTES);
		rig_chunk_start(&chunk, pool);
		for (int r = 0; r < 3000; r++)
			sort_case_write(&rows, i * 3000 + r, &chunk);
		if (i == 1)
		{
			offset = gpusort_chunk_offset(pool, victim);
			length = (uint32_t *) (pool + *offset + 16);
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
					chunk.rows = 300000;
					break;
				case DAMAGE_TOO_MANY_BYTES:
					chunk.bytes = UINT32_MAX - 7;
					break;
				case DAMAGE_COUNT:
					break;
			}
		}
		if (ops->reserve(sort, &error) != 0)
			passed = case_failed(&failure, "reserve: %s", error.text);
		result = ops->put(sort, pool, chunk.rows, chunk.bytes, &error);
	}
	if (result == 0)
		result = ops->sort(sort, &outcome, &error);
	ops->end(sort);
	sort_case_free(&rows);
	if (result == 0)
		passed = case_failed(&failure, "the chunk was taken");
	else if (error.reason != GPUSORT_REASON_BAD_CHUNK)
		passed = case_failed(&failure, "reason %d: %s", error.reason, error.text);
	report(passed, title, &failure);
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
	canceller->when = rig_milliseconds();
	__atomic_store_n(&canceller->cancelled, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Whatever the sort is doing, it stops soon, with an error. */
static void
test_cancel(useconds_t after)
{
	CaseSpec spec = {.rows = 100000, .key_words = 3, .length_max = 100};
	GpuSortRequest request = sort_case_request(&spec);
	Canceller canceller = {.after = after};
	pthread_t thread;
	SortCase rows;
	CaseFailure failure = {.text = ""};
	GpuSortError error = {.reason = GPUSORT_REASON_NONE};
	GpuSortOutcome outcome;
	GpuSortEmitted emitted = {.last = 0};
	GpuSort *sort;
	RigChunk chunk;
	GpuSortPlace place;
	char title[64];
	double took;
	int result = 0;

	snprintf(title, sizeof(title), "cancelled after %u us", after);
	sort_case_make(&rows, &spec, rig_random(&seed));
	rig_chunk_start(&chunk, pool);
	for (uint64_t row = 0; row < spec.rows && sort_case_write(&rows, row, &chunk); row++)
		;
	sort_case_free(&rows);

	if (ops->begin(engine, &request, &canceller.cancelled, &sort, &place, &error) != 0)
	{
		case_failed(&failure, "begin: %s", error.text);
		report(false, title, &failure);
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
		result = ops->reserve(sort, &error);
		if (result == 0)
			result = ops->put(sort, pool, chunk.rows, chunk.bytes, &error);
	}
	if (result == 0)
		result = ops->sort(sort, &outcome, &error);
	while (result == 0)
	{
		if (emitted.last)
			result = ops->rewind(sort, &error);
		if (result == 0)
			result = ops->emit(sort, pool + GPUSORT_CHUNK_BYTES, &emitted, &error);
	}
	ops->end(sort);
	took = rig_milliseconds();
	pthread_join(thread, NULL);
	took -= canceller.when;
	if (!canceller.cancelled || error.reason == GPUSORT_REASON_NONE || took > patience_ms)
		case_failed(&failure, "reason %d, %s, %.0f ms later", error.reason, error.text, took);
	report(failure.text[0] == '\0', title, &failure);
}

static void
test_idle(const char *name)
{
	GpuSortDevice devices[64];
	int count = ops->describe(engine, devices, 64);
	CaseFailure failure = {.text = ""};

	if (count < 1)
		case_failed(&failure, "no devices");
	for (int i = 0; i < count; i++)
	{
		printf("# device %u: %s; %s; limit %llu MiB\n", devices[i].ordinal, devices[i].name, devices[i].detail,
			   (unsigned long long) (devices[i].memory_limit >> 20));
		if (devices[i].jobs != 0 || devices[i].memory_used != 0)
			case_failed(&failure, "%u jobs, %llu bytes", devices[i].jobs,
						(unsigned long long) devices[i].memory_used);
	}
	report(failure.text[0] == '\0', name, &failure);
}

/* With an engine of its own, on one device, that may use little. */
static void
test_limit(GpuSortEngineConfig config, uint32_t device)
{
	char devices[16];
	CaseSpec spec = {.rows = 2000000, .key_words = 1, .length_max = 88, .truncated_percent = 3};
	GpuSortRequest request = sort_case_request(&spec);
	CaseFailure failure = {.text = ""};
	GpuSortError error;
	GpuSort *sorts[2];
	GpuSort *sort;
	GpuSortPlace place;

	snprintf(devices, sizeof(devices), "%u", device);
	config.devices = devices;
	config.memory_limit = UINT64_C(96) << 20;
	if (ops->open(&config, &engine, &error) != 0)
	{
		case_failed(&failure, "open: %s", error.text);
		report(false, "opened with a limit", &failure);
		return;
	}
	report(true, "opened with a limit", &failure);

	request.estimated_rows = spec.rows;
	request.estimated_bytes = spec.rows * 96;
	if (ops->begin(engine, &request, &sort_case_never_cancelled, &sort, &place, &error) == 0)
	{
		ops->end(sort);
		case_failed(&failure, "the sort began");
	}
	else if (error.reason != GPUSORT_REASON_MEMORY_LIMIT || strstr(error.text, "gpusort.") == NULL)
		case_failed(&failure, "reason %d: %s", error.reason, error.text);
	report(failure.text[0] == '\0', "an estimate beyond the limit is refused, with the setting's name", &failure);

	/* More than once, to find memory that is not given back. */
	for (int i = 0; i < 3; i++)
		run_case("what fits within the limit is sorted", spec);

	/* Two at once share it: the first to ask gets it. */
	failure.text[0] = '\0';
	request.estimated_rows = 0;
	request.estimated_bytes = 0;
	for (int i = 0; i < 2; i++)
	{
		if (ops->begin(engine, &request, &sort_case_never_cancelled, &sorts[i], &place, &error) != 0)
		{
			case_failed(&failure, "begin: %s", error.text);
			sorts[i] = NULL;
		}
	}
	if (failure.text[0] == '\0')
	{
		int reserves = 0;

		while (reserves < 1000 && ops->reserve(sorts[0], &error) == 0)
			reserves++;
		if (reserves == 0 || reserves == 1000 || error.reason != GPUSORT_REASON_MEMORY_LIMIT)
			case_failed(&failure, "%d reserves, then reason %d: %s", reserves, error.reason, error.text);
		else if (ops->reserve(sorts[1], &error) == 0 && ops->reserve(sorts[1], &error) == 0)
			case_failed(&failure, "the second sort got memory as well");
	}
	for (int i = 0; i < 2; i++)
		if (sorts[i] != NULL)
			ops->end(sorts[i]);
	report(failure.text[0] == '\0', "a sort takes no memory that another holds", &failure);

	test_idle("all memory is given back");
	ops->close(engine);
}

/* Whichever call of CUDA fails, the sort fails with its error, and all is given back. */
static void
test_faults(GpuSortEngineConfig config, void (*emulate_fail)(long call))
{
	CaseSpec spec = {.rows = 1200, .key_words = 2, .keys = RIG_KEYS_SUFFIX, .length_max = 60, .chunk_rows = 200, .truncated_percent = 20};

	for (int i = 0; i < FAULTS; i++)
	{
		uint64_t call = 1 + rig_random_below(&seed, 50u << rig_random_below(&seed, 5));
		GpuSortDevice devices[64];
		CaseFailure failure = {.text = ""};
		GpuSortError error;
		char title[64];
		bool passed;
		int count;

		if (ops->open(&config, &engine, &error) != 0)
		{
			case_failed(&failure, "open: %s", error.text);
			report(false, "opened for a fault", &failure);
			return;
		}
		spec.limit = rig_random_below(&seed, 2) ? 0 : 500;
		emulate_fail((long) call);
		passed = sort_case_run(&spec, rig_random(&seed), ops, engine, pool, &failure);
		if (!passed && (strstr(failure.text, "launch failure") != NULL || strstr(failure.text, "out of memory") != NULL))
			passed = true;
		emulate_fail(0);

		count = ops->describe(engine, devices, 64);
		for (int d = 0; d < count; d++)
			if (devices[d].jobs != 0 || devices[d].memory_used != 0)
				passed = case_failed(&failure, "device %d: %u jobs, %llu bytes", d, devices[d].jobs,
									 (unsigned long long) devices[d].memory_used);
		ops->close(engine);
		snprintf(title, sizeof(title), "call %llu fails", (unsigned long long) call);
		report(passed, title, &failure);
	}
}

/*
 * With an engine of its own, on all devices, that may use so little on each that a sort takes
 * several; only where the engine has one sort use several.
 */
static void
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

	config.memory_limit = UINT64_C(64) << 20;
	if (ops->open(&config, &engine, &error) != 0)
	{
		case_failed(&failure, "open: %s", error.text);
		report(false, "opened with a limit on each device", &failure);
		return;
	}
	count = ops->describe(engine, devices, 64);
	if (devices[0].sort_limit > devices[0].memory_limit)
	{
		for (int i = 0; i < 3; i++)
		{
			/* a device has room for about 3300 rows */
			spec.rows = (i < 2 ? 2600 : 5000) * (uint64_t) count;
			spec.reserve_ahead = i == 1;
			spec.fits = i < 2 ? 1 : -1;
			spec.keys = i == 2 ? RIG_KEYS_EQUAL : RIG_KEYS_SUFFIX;
			run_whole_case(names[i], spec);
		}
		test_idle("all memory of all devices is given back");
	}
	ops->close(engine);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"engine", required_argument, NULL, 'e'},
		{"library", required_argument, NULL, 'l'},
		{"devices", required_argument, NULL, 'd'},
		{"seed", required_argument, NULL, 's'},
		{"rounds", required_argument, NULL, 'r'},
		{"rows", required_argument, NULL, 'n'},
		{"patience", required_argument, NULL, 'p'},
		{"most", required_argument, NULL, 'm'},
		{"chunk", required_argument, NULL, 'c'},
		{"only", required_argument, NULL, 'o'},
		{NULL, 0, NULL, 0}};
	GpuSortEngineConfig config = {.devices = "all"};
	const char *name = "host";
	const char *only = "shapes limits random threads damage cancel memory faults several";
	void (*emulate_fail)(long call);
	const char *library = NULL;
	int rounds = 100;
	uint64_t rows = 1000000;
	double begun;
	GpuSortDevice device;
	GpuSortError error;
	CaseFailure failure = {.text = ""};
	int option;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return 2;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
	{
		if (option == 'e')
			name = optarg;
		else if (option == 'l')
			library = optarg;
		else if (option == 'd')
			config.devices = optarg;
		else if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 'r')
			rounds = atoi(optarg);
		else if (option == 'n')
			rows = strtoull(optarg, NULL, 0);
		else if (option == 'p')
			patience_ms = atoi(optarg);
		else if (option == 'm')
			most_rows = strtoull(optarg, NULL, 0);
		else if (option == 'c')
			most_chunk_rows = strtoul(optarg, NULL, 0);
		else if (option == 'o')
			only = optarg;
		else
			return 2;
	}
	printf("# --seed %llu\n", (unsigned long long) seed);
	ops = rig_engine(name, library);
	pool = rig_pool(POOL_CHUNKS);
	config.pool = pool;
	config.pool_bytes = POOL_CHUNKS * GPUSORT_CHUNK_BYTES;

	begun = rig_milliseconds();
	if (ops->open(&config, &engine, &error) != 0)
	{
		printf("Bail out! reason %d: %s\n", error.reason, error.text);
		return 1;
	}
	printf("# opened in %.0f ms\n", rig_milliseconds() - begun);
	test_idle("a fresh engine is idle");
	if (strstr(only, "shapes"))
		test_shapes(rows);
	if (strstr(only, "limits"))
		test_limits();
	if (strstr(only, "random"))
		test_random(rounds);
	if (strstr(only, "threads"))
		test_threads();
	for (int i = 0; i < DAMAGE_COUNT && strstr(only, "damage"); i++)
		test_damage(i);
	for (useconds_t after = 0; after < 60000 && strstr(only, "cancel"); after = 3 * after + 100)
		test_cancel(after);
	test_idle("idle again");
	(void) ops->describe(engine, &device, 1);
	ops->close(engine);
	report(true, "closed", &failure);
	if (strstr(only, "memory"))
		test_limit(config, device.ordinal);
	emulate_fail = rig_emulate_fail(library);
	if (strstr(only, "faults") && emulate_fail != NULL)
		test_faults(config, emulate_fail);
	if (strstr(only, "several"))
		test_several(config);
	printf("1..%d\n", tests_run);
	return tests_failed > 0;
}
