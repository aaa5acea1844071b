/*-------------------------------------------------------------------------
 *
 * external_pick.c
 *	  The first rows of each run of equal keys, of sorts that fit the memory and that do not, cut into
 *	  ranges and read by several.
 *
 * A sort that fits has what is wanted and nothing else; one of several runs may have more.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "external_case.h"

/* Returns true if the rows at these places of the order agree in the first so many bits of their keys. */
static bool
agree(const Rows *rows, uint64_t a, uint64_t b, uint32_t bits)
{
	const uint64_t *x = rows->keys + rows->order[a] * rows->key_words;
	const uint64_t *y = rows->keys + rows->order[b] * rows->key_words;

	for (uint32_t bit = 0; bit < bits; bit++)
	{
		if ((x[bit / 64] ^ y[bit / 64]) >> (63 - bit % 64) & 1)
			return false;
	}
	return true;
}

static bool
is_truncated(const Rows *rows, uint64_t place)
{
	return rows->flags[rows->order[place]] & GPUSORT_ROW_KEY_TRUNCATED;
}

/* Which rows are wanted, by place in the order; the caller frees them. */
static bool *
find_wanted(const Rows *rows, const GpuSortRequest *request, uint64_t *count)
{
	bool *wanted = calloc(rows->n + 1, sizeof(bool));
	uint64_t run = 0;
	uint64_t group = 0;

	*count = 0;
	for (uint64_t i = 0; i < rows->n; i++)
	{
		bool may_tie = i > 0 && !request->run_exact && (is_truncated(rows, i - 1) || is_truncated(rows, i));

		if (i > 0 && !agree(rows, i - 1, i, 64 * rows->key_words))
			group = i;
		if (may_tie || (i > 0 && !agree(rows, i - 1, i, request->run_bits)))
			run = group = i;
		wanted[i] = (request->run_peers || request->run_exact ? group : i) - run < request->run_rows;
		*count += wanted[i];
	}
	return wanted;
}

/*
 * Compares the rows of a range with the order, of which *place is the next; with counts, each has the
 * rows behind it that do not come.
 */
static const char *
read_range(Sort *sort, const Rows *rows, const bool *wanted, uint64_t first, uint64_t end,
		   uint64_t *place, uint64_t *counted)
{
	while (first < end)
	{
		GpuSortEmitted emitted;
		const char *at = sort->chunk;

		if (gpusort_external_emit(sort->external, first, end, sort->chunk, &emitted, &sort->error) != 0)
			return sort->error.text;
		if (emitted.rows == 0 || emitted.rows > end - first || emitted.last != (first + emitted.rows == end))
			return "no rows are emitted, or too many, or the last ones are not told";
		for (uint32_t i = 0; i < emitted.rows; i++)
		{
			uint64_t word;
			uint64_t number;
			uint32_t length;

			memcpy(&length, at, sizeof(length));
			memcpy(&word, at + GPUSORT_ROW_COUNT_OFFSET, sizeof(word));
			memcpy(&number, at + 16, sizeof(number));
			while (*place < rows->n && rows->order[*place] != number)
			{
				if (wanted[(*place)++])
					return "a row that is wanted does not come";
			}
			if (*place == rows->n)
				return "a row came out of order";
			if (length != rows->lengths[rows->order[(*place)++]])
				return "a row has another length";
			*counted += word;
			at += GPUSORT_ALIGN8(length);
		}
		first += emitted.rows;
	}
	return NULL;
}

/* Puts rows whose third word is their number, and whose second is a count of 1. */
static const char *
put_numbered(Sort *sort, const Rows *rows)
{
	const uint32_t key_bytes = 8 * rows->key_words;

	while (sort->put < rows->n)
	{
		uint32_t most = rows->n - sort->put < 40000 ? (uint32_t) (rows->n - sort->put) : 40000;
		uint64_t number = sort->put;
		uint32_t count;
		uint32_t bytes;

		sort->put = rows_fill(rows, sort->put, most, sort->chunk, &count, &bytes);
		for (uint32_t i = 0; i < count; i++, number++)
		{
			char *row = sort->chunk + *gpusort_chunk_offset(sort->chunk, i) + key_bytes;
			const uint64_t one = 1;

			memcpy(row + GPUSORT_ROW_COUNT_OFFSET, &one, sizeof(one));
			memcpy(row + 16, &number, sizeof(number));
		}
		if (!put_chunk(sort, count, bytes))
			return sort->error.text;
	}
	return NULL;
}

static void
test_case(uint64_t n, Keys keys, uint32_t words, GpuSortRequest request, int truncated)
{
	GpuSortEngine *engine = open_engine(24 * MIB);
	uint64_t *first_rows = calloc(GPUSORT_RANGES_MAX + 1, sizeof(uint64_t));
	GpuSortBorders *borders = NULL;
	uint64_t wanted_rows;
	uint64_t place = 0;
	uint64_t counted = 0;
	const char *problem;
	bool *wanted;
	Rows rows;
	Sort sort;

	request.key_words = words;
	request.may_tie = truncated > 0 || request.run_exact;
	request.shared = 1;
	request.readers = 3;
	rows_make(&rows, n, words, keys, 24, 160, truncated);
	wanted = find_wanted(&rows, &request, &wanted_rows);
	external_begin(&sort, engine, request);
	problem = put_numbered(&sort, &rows);
	if (problem == NULL)
		problem = sort_rows(&sort, &rows);
	if (problem == NULL && (sort.outcome.runs == 0 ? sort.outcome.rows != wanted_rows : sort.outcome.rows < wanted_rows))
		problem = "other rows are kept than are wanted";
	if (problem == NULL && sort.outcome.runs > 1 && keys != KEYS_RANDOM && truncated == 0 && sort.outcome.rows > n / 2)
		problem = "nothing is left out of the runs";
	if (problem == NULL &&
		gpusort_external_cut(sort.external, request.run_bits, 50, first_rows, &borders, &sort.error) != 0)
		problem = sort.error.text;
	for (uint32_t i = 0; problem == NULL && i < borders->ranges; i++)
		problem = read_range(&sort, &rows, wanted, first_rows[i],
							 i + 1 < borders->ranges ? first_rows[i + 1] : sort.outcome.rows, &place, &counted);
	for (; problem == NULL && place < n; place++)
	{
		if (wanted[place])
			problem = "the last rows that are wanted do not come";
	}
	if (problem == NULL && request.run_counts && counted != n)
		problem = "counts do not add up";
	ok(problem == NULL,
	   "the first %u by %u of %u bits%s%s%s, keys %d, %d of 100 truncated: %llu of %llu rows, %u runs: %s",
	   request.run_rows, request.run_bits, 64 * words, request.run_peers ? ", peers" : "",
	   request.run_exact ? ", exact" : "", request.run_counts ? ", counts" : "", keys, truncated,
	   (unsigned long long) sort.outcome.rows, (unsigned long long) n, sort.outcome.runs, told(problem));
	external_end(&sort);
	ok(is_idle(engine), "all memory is back");
	free(borders);
	free(wanted);
	free(first_rows);
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}

void
test_first_rows(void)
{
	static const uint64_t counts[] = {0, 3000, 220000};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
	{
		uint64_t n = counts[i];

		test_case(n, KEYS_FEW, 1, (GpuSortRequest){.run_rows = 1, .run_bits = 64, .run_counts = 1}, 0);
		test_case(n, KEYS_LAST_WORD, 2, (GpuSortRequest){.run_rows = 5, .run_bits = 64}, 0);
		test_case(n, KEYS_SKEWED, 1, (GpuSortRequest){.run_rows = 2, .run_bits = 64, .run_peers = 1}, 20);
		test_case(n, KEYS_FEW, 2, (GpuSortRequest){.run_rows = 1, .run_bits = 64, .run_exact = 1, .run_counts = 1}, 20);
		test_case(n, KEYS_RANDOM, 2, (GpuSortRequest){.run_rows = 3, .run_bits = 13}, 0);
		test_case(n, KEYS_EQUAL, 1, (GpuSortRequest){.run_rows = 1, .run_bits = 1, .run_counts = 1}, 0);
	}
}
