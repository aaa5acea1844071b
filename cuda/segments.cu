/*-------------------------------------------------------------------------
 *
 * segments.cu
 *	  Runs of rows that tie on the bits sorted so far, by the bits that follow.
 *
 * A level is an array of 32-bit keys in order and the ids of their rows.  The first
 * level is the sorted prefixes of all rows.  A run is a maximal stretch of equal
 * keys; what happens to it depends on how many rows it has:
 *
 *	2 to 4			listed, then order_few: a thread each.  That is nearly all runs of
 *					random keys, and every thread has fetches of its own under way; where
 *					the list is full, the tile that found the run does it.
 *	5 to 32			order_short_runs, in the pass that finds the runs: a tile of
 *					keys is read, rows of runs that begin in it are listed in shared
 *					memory, their next 64 bits fetched, and each row counts how many
 *					of its run go before it.  Rows in no run cost the 4 bytes of
 *					their key.
 *	33 to 2048		listed, then order_middle_runs: a bitonic network in shared
 *					memory (Batcher; after Bainville's local sorts) by the next 64
 *					bits, again while rows tie and there are bits.  One warp per run
 *					up to 256 rows, a block beyond.
 *	longer			listed, and all their rows make the next level: (run number,
 *					as many of the next bits as fit beside it in 32) is a key, the
 *					radix core sorts by it, and the ids go back to their runs' places.
 *
 * So a row is fetched again only as long as it ties, and only runs longer than 2048
 * rows cost the host's waiting.  One sort by (run number, bits) takes the place of
 * one by the bits and one by the run number: there are at most 2^32 / 2049 long runs,
 * so at least 11 bits fit, and when there are few runs nearly 32.
 *
 * Everything is stable: the order that ids have in a run decides last.
 *
 * Moved per row of a level: key 4 bytes; tied row: id 4, a sector or two of its key, 4
 * for the id if it moves; row of a long run: id 4, sectors of its key, 8, the core's
 * (4 passes: 64), ids 4 + 4, and a level of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "segments.h"

#include "check.h"
#include "key_source.h"
#include "radix_sort.h"

/* A block of order_short_runs: rows of a tile, and how far it looks beyond. */
#define SHORT_THREADS	256
#define SHORT_BLOCKS	8			/* of a multiprocessor, so that loads are enough on their way */
#define SHORT_TILE		1536
#define SHORT_RUN		32

/* Runs that one thread orders, and the rows that there is a place for one of them in the list for. */
#define FEW_RUN			4
#define FEW_SHARE		8
#define FEW_THREADS		256
#define FEW_BLOCKS		2048

#define WARP_RUN		256
#define BLOCK_RUN		2048
#define BLOCK_THREADS	256

/* Blocks for the lists of runs, whose length only the device knows when they start. */
#define WARP_RUN_BLOCKS		4096
#define BLOCK_RUN_BLOCKS	1024

/* Rows of a block that goes over the rows of long runs: at most two runs meet in it. */
#define LEVEL_THREADS	256
#define LEVEL_TILE		1024

static_assert(SHORT_TILE << 3 <= UINT16_MAX + 1 && FEW_RUN < 8, "a run of few rows fits 16 bits");
static_assert(LEVEL_TILE <= BLOCK_RUN, "a tile of a level holds at most two runs");

/* Bits that one look at a row's key yields. */
#define WINDOW_BITS		64

typedef struct TiedRun
{
	uint32_t	start;
	uint32_t	rows;
} TiedRun;

/* A run of more than BLOCK_RUN rows. */
typedef struct LongRun
{
	uint32_t	start;			/* of its rows */
	uint32_t	offset;			/* of its rows in the next level */
} LongRun;

typedef struct RunCounts
{
	unsigned long long long_runs;	/* count << 32 | rows, so that one addition yields number and offset */
	uint32_t	few_runs;		/* wanted places, also those that the list has not */
	uint32_t	warp_runs;
	uint32_t	block_runs;
} RunCounts;

/* Runs as they are found, in any order. */
typedef struct RunLists
{
	RunCounts  *counts;
	uint32_t	few_capacity;
	TiedRun    *few_runs;		/* of 0 rows: a place left empty */
	TiedRun    *warp_runs;
	TiedRun    *block_runs;
	LongRun    *long_runs;
} RunLists;

/* Everything in temp. */
typedef struct TieTemp
{
	RunLists	lists;
	LongRun    *level_runs;		/* the runs that the level is made of; changes places with lists.long_runs */
	void	   *core;			/* where levels lie, too */
	size_t		core_bytes;
} TieTemp;

/* Do any of the block's threads say so?  A barrier, too. */
#ifdef __CUDACC__
#define block_any(vote, flag)	__syncthreads_or(vote)
#else
static int
block_any(bool vote, uint32_t *flag)
{
	int			any;

	__syncthreads();
	*flag = 0;
	__syncthreads();
	if (vote)
		*flag = 1;
	__syncthreads();
	any = (int) *flag;
	__syncthreads();
	return any;
}
#endif

/* One past the last row whose key is that of row `row`; row to row + SHORT_RUN are known to have it. */
static __device__ uint32_t
run_end(const uint32_t *keys, uint32_t row, uint32_t rows)
{
	const uint32_t key = keys[row];
	uint64_t	known = (uint64_t) row + SHORT_RUN;
	uint64_t	step = SHORT_RUN;
	uint64_t	end = known + step;

	while (end < rows && keys[end] == key)
	{
		known = end;
		step *= 2;
		end += step;
	}
	if (end > rows)
		end = rows;
	while (end - known > 1)
	{
		uint64_t	middle = known + (end - known) / 2;

		if (keys[middle] == key)
			known = middle;
		else
			end = middle;
	}
	return (uint32_t) end;
}

/* Puts a run of more than SHORT_RUN rows in the list of its kind. */
static __device__ void
list_run(const RunLists &lists, uint32_t start, uint32_t rows)
{
	if (rows <= WARP_RUN)
		lists.warp_runs[atomicAdd(&lists.counts->warp_runs, 1u)] = TiedRun{start, rows};
	else if (rows <= BLOCK_RUN)
		lists.block_runs[atomicAdd(&lists.counts->block_runs, 1u)] = TiedRun{start, rows};
	else
	{
		unsigned long long before = atomicAdd(&lists.counts->long_runs, 1ull << 32 | rows);

		lists.long_runs[before >> 32] = LongRun{start, (uint32_t) before};
	}
}

/* Bits `from` and after of two rows' packed keys; both tie on those before. */
template <int FORM>
static __device__ int
compare_after(const GpuSortKeySource &source, const GpuSortPackPlan &plan, uint32_t from, uint32_t a, uint32_t b)
{
	uint64_t	made[2];
	const uint64_t *key_a = gpusort_source_key<FORM>(&source, a, &made[0]);
	const uint64_t *key_b = gpusort_source_key<FORM>(&source, b, &made[1]);

	for (; from < plan.packed_bits; from += WINDOW_BITS)
	{
		uint64_t	window_a = gpusort_pack_window64(&plan, key_a, from, WINDOW_BITS);
		uint64_t	window_b = gpusort_pack_window64(&plan, key_b, from, WINDOW_BITS);

		if (window_a != window_b)
			return window_a < window_b ? -1 : 1;
	}
	return 0;
}

/* Puts a run of up to FEW_RUN rows in order by the bits from `from` on; one thread. */
template <int FORM>
static __device__ void
order_one(const GpuSortKeySource &source, const GpuSortPackPlan &plan, uint32_t from, uint32_t *ids, uint32_t rows)
{
	uint32_t	own[FEW_RUN];
	uint64_t	windows[FEW_RUN];
	uint32_t	ranks[FEW_RUN];

	/* all ids, then all keys: each fetch waits for nothing but what it needs */
GPUSORT_UNROLL
	for (uint32_t i = 0; i < FEW_RUN; i++)
		own[i] = i < rows ? ids[i] : 0;
GPUSORT_UNROLL
	for (uint32_t i = 0; i < FEW_RUN; i++)
	{
		uint64_t	made;

		windows[i] = 0;
		if (i < rows)
			windows[i] = gpusort_pack_window64(&plan, gpusort_source_key<FORM>(&source, own[i], &made), from,
											   WINDOW_BITS);
		ranks[i] = 0;
	}
GPUSORT_UNROLL
	for (uint32_t i = 0; i < FEW_RUN; i++)
	{
GPUSORT_UNROLL
		for (uint32_t j = i + 1; j < FEW_RUN; j++)
		{
			bool		later = windows[j] < windows[i];

			if (j < rows)
			{
				if (windows[j] == windows[i] && from + WINDOW_BITS < plan.packed_bits)
					later = compare_after<FORM>(source, plan, from + WINDOW_BITS, own[j], own[i]) < 0;
				ranks[later ? i : j]++;
			}
		}
	}
GPUSORT_UNROLL
	for (uint32_t i = 0; i < FEW_RUN; i++)
	{
		if (i < rows && ranks[i] != i)
			ids[ranks[i]] = own[i];
	}
}

/* Orders the listed runs of up to FEW_RUN rows. */
template <int FORM>
static __global__ void __launch_bounds__(FEW_THREADS)
order_few(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan, uint32_t from,
		  uint32_t *ids, const RunLists lists)
{
	const uint32_t wanted = lists.counts->few_runs;
	const uint32_t count = wanted < lists.few_capacity ? wanted : lists.few_capacity;

	for (uint64_t i = (uint64_t) blockIdx.x * FEW_THREADS + threadIdx.x; i < count; i += gridDim.x * FEW_THREADS)
	{
		const TiedRun run = lists.few_runs[i];

		if (run.rows > 0)
			order_one<FORM>(source, plan, from, ids + run.start, run.rows);
	}
}

/* Lists the rows of a run of this tile to be ordered here. */
static __device__ inline void
take_places(uint32_t *places, uint32_t *count, uint32_t first, uint32_t length)
{
	const uint32_t slot = atomicAdd(count, length);

	for (uint32_t k = 0; k < length; k++)
		places[slot + k] = first << 16 | k << 8 | length;
}

/*
 * Finds the runs of a level, a tile per block.  Those of up to SHORT_RUN rows that begin in
 * the tile are put in order by the bits from `from` on, those of very few rows and of more are
 * listed.
 */
template <int FORM>
static __global__ void __launch_bounds__(SHORT_THREADS, SHORT_BLOCKS)
order_short_runs(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
				 uint32_t from, const uint32_t *keys, uint32_t *ids, uint32_t rows, const RunLists lists)
{
	/* Tied rows, run after run; first the keys lie where their ids will. */
	__shared__ uint32_t tile_ids[SHORT_TILE + SHORT_RUN + 1];
	__shared__ uint32_t tile_places[SHORT_TILE + SHORT_RUN];
	__shared__ uint64_t tile_windows[SHORT_TILE + SHORT_RUN];
	__shared__ uint16_t few_runs[SHORT_TILE / 2];	/* place and rows */
	__shared__ uint32_t few_count;
	__shared__ uint32_t few_start;
	__shared__ uint32_t tile_count;
	uint32_t   *tile_keys = tile_ids + 1;	/* [-1] is the row's before the tile */
	const uint32_t start = blockIdx.x * SHORT_TILE;
	const uint32_t left = rows - start;
	const int	heads = left < SHORT_TILE ? (int) left : SHORT_TILE;
	const int	seen = left < SHORT_TILE + SHORT_RUN ? (int) left : SHORT_TILE + SHORT_RUN;

	if (threadIdx.x == 0)
	{
		tile_count = 0;
		few_count = 0;
		if (start > 0)
			tile_keys[-1] = keys[start - 1];
	}
	if (seen == SHORT_TILE + SHORT_RUN)
	{
		/* all loads are on their way before the first is waited for */
		uint32_t	loaded[SHORT_TILE / SHORT_THREADS];

GPUSORT_UNROLL
		for (int k = 0; k < SHORT_TILE / SHORT_THREADS; k++)
			loaded[k] = keys[start + k * SHORT_THREADS + threadIdx.x];
		if (threadIdx.x < SHORT_RUN)
			tile_keys[SHORT_TILE + threadIdx.x] = keys[start + SHORT_TILE + threadIdx.x];
GPUSORT_UNROLL
		for (int k = 0; k < SHORT_TILE / SHORT_THREADS; k++)
			tile_keys[k * SHORT_THREADS + threadIdx.x] = loaded[k];
	}
	else
	{
		for (int i = threadIdx.x; i < seen; i += SHORT_THREADS)
			tile_keys[i] = keys[start + i];
	}
	__syncthreads();

	for (int i = threadIdx.x; i < heads; i += SHORT_THREADS)
	{
		const uint32_t key = tile_keys[i];
		int			length = 1;

		if (i + 1 >= seen || tile_keys[i + 1] != key || ((i > 0 || start > 0) && tile_keys[i - 1] == key))
			continue;
		while (length <= SHORT_RUN && i + length < seen && tile_keys[i + length] == key)
			length++;
		if (length <= FEW_RUN)
			few_runs[atomicAdd(&few_count, 1u)] = (uint16_t) (i << 3 | length);
		else if (length > SHORT_RUN)
			list_run(lists, start + i, run_end(keys, start + i, rows) - (start + i));
		else
			take_places(tile_places, &tile_count, (uint32_t) i, (uint32_t) length);
	}
	__syncthreads();
	if (threadIdx.x == 0 && few_count > 0)
		few_start = atomicAdd(&lists.counts->few_runs, few_count);
	__syncthreads();

	/* The list has room for all of them; or what it has is left empty, and they are done here. */
	for (uint32_t k = threadIdx.x; k < few_count; k += SHORT_THREADS)
	{
		const uint32_t first = few_runs[k] >> 3;
		const uint32_t length = few_runs[k] & 7;
		const bool	listed = few_start + few_count <= lists.few_capacity;

		if (few_start + k < lists.few_capacity)
			lists.few_runs[few_start + k] = TiedRun{start + first, listed ? length : 0};
		if (!listed)
			take_places(tile_places, &tile_count, first, length);
	}
	__syncthreads();

	for (uint32_t slot = threadIdx.x; slot < tile_count; slot += SHORT_THREADS)
	{
		const uint32_t place = tile_places[slot];
		const uint32_t id = ids[start + (place >> 16) + (place >> 8 & 0xFF)];
		uint64_t	made;

		tile_ids[slot] = id;
		tile_windows[slot] = gpusort_pack_window64(&plan, gpusort_source_key<FORM>(&source, id, &made), from,
												   WINDOW_BITS);
	}
	__syncthreads();

	for (uint32_t slot = threadIdx.x; slot < tile_count; slot += SHORT_THREADS)
	{
		const uint32_t place = tile_places[slot];
		const uint32_t mine = place >> 8 & 0xFF;
		const uint32_t length = place & 0xFF;
		const uint32_t first = slot - mine;
		const uint64_t window = tile_windows[slot];
		uint32_t	rank = 0;

		for (uint32_t k = 0; k < length; k++)
		{
			const uint64_t other = tile_windows[first + k];
			int			order = other < window ? -1 : other > window;

			if (order == 0 && k != mine && from + WINDOW_BITS < plan.packed_bits)
				order = compare_after<FORM>(source, plan, from + WINDOW_BITS, tile_ids[first + k], tile_ids[slot]);
			if (order < 0 || (order == 0 && k < mine))
				rank++;
		}
		if (rank != mine)
			ids[start + (place >> 16) + rank] = tile_ids[slot];
	}
}

/* Does row i of the run go before row j?  A tag is (group << 16 | place in the run). */
static __device__ inline bool
goes_before(const uint64_t *windows, const uint32_t *tags, uint32_t i, uint32_t j)
{
	uint32_t	group_i = tags[i] >> 16;
	uint32_t	group_j = tags[j] >> 16;

	if (group_i != group_j)
		return group_i < group_j;
	if (windows[i] != windows[j])
		return windows[i] < windows[j];
	return tags[i] < tags[j];
}

static __device__ inline void
put_in_order(uint64_t *windows, uint32_t *tags, uint32_t i, uint32_t j)
{
	if (goes_before(windows, tags, j, i))
	{
		uint64_t	window = windows[i];
		uint32_t	tag = tags[i];

		windows[i] = windows[j];
		windows[j] = window;
		tags[i] = tags[j];
		tags[j] = tag;
	}
}

/*
 * Sorts `rows` rows by (group, window, place); all of the block's threads.  The first step of
 * each merge compares from both ends, so that all steps are ascending and rows past the end,
 * which would never move, need not be there.
 */
template <int THREADS>
static __device__ void
bitonic_sort(uint64_t *windows, uint32_t *tags, uint32_t rows)
{
	uint32_t	pairs = 1;

	while (2 * pairs < rows)
		pairs *= 2;
	for (uint32_t half = 1; half < rows; half *= 2)
	{
		for (uint32_t t = threadIdx.x; t < pairs; t += THREADS)
		{
			uint32_t	low = t & (half - 1);
			uint32_t	base = (t - low) * 2;
			uint32_t	high = base + 2 * half - 1 - low;

			if (high < rows)
				put_in_order(windows, tags, base + low, high);
		}
		__syncthreads();
		for (uint32_t step = half / 2; step > 0; step /= 2)
		{
			for (uint32_t t = threadIdx.x; t < pairs; t += THREADS)
			{
				uint32_t	low = t & (step - 1);
				uint32_t	place = (t - low) * 2 + low;

				if (place + step < rows)
					put_in_order(windows, tags, place, place + step);
			}
			__syncthreads();
		}
	}
}

/* Do rows i and j of a sorted run still tie? */
static __device__ inline bool
still_tied(const uint64_t *windows, const uint32_t *tags, uint32_t i, uint32_t j)
{
	return windows[i] == windows[j] && tags[i] >> 16 == tags[j] >> 16;
}

/* The first row that ties with row i of a sorted run. */
static __device__ uint32_t
first_tied(const uint64_t *windows, const uint32_t *tags, uint32_t i)
{
	uint32_t	below = 0;		/* rows known to go before the group */
	uint32_t	first = i;

	while (below < first)
	{
		uint32_t	middle = (below + first) / 2;

		if (still_tied(windows, tags, middle, i))
			first = middle;
		else
			below = middle + 1;
	}
	return first;
}

/* Puts the runs of a list in order, one per block at a time; CAPACITY rows at most. */
template <int FORM, int THREADS, int CAPACITY>
static __global__ void __launch_bounds__(THREADS)
order_middle_runs(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
				  uint32_t from, uint32_t *ids, const TiedRun *runs, const uint32_t *count)
{
	__shared__ uint64_t windows[CAPACITY];
	__shared__ uint32_t tags[CAPACITY];
	__shared__ uint32_t run_ids[CAPACITY];
#ifndef __CUDACC__
	__shared__ uint32_t vote_flag;
#endif
	static_assert(CAPACITY / THREADS <= 32, "a bit for each row of a thread");

	for (uint32_t number = blockIdx.x; number < *count; number += gridDim.x)
	{
		const TiedRun run = runs[number];
		uint32_t	next_tags[CAPACITY / THREADS];
		uint32_t	tied;
		uint64_t	made;

		for (uint32_t i = threadIdx.x; i < run.rows; i += THREADS)
		{
			const uint32_t id = ids[run.start + i];

			run_ids[i] = id;
			tags[i] = i;
			windows[i] = gpusort_pack_window64(&plan, gpusort_source_key<FORM>(&source, id, &made), from, WINDOW_BITS);
		}
		__syncthreads();
		bitonic_sort<THREADS>(windows, tags, run.rows);

		for (uint32_t next = from + WINDOW_BITS; next < plan.packed_bits; next += WINDOW_BITS)
		{
			tied = 0;
			for (int k = 0; k < CAPACITY / THREADS; k++)
			{
				const uint32_t i = threadIdx.x + k * THREADS;

				if (i >= run.rows)
					break;
				next_tags[k] = first_tied(windows, tags, i) << 16 | (tags[i] & 0xFFFF);
				if ((i > 0 && still_tied(windows, tags, i - 1, i)) ||
					(i + 1 < run.rows && still_tied(windows, tags, i, i + 1)))
					tied |= 1u << k;
			}
			if (!block_any(tied != 0, &vote_flag))
				break;
			for (int k = 0; k < CAPACITY / THREADS; k++)
			{
				const uint32_t i = threadIdx.x + k * THREADS;

				if (i >= run.rows)
					break;
				tags[i] = next_tags[k];
				windows[i] = 0;
				if (tied >> k & 1)
					windows[i] = gpusort_pack_window64(&plan,
													   gpusort_source_key<FORM>(&source, run_ids[tags[i] & 0xFFFF], &made),
													   next, WINDOW_BITS);
			}
			__syncthreads();
			bitonic_sort<THREADS>(windows, tags, run.rows);
		}

		for (uint32_t i = threadIdx.x; i < run.rows; i += THREADS)
			ids[run.start + i] = run_ids[tags[i] & 0xFFFF];

		/* the next run takes the place of this one */
		__syncthreads();
	}
}

/* The last of the runs that begins at or before offset. */
static __device__ uint32_t
run_at(const LongRun *runs, uint32_t count, uint32_t offset)
{
	uint32_t	first = 0;
	uint32_t	end = count;

	while (end - first > 1)
	{
		uint32_t	middle = first + (end - first) / 2;

		if (runs[middle].offset <= offset)
			first = middle;
		else
			end = middle;
	}
	return first;
}

/* The run of the first row of this block's tile, and the offset of the next run. */
typedef struct TileRuns
{
	uint32_t	first;
	uint32_t	next_offset;
	LongRun		runs[2];
} TileRuns;

static __device__ void
find_tile_runs(TileRuns *tile, const LongRun *runs, uint32_t count)
{
	if (threadIdx.x == 0)
	{
		tile->first = run_at(runs, count, blockIdx.x * LEVEL_TILE);
		tile->runs[0] = runs[tile->first];
		tile->runs[1] = tile->first + 1 < count ? runs[tile->first + 1] : LongRun{0, UINT32_MAX};
		tile->next_offset = tile->runs[1].offset;
	}
	__syncthreads();
}

/* Makes the level of all long runs: keys[j] = (run number, next `bits` bits), level_ids[j] = the row's id. */
template <int FORM>
static __global__ void __launch_bounds__(LEVEL_THREADS)
gather_level(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
			 uint32_t from, uint32_t bits, const LongRun *runs, uint32_t count, uint32_t rows, const uint32_t *ids,
			 uint32_t *keys, uint32_t *level_ids)
{
	__shared__ TileRuns tile;

	find_tile_runs(&tile, runs, count);
	for (int k = 0; k < LEVEL_TILE / LEVEL_THREADS; k++)
	{
		const uint64_t j = (uint64_t) blockIdx.x * LEVEL_TILE + k * LEVEL_THREADS + threadIdx.x;
		uint64_t	made;

		if (j < rows)
		{
			const uint32_t which = j >= tile.next_offset;
			const LongRun run = tile.runs[which];
			const uint32_t id = ids[run.start + ((uint32_t) j - run.offset)];
			const uint32_t window = gpusort_pack_window(&plan, gpusort_source_key<FORM>(&source, id, &made), from, bits);

			keys[j] = (uint32_t) ((uint64_t) (tile.first + which) << bits | window);
			level_ids[j] = id;
		}
	}
}

/* Puts the ids of a level back where they came from. */
static __global__ void __launch_bounds__(LEVEL_THREADS)
scatter_level(const LongRun *runs, uint32_t count, uint32_t rows, const uint32_t *level_ids, uint32_t *ids)
{
	__shared__ TileRuns tile;

	find_tile_runs(&tile, runs, count);
	for (int k = 0; k < LEVEL_TILE / LEVEL_THREADS; k++)
	{
		const uint64_t j = (uint64_t) blockIdx.x * LEVEL_TILE + k * LEVEL_THREADS + threadIdx.x;

		if (j < rows)
		{
			const LongRun run = tile.runs[j >= tile.next_offset];

			ids[run.start + ((uint32_t) j - run.offset)] = level_ids[j];
		}
	}
}

/* From places in a level, which is made of parents, to places among all rows. */
static __global__ void
place_runs(LongRun *runs, const RunCounts *counts, const LongRun *parents, uint32_t parent_count)
{
	const uint32_t count = (uint32_t) (counts->long_runs >> 32);

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
	{
		const LongRun parent = parents[run_at(parents, parent_count, runs[i].start)];

		runs[i].start = parent.start + (runs[i].start - parent.offset);
	}
}

/* Lays temp out for so many rows; base may be NULL when only the size is wanted. */
static cudaError_t
lay_out(char *base, uint32_t rows, TieTemp *work, size_t *temp_bytes)
{
	size_t		end = 0;
	size_t		counts = gpusort_lay_temp(&end, sizeof(RunCounts));
	size_t		few_runs = gpusort_lay_temp(&end, (rows / FEW_SHARE) * sizeof(TiedRun));
	size_t		warp_runs = gpusort_lay_temp(&end, (rows / (SHORT_RUN + 1)) * sizeof(TiedRun));
	size_t		block_runs = gpusort_lay_temp(&end, (rows / (WARP_RUN + 1)) * sizeof(TiedRun));
	size_t		long_runs = gpusort_lay_temp(&end, (rows / (BLOCK_RUN + 1)) * sizeof(LongRun));
	size_t		level_runs = gpusort_lay_temp(&end, (rows / (BLOCK_RUN + 1)) * sizeof(LongRun));
	size_t		core = 0;
	cudaError_t status = cudaSuccess;

	*work = {};

	/* without long runs there is no level to sort */
	if (rows > BLOCK_RUN)
	{
		status = gpusort_radix_room_bytes(rows, &work->core_bytes);
		core = gpusort_lay_temp(&end, work->core_bytes);
	}
	work->lists.counts = (RunCounts *) (base + counts);
	work->lists.few_capacity = rows / FEW_SHARE;
	work->lists.few_runs = (TiedRun *) (base + few_runs);
	work->lists.warp_runs = (TiedRun *) (base + warp_runs);
	work->lists.block_runs = (TiedRun *) (base + block_runs);
	work->lists.long_runs = (LongRun *) (base + long_runs);
	work->level_runs = (LongRun *) (base + level_runs);
	work->core = base + core;
	*temp_bytes = end;
	return status;
}

cudaError_t
gpusort_order_ties_bytes(uint32_t rows, uint32_t packed_bits, size_t *temp_bytes)
{
	TieTemp		work;

	*temp_bytes = 0;
	return packed_bits > 32 ? lay_out(NULL, rows, &work, temp_bytes) : cudaSuccess;
}

int
gpusort_device_wait(const GpuSortDeviceWait *wait, cudaStream_t stream)
{
	if (wait->wait != NULL)
		return wait->wait(wait->context, (GpuSortStream) stream);
	return (int) cudaStreamSynchronize(stream);
}

/* Orders the short and the middle runs of a level and lists the long ones. */
static cudaError_t
order_runs(const GpuSortDeviceSort *sort, uint32_t from, const uint32_t *keys, uint32_t *ids, uint32_t rows,
		   const RunLists *lists, cudaStream_t stream)
{
	const uint32_t tiles = (uint32_t) (((uint64_t) rows + SHORT_TILE - 1) / SHORT_TILE);
	const uint32_t few_blocks = rows / FEW_THREADS < FEW_BLOCKS ? rows / FEW_THREADS + 1 : FEW_BLOCKS;
	const uint32_t warp_blocks = rows / (SHORT_RUN + 1) < WARP_RUN_BLOCKS ? rows / (SHORT_RUN + 1) : WARP_RUN_BLOCKS;
	const uint32_t blocks = rows / (WARP_RUN + 1) < BLOCK_RUN_BLOCKS ? rows / (WARP_RUN + 1) : BLOCK_RUN_BLOCKS;
	cudaError_t status = cudaMemsetAsync(lists->counts, 0, sizeof(RunCounts), stream);

	if (status != cudaSuccess)
		return status;

#define SHORT_RUNS(FORM)	order_short_runs<FORM>
#define FEW_RUNS(FORM)		order_few<FORM>
#define WARP_RUNS(FORM)		order_middle_runs<FORM, 32, WARP_RUN>
#define BLOCK_RUNS(FORM)	order_middle_runs<FORM, BLOCK_THREADS, BLOCK_RUN>
	GPUSORT_START_BY_FORM(&sort->source, SHORT_RUNS, tiles, SHORT_THREADS, stream, sort->source, *sort->plan, from, keys,
						  ids, rows, *lists);
	GPUSORT_START_BY_FORM(&sort->source, FEW_RUNS, few_blocks, FEW_THREADS, stream, sort->source, *sort->plan, from, ids,
						  *lists);
	if (warp_blocks > 0)
		GPUSORT_START_BY_FORM(&sort->source, WARP_RUNS, warp_blocks, 32, stream, sort->source, *sort->plan, from, ids,
							  lists->warp_runs, &lists->counts->warp_runs);
	if (blocks > 0)
		GPUSORT_START_BY_FORM(&sort->source, BLOCK_RUNS, blocks, BLOCK_THREADS, stream, sort->source, *sort->plan, from,
							  ids, lists->block_runs, &lists->counts->block_runs);
#undef SHORT_RUNS
#undef FEW_RUNS
#undef WARP_RUNS
#undef BLOCK_RUNS
	return cudaGetLastError();
}

/* Bits of a number below count. */
static uint32_t
number_bits(uint32_t count)
{
	uint32_t	bits = 0;

	while (bits < 32 && (count - 1) >> bits != 0)
		bits++;
	return bits;
}

/*
 * Makes a level of the runs in work->level_runs, all of it in the core's own memory,
 * sorts it by as many of the bits from *from on as fit, orders its runs but the long ones, which are left in
 * work->lists.long_runs, and puts all ids back.
 */
static cudaError_t
sort_level(const GpuSortDeviceSort *sort, uint32_t *from, uint32_t count, uint32_t rows, uint32_t *ids,
		   const TieTemp *work, cudaStream_t stream)
{
	const uint32_t tiles = (uint32_t) (((uint64_t) rows + LEVEL_TILE - 1) / LEVEL_TILE);
	const uint32_t run_bits = number_bits(count);
	const uint32_t bits = gpusort_pack_window_bits(sort->plan, *from, 32 - run_bits);
	const bool	more = *from + bits < sort->plan->packed_bits;
	GpuSortRadixRoom level;
	cudaError_t status = gpusort_radix_room(work->core, rows, (int) (run_bits + bits), &level);

	if (status != cudaSuccess)
		return status;
#define GATHER_LEVEL(FORM)	gather_level<FORM>
	GPUSORT_START_BY_FORM(&sort->source, GATHER_LEVEL, tiles, LEVEL_THREADS, stream, sort->source, *sort->plan, *from,
						  bits, work->level_runs, count, rows, ids, level.keys_in, level.ids_in);
#undef GATHER_LEVEL
	if ((status = cudaGetLastError()) != cudaSuccess)
		return status;

	*from += bits;
	status = gpusort_radix_sort(work->core, work->core_bytes, level.keys_in, level.ids_in, rows,
								(int) (run_bits + bits), more ? level.keys_out : NULL, level.ids_out, stream);
	if (status == cudaSuccess && more)
	{
		status = order_runs(sort, *from, level.keys_out, level.ids_out, rows, &work->lists, stream);
		if (status == cudaSuccess)
		{
			GPUSORT_START_KERNEL(place_runs, 64, 256, stream, work->lists.long_runs, work->lists.counts,
								 work->level_runs, count);
			status = cudaGetLastError();
		}
	}
	if (status != cudaSuccess)
		return status;
	GPUSORT_START_KERNEL(scatter_level, tiles, LEVEL_THREADS, stream, work->level_runs, count, rows, level.ids_out, ids);
	return cudaGetLastError();
}

int
gpusort_order_ties(const GpuSortDeviceSort *sort, uint32_t from, uint32_t rows, const uint32_t *keys, uint32_t *ids,
				   void *temp, size_t temp_bytes, cudaStream_t stream)
{
	const RunCounts *found = (const RunCounts *) sort->wait.mirror;
	size_t		needed;
	TieTemp		work;
	cudaError_t status;

	if (sort->plan->packed_bits <= from || rows <= 1)
		return cudaSuccess;
	if ((status = lay_out((char *) temp, rows, &work, &needed)) != cudaSuccess)
		return status;
	if (needed > temp_bytes || sort->wait.mirror == NULL)
		return cudaErrorInvalidValue;

	status = order_runs(sort, from, keys, ids, rows, &work.lists, stream);
	while (status == cudaSuccess && from < sort->plan->packed_bits && rows > BLOCK_RUN)
	{
		LongRun    *runs = work.lists.long_runs;
		int			waited;

		status = cudaMemcpyAsync(sort->wait.mirror, work.lists.counts, sizeof(RunCounts), cudaMemcpyDeviceToHost,
								 stream);
		if (status != cudaSuccess)
			break;
		if ((waited = gpusort_device_wait(&sort->wait, stream)) != 0)
			return waited;
		if (found->long_runs == 0)
			break;

		work.lists.long_runs = work.level_runs;
		work.level_runs = runs;
		status = sort_level(sort, &from, (uint32_t) (found->long_runs >> 32), (uint32_t) found->long_runs, ids, &work,
							stream);
	}
	return status;
}
