/*-------------------------------------------------------------------------
 *
 * first_level.c
 *	  How many strings the first level of a libc collation tells apart.
 *
 * Punctuation is ignored there, and case and accents are, so that strings of dots are all alike.
 * Rows of different strings that are alike are ordered by PostgreSQL's comparator;
 * where that is most of them, there is nothing to be gained.
 * Rows of the same string are alike, too, but take one look each.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/bytes/first_level.h"

#include <math.h>

#include "common/hashfn.h"

/* Strings are looked at up to here. */
#define LOOK_BYTES 1024

/* Adds a string, if there is room for it. */
void
gpusort_first_levels_add(GpuSortFirstLevels *levels, Datum value)
{
	char bytes[LOOK_BYTES + GPUSORT_STRING_SLACK];
	int length;
	bool whole;

	if (levels->count == GPUSORT_FIRST_LEVEL_STRINGS)
		return;
	length = gpusort_keys_string(levels->keys, levels->column, value, bytes, LOOK_BYTES, &whole);
	levels->strings[levels->count].level = hash_bytes_extended((unsigned char *) bytes, length, 0);
	length = gpusort_keys_own_string(levels->keys, levels->column, value, bytes, LOOK_BYTES);
	levels->strings[levels->count++].whole = hash_bytes_extended((unsigned char *) bytes, length, 0);
}

static int
compare_levels(const void *a, const void *b)
{
	uint64 left = *(const uint64 *) a;
	uint64 right = *(const uint64 *) b;

	return left < right ? -1 : left > right;
}

/*
 * Returns which part of the comparisons that a sort of so many rows takes
 * is left to the comparator: of the strings, those that are alike and differ,
 * each compared with its likes only.  0 if no string was added.
 */
double
gpusort_first_levels_tied(GpuSortFirstLevels *levels, double rows)
{
	double compared = 0;
	int end;

	qsort(levels->strings, levels->count, sizeof(levels->strings[0]), compare_levels);
	for (int i = 0; i < levels->count; i = end)
	{
		bool differ = false;

		for (end = i + 1; end < levels->count && levels->strings[end].level == levels->strings[i].level; end++)
			differ |= levels->strings[end].whole != levels->strings[i].whole;
		if (differ)
		{
			double share = (double) (end - i) / levels->count;

			compared += share * log2(Max(share * rows, 2));
		}
	}
	return compared / log2(Max(rows, 2));
}
