/*-------------------------------------------------------------------------
 *
 * ranges.c
 *	  Cuts sorted rows into ranges, for several readers.
 *
 * Rows that are equal in the first so many bits of their keys stay in one range.
 * So rows at equal distances are looked at, their keys' bits are the borders, equal
 * ones counted once, and each range begins with the first row that is not below its
 * border.  However large a group of equal rows is, it costs the others nothing: all
 * rows looked at within it are one border, and the range that begins there ends at
 * the next, less than a distance behind the group.
 *
 * Groups that are torn apart would be wrong answers, so what an engine says is
 * proved by the keys on both sides of each border.
 *
 * These are the calls of a job's thread (engine.h says which are legal when).
 *
 *-------------------------------------------------------------------------
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "service/external/ranges.h"

static int
error_memory(GpuSortError *error)
{
	error->reason = GPUSORT_REASON_NO_MEMORY;
	strcpy(error->text, "the sort service has no memory left");
	return -1;
}

static int
error_borders(GpuSortError *error)
{
	error->reason = GPUSORT_REASON_ORDER_CHECK;
	strcpy(error->text, "the borders of ranges of sorted rows are not where the rows' keys are");
	return -1;
}

/* Words that so many bits take. */
static uint32_t
words_of(uint32_t bits)
{
	return (bits + 63) / 64;
}

static size_t
borders_bytes(uint32_t words, uint32_t count)
{
	return sizeof(GpuSortBorders) + (size_t) count * words * sizeof(uint64_t);
}

/* No borders, with room for so many of so many bits; the caller frees them.  NULL: there is no memory. */
GpuSortBorders *
gpusort_borders_make(uint32_t bits, uint32_t count)
{
	uint32_t words = words_of(bits);
	GpuSortBorders *borders = calloc(1, borders_bytes(words, count));

	if (borders != NULL)
	{
		borders->bits = bits;
		borders->words = words;
	}
	return borders;
}

/* A copy, which the caller frees; NULL: there is no memory. */
GpuSortBorders *
gpusort_borders_copy(const GpuSortBorders *borders)
{
	uint32_t count = borders->ranges > 0 ? borders->ranges - 1 : 0;
	GpuSortBorders *copy = gpusort_borders_make(borders->bits, count);

	if (copy != NULL)
		memcpy(copy, borders, borders_bytes(borders->words, count));
	return copy;
}

/* The bits of the last word that count. */
static uint64_t
last_word_mask(uint32_t bits)
{
	return bits % 64 == 0 ? UINT64_MAX : ~(UINT64_MAX >> bits % 64);
}

/* Compares the first bits of a key with a border: less than 0, 0, or more. */
static int
compare(const uint64_t *key, const uint64_t *border, uint32_t bits)
{
	uint32_t last = words_of(bits) - 1;
	uint64_t mask = last_word_mask(bits);

	for (uint32_t w = 0; w < last; w++)
	{
		if (key[w] != border[w])
			return key[w] < border[w] ? -1 : 1;
	}
	return (key[last] & mask) < border[last] ? -1 : (key[last] & mask) > border[last];
}

/* Makes borders of rows at equal distances, so that there are so many ranges at most. */
static int
find_borders(const GpuSortRangeSource *sorted, uint32_t most, GpuSortBorders *borders, GpuSortError *error)
{
	uint32_t wanted = most < sorted->rows ? most : (uint32_t) sorted->rows;
	uint64_t *rows = calloc(wanted, sizeof(uint64_t));
	uint64_t *keys = malloc((size_t) wanted * sorted->key_words * sizeof(uint64_t));
	uint64_t *border = borders->keys;
	int rc = 0;

	if (rows == NULL || keys == NULL)
		rc = error_memory(error);
	for (uint32_t i = 0; rc == 0 && i < wanted; i++)
		rows[i] = i * sorted->rows / wanted;
	if (rc == 0)
		rc = sorted->ops->keys_at(sorted->sort, rows, wanted, keys, error);
	borders->ranges = 1;
	/* the first is of row 0, from which on others may be */
	for (uint32_t i = 1; rc == 0 && i < wanted; i++)
	{
		const uint64_t *key = keys + (size_t) i * sorted->key_words;

		memcpy(border, key, borders->words * sizeof(uint64_t));
		border[borders->words - 1] &= last_word_mask(borders->bits);
		if (compare(borders->ranges == 1 ? keys : border - borders->words, border, borders->bits) == 0)
			continue;
		borders->ranges++;
		border += borders->words;
	}
	free(rows);
	free(keys);
	return rc;
}

/* Finds the first row of each range. */
static int
find_places(const GpuSortRangeSource *sorted, const GpuSortBorders *borders, uint64_t *first_rows, GpuSortError *error)
{
	uint32_t count = borders->ranges - 1;
	uint64_t *keys = calloc((size_t) count * sorted->key_words + 1, sizeof(uint64_t));
	int rc;

	if (keys == NULL)
		return error_memory(error);
	for (uint32_t i = 0; i < count; i++)
		memcpy(keys + (size_t) i * sorted->key_words, borders->keys + (size_t) i * borders->words,
			   borders->words * sizeof(uint64_t));
	first_rows[0] = 0;
	rc = count == 0 ? 0 : sorted->ops->rows_below(sorted->sort, borders->bits, keys, count, first_rows + 1, error);
	free(keys);
	return rc;
}

/* Looks at the keys on both sides of each border: of the row before it and of the row behind it. */
static int
check_places(const GpuSortRangeSource *sorted, const GpuSortBorders *borders, const uint64_t *first_rows,
			 GpuSortError *error)
{
	uint32_t count = borders->ranges - 1;
	uint64_t *rows = calloc(2 * (size_t) count + 1, sizeof(uint64_t));
	uint64_t *keys = malloc((2 * (size_t) count + 1) * sorted->key_words * sizeof(uint64_t));
	bool good = true;
	int rc = 0;

	if (rows == NULL || keys == NULL)
		rc = error_memory(error);
	for (uint32_t i = 0; rc == 0 && i < count; i++)
	{
		uint64_t place = first_rows[i + 1];

		good &= place >= first_rows[i] && place <= sorted->rows;
		/* where there is no row on a side, any other will do */
		rows[2 * i] = place > 0 && good ? place - 1 : 0;
		rows[2 * i + 1] = place < sorted->rows && good ? place : 0;
	}
	if (rc == 0 && good && count > 0)
		rc = sorted->ops->keys_at(sorted->sort, rows, 2 * count, keys, error);
	for (uint32_t i = 0; rc == 0 && good && i < count; i++)
	{
		const uint64_t *border = borders->keys + (size_t) i * borders->words;
		const uint64_t *before = keys + 2 * (size_t) i * sorted->key_words;

		if (first_rows[i + 1] > 0)
			good &= compare(before, border, borders->bits) < 0;
		if (first_rows[i + 1] < sorted->rows)
			good &= compare(before + sorted->key_words, border, borders->bits) >= 0;
	}
	free(rows);
	free(keys);
	return rc == 0 && !good ? error_borders(error) : rc;
}

/*
 * Cuts rows into at most so many ranges, none of which is empty, by the first so
 * many bits of their keys.  Fills first_rows, which has room for as many, with the
 * number of each one's first row, and *borders, which the caller frees.
 */
int
gpusort_ranges_cut(const GpuSortRangeSource *sorted, uint32_t bits, uint32_t most, uint64_t *first_rows,
				   GpuSortBorders **borders, GpuSortError *error)
{
	GpuSortBorders *made = gpusort_borders_make(bits, most);

	if (made == NULL)
		return error_memory(error);
	if (sorted->rows > 0 &&
		(find_borders(sorted, most, made, error) != 0 || find_places(sorted, made, first_rows, error) != 0 ||
		 check_places(sorted, made, first_rows, error) != 0))
	{
		free(made);
		return -1;
	}
	*borders = made;
	return 0;
}

/*
 * Cuts rows where others were cut, whose borders have no more words than these
 * rows' keys: fills first_rows for each of borders->ranges.  Ranges may be empty,
 * and begin where the next one does then.
 */
int
gpusort_ranges_cut_like(const GpuSortRangeSource *sorted, const GpuSortBorders *borders, uint64_t *first_rows,
						GpuSortError *error)
{
	if (borders->ranges == 0 || sorted->rows == 0)
	{
		memset(first_rows, 0, borders->ranges * sizeof(uint64_t));
		return 0;
	}
	if (find_places(sorted, borders, first_rows, error) != 0)
		return -1;
	return check_places(sorted, borders, first_rows, error);
}
