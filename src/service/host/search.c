/*-------------------------------------------------------------------------
 *
 * search.c
 *	  Keys of the host engine's sorted rows, and places of keys among them.
 *
 * Elements have only a packed word of their keys in the end, so keys are looked
 * up in the records.  Each step of a binary search is a miss of the cache, which
 * is why many keys are shared out among the threads.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "service/host/search.h"

/* Keys that one task looks for. */
#define TASK_KEYS 64

static const uint64_t *
key_of_row(const GpuSort *sort, uint64_t row)
{
	return gpusort_host_key(sort, sort->elements[row].ref);
}

/* Copies the keys of the rows of these numbers, key_words words each. */
void
gpusort_host_keys_at(const GpuSort *sort, const uint64_t *rows, uint32_t count, uint64_t *keys)
{
	for (uint32_t i = 0; i < count; i++)
		memcpy(keys + (size_t) i * sort->key_words, key_of_row(sort, rows[i]), sort->key_words * sizeof(uint64_t));
}

/* Returns true if the first so many bits of a are less than those of b. */
static bool
is_below(const uint64_t *a, const uint64_t *b, uint32_t bits)
{
	while (bits > 64 && *a == *b)
	{
		a++;
		b++;
		bits -= 64;
	}
	if (bits < 64)
		return *a >> (64 - bits) < *b >> (64 - bits);
	return *a < *b;
}

static uint64_t
rows_below_key(const GpuSort *sort, uint32_t bits, const uint64_t *key)
{
	uint64_t low = 0;
	uint64_t high = sort->rows_out;

	while (low < high)
	{
		uint64_t middle = low + (high - low) / 2;

		if (is_below(key_of_row(sort, middle), key, bits))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

typedef struct Search
{
	const GpuSort *sort;
	uint32_t bits;
	const uint64_t *keys;
	uint32_t count;
	uint64_t *rows;
} Search;

static void
search_keys(void *arg, uint32_t task)
{
	const Search *search = arg;
	uint32_t first = task * TASK_KEYS;
	uint32_t end = search->count - first < TASK_KEYS ? search->count : first + TASK_KEYS;

	for (uint32_t i = first; i < end && !gpusort_host_cancelled(search->sort); i++)
		search->rows[i] = rows_below_key(search->sort, search->bits, search->keys + (size_t) i * search->sort->key_words);
}

/*
 * Counts, for each of these keys, the rows whose first so many bits are less than the
 * key's.  Leaves out keys when the sort is cancelled, which the caller looks for.
 */
void
gpusort_host_rows_below(const GpuSort *sort, uint32_t bits, const uint64_t *keys, uint32_t count, uint64_t *rows)
{
	Search search = {.sort = sort, .bits = bits, .keys = keys, .count = count, .rows = rows};

	gpusort_threads_run(sort->threads, (count + TASK_KEYS - 1) / TASK_KEYS, search_keys, &search);
}
