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
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "service/external/external_sort.h"
#include "service/external/runs.h"
#include "service/machine/machine.h"
#include "testlib.h"

/* Sanitizers make everything slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS   1
#define QUICK_MS 10000
#else
#define ROUNDS   3
#define QUICK_MS 1000
#endif

#define MIB    ((uint64_t) 1 << 20)
#define OWNERS 3

/* A sort, and what it has. */
typedef struct Sort
{
	GpuSortEngine *engine;
	GpuSortExternal *external;
	GpuSortRequest request;
	int cancelled; /* atomic */
	uint32_t ticks;
	GpuSortCallWatch watch;
	GpuSortCallWatch loader_watches[GPUSORT_JOB_LOADERS];
	SpaceFile files[OWNERS]; /* by second descriptors of theirs */
	int asked;               /* times for space */
	int flags;               /* of the files: how they are opened */
	GpuSortOutcome outcome;
	GpuSortError error;
	char *chunk;
	uint64_t digest; /* of what was emitted, and in which order */
} Sort;

/* For runs in the host's memory, of sorts that are not the host engine's. */
static GpuSortHostMemory *run_memory;

/* Processors, as many as a test wants. */
static int processors;

static GpuSortEngine *
open_engine(uint64_t memory)
{
	GpuSortEngineConfig config = {.memory_limit = memory, .threads = 2};
	GpuSortEngine *engine;
	GpuSortError error;

	if (gpusort_host_engine.open(&config, &engine, &error) != 0)
		bail("%s", error.text);
	return engine;
}

/* Returns true if no sort has anything of an engine's. */
static bool
is_idle(GpuSortEngine *engine)
{
	GpuSortDevice device;

	gpusort_host_engine.describe(engine, &device, 1);
	return device.memory_used == 0 && device.jobs == 0;
}

/* Makes a sort that has not begun. */
static void
prepare(Sort *sort, const GpuSortEngineOps *ops, GpuSortEngine *engine, GpuSortRequest request)
{
	const GpuSortExternalMeans means = {.handle = {.ops = ops, .engine = engine},
										.run_memory = ops->kind == GPUSORT_ENGINE_HOST ? NULL : run_memory,
										.cpus = processors,
										.cancelled = &sort->cancelled,
										.watch = &sort->watch,
										.loader_watches = sort->loader_watches};

	memset(sort, 0, sizeof(*sort));
	sort->engine = engine;
	sort->request = request;
	sort->request.spill = 1;
	sort->flags = O_RDWR;
	sort->watch.ticks = &sort->ticks;
	for (int i = 0; i < GPUSORT_JOB_LOADERS; i++)
		sort->loader_watches[i].ticks = &sort->ticks;
	for (int i = 0; i < OWNERS; i++)
		sort->files[i].descriptor = -1;
	sort->chunk = malloc(GPUSORT_CHUNK_BYTES);
	sort->external = gpusort_external_create(&means, &sort->request);
	if (sort->external == NULL)
		bail("no memory");
}

static void
external_begin_with(Sort *sort, const GpuSortEngineOps *ops, GpuSortEngine *engine, GpuSortRequest request)
{
	GpuSortPlace place;

	prepare(sort, ops, engine, request);
	while (gpusort_external_begin(sort->external, &place, &sort->error) != 0)
	{
		if (sort->error.reason != GPUSORT_REASON_MEMORY_BUSY)
			bail("begin: %s", sort->error.text);
		usleep(1000);
	}
}

static void
external_begin(Sort *sort, GpuSortEngine *engine, GpuSortRequest request)
{
	external_begin_with(sort, &gpusort_host_engine, engine, request);
}

static void
external_end(Sort *sort)
{
	gpusort_external_end(sort->external);
	for (int i = 0; i < OWNERS; i++)
	{
		if (sort->files[i].descriptor >= 0)
			close(sort->files[i].descriptor);
	}
	free(sort->chunk);
}

/* Begins a sort and makes room for its first chunk, if there is the memory now. */
static bool
external_try_begin(Sort *sort, GpuSortEngine *engine)
{
	GpuSortPlace place;

	prepare(sort, &gpusort_host_engine, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
	if (gpusort_external_begin(sort->external, &place, &sort->error) == 0 &&
		gpusort_external_reserve(sort->external, 40000, &sort->error) == 0)
		return true;
	external_end(sort);
	return false;
}

/* Gives a sort the space that it lacks, one file after the other. */
static int
give_space(Sort *sort, uint64_t lacking)
{
	SpaceFile *file = &sort->files[sort->asked % OWNERS];
	uint64_t number = 100 + sort->asked % OWNERS;
	int passed = -1;
	int rc;

	sort->asked++;
	if (file->descriptor < 0)
	{
		char path[300];

		snprintf(path, sizeof(path), "%s/space.XXXXXX", test_directory());
		file->descriptor = mkostemp(path, O_CLOEXEC);
		passed = open(path, sort->flags | O_CLOEXEC);
		if (file->descriptor < 0 || passed < 0)
			bail("%s: %s", path, strerror(errno));
		unlink(path);
	}
	rc = gpusort_external_add_space(sort->external, number, passed, file->given, lacking, &sort->error);
	file->given += lacking;
	return rc;
}

/* Puts all rows; NULL, or what went wrong. */
static const char *
put_rows(Sort *sort, const Rows *rows)
{
	uint64_t next = 0;

	while (next < rows->n)
	{
		uint32_t count;
		uint32_t bytes;
		uint64_t lacking;
		GpuSortProgress progress;

		next = rows_fill(rows, next, 40000, sort->chunk, &count, &bytes);
		while ((progress = gpusort_external_put(sort->external, sort->chunk, count, bytes, count, &lacking, &sort->error)) ==
			   GPUSORT_PROGRESS_LACKS_SPACE)
		{
			if (give_space(sort, lacking) != 0)
				return sort->error.text;
		}
		if (progress != GPUSORT_PROGRESS_DONE)
			return sort->error.text;
	}
	return NULL;
}

/* Puts all rows and sorts them. */
static const char *
sort_rows(Sort *sort, const Rows *rows)
{
	const char *problem = put_rows(sort, rows);
	GpuSortProgress progress;
	uint64_t lacking;
	uint64_t bytes = 0;

	if (problem != NULL)
		return problem;
	while ((progress = gpusort_external_sort(sort->external, &sort->outcome, &lacking, &sort->error)) ==
		   GPUSORT_PROGRESS_LACKS_SPACE)
	{
		if (give_space(sort, lacking) != 0)
			return sort->error.text;
	}
	if (progress != GPUSORT_PROGRESS_DONE)
		return sort->error.text;
	for (uint64_t i = 0; i < rows->n; i++)
		bytes += GPUSORT_ALIGN8(rows->lengths[i]);
	if (sort->outcome.rows_in != rows->n)
		return "other rows were sorted than put";
	if (sort->request.limit == 0 && (sort->outcome.rows != rows->n || sort->outcome.bytes != bytes))
		return "the outcome tells another number of rows, or of their bytes";
	return NULL;
}

/* Mixes some bytes into a digest. */
static void
digest_bytes(uint64_t *digest, const char *bytes, size_t n)
{
	for (size_t i = 0; i + 8 <= n; i += 8)
	{
		uint64_t word;

		memcpy(&word, bytes + i, 8);
		*digest = (*digest ^ word) * UINT64_C(0x9E3779B97F4A7C15);
		*digest ^= *digest >> 29;
	}
}

/* Has a chunk of rows emitted from *place on, compares them and goes on behind them. */
static const char *
emit_chunk(Sort *sort, const Rows *rows, uint64_t *place, uint64_t end)
{
	GpuSortMessage data = {.magic = 0};
	GpuSortEmitted *emitted = &data.u.data.emitted;
	const char *problem;

	if (gpusort_external_emit(sort->external, *place, end, sort->chunk, emitted, &sort->error) != 0)
		return sort->error.text;
	if (emitted->rows == 0 || emitted->rows > end - *place)
		return "no rows are emitted, or too many";
	if (emitted->last != (*place + emitted->rows == end))
		return "the last rows are not told, or others";
	problem = rows_check(rows, *place, sort->chunk, &data);
	digest_bytes(&sort->digest, sort->chunk, emitted->bytes);
	*place += emitted->rows;
	return problem;
}

static const char *
read_rows(Sort *sort, const Rows *rows, uint64_t first, uint64_t end)
{
	const char *problem = NULL;

	while (problem == NULL && first < end)
		problem = emit_chunk(sort, rows, &first, end);
	return problem;
}

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

/* Returns true if the first so many bits of two keys are the same. */
static bool
same_bits(const uint64_t *a, const uint64_t *b, uint32_t bits)
{
	for (uint32_t w = 0; 64 * w < bits; w++)
	{
		uint32_t left = bits - 64 * w;

		if ((left >= 64 ? a[w] ^ b[w] : (a[w] ^ b[w]) >> (64 - left)) != 0)
			return false;
	}
	return true;
}

/* The key of a row by its place in the order. */
static const uint64_t *
key_at(const Rows *rows, uint64_t place)
{
	return rows->keys + rows->order[place] * rows->key_words;
}

/* Compares where rows were cut with their keys. */
static const char *
check_cut(const Rows *rows, const uint64_t *first_rows, const GpuSortBorders *borders, uint32_t most)
{
	if (borders->ranges < 1 || borders->ranges > most || first_rows[0] != 0)
		return "ranges are too many, or do not begin at the first row";
	for (uint32_t i = 1; i < borders->ranges; i++)
	{
		if (first_rows[i] <= first_rows[i - 1] || first_rows[i] >= rows->n)
			return "a range is empty";
		if (same_bits(key_at(rows, first_rows[i] - 1), key_at(rows, first_rows[i]), borders->bits))
			return "rows of one range are in two";
	}
	return NULL;
}

/* The number of rows that are below a border. */
static uint64_t
rows_below(const Rows *rows, const GpuSortBorders *borders, uint32_t i)
{
	uint64_t key[GPUSORT_MAX_KEY_WORDS] = {0};
	uint64_t low = 0;
	uint64_t high = rows->n;

	memcpy(key, borders->keys + (size_t) i * borders->words, borders->words * sizeof(uint64_t));
	while (low < high)
	{
		uint64_t middle = low + (high - low) / 2;

		if (gpusort_compare_keys(key_at(rows, middle), key, rows->key_words) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Readers take ranges and read them chunk by chunk, in any order of readers. */
static const char *
read_interleaved(Sort *sort, const Rows *rows, const uint64_t *first_rows, uint32_t ranges, uint32_t readers,
				 bool backwards)
{
	uint64_t at[16];
	uint64_t until[16];
	uint32_t next = 0;
	uint64_t total = 0;
	const char *problem = NULL;

	for (uint32_t r = 0; r < readers; r++)
		at[r] = until[r] = 0;
	for (uint32_t busy = readers; busy > 0 && problem == NULL;)
	{
		uint32_t r = random64() % readers;

		if (at[r] == UINT64_MAX)
			continue;
		if (at[r] == until[r])
		{
			uint32_t range = backwards ? ranges - 1 - next : next;

			if (next == ranges)
			{
				at[r] = until[r] = UINT64_MAX;
				busy--;
				continue;
			}
			next++;
			at[r] = first_rows[range];
			until[r] = range + 1 < ranges ? first_rows[range + 1] : rows->n;
			total += until[r] - at[r];
			if (at[r] == until[r])
				continue;
		}
		problem = emit_chunk(sort, rows, &at[r], until[r]);
	}
	return problem == NULL && total != rows->n ? "ranges are not all rows" : problem;
}

static void
test_shared(Keys keys, uint32_t words, uint32_t bits, uint32_t most, uint32_t readers, uint64_t memory)
{
	GpuSortEngine *engine = open_engine(memory);
	GpuSortRequest request = {.key_words = words, .may_tie = 1, .shared = 1, .readers = readers};
	Sort first;
	Sort second;
	Rows rows;
	Rows others;
	uint64_t *first_rows = malloc(GPUSORT_RANGES_MAX * sizeof(uint64_t));
	GpuSortBorders *borders = NULL;
	const char *problem;

	rows_make(&rows, 250000, words, keys, 16, 160, 20);
	external_begin(&first, engine, request);
	problem = sort_rows(&first, &rows);
	if (problem == NULL && gpusort_external_cut(first.external, bits, most, first_rows, &borders, &first.error) != 0)
		problem = first.error.text;
	if (problem == NULL)
		problem = check_cut(&rows, first_rows, borders, most);
	if (problem == NULL && borders->bits != bits)
		problem = "it was cut by other bits";
	if (problem == NULL)
		problem = read_interleaved(&first, &rows, first_rows, borders->ranges, readers, false);
	if (problem == NULL)
		problem = read_interleaved(&first, &rows, first_rows, borders->ranges, readers, true);
	ok(problem == NULL && first.outcome.runs > 1, "keys %d cut by %u of %u bits, %u readers: %u ranges: %s", keys, bits,
	   64 * words, readers, borders != NULL ? borders->ranges : 0, told(problem));
	external_end(&first);

	/* another sort's rows, which may fit the memory or not, like those */
	for (int larger = 0; larger < 2 && borders != NULL; larger++)
	{
		GpuSortBorders *like = borders;

		rows_make(&others, larger ? 220000 : 2000, words, larger ? keys : KEYS_RANDOM, 16, 160, 20);
		external_begin(&second, engine, request);
		problem = sort_rows(&second, &others);
		if (problem == NULL && gpusort_external_cut(second.external, bits, most, first_rows, &like, &second.error) != 0)
			problem = second.error.text;
		for (uint32_t i = 1; problem == NULL && i < borders->ranges; i++)
		{
			if (first_rows[i] != rows_below(&others, borders, i - 1))
				problem = "it was cut elsewhere";
		}
		if (problem == NULL)
			problem = read_interleaved(&second, &others, first_rows, borders->ranges, readers, larger);
		ok(problem == NULL, "another sort of %u runs is cut like it: %s", second.outcome.runs, told(problem));
		external_end(&second);
		rows_free(&others);
	}
	free(borders);
	free(first_rows);
	ok(is_idle(engine), "all memory is back");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}

/* Runs of another engine's sort are kept in the host's memory, as far as there is any. */
static void
test_runs_in_memory(void)
{
	GpuSortEngineOps device_ops = gpusort_host_engine;
	GpuSortEngine *engine = open_engine(16 * MIB);
	Sort sort;
	Rows rows;
	const char *problem;

	device_ops.kind = GPUSORT_ENGINE_CUDA;
	run_memory = gpusort_host_memory_create(40 * MIB);
	rows_make(&rows, 500000, 1, KEYS_RANDOM, 80, 140, 20);
	external_begin_with(&sort, &device_ops, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
	problem = sort_rows(&sort, &rows);
	if (problem == NULL)
		problem = read_rows(&sort, &rows, 0, rows.n);
	if (problem == NULL && (sort.outcome.run_memory == 0 || sort.outcome.run_disk == 0))
		problem = "runs are in one place alone";
	ok(problem == NULL, "%llu MB of runs in memory, %llu in files: %s",
	   (unsigned long long) (sort.outcome.run_memory / MIB),
	   (unsigned long long) (sort.outcome.run_disk / MIB), told(problem));
	external_end(&sort);
	ok(is_idle(engine) && gpusort_host_memory_used(run_memory) == 0, "all memory is back");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
	gpusort_host_memory_destroy(run_memory);
	run_memory = NULL;
}

/* Another sort that takes memory, and gives it back, time and again. */
typedef struct Hog
{
	pthread_t thread;
	GpuSortEngine *engine;
	int stop;  /* atomic */
	int holds; /* atomic: how often it had what it could get */
} Hog;

static void *
hog_main(void *arg)
{
	Hog *hog = arg;
	const int never = 0;

	while (!__atomic_load_n(&hog->stop, __ATOMIC_RELAXED))
	{
		GpuSortRequest request = {.key_words = 1};
		GpuSortPlace place;
		GpuSortError error;
		GpuSort *sort;

		if (gpusort_host_engine.begin(hog->engine, &request, &never, &sort, &place, &error) == 0)
		{
			while (gpusort_host_engine.reserve(sort, 20000, &error) == 0)
				;
			__atomic_fetch_add(&hog->holds, 1, __ATOMIC_RELAXED);
			usleep(1000 + rand() % 60000);
			gpusort_host_engine.end(sort);
		}
		usleep(rand() % 20000);
	}
	return NULL;
}

static void
test_scarce_memory(Keys keys, uint64_t memory, int hogs, int cpus)
{
	Hog hog[4];
	GpuSortEngine *engine = open_engine(memory);
	Sort sort;
	Rows rows;
	const char *problem;
	double start = now_ms();
	int holds = 0;
	int before = processors;

	processors = cpus;
	for (int i = 0; i < hogs; i++)
	{
		hog[i] = (Hog){.engine = engine};
		pthread_create(&hog[i].thread, NULL, hog_main, &hog[i]);
	}
	rows_make(&rows, 350000, 1, keys, 80, 140, 20);
	external_begin(&sort, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
	problem = sort_rows(&sort, &rows);
	for (int i = 0; i < 2 && problem == NULL; i++)
		problem = read_rows(&sort, &rows, 0, rows.n);
	for (int i = 0; i < hogs; i++)
	{
		__atomic_store_n(&hog[i].stop, 1, __ATOMIC_RELAXED);
		pthread_join(hog[i].thread, NULL);
		holds += hog[i].holds;
	}
	ok(problem == NULL, "%d others take %llu MB, keys %d, %d processors: %u runs, %d times, %.0f ms: %s", hogs,
	   (unsigned long long) (memory / MIB), keys, cpus, sort.outcome.runs, holds, now_ms() - start, told(problem));
	external_end(&sort);
	ok(is_idle(engine), "all memory is back");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
	processors = before;
}

/* Two sorts of one engine at once. */
typedef struct Sorter
{
	pthread_t thread;
	GpuSortEngine *engine;
	Rows rows;
	const char *problem;
	char text[GPUSORT_TEXT_BYTES];
} Sorter;

static void *
sorter_main(void *arg)
{
	Sorter *sorter = arg;
	Sort sort;

	external_begin(&sort, sorter->engine, (GpuSortRequest){.key_words = sorter->rows.key_words, .may_tie = 1});
	sorter->problem = sort_rows(&sort, &sorter->rows);
	if (sorter->problem == NULL)
		sorter->problem = read_rows(&sort, &sorter->rows, 0, sorter->rows.n);
	if (sorter->problem != NULL)
	{
		snprintf(sorter->text, sizeof(sorter->text), "%s", sorter->problem);
		sorter->problem = sorter->text;
	}
	external_end(&sort);
	return NULL;
}

static void
test_side_by_side(uint64_t memory)
{
	Sorter sorters[4] = {0};
	GpuSortEngine *engine = open_engine(memory);
	int good = 0;

	for (int i = 0; i < 4; i++)
	{
		sorters[i].engine = engine;
		rows_make(&sorters[i].rows, 150000, 1 + i % 2, i == 2 ? KEYS_EQUAL : KEYS_RANDOM, 80, 140, 10);
	}
	for (int i = 0; i < 4; i++)
		pthread_create(&sorters[i].thread, NULL, sorter_main, &sorters[i]);
	for (int i = 0; i < 4; i++)
	{
		pthread_join(sorters[i].thread, NULL);
		if (sorters[i].problem != NULL)
			diag("sort %d: %s", i, sorters[i].problem);
		good += sorters[i].problem == NULL;
		rows_free(&sorters[i].rows);
	}
	ok(good == 4, "4 sorts at once in %llu MB", (unsigned long long) (memory / MIB));
	ok(is_idle(engine), "all memory is back");
	gpusort_host_engine.close(engine);
}

/*
 * Sorts that are read a little and then left, as by cursors, each by several readers: they give way to one that
 * needs what they have, and go on later.
 */
static void
test_left_sorts(uint64_t memory, uint32_t readers)
{
	GpuSortEngine *engine = open_engine(memory);
	Sort sorts[4];
	Rows rows[4];
	uint64_t next[4];
	const char *problem = NULL;
	double start = now_ms();

	for (int i = 0; i < 4; i++)
	{
		rows_make(&rows[i], 200000, 1, KEYS_RANDOM, 80, 140, 10);
		external_begin(&sorts[i], engine, (GpuSortRequest){.key_words = 1, .may_tie = 1, .shared = readers > 0, .readers = readers});
		if (problem == NULL)
			problem = sort_rows(&sorts[i], &rows[i]);
		next[i] = 0;
		for (uint32_t part = 0; problem == NULL && part <= readers; part++)
		{
			uint64_t at = part * 50000;

			problem = emit_chunk(&sorts[i], &rows[i], part == 0 ? &next[i] : &at, rows[i].n);
		}
	}
	for (int i = 4; problem == NULL && i-- > 0;)
		problem = read_rows(&sorts[i], &rows[i], next[i], rows[i].n);
	ok(problem == NULL, "4 sorts in %llu MB, of which 3 are left for a while, %u readers: %.0f ms: %s",
	   (unsigned long long) (memory / MIB), readers, now_ms() - start, told(problem));
	for (int i = 0; i < 4; i++)
	{
		external_end(&sorts[i]);
		rows_free(&rows[i]);
	}
	ok(is_idle(engine), "all memory is back");
	gpusort_host_engine.close(engine);
}

/*
 * Sorts that begin when another one has its runs, and wait for rows, as those above it in a plan do: they have the room
 * for their first chunk, as many as there can be, and give it up to the one that is read.
 */
static void
test_waiting_sorts(uint64_t memory)
{
	GpuSortEngine *engine = open_engine(memory);
	Sort waiting[8];
	Sort sort;
	Rows rows;
	Rows few;
	const char *problem;
	double start;
	int n = 0;

	rows_make(&rows, 200000, 1, KEYS_RANDOM, 80, 140, 10);
	rows_make(&few, 1000, 1, KEYS_RANDOM, 80, 140, 10);
	external_begin(&sort, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
	problem = sort_rows(&sort, &rows);
	while (n < 8 && external_try_begin(&waiting[n], engine))
		n++;
	start = now_ms();
	if (problem == NULL)
		problem = read_rows(&sort, &rows, 0, rows.n);
	ok(problem == NULL && now_ms() - start < 20000,
	   "%d sorts wait for rows in %llu MB while one of %u runs is read: %.0f ms: %s", n,
	   (unsigned long long) (memory / MIB), sort.outcome.runs, now_ms() - start, told(problem));
	external_end(&sort);
	problem = NULL;
	for (int i = 0; i < n; i++)
	{
		if (problem == NULL)
			problem = sort_rows(&waiting[i], &few);
		if (problem == NULL)
			problem = read_rows(&waiting[i], &few, 0, few.n);
		external_end(&waiting[i]);
	}
	ok(problem == NULL, "they sort their rows after it: %s", told(problem));
	ok(is_idle(engine), "all memory is back");
	rows_free(&rows);
	rows_free(&few);
	gpusort_host_engine.close(engine);
}

/* Cancels a sort after a while. */
typedef struct Canceller
{
	pthread_t thread;
	Sort *sort;
	uint32_t after; /* microseconds */
	double when;    /* ms */
} Canceller;

static void *
canceller_main(void *arg)
{
	Canceller *canceller = arg;

	usleep(canceller->after);
	canceller->when = now_ms();
	__atomic_store_n(&canceller->sort->cancelled, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void
test_cancel(void)
{
	GpuSortEngine *engine = open_engine(16 * MIB);
	Rows rows;
	double longest = 0;
	int descriptors;
	int wrong = 0;
	int early = 0;
	int late = 0;

	rows_make(&rows, 300000, 1, KEYS_SKEWED, 80, 140, 20);
	(void) test_directory();
	descriptors = count_descriptors(getpid());
	for (int round = 0; round < 6 * ROUNDS; round++)
	{
		Sort sort;
		Canceller canceller = {.sort = &sort, .after = random64() % 300000};
		const char *problem;
		bool sorted;

		external_begin(&sort, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
		pthread_create(&canceller.thread, NULL, canceller_main, &canceller);
		problem = sort_rows(&sort, &rows);
		sorted = problem == NULL;
		while (problem == NULL && !__atomic_load_n(&sort.cancelled, __ATOMIC_RELAXED))
			problem = read_rows(&sort, &rows, 0, rows.n);
		external_end(&sort);
		pthread_join(canceller.thread, NULL);
		if (now_ms() - canceller.when > longest)
			longest = now_ms() - canceller.when;
		if (problem != NULL && strstr(problem, "cancelled") == NULL)
		{
			diag("%s", problem);
			wrong++;
		}
		*(sorted ? &late : &early) += 1;
		if (!is_idle(engine))
			wrong++;
	}
	ok(wrong == 0, "sorts are cancelled, %d while rows are put, %d while they are read", early, late);
	ok(longest < QUICK_MS, "and have ended in no time: %.0f ms", longest);
	ok(count_descriptors(getpid()) == descriptors, "no descriptor is left");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}

/* What goes wrong with a file. */
typedef enum Damage
{
	CANNOT_WRITE,
	TOO_LARGE,
	CANNOT_READ,
	CUT_OFF,
	FLIPPED,
} Damage;

/* Changes bytes of a sort's files. */
static void
damage_files(const Sort *sort, Damage damage)
{
	for (int i = 0; i < OWNERS; i++)
	{
		const SpaceFile *file = &sort->files[i];
		struct stat status;
		uint64_t at;
		char byte;

		if (file->descriptor < 0 || fstat(file->descriptor, &status) != 0 || status.st_size == 0)
			continue;
		at = random64() % (uint64_t) status.st_size;
		if (damage == CUT_OFF && ftruncate(file->descriptor, (off_t) at) != 0)
			bail("ftruncate: %s", strerror(errno));
		if (damage == FLIPPED)
		{
			if (pread(file->descriptor, &byte, 1, (off_t) at) != 1)
				bail("pread: %s", strerror(errno));
			byte ^= (char) (1 << random64() % 8);
			if (pwrite(file->descriptor, &byte, 1, (off_t) at) != 1)
				bail("pwrite: %s", strerror(errno));
		}
	}
}

static void
test_damage(Damage damage, const char *name, int system_error, Keys keys)
{
	GpuSortEngine *engine = open_engine(16 * MIB);
	struct rlimit unlimited;
	Sort sort;
	Rows rows;
	const char *problem;

	getrlimit(RLIMIT_FSIZE, &unlimited);
	rows_make(&rows, 250000, 1, keys, 80, 140, 20);
	external_begin(&sort, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
	if (damage == CANNOT_WRITE)
		sort.flags = O_RDONLY;
	if (damage == CANNOT_READ)
		sort.flags = O_WRONLY;
	if (damage == TOO_LARGE)
	{
		struct rlimit limit = unlimited;

		signal(SIGXFSZ, SIG_IGN);
		limit.rlim_cur = 1 * MIB;
		setrlimit(RLIMIT_FSIZE, &limit);
	}
	problem = sort_rows(&sort, &rows);
	setrlimit(RLIMIT_FSIZE, &unlimited);
	if (problem == NULL && damage <= TOO_LARGE)
		problem = "it was written";
	if (problem == NULL)
	{
		damage_files(&sort, damage);
		problem = read_rows(&sort, &rows, 0, rows.n);
	}
	ok(problem == sort.error.text && sort.error.reason == GPUSORT_REASON_STORAGE &&
		   sort.error.system_error == system_error,
	   "%s: reason %d, %s: %s", name, sort.error.reason, strerror(sort.error.system_error), told(problem));
	external_end(&sort);
	ok(is_idle(engine), "all memory is back");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}

static void
test_damages(void)
{
	int descriptors = count_descriptors(getpid());

	test_damage(CANNOT_WRITE, "a file that cannot be written", EBADF, KEYS_RANDOM);
	test_damage(TOO_LARGE, "a file that may not grow", EFBIG, KEYS_RANDOM);
	test_damage(CANNOT_READ, "a file that cannot be read", EBADF, KEYS_RANDOM);
	test_damage(CUT_OFF, "files that were cut off", 0, KEYS_RANDOM);
	test_damage(CUT_OFF, "files that were cut off, equal keys", 0, KEYS_EQUAL);
	for (int i = 0; i < 3; i++)
		test_damage(FLIPPED, "files of which a bit was flipped", 0, i == 2 ? KEYS_EQUAL : KEYS_RANDOM);
	ok(count_descriptors(getpid()) == descriptors, "no descriptor is left");
}

/* Space that is not what it should be. */
static void
test_bad_space(void)
{
	static const char *const names[] = {"without a file", "in a pipe", "of no bytes", "beyond what there is",
										"given before",
										"in a second file", "in a file that is added to"};
	int descriptors = count_descriptors(getpid());
	GpuSortEngine *engine = open_engine(16 * MIB);
	Rows rows;

	rows_make(&rows, 300000, 1, KEYS_RANDOM, 80, 140, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		Sort sort;
		uint64_t next = 0;
		uint64_t lacking = 0;
		GpuSortProgress progress = GPUSORT_PROGRESS_DONE;
		int pipes[2] = {-1, -1};
		int file = open(test_directory(), O_TMPFILE | O_RDWR | O_CLOEXEC | (i == 6 ? O_APPEND : 0), 0600);
		int rc = -2;

		external_begin(&sort, engine, (GpuSortRequest){.key_words = 1});
		while (progress == GPUSORT_PROGRESS_DONE && next < rows.n)
		{
			uint32_t count;
			uint32_t bytes;

			next = rows_fill(&rows, next, 40000, sort.chunk, &count, &bytes);
			progress = gpusort_external_put(sort.external, sort.chunk, count, bytes, count, &lacking, &sort.error);
		}
		if (progress != GPUSORT_PROGRESS_LACKS_SPACE || file < 0 || pipe(pipes) != 0)
			bail("no space is lacking");
		switch (i)
		{
			case 0:
				rc = gpusort_external_add_space(sort.external, 1, -1, 0, lacking, &sort.error);
				break;
			case 1:
				rc = gpusort_external_add_space(sort.external, 1, dup(pipes[1]), 0, lacking, &sort.error);
				break;
			case 2:
				rc = gpusort_external_add_space(sort.external, 1, dup(file), 0, 0, &sort.error);
				break;
			case 3:
				rc = gpusort_external_add_space(sort.external, 1, dup(file), UINT64_MAX - 5, lacking, &sort.error);
				break;
			case 4:
			case 5:
				if (gpusort_external_add_space(sort.external, 1, dup(file), 4096, MIB, &sort.error) != 0)
					bail("%s", sort.error.text);
				rc = gpusort_external_add_space(sort.external, 1, i == 5 ? dup(file) : -1, MIB, lacking, &sort.error);
				break;
			case 6:
				rc = gpusort_external_add_space(sort.external, 1, dup(file), 0, lacking, &sort.error);
				break;
		}
		ok(rc == -1 && sort.error.reason == GPUSORT_REASON_INTERNAL, "space %s is refused: %s", names[i],
		   rc == -1 ? sort.error.text : "it was not");
		external_end(&sort);
		close(file);
		close(pipes[0]);
		close(pipes[1]);
	}
	ok(count_descriptors(getpid()) == descriptors && is_idle(engine), "no descriptor is left, and no memory");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}

/* Rows that share their bytes are more than the chunk they came in. */
static void
test_overlapping_rows(void)
{
	GpuSortEngine *engine = open_engine(16 * MIB);
	Sort sort;
	Rows rows;
	GpuSortProgress progress = GPUSORT_PROGRESS_DONE;
	uint64_t lacking;
	uint32_t count;
	uint32_t bytes;

	rows_make(&rows, 1, 1, KEYS_RANDOM, 100000, 100000, 0);
	external_begin(&sort, engine, (GpuSortRequest){.key_words = 1});
	(void) rows_fill(&rows, 0, 1, sort.chunk, &count, &bytes);
	for (uint32_t i = 1; i < 2000; i++)
		*gpusort_chunk_offset(sort.chunk, i) = 0;
	for (int i = 0; i < 1000 && progress != GPUSORT_PROGRESS_FAILED; i++)
	{
		progress = gpusort_external_put(sort.external, sort.chunk, 2000, bytes, 2000, &lacking, &sort.error);
		if (progress == GPUSORT_PROGRESS_LACKS_SPACE && give_space(&sort, lacking) != 0)
			break;
	}
	ok(progress == GPUSORT_PROGRESS_FAILED && sort.error.reason != GPUSORT_REASON_NONE,
	   "rows that overlap fail the sort: %s",
	   sort.error.text);
	external_end(&sort);
	ok(is_idle(engine), "all memory is back");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}

/* Memory that not even one chunk fits is told at once. */
static void
test_too_little_memory(void)
{
	GpuSortEngine *engine = open_engine(10 * MIB);
	Sort sort;
	Rows rows;
	const char *problem;
	double start = now_ms();

	rows_make(&rows, 400000, 1, KEYS_RANDOM, 8, 8, 0);
	external_begin(&sort, engine, (GpuSortRequest){.key_words = 1});
	problem = NULL;
	for (uint64_t next = 0; problem == NULL && next < rows.n;)
	{
		uint64_t lacking;
		uint32_t count;
		uint32_t bytes;
		GpuSortProgress progress;

		next = rows_fill(&rows, next, UINT32_MAX, sort.chunk, &count, &bytes);
		while ((progress = gpusort_external_put(sort.external, sort.chunk, count, bytes, count, &lacking, &sort.error)) ==
			   GPUSORT_PROGRESS_LACKS_SPACE)
			give_space(&sort, lacking);
		if (progress == GPUSORT_PROGRESS_FAILED)
			problem = sort.error.text;
	}
	ok(problem != NULL && sort.error.reason == GPUSORT_REASON_MEMORY_LIMIT && now_ms() - start < 3 * QUICK_MS,
	   "memory that not even a chunk fits is told at once, after %.0f ms: %s", now_ms() - start, told(problem));
	external_end(&sort);
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

static void
test_all_shared(void)
{
	test_shared(KEYS_RANDOM, 1, 64, 64, 3, 24 * MIB);
	test_shared(KEYS_RANDOM, 2, 70, 1000, 7, 24 * MIB);
	test_shared(KEYS_RANDOM, 2, 5, 64, 2, 24 * MIB);
	test_shared(KEYS_LAST_WORD, 3, 192, 64, 4, 32 * MIB);
	test_shared(KEYS_SKEWED, 1, 64, 20, 3, 24 * MIB);
	test_shared(KEYS_EQUAL, 1, 64, 20, 2, 24 * MIB);
	test_shared(KEYS_FEW, 1, 64, 4096, 16, 24 * MIB);
}

static void
test_all_scarce_memory(void)
{
	test_scarce_memory(KEYS_RANDOM, 64 * MIB, 1, 2);
	test_scarce_memory(KEYS_RANDOM, 64 * MIB, 2, 8);
	test_scarce_memory(KEYS_SKEWED, 48 * MIB, 3, 8);
	test_side_by_side(64 * MIB);
	test_side_by_side(40 * MIB);
	test_left_sorts(40 * MIB, 0);
	test_left_sorts(32 * MIB, 3);
	test_waiting_sorts(24 * MIB);
	test_waiting_sorts(40 * MIB);
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
