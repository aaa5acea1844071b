/*-------------------------------------------------------------------------
 *
 * rmg_partition.cu
 *	  Histograms and scatter of RMG sort (Ilic, Tolovski, Rabl: "RMG Sort:
 *	  Radix-Partitioning-Based Multi-GPU Sorting", BTW 2023, section 4).
 *
 * A block takes a tile of 48 KiB: 1024 threads with 12 keys of 4 bytes or 6 of 8,
 * as in the paper.
 *
 *	count		Each block counts its tile's digits in shared memory.  A thread holds
 *				back the count of its first key's digit and adds it once at the end, so
 *				that a tile of one digit is no slower (4.1).  The tiles' histograms are
 *				kept for the scatter, and a second kernel adds them up: a block sums 256
 *				tiles before it touches global counters.
 *	scatter		A block takes room for its keys of each digit by one atomic addition,
 *				orders its tile by digit in shared memory with an atomic addition per
 *				key, and each warp writes eight digits' keys, 32 at a time (4.2).
 *
 * Bytes moved per key of K bytes: K read and 512 / tile keys written to count,
 * 2 K and the same again to scatter.
 *
 * Differences: threads read keys 1024 apart instead of adjacent ones, so that reads
 * coalesce; a tile's counts have 16 bits; the prefix sum is made by eight warps.
 *
 *-------------------------------------------------------------------------
 */
#include <cuda_runtime.h>

#include "published/multi_devices.h"
#include "published/rmg_partition.h"
#include "sort/launch.h"

#define THREADS      1024
#define TILE_BYTES   (48 << 10)
#define DIGITS       GPUSORT_RMG_RADIX
#define DIGIT_WARPS  (DIGITS / 32)
#define WARP_DIGITS  (DIGITS / (THREADS / 32)) /* that a warp writes */
#define TILES_TO_SUM 256

/* What atomicAdd() takes. */
typedef unsigned long long Counter;

static_assert(sizeof(Counter) == sizeof(uint64_t), "counters have 64 bits");

template <typename Key>
constexpr uint32_t TILE_KEYS = TILE_BYTES / sizeof(Key);

template <typename Key>
__device__ static inline uint32_t
digit_of(Key key, int shift)
{
	return (uint32_t) (key >> shift) & (DIGITS - 1);
}

/* A thread's keys of a tile, all under way at once; 0 behind the last. */
template <typename Key>
__device__ static inline void
load_keys(const Key *keys, uint64_t first, uint64_t count, Key *mine)
{
	for (uint32_t i = 0; i < TILE_KEYS<Key> / THREADS; i++)
		mine[i] = first + i * THREADS < count ? keys[first + i * THREADS] : 0;
}

/* One block of THREADS per tile. */
template <typename Key>
__global__ static void
__launch_bounds__(THREADS, 2)
	count_tiles(const Key *keys, uint64_t count, int shift, uint16_t *tiles)
{
	__shared__ uint32_t counts[DIGITS];
	const uint64_t first = (uint64_t) blockIdx.x * TILE_KEYS<Key> + threadIdx.x;
	Key mine[TILE_KEYS<Key> / THREADS];
	uint32_t held_digit = 0;
	uint32_t held = 0;

	if (threadIdx.x < DIGITS)
		counts[threadIdx.x] = 0;
	__syncthreads();
	load_keys(keys, first, count, mine);
	for (uint32_t i = 0; i < TILE_KEYS<Key> / THREADS; i++)
	{
		uint32_t digit = digit_of(mine[i], shift);

		if (first + i * THREADS >= count)
			continue;
		if (i == 0)
			held_digit = digit;
		if (digit == held_digit)
			held++;
		else
			atomicAdd(&counts[digit], 1);
	}
	if (held > 0)
		atomicAdd(&counts[held_digit], held);
	__syncthreads();
	if (threadIdx.x < DIGITS)
		tiles[(uint64_t) blockIdx.x * DIGITS + threadIdx.x] = (uint16_t) counts[threadIdx.x];
}

/* One block of DIGITS threads for TILES_TO_SUM tiles. */
__global__ static void
sum_tiles(const uint16_t *tiles, uint64_t tile_count, Counter *histogram)
{
	const uint64_t first = (uint64_t) blockIdx.x * TILES_TO_SUM;
	uint32_t sum = 0;

	for (uint64_t tile = first; tile < first + TILES_TO_SUM && tile < tile_count; tile++)
		sum += tiles[tile * DIGITS + threadIdx.x];
	if (sum > 0)
		atomicAdd(&histogram[threadIdx.x], (Counter) sum);
}

/*
 * The sum of the values of all threads before this one, for the block's first DIGITS
 * threads; all of the block's threads must come.  warp_sums: DIGIT_WARPS.
 */
template <typename Sum>
__device__ static inline Sum
sum_before(Sum value, Sum *warp_sums)
{
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t warp = threadIdx.x / 32;
	Sum sum = value;

	if (warp < DIGIT_WARPS)
	{
		for (uint32_t distance = 1; distance < 32; distance *= 2)
		{
			Sum below = __shfl_up_sync(0xFFFFFFFF, sum, distance);

			if (lane >= distance)
				sum += below;
		}
		if (lane == 31)
			warp_sums[warp] = sum;
	}
	__syncthreads();
	for (uint32_t i = 0; i < warp && i < DIGIT_WARPS; i++)
		sum += warp_sums[i];
	return sum - value;
}

/* One block of DIGITS threads. */
__global__ static void
place_digits(const uint64_t *histogram, uint64_t *cursors)
{
	__shared__ uint64_t warp_sums[DIGIT_WARPS];

	cursors[threadIdx.x] = sum_before(histogram[threadIdx.x], warp_sums);
}

/* One block of THREADS per tile, with TILE_BYTES of dynamic shared memory. */
template <typename Key>
__global__ static void
__launch_bounds__(THREADS, 2)
	scatter_tiles(const Key *keys, uint64_t count, int shift, const uint16_t *tiles, Counter *cursors, Key *split)
{
	GPUSORT_DYNAMIC_SHARED(Key, tile);
	__shared__ uint32_t warp_sums[DIGIT_WARPS];
	__shared__ uint32_t starts[DIGITS]; /* of the digits in the tile */
	__shared__ uint32_t places[DIGITS]; /* of their next keys, and at last their ends */
	__shared__ Counter targets[DIGITS]; /* of their starts in split */
	const uint64_t first = (uint64_t) blockIdx.x * TILE_KEYS<Key> + threadIdx.x;
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t warp = threadIdx.x / 32;
	Key mine[TILE_KEYS<Key> / THREADS];
	uint32_t counted = 0;
	uint32_t start;

	load_keys(keys, first, count, mine);
	if (threadIdx.x < DIGITS)
		counted = tiles[(uint64_t) blockIdx.x * DIGITS + threadIdx.x];
	start = sum_before(counted, warp_sums);
	if (threadIdx.x < DIGITS)
	{
		starts[threadIdx.x] = start;
		places[threadIdx.x] = start;
		targets[threadIdx.x] = counted > 0 ? atomicAdd(&cursors[threadIdx.x], (Counter) counted) : 0;
	}
	__syncthreads();
	for (uint32_t i = 0; i < TILE_KEYS<Key> / THREADS; i++)
	{
		if (first + i * THREADS < count)
			tile[atomicAdd(&places[digit_of(mine[i], shift)], 1)] = mine[i];
	}
	__syncthreads();
	for (uint32_t digit = warp * WARP_DIGITS; digit < (warp + 1) * WARP_DIGITS; digit++)
	{
		uint32_t begin = starts[digit];
		uint32_t end = places[digit];

		for (uint32_t i = begin + lane; i < end; i += 32)
			split[targets[digit] + (i - begin)] = tile[i];
	}
}

uint32_t
gpusort_rmg_tile_keys(int key_bytes)
{
	return TILE_BYTES / (uint32_t) key_bytes;
}

uint64_t
gpusort_rmg_tiles(uint64_t count, int key_bytes)
{
	return (count + gpusort_rmg_tile_keys(key_bytes) - 1) / gpusort_rmg_tile_keys(key_bytes);
}

cudaError_t
gpusort_rmg_count(const GpuSortRmgStretch *stretch, int key_bytes, cudaStream_t stream)
{
	const uint64_t tiles = gpusort_rmg_tiles(stretch->count, key_bytes);
	const uint64_t sums = (tiles + TILES_TO_SUM - 1) / TILES_TO_SUM;

	if (key_bytes == 4)
		GPUSORT_START_KERNEL(count_tiles<uint32_t>, (unsigned int) tiles, THREADS, stream,
							 (const uint32_t *) stretch->keys, stretch->count, stretch->shift, stretch->tiles);
	else
		GPUSORT_START_KERNEL(count_tiles<uint64_t>, (unsigned int) tiles, THREADS, stream,
							 (const uint64_t *) stretch->keys, stretch->count, stretch->shift, stretch->tiles);
	GPUSORT_TRY_STARTED();
	GPUSORT_START_KERNEL(sum_tiles, (unsigned int) sums, DIGITS, stream, stretch->tiles, tiles,
						 (Counter *) stretch->histogram);
	GPUSORT_TRY_STARTED();
	GPUSORT_START_KERNEL(place_digits, 1, DIGITS, stream, stretch->histogram, stretch->cursors);
	GPUSORT_TRY_STARTED();
	return cudaSuccess;
}

cudaError_t
gpusort_rmg_scatter(const GpuSortRmgStretch *stretch, int key_bytes, cudaStream_t stream)
{
	const unsigned int tiles = (unsigned int) gpusort_rmg_tiles(stretch->count, key_bytes);

	if (key_bytes == 4)
		GPUSORT_START_KERNEL_SHARED(scatter_tiles<uint32_t>, tiles, THREADS, TILE_BYTES, stream,
									(const uint32_t *) stretch->keys, stretch->count, stretch->shift, stretch->tiles,
									(Counter *) stretch->cursors, (uint32_t *) stretch->split);
	else
		GPUSORT_START_KERNEL_SHARED(scatter_tiles<uint64_t>, tiles, THREADS, TILE_BYTES, stream,
									(const uint64_t *) stretch->keys, stretch->count, stretch->shift, stretch->tiles,
									(Counter *) stretch->cursors, (uint64_t *) stretch->split);
	GPUSORT_TRY_STARTED();
	return cudaSuccess;
}
