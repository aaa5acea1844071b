/*-------------------------------------------------------------------------
 *
 * key_stats.h
 *	  What one pass over the keys tells of them: which bits vary, the range of each
 *	  word, and whether the rows are in order already.
 *
 * compact.h makes the plan of the packed key from it.  Rows without a descent, where
 * a key is larger than the next one, are sorted; rows with nothing but descents are
 * reversed, and no two keys are equal.  Either needs no sort, whatever the keys are.
 *
 * Statistics of parts are joined, in any order.  The pair that two parts meet at
 * belongs to neither and is added apart; a pair that was not added is missing in
 * `pairs`, so rows never pass for sorted by mistake.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_STATS_H
#define GPUSORT_KEY_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "sort/portable.h"
#include "sort/row_ref.h"

/* The most words of a key. */
#define GPUSORT_DEVICE_SORT_MAX_KEY_WORDS 32

typedef struct GpuSortKeyStats
{
	/* by key word; those past the key's are as of no rows */
	uint64_t key_or[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];
	uint64_t key_max[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];
	uint64_t key_and[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];
	uint64_t key_min[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];

	uint64_t pairs;    /* rows compared with the row after them */
	uint64_t descents; /* of them, those whose key is larger */
} GpuSortKeyStats;

/* What is known of no rows at all. */
static inline void
gpusort_key_stats_none(GpuSortKeyStats *stats)
{
	for (int w = 0; w < GPUSORT_DEVICE_SORT_MAX_KEY_WORDS; w++)
	{
		stats->key_or[w] = stats->key_max[w] = 0;
		stats->key_and[w] = stats->key_min[w] = ~UINT64_C(0);
	}
	stats->pairs = stats->descents = 0;
}

/* Makes *stats those of its rows and of more's. */
static inline void
gpusort_key_stats_join(GpuSortKeyStats *stats, const GpuSortKeyStats *more)
{
	for (int w = 0; w < GPUSORT_DEVICE_SORT_MAX_KEY_WORDS; w++)
	{
		stats->key_or[w] |= more->key_or[w];
		stats->key_and[w] &= more->key_and[w];
		if (stats->key_min[w] > more->key_min[w])
			stats->key_min[w] = more->key_min[w];
		if (stats->key_max[w] < more->key_max[w])
			stats->key_max[w] = more->key_max[w];
	}
	stats->pairs += more->pairs;
	stats->descents += more->descents;
}

/* Returns true if a key is larger than another. */
GPUSORT_HD static inline bool
gpusort_key_larger(const uint64_t *key, const uint64_t *other, uint32_t key_words)
{
	for (uint32_t w = 0; w < key_words; w++)
	{
		if (key[w] != other[w])
			return key[w] > other[w];
	}
	return false;
}

/* Notes that the row with this key is followed by one with that. */
static inline void
gpusort_key_stats_pair(GpuSortKeyStats *stats, const uint64_t *key, const uint64_t *next, uint32_t key_words)
{
	stats->pairs++;
	stats->descents += gpusort_key_larger(key, next, key_words);
}

/* Returns true if no key of these `rows` rows is larger than the next one. */
static inline bool
gpusort_key_stats_sorted(const GpuSortKeyStats *stats, uint64_t rows)
{
	return rows <= 1 || (stats->pairs == rows - 1 && stats->descents == 0);
}

/* Returns true if each key is larger than the next one. */
static inline bool
gpusort_key_stats_reversed(const GpuSortKeyStats *stats, uint64_t rows)
{
	return rows > 1 && stats->descents == rows - 1;
}

#ifdef __cplusplus

/*
 * On the device.  *stats is device memory, aligned to 8 bytes.  Each starts its work
 * on the stream, waits for nothing, and returns a cudaError_t.
 */
struct CUstream_st;

/* Makes *stats those of no rows. */
extern int gpusort_key_stats_reset(GpuSortKeyStats *stats, struct CUstream_st *stream);

/*
 * Adds the rows of a chunk, which lies in device memory as GpuSortDeviceChunk says;
 * *chunk itself is the host's.  Adds to *bad_rows how many rows have an offset or
 * a length out of bounds; nothing outside the chunk is read, whatever they are.
 */
extern int gpusort_key_stats_chunk(const GpuSortDeviceChunk *chunk, uint32_t key_words, GpuSortKeyStats *stats,
								   uint32_t *bad_rows, struct CUstream_st *stream);

#endif /* __cplusplus */

#endif /* GPUSORT_KEY_STATS_H */
