/*-------------------------------------------------------------------------
 *
 * prefix_map.h
 *	  Prefixes that fit the keys: a map of the packed key's first 64 bits to 32 that
 *	  keeps their order, made from a sample.  A step of the device sort
 *	  (device_sort.h); not for others.
 *
 * The top 32 bits of a packed key are a good prefix if keys are spread over the range
 * they have.  Sizes, amounts and ids with one outlier are not: most rows then share a
 * few prefixes, and each round over such ties costs another sort.  Here a prefix is
 *
 *	map(x) = code[k] + ((x - low[k]) >> shift[k])	for low[k] <= x < low[k + 1]
 *
 * where x is the row's window: the first 64 bits of its packed key, or all of them if there
 * are fewer, as a number.  The low[k] rise from low[0] = 0.  They are the quantiles of a sample
 * of windows, so that each piece has about as many rows; the sample's smallest, and one past
 * its largest, so that what lies outside stretches no piece; and one past each value that
 * has two quantiles or more, so that no other shares its code.  With N pieces each has
 * 2^32 / N codes, and its shift is the smallest that they suffice for.  So rows tie about as
 * often as uniform keys would, as far as they are spread evenly within a piece.
 * (The splitters of a sample sort, as in Frazer and McKellar, 1970, taken as a scale.)
 *
 * Why x < y implies map(x) <= map(y).  A piece of codes has code[k] to code[k] + last[k], where
 * last[k] = (the largest x in it - low[k]) >> shift[k], and code[k + 1] = code[k] + last[k] + 1.
 *	 - x and y in one piece: x - low[k] < y - low[k], and shifting right keeps <=.
 *	 - x in piece i, y in piece k > i: map(x) <= code[i] + last[i] < code[i + 1] <= code[k] <= map(y).
 * last[k] < 2^32 / N, so all N (last[k] + 1) together are no more than 2^32: codes do not
 * overflow.  Rows with different codes are in order; of those that share one nothing is known,
 * and all bits of their keys have to be looked at.  But in a piece whose shift is 0 each window
 * has a code of its own, and where the window is the whole key rows that share one have equal
 * keys.  Such pieces often follow each other, as small numbers do that are frequent and have
 * duplicates; the longest stretch of them, by rows of the sample, is told to what looks at ties.
 *
 * Whether it pays is told by the sample: how many of its rows share their top 32 bits, or
 * their code, with a row that has another window.  As each stands for thousands of rows,
 * these are in long runs that another sort would have to take apart.  Most keys need no map,
 * so a smaller sample is asked first, which costs next to nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PREFIX_MAP_H
#define GPUSORT_PREFIX_MAP_H

#include <cuda_runtime.h>

#include "sort/device_sort.h"
#include "sort/segments.h"

/* A power of two.  More pieces fit more clusters of keys, and cost a look into shared memory each time they double. */
#define GPUSORT_MAP_PIECES 256

/* Rows of the sample. */
#define GPUSORT_MAP_SAMPLE 4096

/* Rows of the one that is asked first; and blocks that do so, each for its part of them. */
#define GPUSORT_MAP_CHECKED      512
#define GPUSORT_MAP_CHECK_BLOCKS 8

/* By block: rows of the small sample that tie with other windows on the top 32 bits. */
typedef struct GpuSortMapCheck
{
	uint32_t ties[GPUSORT_MAP_CHECK_BLOCKS];
} GpuSortMapCheck;

typedef struct GpuSortPrefixMap
{
	GpuSortMapCheck check;

	/* what the host is told of the map */
	uint32_t pays;
	uint32_t code_bits;   /* of the largest code, at least 1 */
	uint32_t pieces;      /* N */
	uint32_t plain_ties;  /* rows of the sample that tie with other windows on the top 32 bits */
	uint32_t mapped_ties; /* on the map */
	uint32_t unused;
	GpuSortDecided decided; /* codes of one stretch of pieces with shift 0, if windows are whole keys */

	/* Beyond the last piece there are pieces of the largest window alone, which map it as the last one does. */
	uint64_t lows[GPUSORT_MAP_PIECES];
	uint64_t scales[GPUSORT_MAP_PIECES]; /* shift << 32 | code */
} GpuSortPrefixMap;

/* What a sort has to know of the map. */
typedef struct GpuSortMapUse
{
	uint32_t code_bits; /* 0: it is not to be used */
	GpuSortDecided decided;
} GpuSortMapUse;

/* The code of a window in its piece. */
GPUSORT_HD static inline uint32_t
gpusort_map_scale(uint64_t window, uint64_t low, uint64_t scale)
{
	return (uint32_t) scale + (uint32_t) ((window - low) >> (scale >> 32));
}

/* The code of a window. */
GPUSORT_HD static inline uint32_t
gpusort_map_window(const uint64_t *lows, const uint64_t *scales, uint64_t window)
{
	uint32_t piece = 0;

	for (uint32_t step = GPUSORT_MAP_PIECES / 2; step > 0; step /= 2)
	{
		if (lows[piece + step] <= window)
			piece += step;
	}
	return gpusort_map_scale(window, lows[piece], scales[piece]);
}

/* Are the keys wide enough, and the rows enough, to look whether a map pays? */
extern bool gpusort_map_considered(const GpuSortPackPlan *plan, uint32_t rows);

/*
 * Asks the small sample; *check is device memory.  Does not wait.  gpusort_map_wanted tells
 * from what is found there if a map is worth making.
 */
extern cudaError_t gpusort_map_check(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows,
									 GpuSortMapCheck *check, cudaStream_t stream);
extern bool gpusort_map_wanted(const GpuSortMapCheck *check);

/*
 * Makes the map of `rows` rows, at least one, whose packed keys have more than 32 bits.  map
 * is device memory, aligned to 8 bytes.  Does not wait.
 */
extern cudaError_t gpusort_map_make(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows,
									GpuSortPrefixMap *map, cudaStream_t stream);

/*
 * Both.  use->code_bits = 0 if a map is not wanted or does not pay, else the bits that codes
 * have.  Waits, once more if it is wanted; wait->mirror is used.
 */
extern int gpusort_map_find(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows,
							const GpuSortDeviceWait *wait, GpuSortPrefixMap *map, GpuSortMapUse *use,
							cudaStream_t stream);

/*
 * prefixes[i] = code of row i, for all rows.  Adds their digits to counts as radix_sort.h
 * wants them for code_bits, if that is not NULL.  Does not wait.
 */
extern cudaError_t gpusort_map_prefixes(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows,
										const GpuSortPrefixMap *map, uint32_t code_bits, uint32_t *prefixes,
										uint32_t *counts, cudaStream_t stream);

#endif /* GPUSORT_PREFIX_MAP_H */
