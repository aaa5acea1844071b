/*-------------------------------------------------------------------------
 *
 * external_cut.c
 *	  Sorts that do not fit the memory, cut into ranges that several processes read.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "external_case.h"
#include "service/external/runs.h"

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

void
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

void
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
