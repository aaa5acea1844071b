/*-------------------------------------------------------------------------
 *
 * external.c
 *	  Tests of sorts that do not fit the memory (src/service/external), over the host engine
 *	  and files of their own.
 *
 * Every answer is compared row by row with qsort's, and as bytes with what the same sort gives when it
 * has all the memory that it wants.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "external_case.h"
#include "service/machine/machine.h"

/* The digest of a sort that has the memory for all of it. */
static uint64_t
digest_in_memory(const Rows *rows, GpuSortRequest request)
{
	GpuSortEngine *engine = open_engine(4096 * MIB);
	Sort sort;
	const char *problem;

	external_begin(&sort, engine, request);
	problem = sort_rows(&sort, rows);
	if (problem == NULL)
		problem = read_rows(&sort, rows, 0, rows->n);
	if (problem != NULL || sort.outcome.runs != 0)
		bail("a sort in memory: %s", problem != NULL ? problem : "it has runs");
	external_end(&sort);
	gpusort_host_engine.close(engine);
	return sort.digest;
}

/* Sorts rows in little memory and compares them. */
static void
test_answer(const char *name, uint64_t memory, uint64_t n, uint32_t words, Keys keys, uint32_t shortest,
			uint32_t longest,
			int truncated)
{
	GpuSortEngine *engine = open_engine(memory);
	GpuSortRequest request = {.key_words = words, .may_tie = truncated > 0};
	Sort sort;
	Rows rows;
	const char *problem;
	double start = now_ms();

	rows_make(&rows, n, words, keys, shortest, longest, truncated);
	external_begin(&sort, engine, request);
	problem = sort_rows(&sort, &rows);
	if (problem == NULL)
		problem = read_rows(&sort, &rows, 0, rows.n);
	if (problem == NULL && sort.digest != digest_in_memory(&rows, request))
		problem = "it is not byte by byte what a sort in memory gives";
	if (problem == NULL && sort.outcome.runs < 2)
		problem = "it was in memory";
	ok(problem == NULL, "%s, %u words, %llu MB: %u runs, %.0f ms: %s", name, words, (unsigned long long) (memory / MIB),
	   sort.outcome.runs, now_ms() - start, told(problem));
	external_end(&sort);
	ok(is_idle(engine), "all memory is back");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}

static void
test_answers(void)
{
	test_answer("random keys", 16 * MIB, 250000, 1, KEYS_RANDOM, 16, 120, 20);
	test_answer("random keys", 24 * MIB, 250000, 2, KEYS_RANDOM, 16, 120, 20);
	test_answer("few keys", 24 * MIB, 250000, 3, KEYS_FEW, 16, 120, 20);
	test_answer("rising keys", 16 * MIB, 250000, 1, KEYS_ASCENDING, 16, 120, 20);
	test_answer("falling keys", 16 * MIB, 250000, 4, KEYS_DESCENDING, 16, 120, 0);
	test_answer("keys that the last word tells apart", 64 * MIB, 700000, 5, KEYS_LAST_WORD, 16, 80, 20);
	test_answer("skewed keys", 24 * MIB, 250000, 1, KEYS_SKEWED, 16, 120, 20);
	test_answer("rows of 8 bytes", 16 * MIB, 600000, 1, KEYS_RANDOM, 8, 8, 0);
	test_answer("rows of 16 bytes to 1 MB", 24 * MIB, 160, 2, KEYS_RANDOM, 16, 1000000, 20);
	test_answer("rows of nearly a chunk", 24 * MIB, 16, 1, KEYS_RANDOM, GPUSORT_CHUNK_BYTES - 16,
				GPUSORT_CHUNK_BYTES - 16, 100);
	test_answer("wide keys", 24 * MIB, 120000, 32, KEYS_RANDOM, 8, 60, 20);
}

/* Rows of one key are more than the memory. */
static void
test_giant_groups(void)
{
	test_answer("equal keys", 16 * MIB, 200000, 1, KEYS_EQUAL, 16, 250, 50);
	test_answer("equal keys, each row tied", 24 * MIB, 200000, 2, KEYS_EQUAL, 16, 250, 100);
	test_answer("two keys", 16 * MIB, 300000, 1, KEYS_HIGH_BIT, 16, 200, 50);
	test_answer("5 keys, each more than the memory, and few others", 16 * MIB, 320000, 1, KEYS_SKEWED, 240, 280, 30);
}

/* As many megabytes of rows as EXTERNAL_MB says, in EXTERNAL_MEMORY of memory. */
static void
test_many_runs(void)
{
	const char *text = getenv("EXTERNAL_MB");
	uint64_t megabytes = text != NULL ? strtoull(text, NULL, 10) : 100;
	const char *memory = getenv("EXTERNAL_MEMORY");

	test_answer("many runs", (memory != NULL ? strtoull(memory, NULL, 10) : 16) * MIB, megabytes * 8700, 1, KEYS_RANDOM,
				80, 140, 0);
}

static void
test_limits(void)
{
	static const uint64_t limits[] = {1, 50000, 249999, 10000000};

	for (int truncated = 0; truncated <= 50; truncated += 50)
	{
		for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		{
			GpuSortEngine *engine = open_engine(16 * MIB);
			Sort sort;
			Rows rows;
			const char *problem;
			uint64_t wanted;

			rows_make(&rows, 250000, 1, KEYS_SKEWED, 16, 160, truncated);
			wanted = limits[i] < rows.n ? limits[i] : rows.n;
			while (truncated > 0 && wanted < rows.n &&
				   rows.keys[rows.order[wanted]] == rows.keys[rows.order[wanted - 1]])
				wanted++;
			external_begin(&sort, engine, (GpuSortRequest){.key_words = 1, .may_tie = truncated > 0, .limit = limits[i]});
			problem = sort_rows(&sort, &rows);
			if (problem == NULL && (sort.outcome.rows < wanted || sort.outcome.rows > rows.n))
				problem = "too few rows, or too many";
			if (problem == NULL)
				problem = read_rows(&sort, &rows, 0, wanted);
			ok(problem == NULL && sort.outcome.runs > 1, "a limit of %llu, %d of 100 tied: %u runs, %llu rows: %s",
			   (unsigned long long) limits[i], truncated, sort.outcome.runs, (unsigned long long) sort.outcome.rows,
			   told(problem));
			external_end(&sort);
			rows_free(&rows);
			gpusort_host_engine.close(engine);
		}
	}
}

static void
test_rewinds(Keys keys)
{
	GpuSortEngine *engine = open_engine(24 * MIB);
	Sort sort;
	Rows rows;
	const char *problem;

	rows_make(&rows, 300000, 2, keys, 16, 200, 20);
	external_begin(&sort, engine, (GpuSortRequest){.key_words = 2, .may_tie = 1});
	problem = sort_rows(&sort, &rows);
	for (int i = 0; i < 2 * ROUNDS && problem == NULL; i++)
	{
		uint64_t first = i % 3 == 2 ? random64() % rows.n : 0;
		uint64_t last = i % 2 == 0 ? rows.n : first + 1 + random64() % (rows.n - first);

		/* an interval's last rows are told, and rows up to it emitted */
		problem = read_rows(&sort, &rows, first, last);
	}
	for (int i = 0; i < 10 * ROUNDS && problem == NULL; i++)
	{
		uint64_t place = random64() % rows.n;

		problem = emit_chunk(&sort, &rows, &place, rows.n);
	}
	ok(problem == NULL && sort.outcome.runs > 1, "rewinds, keys %d, and rows in any order: %s", keys, told(problem));
	external_end(&sort);
	ok(is_idle(engine), "all memory is back");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}

typedef struct NamedTest
{
	const char *name;
	void (*test)(void);
} NamedTest;

static void
test_all_rewinds(void)
{
	test_rewinds(KEYS_RANDOM);
	test_rewinds(KEYS_SKEWED);
	test_rewinds(KEYS_EQUAL);
}

/* Several loaders at once, whatever the machine has. */
static void
test_many_processors(void)
{
	int before = processors;

	processors = 16;
	test_answer("many loaders", 24 * MIB, 500000, 1, KEYS_RANDOM, 16, 160, 20);
	test_answer("many loaders", 16 * MIB, 400000, 1, KEYS_SKEWED, 16, 160, 20);
	test_answer("many loaders", 16 * MIB, 400000, 2, KEYS_HIGH_BIT, 16, 160, 20);
	test_rewinds(KEYS_RANDOM);
	test_rewinds(KEYS_SKEWED);
	test_shared(KEYS_RANDOM, 2, 70, 1000, 7, 24 * MIB);
	processors = before;
}

/* The tests that are named, or all. */
int
main(int argc, char **argv)
{
	static const NamedTest tests[] = {
		{"answers", test_answers},
		{"groups", test_giant_groups},
		{"runs", test_many_runs},
		{"limits", test_limits},
		{"rewinds", test_all_rewinds},
		{"first", test_first_rows},
		{"shared", test_all_shared},
		{"memory", test_runs_in_memory},
		{"scarce", test_all_scarce_memory},
		{"processors", test_many_processors},
		{"cancel", test_cancel},
		{"damage", test_damages},
		{"space", test_bad_space},
		{"overlap", test_overlapping_rows},
		{"little", test_too_little_memory},
	};
	uint64_t seed = time(NULL);

	setvbuf(stdout, NULL, _IOLBF, 0);
	diag("seed %llu", (unsigned long long) seed);
	random_seed(seed);
	processors = gpusort_machine()->cpus;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
	{
		bool named = argc < 2;
		double start = now_ms();

		for (int a = 1; a < argc; a++)
			named |= strcmp(argv[a], tests[i].name) == 0;
		if (!named)
			continue;
		tests[i].test();
		diag("%s: %.0f ms", tests[i].name, now_ms() - start);
	}
	return done_testing();
}
