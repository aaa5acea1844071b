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

#include <type_traits>

#include <cuda_runtime.h>

#include "check.h"
#include "digit_counts.cuh"
#include "portable.h"
#include "radix_sort.h"

#define GPUSORT_ALL_LANES		0xFFFFFFFFu

/*
 * A tile's count of a digit: the count above three bits that say which pass it is of
 * and whether it counts the tile alone or all tiles up to it.
 */
#define GPUSORT_TALLY_BITS		3
#define GPUSORT_TALLY_MASK		7u
#define GPUSORT_TALLY_TILE(pass)	((2 * (pass) + 1) & GPUSORT_TALLY_MASK)
#define GPUSORT_TALLY_SUM(pass)		((2 * (pass) + 2) & GPUSORT_TALLY_MASK)

/*
 * How far ahead of a tile another is fetched into the cache: a quarter of the tiles that an
 * H200 has on their way.  Measured: none 6.19 ms, 66 5.91, 132 5.93, 264 6.3 (2^28 rows).
 */
#define GPUSORT_TILES_AHEAD		66

/* The most rows of a launch, so that counts fit. */
#define GPUSORT_TALLY_MAX		(UINT32_MAX >> GPUSORT_TALLY_BITS)

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

/* Asks for `bytes` bytes, a multiple of 16, to be in the cache soon, where the device can. */
static __device__ __forceinline__ void
prefetch(const void *place, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" : : "l"(place), "r"(bytes) : "memory");
#endif
}

/*
 * Read or written once.  Loads pass by the first-level cache: with the hint to leave early
 * (__ldcs), which keeps a line there, a sort of 2^28 rows took 5.57 ms where it took 5.38.
 */
#define GPUSORT_LOAD_ONCE(place)	__ldcg(place)
#define GPUSORT_STORE_ONCE(place, value)	__stcs(place, value)
#else
#define prefetch(place, bytes)		((void) (place))
#define load_tally(place)			__atomic_load_n(place, __ATOMIC_RELAXED)
#define store_tally(place, value)	__atomic_store_n(place, value, __ATOMIC_RELAXED)
#define lanes_below()				((1u << threadIdx.x % 32) - 1)
#define GPUSORT_LOAD_ONCE(place)	(*(place))
#define GPUSORT_STORE_ONCE(place, value)	((void) (*(place) = (value)))
#endif

/* What a pass reads: rows between passes, keys alone (ids are row numbers), or keys and ids. */
enum GpuSortPassInput
{
	GPUSORT_INPUT_ROWS,
	GPUSORT_INPUT_KEYS,
	GPUSORT_INPUT_PAIRS,
};

/* What a pass writes: rows, or in the last pass ids alone, or keys and ids. */
enum GpuSortPassOutput
{
	GPUSORT_OUTPUT_ROWS,
	GPUSORT_OUTPUT_IDS,
	GPUSORT_OUTPUT_PAIRS,
};

/* What a pass reads and writes; see its template's parameters. */
typedef struct GpuSortPass
{
	const uint32_t *keys_in;	/* first pass */
	const uint32_t *ids_in;		/* first pass; NULL: row numbers are the ids */
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
	uint32_t	byte;			/* of the key, that is the digit; 4: there is none, all are equal */
	uint32_t	digit_mask;		/* last pass: the bits of it that count */
} GpuSortPass;

/*
 * Counts the low `digits` digits of the keys: adds to counts[digit][value]; last_mask are
 * the bits that count of the highest.  There are COPIES counters of a value; see
 * digit_counts.cuh.
 */
template <int THREADS, int UNROLL, int COPIES>
__global__ void __launch_bounds__(THREADS)
count_digits(const uint32_t *keys, uint32_t rows, int digits, uint32_t last_mask, uint32_t *counts)
{
	GPUSORT_DYNAMIC_SHARED(uint32_t, bins);
	const uint32_t step = gridDim.x * THREADS;

	/* bits that do not count are cleared, so that a digit is a byte */
	const int	last_shift = GPUSORT_DIGIT_BITS * (digits - 1);
	const uint32_t mask = last_mask << last_shift | ((1u << last_shift) - 1);

	/* four keys at a time, from the first place where that is aligned */
	const uint32_t unaligned = (uint32_t) ((16 - (uintptr_t) keys % 16) % 16 / 4);
	const uint32_t head = unaligned < rows ? unaligned : rows;
	const uint32_t quads = (rows - head) / 4;
	const uint32_t tail = rows - head - quads * 4;
	const uint4 *aligned = (const uint4 *) (keys + head);
	uint32_t	i = blockIdx.x * THREADS + threadIdx.x;

	clear_digit_counts<THREADS, COPIES>(bins, digits);
	for (; i + (UNROLL - 1) * step < quads; i += UNROLL * step)
	{
		uint4		four[UNROLL];

GPUSORT_UNROLL
		for (int j = 0; j < UNROLL; j++)
			four[j] = GPUSORT_LOAD_ONCE(aligned + i + j * step);
GPUSORT_UNROLL
		for (int j = 0; j < UNROLL; j++)
		{
			const uint32_t key[4] = {four[j].x & mask, four[j].y & mask, four[j].z & mask, four[j].w & mask};

			count_key_digits<COPIES>(bins, digits, key);
		}
	}
	for (; i < quads; i += step)
	{
		const uint4 four = GPUSORT_LOAD_ONCE(aligned + i);
		const uint32_t key[4] = {four.x & mask, four.y & mask, four.z & mask, four.w & mask};

		count_key_digits<COPIES>(bins, digits, key);
	}
	if (blockIdx.x == 0 && threadIdx.x < head + tail)
	{
		const uint32_t key[1] = {keys[threadIdx.x < head ? threadIdx.x : quads * 4 + threadIdx.x] & mask};

		count_key_digits<COPIES>(bins, digits, key);
	}
	add_digit_counts<THREADS, COPIES>(bins, digits, counts);
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

/*
 * The lanes of this warp whose digit is the same as this one's: a ballot per bit.  In
 * PTX because the compiler makes twice as many instructions of the same in C++.
 */
static __device__ __forceinline__ uint32_t
lanes_with(uint32_t digit)
{
#ifdef __CUDACC__
#define GPUSORT_MATCH_BIT(bit, into) \
		"and.b32 t, %1, " #bit ";\n" \
		"setp.ne.u32 p, t, 0;\n" \
		"vote.sync.ballot.b32 " into ", p, 0xffffffff;\n" \
		"@!p not.b32 " into ", " into ";\n"
	uint32_t	same;

	asm volatile("{\n.reg .pred p;\n.reg .b32 t, u, v;\n"
				 GPUSORT_MATCH_BIT(1, "u")
				 GPUSORT_MATCH_BIT(2, "v")
				 "and.b32 %0, u, v;\n"
				 GPUSORT_MATCH_BIT(4, "u")
				 GPUSORT_MATCH_BIT(8, "v")
				 "lop3.b32 %0, %0, u, v, 0x80;\n"
				 GPUSORT_MATCH_BIT(16, "u")
				 GPUSORT_MATCH_BIT(32, "v")
				 "lop3.b32 %0, %0, u, v, 0x80;\n"
				 GPUSORT_MATCH_BIT(64, "u")
				 GPUSORT_MATCH_BIT(128, "v")
				 "lop3.b32 %0, %0, u, v, 0x80;\n}"
				 : "=r"(same) : "r"(digit));
	return same;
#undef GPUSORT_MATCH_BIT
#else
	return __match_any_sync(GPUSORT_ALL_LANES, digit);
#endif
}

/* Ranks within a warp, of 16 bits, two to a register. */
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
			 GpuSortRanks<ITEMS> &ranks)
{
	const uint32_t below = lanes_below();
	const uint32_t above = ~(below << 1 | 1);

	static_assert(ITEMS % GROUP == 0, "groups are full");

GPUSORT_UNROLL
	for (int first = 0; first < ITEMS; first += GROUP)
	{
		uint32_t	same[GROUP];
		uint32_t   *counter[GROUP];

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

/* Bytes of dynamic shared memory of a pass: the tile's rows, and a counter per warp and digit. */
#define GPUSORT_PASS_SHARED(threads, items) \
	((size_t) (threads) * (items) * sizeof(uint64_t) + (threads) / 32 * GPUSORT_BINS * sizeof(uint32_t))

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
	uint32_t   *mine = counters + threadIdx.x / 32 * GPUSORT_BINS;
	GpuSortRanks<ITEMS> ranks;
	uint32_t	counts[WARPS];
	uint32_t	total = 0;

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
	const uint32_t below = sum_up_to(both, warp_sums) - both;

	if (threadIdx.x < GPUSORT_BINS)
	{
		uint32_t	place = below & 0xFFFF;

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

/*
 * Rows of digit threadIdx.x in the tiles before this one, of which there are `total`
 * here; and tells the tiles behind.
 */
template <int WINDOW>
static __device__ __forceinline__ uint32_t
look_back(uint32_t *tallies, uint32_t tile, int number, uint32_t total)
{
	const uint32_t tile_code = GPUSORT_TALLY_TILE(number);
	const uint32_t sum_code = GPUSORT_TALLY_SUM(number);
	uint32_t   *mine = tallies + (size_t) tile * GPUSORT_BINS + threadIdx.x;
	uint32_t	before = 0;
	uint32_t	next = tile;	/* tiles that were not counted yet */

	while (next > 0)
	{
		const uint32_t *last = tallies + (size_t) (next - 1) * GPUSORT_BINS + threadIdx.x;
		uint32_t	seen[WINDOW];
		uint32_t	taken = 0;
		bool		summed = false;

GPUSORT_UNROLL
		for (int i = 0; i < WINDOW; i++)
			seen[i] = (uint32_t) i < next ? load_tally(last - i * GPUSORT_BINS) : 0;
GPUSORT_UNROLL
		for (int i = 0; i < WINDOW; i++)
		{
			const uint32_t code = seen[i] & GPUSORT_TALLY_MASK;

			/* in order, up to the first sum, or the first that is not there yet */
			if (!summed && taken == (uint32_t) i && (uint32_t) i < next && (code == tile_code || code == sum_code))
			{
				before += seen[i] >> GPUSORT_TALLY_BITS;
				summed = code == sum_code;
				taken++;
			}
		}
		if (summed)
			break;
		next -= taken;
	}
	store_tally(mine, (before + total) << GPUSORT_TALLY_BITS | sum_code);
	return before;
}

/* What the threads of a block share in a pass, beside the tile's rows and the counters. */
template <int TILE>
struct GpuSortPassShared
{
	uint32_t	offsets[GPUSORT_BINS];	/* place of a digit less its first row in the tile */
	uint32_t	warp_sums[GPUSORT_BINS / 32];
	uint32_t	begins[TILE / 32];	/* last pass, ids alone: a bit for each place in the tile where a digit begins */
};

/*
 * Writes a tile's ids, which are in order, to their places.  Without keys the digit at a
 * place is not known, but how many digits of the tile begin up to it, and offsets are of
 * the digits that occur in the tile.  Each warp takes consecutive places.
 */
template <int ITEMS, bool FULL>
static __device__ __forceinline__ void
write_ids(const uint32_t *tile_ids, uint32_t count, const uint32_t *offsets, const uint32_t *begins, uint32_t *ids_out)
{
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t first_word = threadIdx.x / 32 * ITEMS;
	const uint32_t up_to_mine = lanes_below() << 1 | 1;
	uint32_t	begun = 0;

	for (uint32_t i = lane; i < first_word; i += 32)
		begun += __popc(begins[i]);
	begun = __reduce_add_sync(GPUSORT_ALL_LANES, begun);

GPUSORT_UNROLL_BY(4)
	for (int k = 0; k < ITEMS; k++)
	{
		const uint32_t word = begins[first_word + k];
		const uint32_t i = (first_word + k) * 32 + lane;

		if (FULL || i < count)
			GPUSORT_STORE_ONCE(ids_out + offsets[begun + __popc(word & up_to_mine) - 1] + i, tile_ids[i]);
		begun += __popc(word);
	}
}

/*
 * A pass over a tile that is FULL or not.
 *
 * Rows behind the last of a tile that is not have the highest digit and come last in
 * it, so they are counted where nobody looks and never written.
 */
template <int THREADS, int ITEMS, int GROUP, int WINDOW, GpuSortPassInput INPUT, GpuSortPassOutput OUTPUT, bool FULL>
static __device__ __forceinline__ void
pass_tile(const GpuSortPass &pass, void *tile, GpuSortPassShared<THREADS * ITEMS> &shared)
{
	constexpr uint32_t TILE = THREADS * ITEMS;
	constexpr bool LAST = OUTPUT != GPUSORT_OUTPUT_ROWS;
	constexpr bool IDS = OUTPUT == GPUSORT_OUTPUT_IDS;
	typedef typename std::conditional<INPUT == GPUSORT_INPUT_ROWS, uint64_t, uint32_t>::type Item;
	typedef typename std::conditional<IDS, uint32_t, uint64_t>::type Moved;
	const Item *input = (const Item *) (INPUT == GPUSORT_INPUT_ROWS ? (const void *) pass.rows_in : pass.keys_in);
	Moved	   *tile_rows = (Moved *) tile;
	uint32_t   *counters = (uint32_t *) (tile_rows + TILE);
	const uint32_t tile_first = blockIdx.x * TILE;	/* in this launch */
	const uint32_t count = FULL ? TILE : pass.rows - tile_first;
	const uint32_t mine = threadIdx.x / 32 * 32 * ITEMS + threadIdx.x % 32;
	const uint64_t from = (uint64_t) pass.first_row + tile_first + mine;
	Item		items[ITEMS];
	uint32_t	total = 0;
	uint32_t	start = 0;
	uint32_t	offset = threadIdx.x;	/* in shared.offsets */

	if (IDS)
	{
		for (uint32_t i = threadIdx.x; i < TILE / 32; i += THREADS)
			shared.begins[i] = 0;
	}

GPUSORT_UNROLL
	for (int k = 0; k < ITEMS; k++)
	{
		if (!FULL)
			items[k] = ~(Item) 0;
		if (FULL || mine + k * 32 < count)
			items[k] = GPUSORT_LOAD_ONCE(input + from + k * 32);
	}

	/* A full tile that a later block will want.  The own one's loads go first: 5.32 ms, not 5.38. */
	if (FULL && threadIdx.x == 0 && blockIdx.x + GPUSORT_TILES_AHEAD + 1 < gridDim.x && (uintptr_t) input % 16 == 0)
		prefetch(input + pass.first_row + tile_first + (uint64_t) GPUSORT_TILES_AHEAD * TILE, TILE * sizeof(Item));

	const auto	moved = [&](int k) -> Moved
	{
		uint32_t	id;

		if (INPUT == GPUSORT_INPUT_ROWS)
			return (Moved) items[k];
		if (INPUT == GPUSORT_INPUT_PAIRS && (FULL || mine + k * 32 < count))
			id = GPUSORT_LOAD_ONCE(pass.ids_in + from + k * 32);
		else
			id = (uint32_t) (from + k * 32);
		return IDS ? id : (Moved) ((uint64_t) items[k] << 32 | id);
	};
	const auto	counted = [&](uint32_t digit_total, uint32_t digit_start, uint32_t digits_below)
	{
		total = digit_total;
		start = digit_start;
		store_tally(&pass.tallies[(size_t) blockIdx.x * GPUSORT_BINS + threadIdx.x],
					total << GPUSORT_TALLY_BITS | GPUSORT_TALLY_TILE(pass.number));
		if (IDS && total > 0)
		{
			offset = digits_below;
			atomicOr(&shared.begins[start / 32], 1u << start % 32);
		}
	};

	order_tile<THREADS, ITEMS, GROUP, LAST>(items, moved, pass.byte, pass.digit_mask, tile_rows, counters,
											shared.warp_sums, counted);
	if (threadIdx.x < GPUSORT_BINS)
	{
		const uint32_t before = look_back<WINDOW>(pass.tallies, blockIdx.x, pass.number, total);
		const uint32_t place = pass.starts[threadIdx.x] + before;

		if (!IDS || total > 0)
			shared.offsets[offset] = place - start;
		if (pass.next_starts != NULL && blockIdx.x == gridDim.x - 1)
			pass.next_starts[threadIdx.x] = place + total;
	}
	__syncthreads();

	if (IDS)
		write_ids<ITEMS, FULL>((const uint32_t *) tile, count, shared.offsets, shared.begins, pass.ids_out);
	/* A row at a time: reading ahead takes registers and gains nothing (by 4 rows 5.32 ms, by 2 5.25, by 1 5.22). */
GPUSORT_UNROLL_BY(1)
	for (int k = 0; k < ITEMS && !IDS; k++)
	{
		const uint32_t i = k * THREADS + threadIdx.x;

		if (FULL || i < count)
		{
			const uint64_t row = tile_rows[i];
			const uint32_t key = key_of(row);
			const uint32_t place = shared.offsets[digit_of<LAST>(key, pass.byte, pass.digit_mask)] + i;

			if (!LAST)
				GPUSORT_STORE_ONCE(pass.rows_out + place, row);
			else
			{
				GPUSORT_STORE_ONCE(pass.ids_out + place, (uint32_t) row);
				GPUSORT_STORE_ONCE(pass.keys_out + place, key);
			}
		}
	}
}

/*
 * A pass: rows of this launch to their places by one digit.  A block per tile of
 * THREADS * ITEMS rows; BLOCKS are meant to share a multiprocessor.
 *
 *	INPUT	what it reads: rows_in, keys_in, or keys_in and ids_in
 *	OUTPUT	what it writes: rows_out, ids_out, or keys_out and ids_out
 *	GROUP	rows of a thread that are matched before any of them is counted
 *	WINDOW	tiles looked back at in one go
 */
template <int THREADS, int ITEMS, int BLOCKS, int GROUP, int WINDOW, GpuSortPassInput INPUT, GpuSortPassOutput OUTPUT>
__global__ void __launch_bounds__(THREADS, BLOCKS)
sort_pass(const __grid_constant__ GpuSortPass pass)
{
	GPUSORT_DYNAMIC_SHARED(uint64_t, tile);	/* [THREADS * ITEMS] rows or ids, then counters */
	__shared__ GpuSortPassShared<THREADS * ITEMS> shared;

	if (pass.rows - blockIdx.x * (THREADS * ITEMS) >= THREADS * ITEMS)
		pass_tile<THREADS, ITEMS, GROUP, WINDOW, INPUT, OUTPUT, true>(pass, tile, shared);
	else
		pass_tile<THREADS, ITEMS, GROUP, WINDOW, INPUT, OUTPUT, false>(pass, tile, shared);
}

/*
 * All passes over up to THREADS * ITEMS rows in one block, by the lowest `digits` bytes;
 * reads keys_in (and ids_in), writes ids_out (and keys_out).
 */
template <int THREADS, int ITEMS, int GROUP>
__global__ void __launch_bounds__(THREADS)
sort_block(const __grid_constant__ GpuSortPass pass, int digits)
{
	GPUSORT_DYNAMIC_SHARED(uint64_t, tile_rows);	/* [THREADS * ITEMS], then counters */
	__shared__ uint32_t warp_sums[GPUSORT_BINS / 32];
	uint32_t   *counters = (uint32_t *) (tile_rows + THREADS * ITEMS);
	const uint32_t mine = threadIdx.x / 32 * 32 * ITEMS + threadIdx.x % 32;
	uint64_t	rows[ITEMS];

GPUSORT_UNROLL
	for (int k = 0; k < ITEMS; k++)
	{
		const uint32_t i = mine + k * 32;

		rows[k] = ~(uint64_t) 0;
		if (i < pass.rows)
			rows[k] = (uint64_t) pass.keys_in[i] << 32 | (pass.ids_in != NULL ? pass.ids_in[i] : i);
	}

	for (int i = 0; i < digits; i++)
	{
		order_tile<THREADS, ITEMS, GROUP, true>(rows, [&](int k) { return rows[k]; }, i,
												i == digits - 1 ? pass.digit_mask : GPUSORT_BINS - 1,
												tile_rows, counters, warp_sums, [](uint32_t, uint32_t, uint32_t) {});
		__syncthreads();
GPUSORT_UNROLL
		for (int k = 0; k < ITEMS; k++)
			rows[k] = tile_rows[mine + k * 32];
		__syncthreads();
	}

GPUSORT_UNROLL
	for (int k = 0; k < ITEMS; k++)
	{
		const uint32_t i = mine + k * 32;

		if (i < pass.rows)
		{
			pass.ids_out[i] = (uint32_t) rows[k];
			if (pass.keys_out != NULL)
				pass.keys_out[i] = key_of(rows[k]);
		}
	}
}

/*
 * The kernels with one set of parameters; see sort_pass.  A launch is of PORTION rows at
 * most, whole tiles: what stands in for missing rows would count where the next begins.
 */
template <int THREADS, int ITEMS, int BLOCKS, int GROUP, int WINDOW,
		  uint32_t PORTION_TILES = GPUSORT_TALLY_MAX / (THREADS * ITEMS), int COUNT_COPIES = 32>
struct GpuSortOnesweep
{
	static constexpr uint32_t TILE = THREADS * ITEMS;
	static constexpr uint32_t PORTION = PORTION_TILES * TILE;
	/* The most shared memory that a block takes: of the count of all digits, or of a pass. */
	static constexpr size_t COUNT_SHARED = GPUSORT_DIGIT_COUNTS_SHARED(GPUSORT_MAX_PASSES, COUNT_COPIES);
	static constexpr size_t SHARED = COUNT_SHARED > GPUSORT_PASS_SHARED(THREADS, ITEMS) ? COUNT_SHARED :
		GPUSORT_PASS_SHARED(THREADS, ITEMS);

	static constexpr int COUNT_THREADS = 1024;
	static constexpr int COUNT_UNROLL = 8;
	static constexpr uint32_t COUNT_KEYS = 16 * COUNT_THREADS;	/* of a block, at least */

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
		const uint32_t portion = rows < PORTION ? rows : PORTION;
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

	/* How many bytes hold so many bits; the last counts as one also when there are none. */
	static int
	count_digits_of(int bits)
	{
		return bits > GPUSORT_DIGIT_BITS ? (bits + GPUSORT_DIGIT_BITS - 1) / GPUSORT_DIGIT_BITS : 1;
	}

	/* The bits of the last byte that count. */
	static uint32_t
	last_mask(int bits)
	{
		return (1u << (bits - GPUSORT_DIGIT_BITS * (count_digits_of(bits) - 1))) - 1;
	}

	/*
	 * The last pass may write where the first one reads, so then it is not the same one, but comes after one whose digit
	 * is 0 in all rows.  Its counts may be anything from 1 up; none are made.
	 */
	static int
	count_idle(int bits, bool in_place)
	{
		return in_place && count_digits_of(bits) == 1 ? 1 : 0;
	}

	static size_t
	temp_bytes(uint32_t rows, int bits)
	{
		return lay_out(rows, count_digits_of(bits) + count_idle(bits, true)).end;
	}

	/* The most that find_room hands out, whatever the bits; rows of one tile are sorted without temp. */
	static size_t
	room_bytes(uint32_t rows)
	{
		return rows > TILE ? lay_out(rows, GPUSORT_MAX_PASSES).end : rows * sizeof(uint64_t);
	}

	/*
	 * See gpusort_radix_room.  Pass i writes rows[i % 2] and reads the other, but for what
	 * the first one reads and the last one writes.  So of 3 and 4 passes the first may read
	 * from rows[1], and the last may write to the rows it does not read.  Fewer leave
	 * temp behind what they use.
	 */
	static GpuSortRadixRoom
	find_room(char *temp, uint32_t rows, int bits)
	{
		const int	passes = count_digits_of(bits);
		const Layout layout = lay_out(rows, passes);
		const size_t keys_bytes = (size_t) rows * sizeof(uint32_t);
		char	   *in = temp + layout.end;
		char	   *out = in;
		GpuSortRadixRoom room;

		if (rows > TILE && passes == 1)
			out = in + 2 * keys_bytes;
		else if (rows > TILE && passes > 2)
		{
			in = temp + layout.rows[1];
			out = temp + layout.rows[passes % 2 == 0 ? 1 : 0];
		}
		room.keys_in = (uint32_t *) in;
		room.ids_in = (uint32_t *) (in + keys_bytes);
		room.keys_out = (uint32_t *) out;
		room.ids_out = (uint32_t *) (out + keys_bytes);
		return room;
	}

	template <GpuSortPassInput INPUT, GpuSortPassOutput OUTPUT>
	static void
	start_pass_of(const GpuSortPass *pass, cudaStream_t stream)
	{
		auto		kernel = sort_pass<THREADS, ITEMS, BLOCKS, GROUP, WINDOW, INPUT, OUTPUT>;

		GPUSORT_START_KERNEL_SHARED(kernel, (pass->rows + TILE - 1) / TILE, THREADS,
									GPUSORT_PASS_SHARED(THREADS, ITEMS), stream, *pass);
	}

	template <GpuSortPassInput INPUT>
	static void
	start_pass_from(const GpuSortPass *pass, bool last, cudaStream_t stream)
	{
		if (!last)
			start_pass_of<INPUT, GPUSORT_OUTPUT_ROWS>(pass, stream);
		else if (pass->keys_out == NULL)
			start_pass_of<INPUT, GPUSORT_OUTPUT_IDS>(pass, stream);
		else
			start_pass_of<INPUT, GPUSORT_OUTPUT_PAIRS>(pass, stream);
	}

	static cudaError_t
	start_pass(const GpuSortPass *pass, bool first, bool last, cudaStream_t stream)
	{
		if (!first)
			start_pass_from<GPUSORT_INPUT_ROWS>(pass, last, stream);
		else if (pass->ids_in == NULL)
			start_pass_from<GPUSORT_INPUT_KEYS>(pass, last, stream);
		else
			start_pass_from<GPUSORT_INPUT_PAIRS>(pass, last, stream);
		return cudaGetLastError();
	}

	/*
	 * Adds to the counts of the passes' digits.  Blocks are as many as run at a time, so that each clears and adds
	 * its counters once.
	 */
	static cudaError_t
	count(const uint32_t *keys, uint32_t rows, int bits, uint32_t *counts, cudaStream_t stream)
	{
		auto		kernel = count_digits<COUNT_THREADS, COUNT_UNROLL, COUNT_COPIES>;
		const int	digits = count_digits_of(bits);
		const uint32_t wanted = (uint32_t) (((uint64_t) rows + COUNT_KEYS - 1) / COUNT_KEYS);
		int			device;
		int			processors;
		cudaError_t status = cudaGetDevice(&device);

		if (status == cudaSuccess)
			status = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
		if (status != cudaSuccess)
			return status;
		GPUSORT_START_KERNEL_SHARED_OF(kernel, wanted < (uint32_t) processors ? wanted : (uint32_t) processors, COUNT_THREADS,
									   GPUSORT_DIGIT_COUNTS_SHARED(digits, COUNT_COPIES), COUNT_SHARED, stream, keys,
									   rows, digits, last_mask(bits), counts);
		return cudaGetLastError();
	}

	/* As gpusort_radix_begin.  One digit is not worth it, and in place there would be an idle pass. */
	static cudaError_t
	begin(void *temp, size_t temp_size, uint32_t rows, int bits, uint32_t **counts, cudaStream_t stream)
	{
		const Layout layout = lay_out(rows, count_digits_of(bits));

		*counts = NULL;
		if (rows <= TILE || count_digits_of(bits) == 1)
			return cudaSuccess;
		if (layout.end > temp_size)
			return cudaErrorInvalidValue;
		*counts = (uint32_t *) ((char *) temp + layout.counts);
		return cudaMemsetAsync((char *) temp + layout.tallies, 0, layout.end - layout.tallies, stream);
	}

	/* As gpusort_radix_sort; with `counted` after begin, and counts have been made. */
	static cudaError_t
	sort(void *temp, size_t temp_size, const uint32_t *keys_in, const uint32_t *ids_in, uint32_t rows, int bits,
		 uint32_t *keys_out, uint32_t *ids_out, cudaStream_t stream, bool counted = false)
	{
		const int	idle = count_idle(bits, keys_out == keys_in || ids_out == ids_in);
		const int	passes = count_digits_of(bits) + idle;
		const Layout layout = lay_out(rows, passes);
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
		pass.digit_mask = last_mask(bits);
		if (rows <= TILE)
		{
			auto		kernel = sort_block<THREADS, ITEMS, GROUP>;

			pass.rows = rows;
			GPUSORT_START_KERNEL_SHARED(kernel, 1, THREADS, GPUSORT_PASS_SHARED(THREADS, ITEMS), stream, pass, count_digits_of(bits));
			return cudaGetLastError();
		}

		/* tallies and counts lie beside each other */
		status = cudaSuccess;
		if (!counted || count_digits_of(bits) == 1)
		{
			status = cudaMemsetAsync(base + layout.tallies, 0, layout.end - layout.tallies, stream);
			if (status == cudaSuccess)
				status = count(keys_in, rows, bits, counts + idle * GPUSORT_BINS, stream);
		}
		if (status == cudaSuccess)
		{
			GPUSORT_START_KERNEL(start_bins, passes, GPUSORT_BINS, stream, counts);
			status = cudaGetLastError();
		}
		for (int i = 0; i < passes && status == cudaSuccess; i++)
		{
			uint32_t   *next = counts + GPUSORT_MAX_PASSES * GPUSORT_BINS;

			pass.rows_in = (const uint64_t *) (base + layout.rows[(i + 1) % 2]);
			pass.rows_out = (uint64_t *) (base + layout.rows[i % 2]);
			pass.tallies = (uint32_t *) (base + layout.tallies);
			pass.starts = counts + i * GPUSORT_BINS;
			pass.byte = i < idle ? 4 : i - idle;

			/* a portion ends where the next one starts, bin by bin */
			for (uint64_t first = 0; first < rows && status == cudaSuccess; first += PORTION)
			{
				const uint64_t left = rows - first;

				pass.first_row = (uint32_t) first;
				pass.rows = left < PORTION ? (uint32_t) left : PORTION;
				pass.next_starts = left > PORTION ? next : NULL;
				status = start_pass(&pass, i == 0, i == passes - 1, stream);
				pass.number++;
				pass.starts = next;
				next = counts + (GPUSORT_MAX_PASSES + (next == counts + GPUSORT_MAX_PASSES * GPUSORT_BINS)) * GPUSORT_BINS;
			}
		}
		return status;
	}
};

#endif							/* GPUSORT_ONESWEEP_CUH */
