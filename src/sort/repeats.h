/*-------------------------------------------------------------------------
 *
 * repeats.h
 *	  The keys of rows that were put of late, by which rows that are equal to one of them are dropped.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REPEATS_H
#define GPUSORT_REPEATS_H

#include "compat.h"

/* After so many rows it is time to ask whether it is worth it, and of how many of these one has to be dropped. */
#define GPUSORT_REPEATS_REVIEW_ROWS  8192
#define GPUSORT_REPEATS_REVIEW_RATIO 8

/* For each process its own. */
typedef struct GpuSortRepeats
{
	bool useless;   /* it drops too few rows, and is not asked any more */
	uint64 dropped; /* number of rows that were */
	uint32 words;   /* of a key */
	int shift;      /* of a hash, to the number of its place */
	uint32 rows;    /* looked at since the last review */
	uint64 dropped_before;
	uint64 *places; /* each a hash, which is odd, or 0, and a key */

	/* of the row looked at last */
	uint64 *place;
	uint64 hash;
} GpuSortRepeats;

extern GpuSortRepeats *gpusort_repeats_create(uint32 words);

/* Returns true if a row of this key, which must hold all columns whole, has been put of late, and counts it then. */
static pg_attribute_always_inline bool
gpusort_repeats_drops(GpuSortRepeats *repeats, const uint64 *key)
{
	uint64 hash = 0;
	uint32 word = 0;

	if (unlikely(repeats->rows++ == GPUSORT_REPEATS_REVIEW_ROWS))
	{
		repeats->useless =
			repeats->dropped - repeats->dropped_before < GPUSORT_REPEATS_REVIEW_ROWS / GPUSORT_REPEATS_REVIEW_RATIO;
		repeats->dropped_before = repeats->dropped;
		repeats->rows = 0;
	}
	for (uint32 i = 0; i < repeats->words; i++)
		hash = (hash ^ key[i]) * UINT64CONST(0x9E3779B97F4A7C15);
	repeats->place = repeats->places + (hash >> repeats->shift) * (1 + repeats->words);
	repeats->hash = hash | 1;
	if (repeats->place[0] != repeats->hash)
		return false;
	while (word < repeats->words && repeats->place[1 + word] == key[word])
		word++;
	if (word < repeats->words)
		return false;
	repeats->dropped++;
	return true;
}

/* The row looked at last, of this key, was put. */
static inline void
gpusort_repeats_took(GpuSortRepeats *repeats, const uint64 *key)
{
	repeats->place[0] = repeats->hash;
	memcpy(repeats->place + 1, key, repeats->words * sizeof(uint64));
}

#endif /* GPUSORT_REPEATS_H */
