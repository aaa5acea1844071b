/*-------------------------------------------------------------------------
 *
 * merge_runs.cu
 *	  Two sorted runs of keys into one on a device, by merge path (Green, McColl,
 *	  Bader: "GPU Merge Path", ICS 2012): output 0 to n is cut into equal tiles, and
 *	  for each cut a binary search finds how many of the keys before it come from
 *	  the first run.  What lies between two cuts is merged by one block; within a
 *	  block each thread does the same with its share of the tile.
 *
 * A kernel of its own makes all searches in device memory, one thread each, because
 * they wait for memory some thirty times in a row.
 *
 * 2 K bytes moved per key of K bytes.
 *
 *-------------------------------------------------------------------------
 */
#include <cuda_runtime.h>

#include "published/merge_runs.h"
#include "published/multi_devices.h"
#include "sort/launch.h"

#define THREADS    256
#define TILE_BYTES (16 << 10)

template <typename Key>
constexpr uint32_t TILE_KEYS = TILE_BYTES / sizeof(Key);

/* How many of the first `cut` keys of the merged runs come from `a`; equal keys come from it first. */
template <typename Key>
__device__ static inline uint64_t
keys_from_first(const Key *a, uint64_t a_count, const Key *b, uint64_t b_count, uint64_t cut)
{
	uint64_t low = cut > b_count ? cut - b_count : 0;
	uint64_t high = cut < a_count ? cut : a_count;

	while (low < high)
	{
		uint64_t middle = low + (high - low) / 2;

		if (a[middle] <= b[cut - 1 - middle])
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A thread for each cut: before every tile, and after the last. */
template <typename Key>
__global__ static void
find_cuts(const Key *keys, uint64_t first_count, uint64_t count, uint64_t *cuts)
{
	const uint64_t tile = (uint64_t) blockIdx.x * THREADS + threadIdx.x;
	uint64_t cut = tile * TILE_KEYS<Key>;

	if (cut >= count + TILE_KEYS<Key>)
		return;
	if (cut > count)
		cut = count;
	cuts[tile] = keys_from_first(keys, first_count, keys + first_count, count - first_count, cut);
}

/* A block of THREADS for each tile. */
template <typename Key>
__global__ static void
merge_tiles(const Key *keys, uint64_t first_count, uint64_t count, const uint64_t *cuts, Key *merged)
{
	constexpr uint32_t items = TILE_KEYS<Key> / THREADS;
	__shared__ Key tile[TILE_KEYS<Key>];
	const uint64_t begin = (uint64_t) blockIdx.x * TILE_KEYS<Key>;
	const uint64_t end = begin + TILE_KEYS<Key> < count ? begin + TILE_KEYS<Key> : count;
	const uint64_t a_begin = cuts[blockIdx.x];
	const uint32_t size = (uint32_t) (end - begin);
	const uint32_t a_count = (uint32_t) (cuts[blockIdx.x + 1] - a_begin);
	const uint32_t b_count = size - a_count;
	const Key *b = keys + first_count + (begin - a_begin);
	const uint32_t mine = threadIdx.x * items;
	Key sorted[items];

	for (uint32_t i = threadIdx.x; i < size; i += THREADS)
		tile[i] = i < a_count ? keys[a_begin + i] : b[i - a_count];
	__syncthreads();
	if (mine < size)
	{
		uint32_t from_a = (uint32_t) keys_from_first(tile, a_count, tile + a_count, b_count, mine);
		uint32_t from_b = mine - from_a;

		for (uint32_t i = 0; i < items; i++)
		{
			if (mine + i >= size)
				continue; /* no break: the loop has to unroll, or sorted is no register */
			if (from_b >= b_count || (from_a < a_count && tile[from_a] <= tile[a_count + from_b]))
				sorted[i] = tile[from_a++];
			else
				sorted[i] = tile[a_count + from_b++];
		}
	}
	__syncthreads();
	for (uint32_t i = 0; i < items; i++)
	{
		if (mine + i < size)
			tile[mine + i] = sorted[i];
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < size; i += THREADS)
		merged[begin + i] = tile[i];
}

template <typename Key>
static cudaError_t
merge_keys(const Key *keys, uint64_t first_count, uint64_t count, Key *merged, uint64_t *cuts, cudaStream_t stream)
{
	const uint64_t tiles = (count + TILE_KEYS<Key> - 1) / TILE_KEYS<Key>;

	if (count == 0)
		return cudaSuccess;
	GPUSORT_START_KERNEL(find_cuts<Key>, (unsigned int) (tiles / THREADS + 1), THREADS, stream, keys, first_count,
						 count, cuts);
	GPUSORT_TRY_STARTED();
	GPUSORT_START_KERNEL(merge_tiles<Key>, (unsigned int) tiles, THREADS, stream, keys, first_count, count,
						 (const uint64_t *) cuts, merged);
	GPUSORT_TRY_STARTED();
	return cudaSuccess;
}

uint64_t
gpusort_merge_temp_bytes(uint64_t count, int key_bytes)
{
	return (count / (TILE_BYTES / (uint64_t) key_bytes) + 2) * sizeof(uint64_t);
}

cudaError_t
gpusort_merge_runs(const void *keys, uint64_t first_count, uint64_t count, int key_bytes, void *merged, void *temp,
				   cudaStream_t stream)
{
	if (key_bytes == 4)
		return merge_keys((const uint32_t *) keys, first_count, count, (uint32_t *) merged, (uint64_t *) temp, stream);
	return merge_keys((const uint64_t *) keys, first_count, count, (uint64_t *) merged, (uint64_t *) temp, stream);
}
