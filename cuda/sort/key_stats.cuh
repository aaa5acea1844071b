/*-------------------------------------------------------------------------
 *
 * key_stats.cuh
 *	  Statistics of keys (key_stats.h) as a kernel gathers them: threads for themselves,
 *	  then warps, blocks and the device join.
 *
 * What blocks find is mostly known already, so they look before they write: atomic
 * operations of every block on the same few words would be what takes the time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_STATS_CUH
#define GPUSORT_KEY_STATS_CUH

#include <cuda_runtime.h>

#include "sort/key_stats.h"

/* Words of a key that a thread gathers at a time, in registers. */
#define GPUSORT_STATS_GROUP 4

/* What a thread knows of one word. */
template <typename Word>
struct WordStats
{
	Word key_or;
	Word key_and;
	Word key_min;
	Word key_max;
};

/* What a block knows. */
typedef struct BlockStats
{
	unsigned long long key_or[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];
	unsigned long long key_and[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];
	unsigned long long key_min[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];
	unsigned long long key_max[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];
	unsigned int pairs;
	unsigned int descents;
	unsigned int bad_rows;
} BlockStats;

template <typename Word>
static __device__ inline void
word_stats_none(WordStats<Word> *stats)
{
	stats->key_or = stats->key_max = 0;
	stats->key_and = stats->key_min = (Word) ~(Word) 0;
}

/* Without RANGE the minimum and the maximum are left as they are; so in block_join. */
template <bool RANGE, typename Word>
static __device__ inline void
word_stats_add(WordStats<Word> *stats, Word key)
{
	stats->key_or |= key;
	stats->key_and &= key;
	if (!RANGE)
		return;
	if (key < stats->key_min)
		stats->key_min = key;
	if (key > stats->key_max)
		stats->key_max = key;
}

static __device__ inline uint32_t
warp_or(uint32_t value)
{
	return __reduce_or_sync(0xFFFFFFFF, value);
}

static __device__ inline uint64_t
warp_or(uint64_t value)
{
	uint32_t high = warp_or((uint32_t) (value >> 32));

	return (uint64_t) high << 32 | warp_or((uint32_t) value);
}

static __device__ inline uint32_t
warp_min(uint32_t value)
{
	return __reduce_min_sync(0xFFFFFFFF, value);
}

/* The least upper half, and the least lower half of those that have it. */
static __device__ inline uint64_t
warp_min(uint64_t value)
{
	uint32_t high = warp_min((uint32_t) (value >> 32));
	uint32_t low = high == (uint32_t) (value >> 32) ? (uint32_t) value : UINT32_MAX;

	return (uint64_t) high << 32 | warp_min(low);
}

/* Makes *block that of no rows.  All threads; ends with a barrier. */
static __device__ inline void
block_start(BlockStats *block)
{
	if (threadIdx.x < GPUSORT_DEVICE_SORT_MAX_KEY_WORDS)
	{
		block->key_or[threadIdx.x] = block->key_max[threadIdx.x] = 0;
		block->key_and[threadIdx.x] = block->key_min[threadIdx.x] = ~0ull;
	}
	if (threadIdx.x == 0)
		block->pairs = block->descents = block->bad_rows = 0;
	__syncthreads();
}

/* Adds what the threads of a warp know of word w.  Whole warps. */
template <bool RANGE, typename Word>
static __device__ inline void
block_join(BlockStats *block, uint32_t w, const WordStats<Word> *stats)
{
	Word key_or = warp_or(stats->key_or);
	Word key_and = (Word) ~warp_or((Word) ~stats->key_and);
	Word key_min = RANGE ? warp_min(stats->key_min) : 0;
	Word key_max = RANGE ? (Word) ~warp_min((Word) ~stats->key_max) : 0;

	if (threadIdx.x % 32 == 0)
	{
		atomicOr(&block->key_or[w], (unsigned long long) key_or);
		atomicAnd(&block->key_and[w], (unsigned long long) key_and);
	}
	if (RANGE && threadIdx.x % 32 == 0)
	{
		atomicMin(&block->key_min[w], (unsigned long long) key_min);
		atomicMax(&block->key_max[w], (unsigned long long) key_max);
	}
}

/* Adds to a count of the block's.  Whole warps. */
static __device__ inline void
block_count(unsigned int *count, uint32_t more)
{
	uint32_t sum = __reduce_add_sync(0xFFFFFFFF, more);

	if (threadIdx.x % 32 == 0 && sum > 0)
		atomicAdd(count, sum);
}

/* Adds what the block knows of `words` key words from first_word on, and its pairs.  All threads. */
static __device__ inline void
block_publish(const BlockStats *block, uint32_t first_word, uint32_t words, GpuSortKeyStats *stats)
{
	__syncthreads();
	if (threadIdx.x < words)
	{
		const uint32_t w = first_word + threadIdx.x;
		unsigned long long *key_or = (unsigned long long *) &stats->key_or[w];
		unsigned long long *key_and = (unsigned long long *) &stats->key_and[w];
		unsigned long long *key_min = (unsigned long long *) &stats->key_min[w];
		unsigned long long *key_max = (unsigned long long *) &stats->key_max[w];

		if (block->key_or[w] & ~*(volatile unsigned long long *) key_or)
			atomicOr(key_or, block->key_or[w]);
		if (~block->key_and[w] & *(volatile unsigned long long *) key_and)
			atomicAnd(key_and, block->key_and[w]);
		if (block->key_min[w] < *(volatile unsigned long long *) key_min)
			atomicMin(key_min, block->key_min[w]);
		if (block->key_max[w] > *(volatile unsigned long long *) key_max)
			atomicMax(key_max, block->key_max[w]);
	}
	if (threadIdx.x == 0 && block->pairs > 0)
		atomicAdd((unsigned long long *) &stats->pairs, (unsigned long long) block->pairs);
	if (threadIdx.x == 0 && block->descents > 0)
		atomicAdd((unsigned long long *) &stats->descents, (unsigned long long) block->descents);
}

#endif /* GPUSORT_KEY_STATS_CUH */
