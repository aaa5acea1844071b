/*-------------------------------------------------------------------------
 *
 * tile_order.cuh
 *	  Puts the rows of a tile, which a block holds in registers, in order by a digit,
 *	  in shared memory; for the kernels of onesweep_pass.cuh.
 *
 * A row's rank among the rows of its warp with the same digit
 * comes from ballots, one per bit of the digit, and a counter
 * per digit and warp, which gives the tile's counts on the way.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TILE_ORDER_CUH
#define GPUSORT_TILE_ORDER_CUH

#include <stdint.h>

#include <cuda_runtime.h>

#include "sort/digit_histogram.cuh"
#include "sort/portable.h"

#ifdef __CUDACC__
static __device__ __forceinline__ uint32_t
lanes_below()
{
	uint32_t mask;

	asm("mov.u32 %0, %%lanemask_lt;"
		: "=r"(mask));
	return mask;
}
#else
#define lanes_below() ((1u << threadIdx.x % 32) - 1)
#endif

/*
 * The inclusive scan of value over the first GPUSORT_BINS threads: the sum of threads 0 to
 * this one's.  Called by whole blocks.
 */
static __device__ __forceinline__ uint32_t
inclusive_scan(uint32_t value, uint32_t *warp_sums)
{
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t warp = threadIdx.x / 32;
	uint32_t sum = value;

	if (threadIdx.x < GPUSORT_BINS)
	{
		for (int places = 1; places < 32; places *= 2)
		{
			uint32_t below = __shfl_up_sync(GPUSORT_ALL_LANES, sum, places);

			if (lane >= (uint32_t) places)
				sum += below;
		}
		if (lane == 31)
			warp_sums[warp] = sum;
	}
	__syncthreads();
	if (threadIdx.x < GPUSORT_BINS)
	{
		for (uint32_t i = 0; i < GPUSORT_BINS / 32; i++)
			sum += i < warp ? warp_sums[i] : 0;
	}
	return sum;
}

/*
 * The lanes of this warp whose digit is the same as this one's: a ballot per bit.  In
 * PTX because the compiler makes twice as many instructions of the same in C++.
 */
static __device__ __forceinline__ uint32_t
lanes_with(uint32_t digit)
{
#ifdef __CUDACC__
#define GPUSORT_MATCH_BIT(bit, into)                  \
	"and.b32 t, %1, " #bit ";\n"                      \
	"setp.ne.u32 p, t, 0;\n"                          \
	"vote.sync.ballot.b32 " into ", p, 0xffffffff;\n" \
	"@!p not.b32 " into ", " into ";\n"
	uint32_t same;

	asm volatile("{\n.reg .pred p;\n.reg .b32 t, u, v;\n" GPUSORT_MATCH_BIT(1, "u")
					 GPUSORT_MATCH_BIT(2, "v") "and.b32 %0, u, v;\n" GPUSORT_MATCH_BIT(4, "u")
						 GPUSORT_MATCH_BIT(8, "v") "lop3.b32 %0, %0, u, v, 0x80;\n" GPUSORT_MATCH_BIT(16, "u")
							 GPUSORT_MATCH_BIT(32, "v") "lop3.b32 %0, %0, u, v, 0x80;\n" GPUSORT_MATCH_BIT(64, "u")
								 GPUSORT_MATCH_BIT(128, "v") "lop3.b32 %0, %0, u, v, 0x80;\n}"
				 : "=r"(same)
				 : "r"(digit));
	return same;
#undef GPUSORT_MATCH_BIT
#else
	return __match_any_sync(GPUSORT_ALL_LANES, digit);
#endif
}

/* Ranks within a warp, of 16 bits, two to a register. */
template <int ITEMS>
struct GpuSortWarpRanks
{
	uint32_t pairs[(ITEMS + 1) / 2];

	__device__ __forceinline__ uint32_t
	get(int k) const
	{
		return k % 2 == 0 ? pairs[k / 2] & 0xFFFF : pairs[k / 2] >> 16;
	}

	/* Each k is set once, an even one before the odd one after it. */
	__device__ __forceinline__ void
	set(int k, uint32_t rank)
	{
		pairs[k / 2] = k % 2 == 0 ? rank : pairs[k / 2] + (rank << 16);
	}
};

/* What a pass holds of a row while it ranks it: the row, or its key. */
static __device__ __forceinline__ uint32_t
key_of(uint64_t row)
{
	return (uint32_t) (row >> 32);
}

static __device__ __forceinline__ uint32_t
key_of(uint32_t key)
{
	return key;
}

/* The digit of a key; only the last pass's may be less than a byte. */
template <bool LAST>
static __device__ __forceinline__ uint32_t
digit_of(uint32_t key, uint32_t byte, uint32_t digit_mask)
{
	return LAST ? byte_of(key, byte) & digit_mask : byte_of(key, byte);
}

/*
 * Ranks ITEMS rows of each lane among the rows of their warp with the same digit;
 * row k of lane l comes before row k + 1 of any lane.  Adds to counters, one
 * per digit, which the warp has for itself.
 *
 * Of the lanes with the same digit the highest, which knows how many there are from its
 * own rank, adds them to the counter.
 */
template <int ITEMS, int GROUP, bool LAST, typename Item>
static __device__ __forceinline__ void
rank_in_warp(const Item (&items)[ITEMS], uint32_t byte, uint32_t digit_mask, uint32_t *counters,
			 GpuSortWarpRanks<ITEMS> &ranks)
{
	const uint32_t below = lanes_below();
	const uint32_t above = ~(below << 1 | 1);

	static_assert(ITEMS % GROUP == 0, "groups are full");

	GPUSORT_UNROLL
	for (int first = 0; first < ITEMS; first += GROUP)
	{
		uint32_t same[GROUP];
		uint32_t *counter[GROUP];

		GPUSORT_UNROLL
		for (int k = 0; k < GROUP; k++)
		{
			const uint32_t digit = digit_of<LAST>(key_of(items[first + k]), byte, digit_mask);

			same[k] = lanes_with(digit);
			counter[k] = &counters[digit];
		}
		GPUSORT_UNROLL
		for (int k = 0; k < GROUP; k++)
		{
			const uint32_t rank = *counter[k] + __popc(same[k] & below);

			__syncwarp();
			if ((same[k] & above) == 0)
				*counter[k] = rank + 1;
			__syncwarp();
			ranks.set(first + k, rank);
		}
	}
}

/*
 * The items of a tile ranked and what moved(k) is of each, a row or an id, put in order
 * into `tile`.  Before they are moved, `counted` gets the tile's count of digit
 * threadIdx.x, the first place of that digit in the tile, and how many lower digits
 * occur in it, in the first GPUSORT_BINS threads.
 */
template <int THREADS, int ITEMS, int GROUP, bool LAST, typename Item, typename Moved, typename Move, typename Counted>
static __device__ __forceinline__ void
order_tile(const Item (&items)[ITEMS], Move moved, uint32_t byte, uint32_t digit_mask, Moved *tile,
		   uint32_t *counters, uint32_t *warp_sums, Counted counted)
{
	constexpr int WARPS = THREADS / 32;
	uint32_t *mine = counters + threadIdx.x / 32 * GPUSORT_BINS;
	GpuSortWarpRanks<ITEMS> ranks;
	uint32_t counts[WARPS];
	uint32_t total = 0;

	static_assert(THREADS >= GPUSORT_BINS && THREADS * ITEMS <= 0xFFFF, "a thread per digit, ranks of 16 bits");

	GPUSORT_UNROLL
	for (uint32_t i = 0; i < GPUSORT_BINS; i += 32)
		mine[i + threadIdx.x % 32] = 0;
	__syncwarp();
	rank_in_warp<ITEMS, GROUP, LAST>(items, byte, digit_mask, mine, ranks);
	__syncthreads();

	/* where each warp's rows of a digit begin in the tile */
	if (threadIdx.x < GPUSORT_BINS)
	{
		GPUSORT_UNROLL
		for (int i = 0; i < WARPS; i++)
		{
			counts[i] = counters[i * GPUSORT_BINS + threadIdx.x];
			total += counts[i];
		}
	}

	/* rows in the lower half, digits that occur in the upper */
	const uint32_t both = total + (total > 0 ? 1 << 16 : 0);
	const uint32_t below = inclusive_scan(both, warp_sums) - both;

	if (threadIdx.x < GPUSORT_BINS)
	{
		uint32_t place = below & 0xFFFF;

		counted(total, place, below >> 16);
		GPUSORT_UNROLL
		for (int i = 0; i < WARPS; i++)
		{
			counters[i * GPUSORT_BINS + threadIdx.x] = place;
			place += counts[i];
		}
	}
	__syncthreads();

	GPUSORT_UNROLL
	for (int k = 0; k < ITEMS; k++)
		tile[ranks.get(k) + mine[digit_of<LAST>(key_of(items[k]), byte, digit_mask)]] = moved(k);
}

#endif /* GPUSORT_TILE_ORDER_CUH */
