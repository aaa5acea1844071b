/*-------------------------------------------------------------------------
 *
 * engine_bench.c
 *	  What an engine takes per row for putting, sorting and emitting.
 *
 *	engine_bench --engine host
 *	engine_bench --engine cuda --library PATH
 *		--rows N --row-bytes N --key-words N --keys NAME --ties --runs N
 *
 * Prints CSV, one line per run; the first run finds the engine's caches cold.
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

typedef struct Shape
{
	uint64_t rows;
	uint32_t row_bytes;
	uint32_t key_words;
	RigKeys keys;
	int ties;
} Shape;

typedef struct Times
{
	double put_ms;
	double sort_ms;
	double emit_ms;
	double gather_ms; /* of emit, on the device */
	GpuSortOutcome outcome;
} Times;

static void
fail(const char *call, const GpuSortError *error)
{
	fprintf(stderr, "%s: reason %d: %s\n", call, error->reason, error->text);
	exit(1);
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
	GpuSortEmitted emitted = {.last = 0};
	GpuSortError error;
	GpuSort *sort;
	GpuSortPlace place;
	double begun;
	uint64_t row = 0;
	uint64_t came_out = 0;
	/* as the service grants chunks */
	const uint32_t rows_max = GPUSORT_CHUNK_BYTES / (8 * shape->key_words + GPUSORT_ALIGN8(shape->row_bytes) + sizeof(uint32_t)) * 3 / 2;
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

	begun = rig_milliseconds();
	while (!emitted.last)
	{
		if (ops->emit(sort, came_out, times->outcome.rows, pool + turn++ % POOL_CHUNKS * GPUSORT_CHUNK_BYTES, &emitted, &error) != 0)
			fail("emit", &error);
		came_out += emitted.rows;
		times->gather_ms += emitted.gather_ms;
	}
	times->emit_ms = rig_milliseconds() - begun;
	ops->end(sort);
	if (came_out != shape->rows)
	{
		fprintf(stderr, "%llu of %llu rows came out\n", (unsigned long long) came_out,
				(unsigned long long) shape->rows);
		exit(1);
	}
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
		{NULL, 0, NULL, 0}};
	GpuSortEngineConfig config = {.devices = "all"};
	Shape shape = {.rows = 1000000, .row_bytes = 88, .key_words = 1, .keys = RIG_KEYS_RANDOM};
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
		   "put_ns,sort_ns,emit_ns,gather_ns,sort_ms\n");
	for (int run = 1; run <= runs; run++)
	{
		Times times;
		double ns = 1e6 / shape.rows;

		run_once(ops, engine, &shape, config.pool, run, &times);
		printf("%s,%llu,%u,%u,%s,%d,%d,%u,%llu,%.2f,%.3f,%.2f,%.3f,%.3f\n", name,
			   (unsigned long long) shape.rows, shape.row_bytes, shape.key_words, rig_keys_names[shape.keys],
			   shape.ties, run, times.outcome.packed_bits, (unsigned long long) times.outcome.tie_rows,
			   times.put_ms * ns, times.sort_ms * ns, times.emit_ms * ns, times.gather_ms * ns, times.sort_ms);
		fflush(stdout);
	}
	ops->close(engine);
	return 0;
}
