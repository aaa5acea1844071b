/*-------------------------------------------------------------------------
 *
 * host_bench.c
 *	  What the host engine takes per row to put, sort and emit.
 *
 *	host_bench [ROWS [ROW_BYTES [KEY_WORDS [KEYS [THREADS [TIES [RUN_ROWS [COUNTS]]]]]]]]
 *
 * KEYS is random, few, ascending, skewed, hex, or a number: so many values.  With RUN_ROWS that many rows of each key
 * are kept, with COUNTS they are counted.
 *
 * Prints nanoseconds per row by the clock.  The first sort also pays for fresh memory and is shown apart; of three
 * more the best is shown.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/engine.h"

static double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static uint64_t
random64(void)
{
	static uint64_t state = 42;
	uint64_t z = state += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

static void
make_key(uint64_t *key, uint32_t words, const char *keys, uint64_t row)
{
	for (uint32_t w = 0; w < words; w++)
	{
		if (strcmp(keys, "random") == 0)
			key[w] = random64();
		else if (strcmp(keys, "few") == 0)
			key[w] = random64() % 100;
		else if (strcmp(keys, "ascending") == 0)
			key[w] = w + 1 == words ? row : 0;
		else if (strcmp(keys, "skewed") == 0)
			key[w] = random64() % 1000 ? random64() % 1000 : random64();
		else if (atoi(keys) > 0)
			key[w] = random64() % atoi(keys);
		else
		{
			key[w] = 0;
			for (int i = 0; i < 8; i++)
				key[w] = key[w] << 8 | "0123456789abcdef"[random64() & 15];
		}
	}
}

/* Chunks of rows, made before the clock starts; returns how many. */
static uint32_t
make_chunks(char **chunks, uint32_t *counts, uint32_t *bytes, uint64_t rows, uint32_t row_bytes,
			uint32_t words, const char *keys)
{
	uint32_t record = 8 * words + row_bytes;
	uint32_t fit = GPUSORT_CHUNK_BYTES / (record + 4);
	uint32_t n = 0;
	const uint64_t one = 1;

	for (uint64_t row = 0; row < rows; n++)
	{
		uint32_t count = rows - row < fit ? rows - row : fit;

		chunks[n] = aligned_alloc(4096, GPUSORT_CHUNK_BYTES);
		for (uint32_t i = 0; i < count; i++, row++)
		{
			char *at = chunks[n] + (size_t) i * record;

			memset(at, (int) row, record);
			make_key((uint64_t *) at, words, keys, row);
			memcpy(at + 8 * words, &row_bytes, 4);
			at[8 * words + GPUSORT_ROW_FLAGS_OFFSET] = GPUSORT_ROW_KEY_TRUNCATED;
			memcpy(at + 8 * words + GPUSORT_ROW_COUNT_OFFSET, &one, sizeof(one));
			*gpusort_chunk_offset(chunks[n], i) = i * record;
		}
		counts[n] = count;
		bytes[n] = count * record;
	}
	return n;
}

static void
check(int rc, const GpuSortError *error)
{
	if (rc == 0)
		return;
	fprintf(stderr, "%s\n", error->text);
	exit(1);
}

int
main(int argc, char **argv)
{
	uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 5000000;
	uint32_t row_bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 96;
	uint32_t words = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
	const char *keys = argc > 4 ? argv[4] : "random";
	int threads = argc > 5 ? atoi(argv[5]) : 0;
	int ties = argc > 6 ? atoi(argv[6]) : 0;
	uint32_t run_rows = argc > 7 ? strtoul(argv[7], NULL, 10) : 0;
	uint32_t run_counts = argc > 8 ? strtoul(argv[8], NULL, 10) : 0;
	/* as the service grants chunks (chunk_rows.c), with room for the rows to get shorter */
	uint32_t rows_max = GPUSORT_CHUNK_BYTES / (8 * words + row_bytes + 4) * 3 / 2;
	uint32_t max = rows * (8 * words + row_bytes + 4) / (GPUSORT_CHUNK_BYTES - 8192) + 2;
	char **chunks = calloc(max, sizeof(char *));
	uint32_t *counts = calloc(max, sizeof(uint32_t));
	uint32_t *bytes = calloc(max, sizeof(uint32_t));
	uint32_t nchunks = make_chunks(chunks, counts, bytes, rows, row_bytes, words, keys);
	char *pool = aligned_alloc(4096, 8 * GPUSORT_CHUNK_BYTES);
	GpuSortEngineConfig config = {.memory_limit = UINT64_C(1) << 40, .threads = threads};
	const GpuSortEngineOps *ops = &gpusort_host_engine;
	GpuSortEngine *engine;
	GpuSortError error;
	double best[3] = {1e9, 1e9, 1e9};

	memset(pool, 1, 8 * GPUSORT_CHUNK_BYTES);
	check(ops->open(&config, &engine, &error), &error);
	for (int round = 0; round < 4; round++)
	{
		int cancelled = 0;
		GpuSortRequest request = {.key_words = words,
								  .may_tie = ties,
								  .run_bits = run_rows > 0 ? 64 * words : 0,
								  .run_rows = run_rows,
								  .run_counts = run_counts};
		GpuSortOutcome outcome;
		GpuSortEmitted emitted;
		GpuSort *sort;
		GpuSortPlace place;
		double took[3];
		double start;

		check(ops->begin(engine, &request, &cancelled, &sort, &place, &error), &error);
		took[0] = 0;
		for (uint32_t c = 0; c < nchunks; c++)
		{
			/* from memory that a client has just written, as it is in life */
			char *chunk = pool + c % 3 * GPUSORT_CHUNK_BYTES;

			memcpy(chunk, chunks[c], GPUSORT_CHUNK_BYTES);
			start = now_ms();
			check(ops->reserve(sort, rows_max, &error), &error);
			check(ops->put(sort, chunk, counts[c], bytes[c], rows_max, &error), &error);
			took[0] += now_ms() - start;
		}
		start = now_ms();
		check(ops->sort(sort, &outcome, &error), &error);
		took[1] = now_ms() - start;
		start = now_ms();
		for (uint64_t row = 0, c = 0; row < outcome.rows; row += emitted.rows, c++)
			check(ops->emit(sort, row, outcome.rows, false, pool + c % 3 * GPUSORT_CHUNK_BYTES, &emitted, &error), &error);
		took[2] = now_ms() - start;
		ops->end(sort);
		if (round == 0)
			printf("fresh memory: put %.1f sort %.1f emit %.1f ns per row\n",
				   took[0] * 1e6 / rows, took[1] * 1e6 / rows, took[2] * 1e6 / rows);
		for (int i = 0; i < 3 && round > 0; i++)
			best[i] = took[i] < best[i] ? took[i] : best[i];
	}
	printf("rows %llu of %u bytes, keys %s of %u words: put %.1f sort %.1f emit %.1f ns per row\n",
		   (unsigned long long) rows, row_bytes, keys, words,
		   best[0] * 1e6 / rows, best[1] * 1e6 / rows, best[2] * 1e6 / rows);
	ops->close(engine);
	return 0;
}
