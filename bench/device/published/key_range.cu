/*-------------------------------------------------------------------------
 *
 * key_range.cu
 *	  The smallest and the largest key, in one pass over them: for the range limiter
 *	  of the implicit radix sort and for the first pivot of GPU-Quicksort.
 *
 *-------------------------------------------------------------------------
 */
#include "published/common.h"

#define THREADS     256
#define MOST_BLOCKS 1024

static __global__ void
start_range(unsigned long long *range)
{
	range[0] = ~0ull;
	range[1] = 0;
}

template <typename Key>
static __global__ void
find_range(const Key *keys, uint32_t rows, unsigned long long *range)
{
	const uint64_t step = (uint64_t) gridDim.x * THREADS;
	Key least = (Key) ~(Key) 0;
	Key most = 0;

	for (uint64_t i = (uint64_t) blockIdx.x * THREADS + threadIdx.x; i < rows; i += step)
	{
		const Key key = keys[i];

		least = key < least ? key : least;
		most = key > most ? key : most;
	}
	for (int places = GPUSORT_WARP / 2; places > 0; places /= 2)
	{
		const Key other_least = __shfl_xor_sync(0xFFFFFFFF, least, places);
		const Key other_most = __shfl_xor_sync(0xFFFFFFFF, most, places);

		least = other_least < least ? other_least : least;
		most = other_most > most ? other_most : most;
	}

	/* A warp without a row has nothing to say; the others' least is not above their most. */
	if (threadIdx.x % GPUSORT_WARP == 0 && least <= most)
	{
		atomicMin(&range[0], (unsigned long long) least);
		atomicMax(&range[1], (unsigned long long) most);
	}
}

cudaError_t
gpusort_key_range(const void *keys, uint32_t rows, int key_bytes, uint64_t *range, cudaStream_t stream)
{
	unsigned long long *words = (unsigned long long *) range;
	uint32_t blocks = gpusort_blocks(rows, THREADS);

	if (blocks > MOST_BLOCKS)
		blocks = MOST_BLOCKS;
	GPUSORT_TRY_KERNEL(start_range, 1, 1, stream, words);
	if (key_bytes == 4)
		GPUSORT_TRY_KERNEL(find_range<uint32_t>, blocks, THREADS, stream, (const uint32_t *) keys, rows, words);
	else
		GPUSORT_TRY_KERNEL(find_range<uint64_t>, blocks, THREADS, stream, (const uint64_t *) keys, rows, words);
	return cudaSuccess;
}
