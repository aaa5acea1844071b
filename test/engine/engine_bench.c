/*-------------------------------------------------------------------------
 *
 * engine_bench.c
 *	  What an engine takes per row for putting, sorting and emitting, how fast rows
 *	  come out in one piece and by intervals, and what it takes to cut them into ranges.
 *
 *	engine_bench --engine host
 *	engine_bench --engine cuda --library PATH
 *		--rows N --row-bytes N --key-words N --keys NAME --ties --runs N
 *		--interval N		bytes of an interval (1048576)
 *
 * Prints CSV, one line per run; the first run finds the engine's caches cold.
 * emit_gb_s is of all rows asked for at once; rising_gb_s of intervals one after the other, as
 * readers claim them; spread_gb_s of intervals that READERS readers ask for in turn, each
 * in a part of the rows of its own.  keys_at_us and rows_below_us are of CUTS keys.
 * Times are those of the engine's calls alone, not of making rows.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_rig.h"

/* Chunks in and out, as a service has them. */
#define POOL_CHUNKS 8

#define READERS 16

/* Places where the rows may be cut, as the service asks for them. */
#define CUTS 1024

typedef struct Shape
{
	uint64_t rows;
	uint32_t row_bytes;
	uint32_t key_words;
	RigKeys keys;
	int ties;
	uint64_t interval; /* bytes */
} Shape;

typedef struct Times
{
	double put_ms;
	double sort_ms;
	double emit_ms;
	double gather_ms; /* of emit, on the device */
	double rising_ms; /* intervals */
	double spread_ms;
	double keys_at_ms;
	double rows_below_ms;
	GpuSortOutcome outcome;
} Times;

static void
fail(const char *call, const GpuSortError *error)
{
	fprintf(stderr, "%s: reason %d: %s\n", call, error->reason, error->text);
	exit(1);
}

/* Emits an interval into chunks of the pool; adds the device's time to *gather_ms. */
static void
emit_rows(const GpuSortEngineOps *ops, GpuSort *sort, uint64_t first, uint64_t end, char *pool, double *gather_ms)
{
	static uint32_t turn;
	GpuSortEmitted emitted;
	GpuSortError error;

	do
	{
		if (ops->emit(sort, first, end, false, pool + turn++ % POOL_CHUNKS * GPUSORT_CHUNK_BYTES, &emitted, &error) != 0)
			fail("emit", &error);
		first += emitted.rows;
		*gather_ms += emitted.gather_ms;
	} while (!emitted.last);
	if (first != end)
	{
		fprintf(stderr, "rows came out up to %llu, not %llu\n", (unsigned long long) first, (unsigned long long) end);
		exit(1);
	}
}

/* Emits all rows by intervals that so many readers ask for in turn; returns the time. */
static double
emit_intervals(const GpuSortEngineOps *ops, GpuSort *sort, const Shape *shape, uint64_t rows, uint64_t readers,
			   char *pool)
{
	const uint64_t length = shape->interval / GPUSORT_ALIGN8(shape->row_bytes) + 1;
	const uint64_t intervals = (rows + length - 1) / length;
	const uint64_t each = (intervals + readers - 1) / readers;
	const double begun = rig_milliseconds();
	double ignored = 0;

	for (uint64_t i = 0; i < each; i++)
	{
		for (uint64_t r = 0; r < readers; r++)
		{
			const uint64_t first = (r * each + i) * length;

			if (first < rows)
				emit_rows(ops, sort, first, first + length < rows ? first + length : rows, pool, &ignored);
		}
	}
	return rig_milliseconds() - begun;
}

/* Looks up the keys at places of equal distance, and those keys' places. */
static void
look_up(const GpuSortEngineOps *ops, GpuSort *sort, const Shape *shape, uint64_t rows, Times *times)
{
	static uint64_t numbers[CUTS];
	static uint64_t keys[CUTS * GPUSORT_MAX_KEY_WORDS];
	GpuSortError error;
	double begun = rig_milliseconds();

	for (uint64_t i = 0; i < CUTS; i++)
		numbers[i] = rows * i / CUTS;
	if (ops->keys_at(sort, numbers, CUTS, keys, &error) != 0)
		fail("keys_at", &error);
	times->keys_at_ms = rig_milliseconds() - begun;
	begun = rig_milliseconds();
	if (ops->rows_below(sort, 64 * shape->key_words, keys, CUTS, numbers, &error) != 0)
		fail("rows_below", &error);
	times->rows_below_ms = rig_milliseconds() - begun;
}

static void
run_once(const GpuSortEngineOps *ops, GpuSortEngine *engine, const Shape *shape, char *pool, uint64_t salt,
		 Times *times)
{
	static const int never_cancelled = 0;
	GpuSortRequest request = {
		.key_words = shape->key_words,
		.may_tie = shape->ties,
		.estimated_rows = shape->rows,
		.estimated_bytes = shape->rows * (8 * shape->key_words + GPUSORT_ALIGN8(shape->row_bytes)),
	};
	GpuSortError error;
	GpuSort *sort;
	GpuSortPlace place;
	double begun;
	uint64_t row = 0;
	/* as the service grants chunks */
	const uint32_t rows_max =
		GPUSORT_CHUNK_BYTES / (8 * shape->key_words + GPUSORT_ALIGN8(shape->row_bytes) + sizeof(uint32_t)) * 3 / 2;
	uint32_t turn = 0;

	memset(times, 0, sizeof(*times));
	if (ops->begin(engine, &request, &never_cancelled, &sort, &place, &error) != 0)
		fail("begin", &error);
	while (row < shape->rows)
	{
		RigChunk chunk;
		char *at;

		rig_chunk_start(&chunk, pool + turn++ % POOL_CHUNKS * GPUSORT_CHUNK_BYTES);
		while (row < shape->rows && (at = rig_chunk_add(&chunk, shape->key_words, shape->row_bytes)) != NULL)
		{
			char *head = at + 8 * shape->key_words;

			rig_key((uint64_t *) at, shape->key_words, shape->keys, salt, row++, shape->rows);
			memcpy(head, &shape->row_bytes, sizeof(uint32_t));
			head[GPUSORT_ROW_FLAGS_OFFSET] = shape->ties ? GPUSORT_ROW_KEY_TRUNCATED : 0;
		}
		begun = rig_milliseconds();
		if (ops->reserve(sort, rows_max, &error) != 0)
			fail("reserve", &error);
		if (ops->put(sort, chunk.base, chunk.rows, chunk.bytes, rows_max, &error) != 0)
			fail("put", &error);
		times->put_ms += rig_milliseconds() - begun;
	}

	begun = rig_milliseconds();
	if (ops->sort(sort, &times->outcome, &error) != 0)
		fail("sort", &error);
	times->sort_ms = rig_milliseconds() - begun;

	if (times->outcome.rows != shape->rows)
	{
		fprintf(stderr, "%llu of %llu rows were sorted\n", (unsigned long long) times->outcome.rows,
				(unsigned long long) shape->rows);
		exit(1);
	}

	begun = rig_milliseconds();
	emit_rows(ops, sort, 0, shape->rows, pool, &times->gather_ms);
	times->emit_ms = rig_milliseconds() - begun;
	times->rising_ms = emit_intervals(ops, sort, shape, shape->rows, 1, pool);
	times->spread_ms = emit_intervals(ops, sort, shape, shape->rows, READERS, pool);
	look_up(ops, sort, shape, shape->rows, times);
	ops->end(sort);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"engine", required_argument, NULL, 'e'},
		{"library", required_argument, NULL, 'l'},
		{"rows", required_argument, NULL, 'n'},
		{"row-bytes", required_argument, NULL, 'b'},
		{"key-words", required_argument, NULL, 'w'},
		{"keys", required_argument, NULL, 'k'},
		{"ties", no_argument, NULL, 't'},
		{"runs", required_argument, NULL, 'r'},
		{"interval", required_argument, NULL, 'i'},
		{NULL, 0, NULL, 0}};
	GpuSortEngineConfig config = {.devices = "all"};
	Shape shape = {.rows = 1000000, .row_bytes = 88, .key_words = 1, .keys = RIG_KEYS_RANDOM, .interval = 1 << 20};
	const char *name = "host";
	const char *library = NULL;
	const GpuSortEngineOps *ops;
	GpuSortEngine *engine;
	GpuSortError error;
	int runs = 3;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
	{
		if (option == 'e')
			name = optarg;
		else if (option == 'l')
			library = optarg;
		else if (option == 'n')
			shape.rows = strtoull(optarg, NULL, 0);
		else if (option == 'b')
			shape.row_bytes = strtoul(optarg, NULL, 0);
		else if (option == 'w')
			shape.key_words = strtoul(optarg, NULL, 0);
		else if (option == 't')
			shape.ties = 1;
		else if (option == 'r')
			runs = atoi(optarg);
		else if (option == 'i')
			shape.interval = strtoull(optarg, NULL, 0);
		else if (option == 'k')
		{
			shape.keys = 0;
			while (shape.keys < RIG_KEYS_COUNT && strcmp(optarg, rig_keys_names[shape.keys]) != 0)
				shape.keys++;
		}
		else
			return 2;
	}
	if (shape.rows == 0 || shape.key_words < 1 || shape.key_words > GPUSORT_MAX_KEY_WORDS ||
		shape.keys == RIG_KEYS_COUNT || shape.row_bytes < 8 || shape.row_bytes > GPUSORT_CHUNK_BYTES / 2)
	{
		fprintf(stderr, "rows, row bytes, key words or keys out of range\n");
		return 2;
	}

	ops = rig_engine(name, library);
	config.pool = rig_pool(POOL_CHUNKS);
	config.pool_bytes = POOL_CHUNKS * GPUSORT_CHUNK_BYTES;
	if (ops->open(&config, &engine, &error) != 0)
		fail("open", &error);

	printf("engine,rows,row_bytes,key_words,keys,ties,run,packed_bits,tie_rows,"
		   "put_ns,sort_ns,emit_ns,gather_ns,sort_ms,"
		   "emit_gb_s,interval,rising_gb_s,spread_gb_s,keys_at_us,rows_below_us\n");
	for (int run = 1; run <= runs; run++)
	{
		Times times;
		double ns = 1e6 / shape.rows;
		double gb;

		run_once(ops, engine, &shape, config.pool, run, &times);
		gb = times.outcome.bytes / 1e6;
		printf("%s,%llu,%u,%u,%s,%d,%d,%u,%llu,%.2f,%.3f,%.2f,%.3f,%.3f,%.2f,%llu,%.2f,%.2f,%.1f,%.1f\n", name,
			   (unsigned long long) shape.rows, shape.row_bytes, shape.key_words, rig_keys_names[shape.keys],
			   shape.ties, run, times.outcome.packed_bits, (unsigned long long) times.outcome.tie_rows,
			   times.put_ms * ns, times.sort_ms * ns, times.emit_ms * ns, times.gather_ms * ns, times.sort_ms,
			   gb / times.emit_ms, (unsigned long long) shape.interval, gb / times.rising_ms, gb / times.spread_ms,
			   times.keys_at_ms * 1e3, times.rows_below_ms * 1e3);
		fflush(stdout);
	}
	ops->close(engine);
	return 0;
}
