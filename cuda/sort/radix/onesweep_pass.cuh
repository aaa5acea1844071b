/*-------------------------------------------------------------------------
 *
 * onesweep_pass.cuh
 *	  The kernels of the radix core: the count of all digits, a pass over the rows
 *	  by one digit, and all passes over a few rows; see onesweep.cuh.
 *
 * Tiles are taken in the order of block numbers: a block waits for blocks of lower
 * numbers alone, and those were started before it.  CUB's scan relies on the same.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ONESWEEP_PASS_CUH
#define GPUSORT_ONESWEEP_PASS_CUH

#include <stdint.h>

#include <type_traits>

#include <cuda_runtime.h>

#include "sort/digit_histogram.cuh"
#include "sort/launch.h"
#include "sort/portable.h"
#include "sort/radix/tile_order.cuh"

/*
 * A tile's look-back status for a digit: a count of rows above three bits that say which pass
 * it is of and whether it is PARTIAL, of the tile alone, or INCLUSIVE, of all tiles up to it.
 */
#define GPUSORT_STATUS_BITS            3
#define GPUSORT_STATUS_MASK            7u
#define GPUSORT_STATUS_PARTIAL(pass)   ((2 * (pass) + 1) & GPUSORT_STATUS_MASK)
#define GPUSORT_STATUS_INCLUSIVE(pass) ((2 * (pass) + 2) & GPUSORT_STATUS_MASK)

/*
 * How far ahead of a tile another is fetched into the cache: a quarter of the tiles that an
 * H200 has on their way.  For 2^28 rows, when that took 6 ms: none 6.19 ms, 66 5.91, 132 5.93,
 * 264 6.3; now 48 5.26, 66 5.25, 100 5.25.
 */
#define GPUSORT_TILES_AHEAD 66

/* The most rows of a launch, so that counts fit. */
#define GPUSORT_STATUS_ROWS_MAX (UINT32_MAX >> GPUSORT_STATUS_BITS)

#ifdef __CUDACC__
static __device__ __forceinline__ uint32_t
load_status(const uint32_t *place)
{
	uint32_t value;

	asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
				 : "=r"(value)
				 : "l"(place)
				 : "memory");
	return value;
}

static __device__ __forceinline__ void
store_status(uint32_t *place, uint32_t value)
{
	asm volatile("st.relaxed.gpu.global.u32 [%0], %1;"
				 :
				 : "l"(place), "r"(value)
				 : "memory");
}

/* Asks for `bytes` bytes, a multiple of 16, to be in the cache soon, where the device can. */
static __device__ __forceinline__ void
prefetch(const void *place, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
				 :
				 : "l"(place), "r"(bytes)
				 : "memory");
#endif
}

/*
 * Read or written once.  Loads pass by the first-level cache: with the hint to leave early
 * (__ldcs), which keeps a line there, a sort of 2^28 rows took 5.57 ms where it took 5.38.
 */
#define GPUSORT_LOAD_ONCE(place)         __ldcg(place)
#define GPUSORT_STORE_ONCE(place, value) __stcs(place, value)
#else
#define prefetch(place, bytes)           ((void) (place))
#define load_status(place)               __atomic_load_n(place, __ATOMIC_RELAXED)
#define store_status(place, value)       __atomic_store_n(place, value, __ATOMIC_RELAXED)
#define GPUSORT_LOAD_ONCE(place)         (*(place))
#define GPUSORT_STORE_ONCE(place, value) ((void) (*(place) = (value)))
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
	const uint32_t *keys_in;     /* first pass */
	const uint32_t *ids_in;      /* first pass; NULL: row numbers are the ids */
	const uint64_t *rows_in;     /* others: key above id */
	uint64_t *rows_out;          /* all but the last */
	uint32_t *keys_out;          /* last pass; NULL: not wanted */
	uint32_t *ids_out;           /* last pass */
	uint32_t *tile_status;       /* look-back status, GPUSORT_BINS per tile */
	const uint32_t *bin_offsets; /* where each bin starts */
	uint32_t *next_bin_offsets;  /* the same for the rows behind this launch's; NULL: there are none */
	uint32_t first_row;          /* of this launch */
	uint32_t rows;               /* of this launch */
	int number;                  /* of this launch since the status was cleared */
	uint32_t byte;               /* of the key, that is the digit; 4: there is none, all are equal */
	uint32_t digit_mask;         /* last pass: the bits of it that count */
} GpuSortPass;

/*
 * Counts the low `digits` digits of the keys: adds to histogram[digit][value]; last_mask are
 * the bits that count of the highest; see digit_histogram.cuh.
 */
template <int THREADS, int UNROLL>
__global__ void
__launch_bounds__(THREADS)
	count_digits(const uint32_t *keys, uint32_t rows, int digits, uint32_t last_mask, uint32_t *histogram)
{
	GPUSORT_DYNAMIC_SHARED(uint32_t, bins);
	const uint32_t step = gridDim.x * THREADS;

	/* bits that do not count are cleared, so that a digit is a byte */
	const int last_shift = GPUSORT_DIGIT_BITS * (digits - 1);
	const uint32_t mask = last_mask << last_shift | ((1u << last_shift) - 1);

	/* four keys at a time, from the first place where that is aligned */
	const uint32_t unaligned = (uint32_t) ((16 - (uintptr_t) keys % 16) % 16 / 4);
	const uint32_t head = unaligned < rows ? unaligned : rows;
	const uint32_t quads = (rows - head) / 4;
	const uint32_t tail = rows - head - quads * 4;
	const uint4 *aligned = (const uint4 *) (keys + head);
	uint32_t i = blockIdx.x * THREADS + threadIdx.x;

	clear_histogram<THREADS>(bins, digits);
	for (; i + (UNROLL - 1) * step < quads; i += UNROLL * step)
	{
		uint4 four[UNROLL];

		GPUSORT_UNROLL
		for (int j = 0; j < UNROLL; j++)
			four[j] = GPUSORT_LOAD_ONCE(aligned + i + j * step);
		GPUSORT_UNROLL
		for (int j = 0; j < UNROLL; j++)
		{
			const uint32_t key[4] = {four[j].x & mask, four[j].y & mask, four[j].z & mask, four[j].w & mask};

			count_key_digits(bins, digits, key);
		}
	}
	for (; i < quads; i += step)
	{
		const uint4 four = GPUSORT_LOAD_ONCE(aligned + i);
		const uint32_t key[4] = {four.x & mask, four.y & mask, four.z & mask, four.w & mask};

		count_key_digits(bins, digits, key);
	}
	if (blockIdx.x == 0 && threadIdx.x < head + tail)
	{
		const uint32_t key[1] = {keys[threadIdx.x < head ? threadIdx.x : quads * 4 + threadIdx.x] & mask};

		count_key_digits(bins, digits, key);
	}
	add_histogram<THREADS>(bins, digits, histogram);
}

/* bin_offsets[pass][digit] = rows with a lower digit; a block per pass, in place of the histogram. */
static __global__ void
scan_histograms(uint32_t *histogram)
{
	__shared__ uint32_t warp_sums[GPUSORT_BINS / 32];
	uint32_t *mine = histogram + blockIdx.x * GPUSORT_BINS + threadIdx.x;
	uint32_t count = *mine;

	*mine = inclusive_scan(count, warp_sums) - count;
}

/* Bytes of dynamic shared memory of a pass: the tile's rows, and a counter per warp and digit. */
#define GPUSORT_PASS_SHARED(threads, items) \
	((size_t) (threads) * (items) * sizeof(uint64_t) + (threads) / 32 * GPUSORT_BINS * sizeof(uint32_t))

/*
 * Returns the rows of digit threadIdx.x in the tiles before this one, which has `total` of
 * them, and publishes the sum for the tiles behind.
 */
template <int WINDOW>
static __device__ __forceinline__ uint32_t
look_back(uint32_t *tile_status, uint32_t tile, int number, uint32_t total)
{
	const uint32_t partial = GPUSORT_STATUS_PARTIAL(number);
	const uint32_t inclusive = GPUSORT_STATUS_INCLUSIVE(number);
	uint32_t *mine = tile_status + (size_t) tile * GPUSORT_BINS + threadIdx.x;
	uint32_t before = 0;
	uint32_t next = tile; /* tiles that were not counted yet */

	while (next > 0)
	{
		const uint32_t *last = tile_status + (size_t) (next - 1) * GPUSORT_BINS + threadIdx.x;
		uint32_t seen[WINDOW];
		uint32_t taken = 0;
		bool summed = false;

		GPUSORT_UNROLL
		for (int i = 0; i < WINDOW; i++)
			seen[i] = (uint32_t) i < next ? load_status(last - i * GPUSORT_BINS) : 0;
		GPUSORT_UNROLL
		for (int i = 0; i < WINDOW; i++)
		{
			const uint32_t code = seen[i] & GPUSORT_STATUS_MASK;

			/* in order, up to the first inclusive one, or the first that is not there yet */
			if (!summed && taken == (uint32_t) i && (uint32_t) i < next && (code == partial || code == inclusive))
			{
				before += seen[i] >> GPUSORT_STATUS_BITS;
				summed = code == inclusive;
				taken++;
			}
		}
		if (summed)
			break;
		next -= taken;
	}
	store_status(mine, (before + total) << GPUSORT_STATUS_BITS | inclusive);
	return before;
}

/* What the threads of a block share in a pass, beside the tile's rows and the counters. */
template <int TILE>
struct GpuSortPassShared
{
	uint32_t offsets[GPUSORT_BINS]; /* place of a digit less its first row in the tile */
	uint32_t warp_sums[GPUSORT_BINS / 32];
	uint32_t begins[TILE / 32]; /* last pass, ids alone: a bit for each place in the tile where a digit begins */
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
	uint32_t begun = 0;

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
 * Places behind the last row of a tile that is not FULL count as rows of the highest digit.
 * They come last in the tile, so no row's place depends on them, and they are not written.
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
	Moved *tile_rows = (Moved *) tile;
	uint32_t *counters = (uint32_t *) (tile_rows + TILE);
	const uint32_t tile_first = blockIdx.x * TILE; /* in this launch */
	const uint32_t count = FULL ? TILE : pass.rows - tile_first;
	const uint32_t mine = threadIdx.x / 32 * 32 * ITEMS + threadIdx.x % 32;
	const uint64_t from = (uint64_t) pass.first_row + tile_first + mine;
	Item items[ITEMS];
	uint32_t total = 0;
	uint32_t start = 0;
	uint32_t offset = threadIdx.x; /* in shared.offsets */

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

	const auto moved = [&](int k) -> Moved
	{
		uint32_t id;

		if (INPUT == GPUSORT_INPUT_ROWS)
			return (Moved) items[k];
		if (INPUT == GPUSORT_INPUT_PAIRS && (FULL || mine + k * 32 < count))
			id = GPUSORT_LOAD_ONCE(pass.ids_in + from + k * 32);
		else
			id = (uint32_t) (from + k * 32);
		return IDS ? id : (Moved) ((uint64_t) items[k] << 32 | id);
	};
	const auto counted = [&](uint32_t digit_total, uint32_t digit_start, uint32_t digits_below)
	{
		total = digit_total;
		start = digit_start;
		store_status(&pass.tile_status[(size_t) blockIdx.x * GPUSORT_BINS + threadIdx.x],
					 total << GPUSORT_STATUS_BITS | GPUSORT_STATUS_PARTIAL(pass.number));
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
		const uint32_t before = look_back<WINDOW>(pass.tile_status, blockIdx.x, pass.number, total);
		const uint32_t place = pass.bin_offsets[threadIdx.x] + before;

		if (!IDS || total > 0)
			shared.offsets[offset] = place - start;
		if (pass.next_bin_offsets != NULL && blockIdx.x == gridDim.x - 1)
			pass.next_bin_offsets[threadIdx.x] = place + total;
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
__global__ void
__launch_bounds__(THREADS, BLOCKS)
	sort_pass(const __grid_constant__ GpuSortPass pass)
{
	GPUSORT_DYNAMIC_SHARED(uint64_t, tile); /* [THREADS * ITEMS] rows or ids, then counters */
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
__global__ void
__launch_bounds__(THREADS)
	sort_block(const __grid_constant__ GpuSortPass pass, int digits)
{
	GPUSORT_DYNAMIC_SHARED(uint64_t, tile_rows); /* [THREADS * ITEMS], then counters */
	__shared__ uint32_t warp_sums[GPUSORT_BINS / 32];
	uint32_t *counters = (uint32_t *) (tile_rows + THREADS * ITEMS);
	const uint32_t mine = threadIdx.x / 32 * 32 * ITEMS + threadIdx.x % 32;
	uint64_t rows[ITEMS];

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
		order_tile<THREADS, ITEMS, GROUP, true>(
			rows, [&](int k)
			{ return rows[k]; },
			i,
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

#endif /* GPUSORT_ONESWEEP_PASS_CUH */
