/*-------------------------------------------------------------------------
 *
 * quantile_map.h
 *	  Partial keys for skewed keys: a map of the packed key's first 64 bits to codes of 32
 *	  that keeps their order, made from the quantiles of a sample.  A step of the device
 *	  sort (device_sort.h); not for others.
 *
 * The top 32 bits of a packed key are a good partial key if keys are spread over the range
 * they have.  Sizes, amounts and ids with one outlier are not: most rows then share a
 * few partial keys, and each round over such ties costs another sort.  Here a partial key is
 *
 *	map(x) = code[k] + ((x - splitter[k]) >> shift[k])	for splitter[k] <= x < splitter[k + 1]
 *
 * where x is the row's window: the first 64 bits of its packed key, or all of them if there
 * are fewer, as a number.  Bucket k lies between two splitters, which rise from splitter[0] = 0.
 * They are the quantiles of a sample of windows, so that each bucket has about as many rows;
 * the sample's smallest, and one past its largest, so that what lies outside stretches no
 * bucket; and one past each value that has two quantiles or more, so that no other shares its
 * code.  With N buckets each has
 * 2^32 / N codes, and its shift is the smallest that they suffice for.  So rows tie about as
 * often as uniform keys would, as far as they are spread evenly within a bucket.
 * (The splitters of a sample sort, as in Frazer and McKellar, 1970, taken as a scale.)
 *
 * Why x < y implies map(x) <= map(y).  A bucket has the codes code[k] to code[k] + last[k], where
 * last[k] = (the largest x in it - splitter[k]) >> shift[k], and code[k + 1] = code[k] + last[k] + 1.
 *	 - x and y in one bucket: x - splitter[k] < y - splitter[k], and shifting right keeps <=.
 *	 - x in bucket i, y in bucket k > i: map(x) <= code[i] + last[i] < code[i + 1] <= code[k] <= map(y).
 * last[k] < 2^32 / N, so all N (last[k] + 1) together are no more than 2^32: codes do not
 * overflow.  Rows with different codes are in order; of those that share one nothing is known,
 * and all bits of their keys have to be looked at.  But in a bucket whose shift is 0 each window
 * has a code of its own, and where the window is the whole key rows that share one have equal
 * keys.  Such buckets often follow each other, as small numbers do that are frequent and have
 * duplicates; the longest stretch of them, by rows of the sample, is told to what looks at ties.
 *
 * Whether it pays is told by the sample: how many of its rows share their top 32 bits, or
 * their code, with a row that has another window.  As each stands for thousands of rows,
 * these are in long runs that another sort would have to take apart.  Most keys need no map,
 * so a smaller sample is asked first, which costs next to nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_QUANTILE_MAP_H
#define GPUSORT_QUANTILE_MAP_H

#include <cuda_runtime.h>

#include "sort/device_sort.h"
#include "sort/tie_break.h"

/* A power of two.  More buckets fit more clusters of keys, and cost a look into shared memory each time they double. */
#define GPUSORT_MAP_BUCKETS 256

/* Rows of the sample. */
#define GPUSORT_MAP_SAMPLE 4096

/* Rows of the small sample, which is looked at first, and blocks that share them. */
#define GPUSORT_MAP_CHECKED      512
#define GPUSORT_MAP_CHECK_BLOCKS 8

/* By block: rows of the small sample that tie with other windows on the top 32 bits. */
typedef struct GpuSortSkewCheck
{
	uint32_t ties[GPUSORT_MAP_CHECK_BLOCKS];
} GpuSortSkewCheck;

typedef struct GpuSortQuantileMap
{
	GpuSortSkewCheck check;

	/* what the host reads */
	uint32_t pays;
	uint32_t code_bits;     /* of the largest code, at least 1 */
	uint32_t buckets;       /* N */
	uint32_t plain_ties;    /* rows of the sample that tie with other windows on the top 32 bits */
	uint32_t mapped_ties;   /* on the map */
	GpuSortDecided decided; /* codes of one stretch of buckets with shift 0, if windows are whole keys */

	/* Beyond the last bucket there are buckets of the largest window alone, which map it as the last one does. */
	uint64_t splitters[GPUSORT_MAP_BUCKETS];
	uint64_t scales[GPUSORT_MAP_BUCKETS]; /* shift << 32 | code */
} GpuSortQuantileMap;

/* What a sort has to know of the map. */
typedef struct GpuSortMapUse
{
	uint32_t code_bits; /* 0: it is not to be used */
	GpuSortDecided decided;
} GpuSortMapUse;

/* The code of a window in its bucket. */
GPUSORT_HD static inline uint32_t
gpusort_bucket_code(uint64_t window, uint64_t low, uint64_t scale)
{
	return (uint32_t) scale + (uint32_t) ((window - low) >> (scale >> 32));
}

/* The code of a window. */
GPUSORT_HD static inline uint32_t
gpusort_quantile_code(const uint64_t *splitters, const uint64_t *scales, uint64_t window)
{
	uint32_t bucket = 0;

	for (uint32_t step = GPUSORT_MAP_BUCKETS / 2; step > 0; step /= 2)
	{
		if (splitters[bucket + step] <= window)
			bucket += step;
	}
	return gpusort_bucket_code(window, splitters[bucket], scales[bucket]);
}

/* Returns true if keys of these bits and so many rows are worth a look at the small sample. */
extern bool gpusort_quantile_map_considered(const GpuSortPackPlan *plan, uint32_t rows);

/*
 * Counts ties in the small sample into *check, which is device memory.  Does not wait.  By these counts
 * gpusort_quantile_map_wanted returns true if a map is worth making.
 */
extern cudaError_t gpusort_skew_check(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows,
									  GpuSortSkewCheck *check, cudaStream_t stream);
extern bool gpusort_quantile_map_wanted(const GpuSortSkewCheck *check);

/*
 * Makes the map of `rows` rows, at least one, whose packed keys have more than 32 bits.  map
 * is device memory, aligned to 8 bytes.  Does not wait.
 */
extern cudaError_t gpusort_quantile_map_make(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows,
											 GpuSortQuantileMap *map, cudaStream_t stream);

/*
 * Check and map in one.  use->code_bits = 0 if a map is not wanted or does not pay, else the bits that codes
 * have.  Waits, once more if it is wanted; wait->mirror is used.
 */
extern int gpusort_quantile_map_find(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows,
									 const GpuSortDeviceWait *wait, GpuSortQuantileMap *map, GpuSortMapUse *use,
									 cudaStream_t stream);

/*
 * partial_keys[i] = code of row i, for all rows.  Adds their digits to histogram as radix_sort.h
 * wants them for code_bits, if that is not NULL.  Does not wait.
 */
extern cudaError_t gpusort_quantile_map_codes(const GpuSortKeySource *source, const GpuSortPackPlan *plan,
											  uint32_t rows, const GpuSortQuantileMap *map, uint32_t code_bits,
											  uint32_t *partial_keys, uint32_t *histogram, cudaStream_t stream);

#endif /* GPUSORT_QUANTILE_MAP_H */
