/*-------------------------------------------------------------------------
 *
 * prefix_sum.cu
 *	  Exclusive prefix sums over arrays of counts in device memory: the step between
 *	  counting and scattering of the reference radix sorts.
 *
 * In three kernels: each block sums a tile; one block turns the sums into prefix
 * sums; each block adds its own to those within its tile.  The counts are read
 * twice and written once, which is little: a radix pass has 16 of them for some
 * thousand rows.
 *
 *-------------------------------------------------------------------------
 */
#include "published/common.h"

#define THREADS     256
#define ITEMS       16
#define TILE        (THREADS * ITEMS)
#define TOP_THREADS 1024

static __global__ void
sum_tiles(const uint32_t *counts, uint64_t count, uint32_t *sums)
{
	__shared__ uint32_t warp_sums[THREADS / GPUSORT_WARP];
	const uint64_t start = (uint64_t) blockIdx.x * TILE;
	uint32_t sum = 0;
	uint32_t total;

	for (int i = 0; i < ITEMS; i++)
	{
		uint64_t place = start + i * THREADS + threadIdx.x;

		if (place < count)
			sum += counts[place];
	}
	(void) gpusort_block_sum_before(sum, warp_sums, &total);
	if (threadIdx.x == 0)
		sums[blockIdx.x] = total;
}

static __global__ void
sum_sums(uint32_t *sums, uint32_t count)
{
	__shared__ uint32_t warp_sums[TOP_THREADS / GPUSORT_WARP];
	uint32_t carried = 0;

	for (uint32_t start = 0; start < count; start += TOP_THREADS)
	{
		const uint32_t place = start + threadIdx.x;
		uint32_t total;
		uint32_t before = gpusort_block_sum_before(place < count ? sums[place] : 0, warp_sums, &total);

		if (place < count)
			sums[place] = carried + before;
		carried += total;
	}
}

static __global__ void
sum_within_tiles(uint32_t *counts, uint64_t count, const uint32_t *sums)
{
	__shared__ uint32_t warp_sums[THREADS / GPUSORT_WARP];
	const uint64_t start = (uint64_t) blockIdx.x * TILE + threadIdx.x * ITEMS;
	uint32_t mine[ITEMS];
	uint32_t sum = 0;

	for (int i = 0; i < ITEMS; i++)
	{
		mine[i] = start + i < count ? counts[start + i] : 0;
		sum += mine[i];
	}
	sum = sums[blockIdx.x] + gpusort_block_sum_before(sum, warp_sums, NULL);
	for (int i = 0; i < ITEMS; i++)
	{
		if (start + i < count)
			counts[start + i] = sum;
		sum += mine[i];
	}
}

uint64_t
gpusort_prefix_sum_scratch(uint64_t count)
{
	return gpusort_blocks(count, TILE);
}

cudaError_t
gpusort_prefix_sum(uint32_t *counts, uint64_t count, uint32_t *scratch, cudaStream_t stream)
{
	const uint32_t tiles = gpusort_blocks(count, TILE);

	if (count == 0)
		return cudaSuccess;
	if (tiles == 1)
		GPUSORT_TRY(cudaMemsetAsync(scratch, 0, sizeof(*scratch), stream));
	else
	{
		GPUSORT_TRY_KERNEL(sum_tiles, tiles, THREADS, stream, counts, count, scratch);
		GPUSORT_TRY_KERNEL(sum_sums, 1, TOP_THREADS, stream, scratch, tiles);
	}
	GPUSORT_TRY_KERNEL(sum_within_tiles, tiles, THREADS, stream, counts, count, scratch);
	return cudaSuccess;
}
