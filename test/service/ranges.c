/*-------------------------------------------------------------------------
 *
 * ranges.c
 *	  Tests of what cuts sorted rows into ranges (src/service/external/ranges.c), on the
 *	  host engine.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/external/ranges.h"
#include "testlib.h"

static const GpuSortEngineOps *const ops = &gpusort_host_engine;

static GpuSortEngine *engine;
static char *chunk;
static uint64_t first_rows[GPUSORT_RANGES_MAX];

/* Sorts rows, for tests to cut; end is the caller's. */
static GpuSortRangeSource
sort_rows(const Rows *rows)
{
	static const int never = 0;
	GpuSortRequest request = {.key_words = rows->key_words, .shared = 1};
	const uint32_t rows_max = gpusort_chunk_rows_most(rows->key_words);
	GpuSortRangeSource sorted = {.ops = ops, .key_words = rows->key_words};
	GpuSortPlace place;
	GpuSortOutcome outcome;
	GpuSortError error = {.text = ""};
	uint64_t next = 0;

	if (ops->begin(engine, &request, &never, &sorted.sort, &place, &error) != 0)
		bail("begin: %s", error.text);
	while (next < rows->n)
	{
		uint32_t count;
		uint32_t bytes;

		next = rows_fill(rows, next, rows_max, chunk, &count, &bytes);
		if (ops->reserve(sorted.sort, rows_max, &error) != 0 ||
			ops->put(sorted.sort, chunk, count, bytes, rows_max, &error) != 0)
			bail("put: %s", error.text);
	}
	if (ops->sort(sorted.sort, &outcome, &error) != 0)
		bail("sort: %s", error.text);
	sorted.rows = outcome.rows;
	return sorted;
}

/* The key of the row at a place of the order. */
static const uint64_t *
key_at(const Rows *rows, uint64_t place)
{
	return rows->keys + rows->order[place] * rows->key_words;
}

/* Compares bit by bit. */
static int
compare_bits(const uint64_t *a, const uint64_t *b, uint32_t bits)
{
	for (uint32_t i = 0; i < bits; i++)
	{
		int x = a[i / 64] >> (63 - i % 64) & 1;
		int y = b[i / 64] >> (63 - i % 64) & 1;

		if (x != y)
			return x - y;
	}
	return 0;
}

/* NULL, or what is wrong with ranges that rows were cut into. */
static const char *
check(const Rows *rows, uint32_t bits, uint32_t most, const GpuSortBorders *borders)
{
	uint64_t larger = 0; /* rows of the largest group */
	uint64_t widest = 0; /* of the widest range */

	if (rows->n == 0)
		return borders->ranges == 0 ? NULL : "ranges of no rows";
	if (borders->ranges < 1 || borders->ranges > most || first_rows[0] != 0)
		return "too few or too many ranges";
	for (uint64_t start = 0, end; start < rows->n; start = end)
	{
		for (end = start + 1; end < rows->n && compare_bits(key_at(rows, start), key_at(rows, end), bits) == 0; end++)
			;
		if (end - start > larger)
			larger = end - start;
	}
	for (uint32_t i = 0; i < borders->ranges; i++)
	{
		uint64_t end = i + 1 < borders->ranges ? first_rows[i + 1] : rows->n;

		if (end <= first_rows[i] || end > rows->n)
			return "a range that has no rows";
		if (end < rows->n && compare_bits(key_at(rows, end - 1), key_at(rows, end), bits) == 0)
			return "a group that is torn apart";
		if (end < rows->n && compare_bits(borders->keys + i * borders->words, key_at(rows, end), bits) != 0)
			return "a border that is not its range's first key";
		if (end - first_rows[i] > widest)
			widest = end - first_rows[i];
	}
	/* a range is less than a group and the rows between two that are looked at */
	return widest <= larger + rows->n / most + 1 ? NULL : "a range that is larger than it need be";
}

static void
test_cut(Keys keys, const char *name, uint64_t n, uint32_t words)
{
	static const uint32_t mosts[] = {1, 2, 7, 64, GPUSORT_RANGES_MAX};
	const char *problem = NULL;
	uint32_t ranges = 0;
	GpuSortRangeSource sorted;
	Rows rows;

	rows_make(&rows, n, words, keys, 16, 16, 0);
	sorted = sort_rows(&rows);
	for (int b = 0; b < 9 && problem == NULL; b++)
	{
		const uint32_t of_words[] = {1, 3, 63, 64, 64 * words, 64 * words - 1, 64 * words - 63, 32 * words + 1,
									 1 + random64() % (64 * words)};

		for (size_t m = 0; m < sizeof(mosts) / sizeof(mosts[0]) && problem == NULL; m++)
		{
			GpuSortBorders *borders;
			GpuSortError error;

			memset(first_rows, 0xA5, sizeof(first_rows));
			if (gpusort_ranges_cut(&sorted, of_words[b], mosts[m], first_rows, &borders, &error) != 0)
				bail("cut: %s", error.text);
			problem = check(&rows, of_words[b], mosts[m], borders);
			ranges = borders->ranges > ranges ? borders->ranges : ranges;
			if (problem != NULL)
				diag("by %u bits into %u", of_words[b], mosts[m]);
			free(borders);
		}
	}
	ops->end(sorted.sort);
	ok(problem == NULL, "%llu rows of %s keys of %u words in up to %u ranges: %s", (unsigned long long) n, name, words,
	   ranges, told(problem));
	rows_free(&rows);
}

/* One group of nearly all rows is one range, and the others are cut as if it were not there. */
static void
test_giant_group(void)
{
	const uint64_t n = 100000;
	GpuSortRangeSource sorted;
	GpuSortBorders *borders;
	GpuSortError error;
	uint32_t giant = 0;
	Rows rows;

	rows_make(&rows, n, 1, KEYS_ASCENDING, 16, 16, 0);
	for (uint64_t i = 0; i < n; i++)
		rows.keys[i] = i < n / 4 ? i : i < n - n / 4 ? n
													 : n + i;
	sorted = sort_rows(&rows);
	if (gpusort_ranges_cut(&sorted, 64, 64, first_rows, &borders, &error) != 0)
		bail("cut: %s", error.text);
	for (uint32_t i = 0; i < borders->ranges; i++)
		giant += first_rows[i] == n / 4;
	ok(check(&rows, 64, 64, borders) == NULL && giant == 1 && borders->ranges >= 32 && borders->ranges <= 34,
	   "half of the rows in one group are one range of %u", borders->ranges);
	free(borders);
	ops->end(sorted.sort);
	rows_free(&rows);
}

/* Rows cut where others were: each range has the rows between the same borders. */
static void
test_like(Keys keys, uint64_t n, uint32_t words, Keys other_keys, uint64_t others, uint32_t other_words)
{
	const uint32_t bits = 1 + random64() % (64 * (words < other_words ? words : other_words));
	const char *problem = NULL;
	GpuSortRangeSource sorted;
	GpuSortBorders *borders;
	GpuSortBorders *copy;
	GpuSortError error;
	Rows rows;
	Rows other;

	rows_make(&rows, n, words, keys, 16, 16, 0);
	rows_make(&other, others, other_words, other_keys, 16, 16, 0);
	sorted = sort_rows(&rows);
	if (gpusort_ranges_cut(&sorted, bits, 50, first_rows, &borders, &error) != 0)
		bail("cut: %s", error.text);
	ops->end(sorted.sort);
	copy = gpusort_borders_copy(borders);
	sorted = sort_rows(&other);
	if (copy == NULL || gpusort_ranges_cut_like(&sorted, copy, first_rows, &error) != 0)
		bail("cut like: %s", error.text);
	ops->end(sorted.sort);
	for (uint32_t i = 0; i < borders->ranges && problem == NULL; i++)
	{
		uint64_t end = i + 1 < borders->ranges ? first_rows[i + 1] : others;

		if ((i == 0 && first_rows[0] != 0) || end < first_rows[i] || end > others)
			problem = "ranges out of order";
		for (uint64_t place = first_rows[i]; place < end && problem == NULL; place++)
		{
			if ((i > 0 && compare_bits(key_at(&other, place), borders->keys + (i - 1) * borders->words, bits) < 0) ||
				(i + 1 < borders->ranges && compare_bits(key_at(&other, place), borders->keys + i * borders->words, bits) >= 0))
				problem = "a row in the wrong range";
		}
	}
	ok(problem == NULL, "%llu rows cut like %llu others, by %u bits, into %u: %s", (unsigned long long) others,
	   (unsigned long long) n, bits, borders->ranges, told(problem));
	free(borders);
	free(copy);
	rows_free(&rows);
	rows_free(&other);
}

/* An engine that is one row off, in one of its answers. */
static int lie_at;
static int lie;

static int
lying_rows_below(GpuSort *sort, uint32_t bits, const uint64_t *keys, uint32_t count, uint64_t *rows,
				 GpuSortError *error)
{
	int rc = ops->rows_below(sort, bits, keys, count, rows, error);

	rows[lie_at % count] += lie;
	return rc;
}

static void
test_lies(void)
{
	GpuSortEngineOps liar = *ops;
	GpuSortRangeSource sorted;
	GpuSortBorders *borders;
	GpuSortError error = {.reason = GPUSORT_REASON_NONE};
	int found = 0;
	int like = 0;
	Rows rows;

	liar.rows_below = lying_rows_below;
	rows_make(&rows, 30000, 1, KEYS_FEW, 16, 16, 0);
	sorted = sort_rows(&rows);
	if (gpusort_ranges_cut(&sorted, 64, 64, first_rows, &borders, &error) != 0)
		bail("cut: %s", error.text);
	sorted.ops = &liar;
	for (lie_at = 0; lie_at < 16; lie_at++)
	{
		GpuSortBorders *wrong;

		for (int l = 0; l < 4; l++)
		{
			static const int lies[] = {-1, 1, 1 << 20, INT32_MIN};

			lie = lies[l];
			found += gpusort_ranges_cut(&sorted, 64, 64, first_rows, &wrong, &error) != 0 &&
				error.reason == GPUSORT_REASON_ORDER_CHECK;
			like += gpusort_ranges_cut_like(&sorted, borders, first_rows, &error) != 0 &&
				error.reason == GPUSORT_REASON_ORDER_CHECK;
		}
	}
	ok(found == 64 && like == 64, "an engine that is a row off is found out: %d and %d of 64 times", found, like);
	free(borders);
	ops->end(sorted.sort);
	rows_free(&rows);
}

int
main(void)
{
	static const struct
	{
		Keys keys;
		const char *name;
	} kinds[] = {
		{KEYS_RANDOM, "random"},
		{KEYS_FEW, "few"},
		{KEYS_EQUAL, "equal"},
		{KEYS_ASCENDING, "ascending"},
		{KEYS_SKEWED, "skewed"},
		{KEYS_HIGH_BIT, "high bit"},
		{KEYS_LAST_WORD, "last word"},
	};
	static const uint64_t counts[] = {0, 1, 2, 63, 5000};
	GpuSortEngineConfig config = {.memory_limit = UINT64_C(1) << 30, .threads = 3};
	GpuSortError error;
	uint64_t seed = time(NULL);

	setvbuf(stdout, NULL, _IOLBF, 0);
	diag("seed %llu", (unsigned long long) seed);
	random_seed(seed);
	chunk = aligned_alloc(4096, GPUSORT_CHUNK_BYTES);
	if (chunk == NULL || ops->open(&config, &engine, &error) != 0)
		bail("no engine");
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
	{
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
		{
			test_cut(kinds[k].keys, kinds[k].name, counts[c], 1);
			test_cut(kinds[k].keys, kinds[k].name, counts[c], 2);
		}
		test_cut(kinds[k].keys, kinds[k].name, 3000, 32);
	}
	test_giant_group();
	test_like(KEYS_RANDOM, 20000, 1, KEYS_RANDOM, 30000, 2);
	test_like(KEYS_RANDOM, 20000, 3, KEYS_RANDOM, 30000, 1);
	test_like(KEYS_FEW, 20000, 2, KEYS_FEW, 300, 2);
	test_like(KEYS_FEW, 20000, 2, KEYS_FEW, 0, 2);
	test_like(KEYS_FEW, 0, 2, KEYS_FEW, 300, 2);
	test_like(KEYS_ASCENDING, 20000, 1, KEYS_DESCENDING, 5, 1);
	test_like(KEYS_SKEWED, 20000, 1, KEYS_RANDOM, 20000, 1);
	test_like(KEYS_RANDOM, 20000, 1, KEYS_EQUAL, 20000, 1);
	test_lies();
	ops->close(engine);
	free(chunk);
	return done_testing();
}
