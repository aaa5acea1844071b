/*-------------------------------------------------------------------------
 *
 * onesweep.cuh
 *	  Kernels of the radix core: one pass over the rows per digit of 8 bits.
 *
 * The scheme is Onesweep (Adinets and Merrill, arXiv 2206.01784): the digits of
 * all passes are counted in one read of the keys; then each pass reads a tile of
 * rows, ranks them, learns where its bins begin by looking back at the tiles before
 * it, and writes the rows to their places, so a pass reads and writes every row
 * once.  What differs from it:
 *
 *	- Between the passes a row is one 64-bit word, the key above the id, so there is
 *	  one exchange in shared memory and one run of writes per bin, twice as long as
 *	  with keys and ids apart (Ha, Krueger and Silva found the same for their scatter).
 *	- The first pass reads keys alone and makes the ids; the last writes ids, and keys
 *	  only where they are wanted.
 *	- The look back has several tiles' counts on their way at a time, so that its
 *	  length is bounded by bandwidth rather than by the latency of one load per tile.
 *	- A tile's counts carry the number of their pass, so the array is cleared
 *	  once and not before every pass.
 *
 * A row's rank among the rows of its warp with the same digit comes from ballots,
 * one per bit of the digit, and a counter per digit and warp, which gives the tile's
 * counts on the way.
 *
 * Tiles are taken in the order of block numbers: a block waits for blocks of lower
 * numbers alone, and those were started before it.  CUB's scan relies on the same.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ONESWEEP_CUH
#define GPUSORT_ONESWEEP_CUH

#include <stdint.h>

#include <cuda_runtime.h>

#include "check.h"

#define GPUSORT_DIGIT_BITS		8
#define GPUSORT_BINS			256
#define GPUSORT_MAX_PASSES		4
#define GPUSORT_ALL_LANES		0xFFFFFFFFu

/*
 * A tile's count of a digit: the count above three bits that say which pass it is of
 * and whether it counts the tile alone or all tiles up to it.
 */
#define GPUSORT_TALLY_BITS		3
#define GPUSORT_TALLY_MASK		7u
#define GPUSORT_TALLY_TILE(pass)	((2 * (pass) + 1) & GPUSORT_TALLY_MASK)
#define GPUSORT_TALLY_SUM(pass)		((2 * (pass) + 2) & GPUSORT_TALLY_MASK)

/* Rows of a launch, so that counts fit. */
#define GPUSORT_PORTION_ROWS	((uint32_t) 1 << 28)

#ifdef __CUDACC__
static __device__ __forceinline__ uint32_t
load_tally(const uint32_t *place)
{
	uint32_t	value;

	asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(place) : "memory");
	return value;
}

static __device__ __forceinline__ void
store_tally(uint32_t *place, uint32_t value)
{
	asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" : : "l"(place), "r"(value) : "memory");
}

static __device__ __forceinline__ uint32_t
lanes_below()
{
	uint32_t	mask;

	asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
	return mask;
}

/* Read once: need not stay in the caches. */
#define GPUSORT_LOAD_ONCE(place)	__ldcs(place)
#else
#define load_tally(place)			__atomic_load_n(place, __ATOMIC_RELAXED)
#define store_tally(place, value)	__atomic_store_n(place, value, __ATOMIC_RELAXED)
#define lanes_below()				((1u << threadIdx.x % 32) - 1)
#define GPUSORT_LOAD_ONCE(place)	(*(place))
#endif

/* What a pass reads and writes; see its template's parameters. */
typedef struct GpuSortPass
{
	const uint32_t *keys_in;	/* first pass */
	const uint32_t *ids_in;		/* first pass; NULL: row numbers */
	const uint64_t *rows_in;	/* others: key above id */
	uint64_t   *rows_out;		/* all but the last */
	uint32_t   *keys_out;		/* last pass; NULL: not wanted */
	uint32_t   *ids_out;		/* last pass */
	uint32_t   *tallies;		/* GPUSORT_BINS per tile */
	const uint32_t *starts;		/* where each bin starts */
	uint32_t   *next_starts;	/* the same for the rows behind this launch's; NULL: there are none */
	uint32_t	first_row;		/* of this launch */
	uint32_t	rows;			/* of this launch */
	int			number;			/* of this launch since tallies were cleared */
	int			shift;			/* of the digit in the key */
	uint32_t	digit_mask;
} GpuSortPass;

/* How a sort's bits are shared out among its passes, from the least significant on. */
typedef struct GpuSortDigits
{
	int			bits;
	int			passes;
	int			width;			/* of each but the last, which may be narrower */
} GpuSortDigits;

static __host__ __device__ __forceinline__ uint32_t
gpusort_digit_mask(GpuSortDigits digits, int pass)
{
	const int	left = digits.bits - pass * digits.width;

	return (1u << (left < digits.width ? left : digits.width)) - 1;
}

/*
 * Counts the digits of all passes: counts[pass][digit].  A warp's lanes add to COPIES
 * counters of a digit in turn, so that equal digits do not queue for one.
 */
template <int THREADS, int COPIES>
__global__ void __launch_bounds__(THREADS)
count_digits(const uint32_t *keys, uint32_t rows, const GpuSortDigits digits, uint32_t *counts)
{
	GPUSORT_DYNAMIC_SHARED(uint32_t, bins);	/* [pass][digit][copy] */
	const uint32_t copy = threadIdx.x % COPIES;
	const uint64_t step = (uint64_t) gridDim.x * THREADS;

	/* four keys at a time, from the first place where that is aligned */
	const uint32_t unaligned = (uint32_t) ((16 - (uintptr_t) keys % 16) % 16 / 4);
	const uint32_t head = unaligned < rows ? unaligned : rows;
	const uint32_t quads = (rows - head) / 4;
	const uint32_t tail = rows - head - quads * 4;

	for (int i = threadIdx.x; i < digits.passes * GPUSORT_BINS * COPIES; i += THREADS)
		bins[i] = 0;
	__syncthreads();

	for (uint64_t i = (uint64_t) blockIdx.x * THREADS + threadIdx.x; i < quads; i += step)
	{
		const uint4 four = GPUSORT_LOAD_ONCE((const uint4 *) (keys + head) + i);
		const uint32_t key[4] = {four.x, four.y, four.z, four.w};

#pragma unroll
		for (int pass = 0; pass < GPUSORT_MAX_PASSES; pass++)
		{
			if (pass < digits.passes)
			{
				const uint32_t mask = gpusort_digit_mask(digits, pass);

#pragma unroll
				for (int k = 0; k < 4; k++)
					atomicAdd(&bins[(pass * GPUSORT_BINS + (key[k] >> pass * digits.width & mask)) * COPIES + copy], 1u);
			}
		}
	}
	if (blockIdx.x == 0 && threadIdx.x < head + tail)
	{
		const uint32_t key = keys[threadIdx.x < head ? threadIdx.x : quads * 4 + threadIdx.x];

		for (int pass = 0; pass < digits.passes; pass++)
			atomicAdd(&bins[(pass * GPUSORT_BINS + (key >> pass * digits.width & gpusort_digit_mask(digits, pass))) *
							COPIES + copy], 1u);
	}
	__syncthreads();

	for (int i = threadIdx.x; i < digits.passes * GPUSORT_BINS; i += THREADS)
	{
		uint32_t	sum = 0;

		for (int k = 0; k < COPIES; k++)
			sum += bins[i * COPIES + (k + threadIdx.x) % COPIES];
		if (sum > 0)
			atomicAdd(&counts[i], sum);
	}
}

/*
 * The sum of value over threads 0 to this one, of the first GPUSORT_BINS threads;
 * called by whole blocks.
 */
static __device__ __forceinline__ uint32_t
sum_up_to(uint32_t value, uint32_t *warp_sums)
{
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t warp = threadIdx.x / 32;
	uint32_t	sum = value;

	if (threadIdx.x < GPUSORT_BINS)
	{
		for (int places = 1; places < 32; places *= 2)
		{
			uint32_t	below = __shfl_up_sync(GPUSORT_ALL_LANES, sum, places);

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

/* starts[pass][digit] = rows with a lower digit; a block per pass, in place of counts. */
static __global__ void
start_bins(uint32_t *counts)
{
	__shared__ uint32_t warp_sums[GPUSORT_BINS / 32];
	uint32_t   *mine = counts + blockIdx.x * GPUSORT_BINS + threadIdx.x;
	uint32_t	count = *mine;

	*mine = sum_up_to(count, warp_sums) - count;
}

/* The lanes of this warp whose digit is the same as this one's. */
static __device__ __forceinline__ uint32_t
lanes_with(uint32_t digit)
{
	uint32_t	same = GPUSORT_ALL_LANES;

#pragma unroll
	for (int bit = 0; bit < GPUSORT_DIGIT_BITS; bit++)
	{
		const bool	set = (digit >> bit & 1) != 0;
		const uint32_t votes = __ballot_sync(GPUSORT_ALL_LANES, set);

		same &= set ? votes : ~votes;
	}
	return same;
}

/* Ranks within a tile, of 16 bits, two to a register. */
template <int ITEMS>
struct GpuSortRanks
{
	uint32_t	pairs[(ITEMS + 1) / 2];

	__device__ __forceinline__ uint32_t
	get(int k) const
	{
		return k % 2 == 0 ? pairs[k / 2] & 0xFFFF : pairs[k / 2] >> 16;
	}

	/* Each k is set once, an even one before the odd one after it. */
	__device__ __forceinline__ void
	set(int k, uint32_t rank)
	{
		pairs[k / 2] = k % 2 == 0 ? rank : pairs[k / 2] | rank << 16;
	}
};

/* The digit of a key. */
static __device__ __forceinline__ uint32_t
digit_of(uint32_t key, int shift, uint32_t digit_mask)
{
	return key >> shift & digit_mask;
}

/*
 * Ranks ITEMS rows of each lane among the rows of their warp with the same digit;
 * row k of lane l comes before row k + 1 of any lane.  Adds to counters, one
 * per digit, which the warp has for itself.
 */
template <int ITEMS, int GROUP>
static __device__ __forceinline__ void
rank_in_warp(const uint32_t (&keys)[ITEMS], int shift, uint32_t digit_mask, uint32_t *counters,
			 GpuSortRanks<ITEMS> &ranks)
{
	const uint32_t below = lanes_below();

	static_assert(ITEMS % GROUP == 0, "groups are full");

#pragma unroll
	for (int first = 0; first < ITEMS; first += GROUP)
	{
		uint32_t	same[GROUP];

#pragma unroll
		for (int k = 0; k < GROUP; k++)
			same[k] = lanes_with(digit_of(keys[first + k], shift, digit_mask));
#pragma unroll
		for (int k = 0; k < GROUP; k++)
		{
			const uint32_t lower = same[k] & below;
			uint32_t   *counter = &counters[digit_of(keys[first + k], shift, digit_mask)];
			const uint32_t before = *counter;

			__syncwarp();
			if (lower == 0)
				*counter = before + __popc(same[k]);
			__syncwarp();
			ranks.set(first + k, before + __popc(lower));
		}
	}
}

/*
 * From ranks in a warp to ranks in the tile: adds where the warp's rows of a digit
 * begin, which counters hold now.
 */
template <int ITEMS>
static __device__ __forceinline__ void
rank_in_tile(const uint32_t (&keys)[ITEMS], int shift, uint32_t digit_mask, const uint32_t *counters,
			 GpuSortRanks<ITEMS> &ranks)
{
#pragma unroll
	for (int k = 0; k < ITEMS; k += 2)
	{
		const uint32_t low = ranks.get(k) + counters[digit_of(keys[k], shift, digit_mask)];

		if (k + 1 < ITEMS)
		{
			const uint32_t high = ranks.get(k + 1) + counters[digit_of(keys[k + 1], shift, digit_mask)];

			ranks.set(k, low);
			ranks.set(k + 1, high);
		}
		else
			ranks.set(k, low);
	}
}

/* Bytes of dynamic shared memory of a pass with these parameters. */
#define GPUSORT_PASS_SHARED(threads, items) ((size_t) (threads) * (items) * 8)

/*
 * A pass: rows of this launch to their places by one digit.  A block per tile of
 * THREADS * ITEMS rows.
 *
 *	FIRST	reads keys_in (and ids_in), else rows_in
 *	LAST	writes ids_out (and keys_out), else rows_out
 *	WINDOW	tiles looked back at in one go
 *	EARLY	looks back before rows are exchanged in shared memory, not after
 */
template <int THREADS, int ITEMS, int BLOCKS, int GROUP, int WINDOW, bool EARLY, bool FIRST, bool LAST>
__global__ void __launch_bounds__(THREADS, BLOCKS)
sort_pass(const __grid_constant__ GpuSortPass pass)
{
	constexpr int TILE = THREADS * ITEMS;
	constexpr int WARPS = THREADS / 32;

	GPUSORT_DYNAMIC_SHARED(uint64_t, tile_rows);	/* [TILE] */
	__shared__ uint32_t offsets[GPUSORT_BINS];	/* place of a bin less its first row in the tile */
	__shared__ uint32_t warp_sums[GPUSORT_BINS / 32];
	uint32_t   *counters = (uint32_t *) tile_rows;	/* [WARPS][GPUSORT_BINS], before rows are there */
	const uint32_t warp = threadIdx.x / 32;
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t tile = blockIdx.x;
	const uint32_t tile_first = tile * TILE;	/* in this launch */
	const uint32_t count = pass.rows - tile_first < TILE ? pass.rows - tile_first : TILE;
	const uint32_t digit_mask = pass.digit_mask;
	const int	shift = pass.shift;
	uint32_t	keys[ITEMS];
	uint32_t	ids[ITEMS];
	GpuSortRanks<ITEMS> ranks;
	uint32_t	total = 0;		/* rows of digit threadIdx.x in this tile */
	uint32_t	tile_start = 0; /* and those of lower digits */

	static_assert(WARPS * GPUSORT_BINS * 4 <= TILE * 8, "counters lie where rows do later");
	static_assert(THREADS >= GPUSORT_BINS && TILE <= 0xFFFF, "a thread per digit, ranks of 16 bits");

	/* rows behind the last have the highest digit and come last in it: they are never written */
	{
		const uint32_t mine = warp * 32 * ITEMS + lane;
		const uint64_t from = (uint64_t) pass.first_row + tile_first + mine;

#pragma unroll
		for (int k = 0; k < ITEMS; k++)
		{
			keys[k] = ~0u;
			ids[k] = (uint32_t) (from + k * 32);
			if (count == TILE || mine + k * 32 < count)
			{
				if (FIRST)
				{
					keys[k] = GPUSORT_LOAD_ONCE(pass.keys_in + from + k * 32);
					if (pass.ids_in != NULL)
						ids[k] = GPUSORT_LOAD_ONCE(pass.ids_in + from + k * 32);
				}
				else
				{
					const uint64_t row = GPUSORT_LOAD_ONCE(pass.rows_in + from + k * 32);

					keys[k] = (uint32_t) (row >> 32);
					ids[k] = (uint32_t) row;
				}
			}
		}
	}

	for (uint32_t i = threadIdx.x; i < WARPS * GPUSORT_BINS; i += THREADS)
		counters[i] = 0;
	__syncthreads();

	rank_in_warp<ITEMS, GROUP>(keys, shift, digit_mask, counters + warp * GPUSORT_BINS, ranks);
	__syncthreads();

	/* the tile's counts, and where each warp's rows of a digit begin in it */
	if (threadIdx.x < GPUSORT_BINS)
	{
#pragma unroll 4
		for (int i = 0; i < WARPS; i++)
			total += counters[i * GPUSORT_BINS + threadIdx.x];
		store_tally(&pass.tallies[(size_t) tile * GPUSORT_BINS + threadIdx.x],
					total << GPUSORT_TALLY_BITS | GPUSORT_TALLY_TILE(pass.number));
	}
	tile_start = sum_up_to(total, warp_sums) - total;
	if (threadIdx.x < GPUSORT_BINS)
	{
		uint32_t	start = tile_start;

#pragma unroll 4
		for (int i = 0; i < WARPS; i++)
		{
			uint32_t	here = counters[i * GPUSORT_BINS + threadIdx.x];

			counters[i * GPUSORT_BINS + threadIdx.x] = start;
			start += here;
		}
	}
	__syncthreads();

	rank_in_tile(keys, shift, digit_mask, counters + warp * GPUSORT_BINS, ranks);
	__syncthreads();

	if (!EARLY)
	{
#pragma unroll
		for (int k = 0; k < ITEMS; k++)
			tile_rows[ranks.get(k)] = (uint64_t) keys[k] << 32 | ids[k];
	}

	/* rows of this digit in the tiles before */
	if (threadIdx.x < GPUSORT_BINS)
	{
		const uint32_t *tallies = pass.tallies + threadIdx.x;
		const uint32_t tile_code = GPUSORT_TALLY_TILE(pass.number);
		const uint32_t sum_code = GPUSORT_TALLY_SUM(pass.number);
		uint32_t	before = 0;
		uint32_t	place;
		int64_t		next = (int64_t) tile - 1;

		while (next >= 0)
		{
			uint32_t	seen[WINDOW];
			int			taken = 0;
			bool		summed = false;

#pragma unroll
			for (int i = 0; i < WINDOW; i++)
				seen[i] = load_tally(tallies + (size_t) (next >= i ? next - i : 0) * GPUSORT_BINS);
#pragma unroll
			for (int i = 0; i < WINDOW; i++)
			{
				const uint32_t code = seen[i] & GPUSORT_TALLY_MASK;

				/* in order, up to the first sum, or count that is not there yet */
				if (!summed && taken == i && next >= i && (code == tile_code || code == sum_code))
				{
					before += seen[i] >> GPUSORT_TALLY_BITS;
					summed = code == sum_code;
					taken = i + 1;
				}
			}
			if (summed)
				break;
			next -= taken;
		}
		store_tally(&pass.tallies[(size_t) tile * GPUSORT_BINS + threadIdx.x],
					(before + total) << GPUSORT_TALLY_BITS | GPUSORT_TALLY_SUM(pass.number));
		place = pass.starts[threadIdx.x] + before;
		offsets[threadIdx.x] = place - tile_start;
		if (pass.next_starts != NULL && tile == gridDim.x - 1)
			pass.next_starts[threadIdx.x] = place + total;
	}

	if (EARLY)
	{
#pragma unroll
		for (int k = 0; k < ITEMS; k++)
			tile_rows[ranks.get(k)] = (uint64_t) keys[k] << 32 | ids[k];
	}
	__syncthreads();

#pragma unroll
	for (int k = 0; k < ITEMS; k++)
	{
		const uint32_t i = k * THREADS + threadIdx.x;

		if (count == TILE || i < count)
		{
			const uint64_t row = tile_rows[i];
			const uint32_t place = offsets[digit_of((uint32_t) (row >> 32), shift, digit_mask)] + i;

			if (!LAST)
				pass.rows_out[place] = row;
			else
			{
				pass.ids_out[place] = (uint32_t) row;
				if (pass.keys_out != NULL)
					pass.keys_out[place] = (uint32_t) (row >> 32);
			}
		}
	}
}

/*
 * All passes over up to THREADS * ITEMS rows in one block.  Reads and writes as a pass
 * that is FIRST and LAST; pass.shift is unused.
 */
template <int THREADS, int ITEMS, int GROUP>
__global__ void __launch_bounds__(THREADS)
sort_block(const __grid_constant__ GpuSortPass pass, int bits)
{
	constexpr int WARPS = THREADS / 32;

	GPUSORT_DYNAMIC_SHARED(uint64_t, tile_rows);	/* [THREADS * ITEMS] */
	__shared__ uint32_t warp_sums[GPUSORT_BINS / 32];
	uint32_t   *counters = (uint32_t *) tile_rows;
	const uint32_t warp = threadIdx.x / 32;
	const uint32_t mine = warp * 32 * ITEMS + threadIdx.x % 32;
	uint32_t	keys[ITEMS];
	uint32_t	ids[ITEMS];
	GpuSortRanks<ITEMS> ranks;

#pragma unroll
	for (int k = 0; k < ITEMS; k++)
	{
		const uint32_t i = mine + k * 32;

		keys[k] = ~0u;
		ids[k] = i;
		if (i < pass.rows)
		{
			keys[k] = pass.keys_in[i];
			if (pass.ids_in != NULL)
				ids[k] = pass.ids_in[i];
		}
	}

	for (int shift = 0; shift < bits; shift += GPUSORT_DIGIT_BITS)
	{
		const int	width = bits - shift < GPUSORT_DIGIT_BITS ? bits - shift : GPUSORT_DIGIT_BITS;
		const uint32_t digit_mask = (1u << width) - 1;
		uint32_t	total = 0;
		uint32_t	start;

		for (uint32_t i = threadIdx.x; i < WARPS * GPUSORT_BINS; i += THREADS)
			counters[i] = 0;
		__syncthreads();
		rank_in_warp<ITEMS, GROUP>(keys, shift, digit_mask, counters + warp * GPUSORT_BINS, ranks);
		__syncthreads();
		if (threadIdx.x < GPUSORT_BINS)
		{
			for (int i = 0; i < WARPS; i++)
				total += counters[i * GPUSORT_BINS + threadIdx.x];
		}
		start = sum_up_to(total, warp_sums) - total;
		if (threadIdx.x < GPUSORT_BINS)
		{
			for (int i = 0; i < WARPS; i++)
			{
				uint32_t	here = counters[i * GPUSORT_BINS + threadIdx.x];

				counters[i * GPUSORT_BINS + threadIdx.x] = start;
				start += here;
			}
		}
		__syncthreads();
		rank_in_tile(keys, shift, digit_mask, counters + warp * GPUSORT_BINS, ranks);
		__syncthreads();
#pragma unroll
		for (int k = 0; k < ITEMS; k++)
			tile_rows[ranks.get(k)] = (uint64_t) keys[k] << 32 | ids[k];
		__syncthreads();
#pragma unroll
		for (int k = 0; k < ITEMS; k++)
		{
			keys[k] = (uint32_t) (tile_rows[mine + k * 32] >> 32);
			ids[k] = (uint32_t) tile_rows[mine + k * 32];
		}
		__syncthreads();
	}

#pragma unroll
	for (int k = 0; k < ITEMS; k++)
	{
		const uint32_t i = mine + k * 32;

		if (i < pass.rows)
		{
			pass.ids_out[i] = ids[k];
			if (pass.keys_out != NULL)
				pass.keys_out[i] = keys[k];
		}
	}
}

/* The kernels with one set of parameters; see sort_pass. */
template <int THREADS, int ITEMS, int BLOCKS, int GROUP, int WINDOW, bool EARLY>
struct GpuSortOnesweep
{
	static constexpr uint32_t TILE = THREADS * ITEMS;
	static constexpr int COUNT_THREADS = 512;
	static constexpr int COUNT_COPIES = 8;
	static constexpr uint32_t COUNT_KEYS = 8 * 4 * COUNT_THREADS;	/* of a block, at least */
	static constexpr uint32_t COUNT_BLOCKS = 1024;

	/* Where things are in temp. */
	struct Layout
	{
		size_t		rows[2];
		size_t		tallies;
		size_t		tallies_bytes;
		size_t		counts;		/* [pass][GPUSORT_BINS], then the next portion's starts, twice */
		size_t		counts_bytes;
		size_t		end;
	};

	static size_t
	align(size_t bytes)
	{
		return (bytes + 255) / 256 * 256;
	}

	static Layout
	lay_out(uint32_t rows, int passes)
	{
		const uint32_t portion = rows < GPUSORT_PORTION_ROWS ? rows : GPUSORT_PORTION_ROWS;
		const size_t rows_bytes = align((size_t) rows * sizeof(uint64_t));
		Layout		layout = {};

		if (rows <= TILE)
			return layout;
		layout.rows[1] = passes > 1 ? rows_bytes : 0;
		layout.tallies = layout.rows[1] + (passes > 2 ? rows_bytes : 0);
		layout.tallies_bytes = align((size_t) ((portion + TILE - 1) / TILE) * GPUSORT_BINS * sizeof(uint32_t));
		layout.counts = layout.tallies + layout.tallies_bytes;
		layout.counts_bytes = (GPUSORT_MAX_PASSES + 2) * GPUSORT_BINS * sizeof(uint32_t);
		layout.end = layout.counts + layout.counts_bytes;
		return layout;
	}

	/* The last pass may write where the first one reads, so then there are two. */
	static GpuSortDigits
	share_bits(int bits, bool in_place)
	{
		GpuSortDigits digits;

		digits.bits = bits;
		digits.passes = (bits + GPUSORT_DIGIT_BITS - 1) / GPUSORT_DIGIT_BITS;
		if (digits.passes < (in_place ? 2 : 1))
			digits.passes = in_place ? 2 : 1;
		digits.width = (bits + digits.passes - 1) / digits.passes;
		return digits;
	}

	static size_t
	temp_bytes(uint32_t rows, int bits)
	{
		return lay_out(rows, share_bits(bits, true).passes).end;
	}

	static cudaError_t
	start_pass(const GpuSortPass *pass, bool first, bool last, cudaStream_t stream)
	{
		auto		kernel = sort_pass<THREADS, ITEMS, BLOCKS, GROUP, WINDOW, EARLY, false, false>;
		const uint32_t tiles = (pass->rows + TILE - 1) / TILE;

		if (first && last)
			kernel = sort_pass<THREADS, ITEMS, BLOCKS, GROUP, WINDOW, EARLY, true, true>;
		else if (first)
			kernel = sort_pass<THREADS, ITEMS, BLOCKS, GROUP, WINDOW, EARLY, true, false>;
		else if (last)
			kernel = sort_pass<THREADS, ITEMS, BLOCKS, GROUP, WINDOW, EARLY, false, true>;
		GPUSORT_START_KERNEL_SHARED(kernel, tiles, THREADS, GPUSORT_PASS_SHARED(THREADS, ITEMS), stream, *pass);
		return cudaGetLastError();
	}

	static cudaError_t
	count(const uint32_t *keys, uint32_t rows, GpuSortDigits digits, uint32_t *counts, cudaStream_t stream)
	{
		auto		kernel = count_digits<COUNT_THREADS, COUNT_COPIES>;
		const uint32_t wanted = (uint32_t) (((uint64_t) rows + COUNT_KEYS - 1) / COUNT_KEYS);
		const size_t shared = (size_t) digits.passes * GPUSORT_BINS * COUNT_COPIES * sizeof(uint32_t);

		GPUSORT_START_KERNEL_SHARED(kernel, wanted < COUNT_BLOCKS ? wanted : COUNT_BLOCKS, COUNT_THREADS, shared,
									stream, keys, rows, digits, counts);
		GPUSORT_START_KERNEL(start_bins, digits.passes, GPUSORT_BINS, stream, counts);
		return cudaGetLastError();
	}

	/* As gpusort_radix_sort. */
	static cudaError_t
	sort(void *temp, size_t temp_size, const uint32_t *keys_in, const uint32_t *ids_in, uint32_t rows, int bits,
		 uint32_t *keys_out, uint32_t *ids_out, cudaStream_t stream)
	{
		const GpuSortDigits digits = share_bits(bits, keys_out == keys_in || ids_out == ids_in);
		const Layout layout = lay_out(rows, digits.passes);
		char	   *base = (char *) temp;
		uint32_t   *counts = (uint32_t *) (base + layout.counts);
		GpuSortPass pass = {};
		cudaError_t status;

		if (layout.end > temp_size)
			return cudaErrorInvalidValue;
		pass.keys_in = keys_in;
		pass.ids_in = ids_in;
		pass.keys_out = keys_out;
		pass.ids_out = ids_out;
		if (rows <= TILE)
		{
			auto		kernel = sort_block<THREADS, ITEMS, GROUP>;

			pass.rows = rows;
			GPUSORT_START_KERNEL_SHARED(kernel, 1, THREADS, GPUSORT_PASS_SHARED(THREADS, ITEMS), stream, pass, bits);
			return cudaGetLastError();
		}

		/* tallies and counts lie beside each other */
		status = cudaMemsetAsync(base + layout.tallies, 0, layout.end - layout.tallies, stream);
		if (status == cudaSuccess)
			status = count(keys_in, rows, digits, counts, stream);
		for (int i = 0; i < digits.passes && status == cudaSuccess; i++)
		{
			uint32_t   *next = counts + GPUSORT_MAX_PASSES * GPUSORT_BINS;

			pass.rows_in = (const uint64_t *) (base + layout.rows[(i + 1) % 2]);
			pass.rows_out = (uint64_t *) (base + layout.rows[i % 2]);
			pass.tallies = (uint32_t *) (base + layout.tallies);
			pass.starts = counts + i * GPUSORT_BINS;
			pass.shift = i * digits.width;
			pass.digit_mask = gpusort_digit_mask(digits, i);

			/* a portion ends where the next one starts, bin by bin */
			for (uint64_t first = 0; first < rows && status == cudaSuccess; first += GPUSORT_PORTION_ROWS)
			{
				const uint64_t left = rows - first;

				pass.first_row = (uint32_t) first;
				pass.rows = left < GPUSORT_PORTION_ROWS ? (uint32_t) left : GPUSORT_PORTION_ROWS;
				pass.next_starts = left > GPUSORT_PORTION_ROWS ? next : NULL;
				status = start_pass(&pass, i == 0, i == digits.passes - 1, stream);
				pass.number++;
				pass.starts = next;
				next = counts + (GPUSORT_MAX_PASSES + (next == counts + GPUSORT_MAX_PASSES * GPUSORT_BINS)) * GPUSORT_BINS;
			}
		}
		return status;
	}
};

#endif							/* GPUSORT_ONESWEEP_CUH */
