/*-------------------------------------------------------------------------
 *
 * block.h
 *	  What the threads of a block do together in the reference sorts: prefix sums,
 *	  and Batcher's bitonic network in shared memory.
 *
 * The networks here are written without directions: where two ascending halves
 * are merged, the first step compares place i with its mirror image, which is the
 * reversal of the second half and the first half-cleaner in one; all other steps
 * compare places at a distance, smaller one first (Batcher, Sorting networks and
 * their applications, 1968).
 *
 * Ids, where there are any, decide between equal keys.  So the networks, which
 * are not stable by themselves, sort stably, and padding (the largest key with the
 * id GPUSORT_PAD_ID) never comes before a row.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REFERENCE_BLOCK_H
#define GPUSORT_REFERENCE_BLOCK_H

#include <stdint.h>

#include <cuda_runtime.h>

#define GPUSORT_WARP   32
#define GPUSORT_PAD_ID UINT32_MAX /* no row has this id */

/* The sum of `value` over the lanes of the warp up to and with this one.  The whole warp has to call it. */
static __device__ inline uint32_t
gpusort_warp_sum_to(uint32_t value)
{
	const int lane = threadIdx.x % GPUSORT_WARP;

	for (int places = 1; places < GPUSORT_WARP; places *= 2)
	{
		uint32_t other = __shfl_up_sync(0xFFFFFFFF, value, places);

		if (lane >= places)
			value += other;
	}
	return value;
}

/*
 * The sum of `value` over the threads of the block before this one; *total, if not NULL, is that
 * over all of them.  warp_sums is shared memory for a word per warp.  Has two barriers, the second
 * after the last use of warp_sums.
 */
static __device__ inline uint32_t
gpusort_block_sum_before(uint32_t value, uint32_t *warp_sums, uint32_t *total)
{
	const int warp = threadIdx.x / GPUSORT_WARP;
	const int warps = blockDim.x / GPUSORT_WARP;
	uint32_t up_to = gpusort_warp_sum_to(value);
	uint32_t before = up_to - value;
	uint32_t sum = 0;

	if (threadIdx.x % GPUSORT_WARP == GPUSORT_WARP - 1)
		warp_sums[warp] = up_to;
	__syncthreads();
	for (int i = 0; i < warps; i++)
	{
		if (i < warp)
			before += warp_sums[i];
		sum += warp_sums[i];
	}
	__syncthreads();
	if (total != NULL)
		*total = sum;
	return before;
}

/* Puts the smaller row first. */
template <typename Key, bool WITH_IDS>
static __device__ inline void
gpusort_compare_exchange(Key *keys, uint32_t *ids, int first, int second)
{
	const Key a = keys[first];
	const Key b = keys[second];

	if (WITH_IDS)
	{
		const uint32_t a_id = ids[first];
		const uint32_t b_id = ids[second];

		if (b < a || (b == a && b_id < a_id))
		{
			keys[first] = b;
			keys[second] = a;
			ids[first] = b_id;
			ids[second] = a_id;
		}
	}
	else if (b < a)
	{
		keys[first] = b;
		keys[second] = a;
	}
}

/*
 * Merges, in shared memory, the two ascending halves of each `length` rows out of `rows`, both
 * powers of two.  A barrier has to come before; one comes after each step.
 */
template <typename Key, bool WITH_IDS>
static __device__ inline void
gpusort_block_merge(Key *keys, uint32_t *ids, int rows, int length)
{
	const int half = length / 2;

	for (int i = threadIdx.x; i < rows / 2; i += blockDim.x)
	{
		const int low = i & (half - 1);
		const int start = 2 * (i - low);

		gpusort_compare_exchange<Key, WITH_IDS>(keys, ids, start + low, start + length - 1 - low);
	}
	__syncthreads();
	for (int distance = half / 2; distance > 0; distance /= 2)
	{
		for (int i = threadIdx.x; i < rows / 2; i += blockDim.x)
		{
			const int low = i & (distance - 1);
			const int first = 2 * i - low;

			gpusort_compare_exchange<Key, WITH_IDS>(keys, ids, first, first + distance);
		}
		__syncthreads();
	}
}

/* Sorts a power of two of rows in shared memory.  Barriers as above. */
template <typename Key, bool WITH_IDS>
static __device__ inline void
gpusort_block_sort(Key *keys, uint32_t *ids, int rows)
{
	for (int length = 2; length <= rows; length *= 2)
		gpusort_block_merge<Key, WITH_IDS>(keys, ids, rows, length);
}

#endif /* GPUSORT_REFERENCE_BLOCK_H */
