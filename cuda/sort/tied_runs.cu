/*-------------------------------------------------------------------------
 *
 * tied_runs.cu
 *	  Finds the runs of rows that tie, and puts those in order that fit a warp or a
 *	  block; see tie_break.cu for the whole.
 *
 * Most rows are in no run, so finding the runs has to be cheap: a warp has a tile of
 * TILE_ROWS keys in registers, each lane a bit for each of its keys that ties with the
 * next one, and only where a run begins something is done.  A row costs its 4 bytes
 * and four or five instructions.  Each warp then orders the short runs that begin in
 * its tile, a row per lane, as many runs at a time as have 32 rows.  Nothing is shared
 * between warps, so that some wait for keys in order while others wait for rows.
 *
 * Runs that have the order already, which is the rule where keys are equal, are seen
 * to have it by one comparison of each row with the row before.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/tied_runs.h"

#include "sort/launch.h"

/* A warp's tile: GROUPS groups of 128 keys, 4 in a row to a lane. */
#define GROUPS    8
#define TILE_ROWS (GROUPS * 128)
#define LOOK_ROWS 4 /* after the tile, in which its last runs may end */

#define SHORT_WARPS  8 /* of a block */
#define SHORT_BLOCKS 5 /* of a multiprocessor */

#define BLOCK_THREADS 256

/* Blocks for the lists of runs, whose length only the device knows when they start. */
#define WARP_RUN_BLOCKS  4096
#define BLOCK_RUN_BLOCKS 1024

/* A short run is a number of 16 bits: its place in the tile, and its rows. */
#define RUN_ROWS_BITS 6
#define RUN_ROWS_MASK ((1u << RUN_ROWS_BITS) - 1)

static_assert(GROUPS * 4 == 32, "a lane has a bit for each of its keys");
static_assert(TILE_ROWS << RUN_ROWS_BITS <= UINT16_MAX + 1 && GPUSORT_SHORT_RUN <= RUN_ROWS_MASK,
			  "a short run fits 16 bits");
static_assert(GPUSORT_SHORT_RUN == 32, "a lane for each row of a short run");

/* Returns true if any of the block's threads votes for it.  A barrier, too. */
#ifdef __CUDACC__
#define block_any(vote) __syncthreads_or(vote)
#else
static int
block_any(bool vote)
{
	__shared__ uint32_t flag;
	int any;

	__syncthreads();
	flag = 0;
	__syncthreads();
	if (vote)
		flag = 1;
	__syncthreads();
	any = (int) flag;
	__syncthreads();
	return any;
}
#endif

/* One past the last row whose key is that of row `row`; rows up to `known` have it. */
static __device__ uint32_t
run_end(const uint32_t *keys, uint32_t row, uint64_t known, uint32_t rows)
{
	const uint32_t key = keys[row];
	uint64_t step = LOOK_ROWS;
	uint64_t end = known + step;

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
		uint64_t middle = known + (end - known) / 2;

		if (keys[middle] == key)
			known = middle;
		else
			end = middle;
	}
	return (uint32_t) end;
}

/* Puts each lane's run in the list of its kind, if it has one of more than GPUSORT_SHORT_RUN rows. */
static __device__ inline void
list_runs(const GpuSortRunLists &lists, uint32_t start, uint32_t rows)
{
	const uint32_t lane = threadIdx.x % 32;
	const bool mine = rows > GPUSORT_SHORT_RUN && rows <= GPUSORT_WARP_RUN;
	const uint32_t lanes = __ballot_sync(GPUSORT_ALL_LANES, mine);
	uint32_t place = 0;

	if (lanes != 0)
	{
		const int leader = __ffs(lanes) - 1;

		if ((int) lane == leader)
			place = atomicAdd(&lists.counts->warp_runs, (uint32_t) __popc(lanes));
		place = __shfl_sync(GPUSORT_ALL_LANES, place, leader) + (uint32_t) __popc(lanes & ((1u << lane) - 1));
		if (mine)
			lists.warp_runs[place] = GpuSortTiedRun{start, rows};
	}

	/* few of these begin in a tile */
	if (rows > GPUSORT_BLOCK_RUN)
		list_long_run(lists.counts, lists.long_runs, start, rows);
	else if (rows > GPUSORT_WARP_RUN)
		lists.block_runs[atomicAdd(&lists.counts->block_runs, 1u)] = GpuSortTiedRun{start, rows};
}

/*
 * A bit for each of the lane's keys in the tile from row `start` on that ties with the
 * next: bit 4 g + s is that of row 128 g + 4 lane + s.  *after are those of the LOOK_ROWS
 * rows after the tile.  Rows before the first one and after the last one tie with none.
 */
static __device__ inline uint32_t
find_ties(const uint32_t *keys, int64_t start, uint32_t rows, uint32_t *after)
{
	const uint32_t lane = threadIdx.x % 32;
	const int64_t own_start = start + 4 * (int64_t) lane;
	const int64_t row_after = start + TILE_ROWS + lane;
	const bool whole = start >= 0 && start + TILE_ROWS + LOOK_ROWS < rows;
	const uint32_t key_after = lane <= LOOK_ROWS && row_after < rows ? keys[row_after] : 0;
	uint4 own[GROUPS];
	uint32_t ties = 0;

	if (whole)
	{
		/* all loads are on their way before the first is waited for */
		GPUSORT_UNROLL
		for (int g = 0; g < GROUPS; g++)
			own[g] = *reinterpret_cast<const uint4 *>(keys + own_start + 128 * g);
	}
	else
	{
		for (int g = 0; g < GROUPS; g++)
		{
			const int64_t row = own_start + 128 * g;

			own[g].x = row >= 0 && row < rows ? keys[row] : 0;
			own[g].y = row + 1 >= 0 && row + 1 < rows ? keys[row + 1] : 0;
			own[g].z = row + 2 >= 0 && row + 2 < rows ? keys[row + 2] : 0;
			own[g].w = row + 3 >= 0 && row + 3 < rows ? keys[row + 3] : 0;
		}
	}

	*after = __shfl_down_sync(GPUSORT_ALL_LANES, key_after, 1);
	*after = __ballot_sync(GPUSORT_ALL_LANES, lane < LOOK_ROWS && row_after + 1 < rows && key_after == *after);
	GPUSORT_UNROLL
	for (int g = 0; g < GROUPS; g++)
	{
		const uint32_t follows = g + 1 < GROUPS ? own[g + 1 < GROUPS ? g + 1 : g].x : key_after;
		const uint32_t next = __shfl_sync(GPUSORT_ALL_LANES, lane == 0 ? follows : own[g].x, (int) (lane + 1) % 32);

		ties |= (own[g].x == own[g].y ? 1u << 4 * g : 0) | (own[g].y == own[g].z ? 2u << 4 * g : 0) |
			(own[g].z == own[g].w ? 4u << 4 * g : 0) | (own[g].w == next ? 8u << 4 * g : 0);
	}
	if (!whole)
	{
		for (int bit = 0; bit < 4 * GROUPS; bit++)
		{
			const int64_t row = own_start + 32 * (bit & ~3) + (bit & 3);

			if (row < 0 || row + 1 >= rows)
				ties &= ~(1u << bit);
		}
	}
	return ties;
}

/*
 * Lists the short runs that begin in the tile in found[], and the others where they
 * belong, but none of decided keys.  Returns how many are short.  All lanes of a warp.
 */
static __device__ inline uint32_t
find_runs(const uint32_t *keys, int64_t start, uint32_t rows, const GpuSortDecided &decided,
		  const GpuSortRunLists &lists, uint16_t *found)
{
	const uint32_t lane = threadIdx.x % 32;
	uint32_t after;
	const uint32_t ties = find_ties(keys, start, rows, &after);
	const bool tied_before = start > 0 && keys[start - 1] == keys[start];
	uint32_t before = __shfl_sync(GPUSORT_ALL_LANES, ties, (int) (lane + 31) % 32);
	uint32_t next = __shfl_sync(GPUSORT_ALL_LANES, ties, (int) (lane + 1) % 32);
	uint32_t count = 0;
	uint32_t heads;

	/* the groups before that of lane 0 and after that of lane 31 */
	if (lane == 0)
		before = before << 4 | (tied_before ? 8 : 0);
	if (lane == 31)
		next = next >> 4 | after << 28;

	/* rows that tie with the next row, and not with the one before */
	heads = ties & ~((ties << 1 & 0xEEEEEEEE) | (before >> 3 & 0x11111111));
	while (__any_sync(GPUSORT_ALL_LANES, heads != 0))
	{
		uint32_t place = 0;
		uint32_t length = 0;
		uint32_t lanes;

		if (heads != 0)
		{
			const uint32_t bit = (uint32_t) __ffs(heads) - 1;
			const uint32_t group = bit & ~3u;
			const uint32_t first = bit & 3;
			const uint32_t look = ((ties >> group & 15) | (next >> group & 15) << 4) >> first;

			heads &= heads - 1;
			place = 32 * group + 4 * lane + first;
			if (decided.count == 0 || keys[start + place] - decided.first >= decided.count)
				length = (uint32_t) __ffs(~look);
			if (length > 8 - first)
			{
				const uint32_t row = (uint32_t) (start + place);

				length = run_end(keys, row, (uint64_t) row + (8 - first), rows) - row;
			}
		}
		lanes = __ballot_sync(GPUSORT_ALL_LANES, length > 0 && length <= GPUSORT_SHORT_RUN);
		if (length > 0 && length <= GPUSORT_SHORT_RUN)
			found[count + (uint32_t) __popc(lanes & ((1u << lane) - 1))] = (uint16_t) (place << RUN_ROWS_BITS | length);
		count += (uint32_t) __popc(lanes);
		if (__any_sync(GPUSORT_ALL_LANES, length > GPUSORT_SHORT_RUN))
			list_runs(lists, (uint32_t) (start + place), length);
	}
	__syncwarp();
	return count;
}

/* Puts the short runs of a tile in order by the bits from `from` on.  All lanes of a warp. */
template <int FORM>
static __device__ inline void
order_found(const GpuSortKeySource &source, const GpuSortPackPlan &plan, uint32_t from, uint32_t *ids, int64_t start,
			const uint16_t *found, uint32_t count)
{
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t up_to_lane = 0xFFFFFFFF >> (31 - lane);
	const bool more = from + GPUSORT_TIE_WINDOW < plan.packed_bits;
	uint32_t taken;

	for (uint32_t done = 0; done < count; done += taken)
	{
		const uint32_t listed = done + lane < count ? found[done + lane] : 0;
		const uint32_t listed_rows = listed & RUN_ROWS_MASK;
		uint32_t end = listed_rows; /* of the run's lanes */
		uint32_t begins;
		uint32_t first;
		uint32_t run;
		uint32_t run_rows;
		uint32_t member;
		uint32_t longest;
		uint32_t previous;
		uint32_t descents;
		uint32_t rank;
		uint32_t id = 0;
		uint64_t window = 0;
		uint64_t before;
		uint32_t *run_ids;
		bool active;
		bool descends;
		bool fits;

		/* as many runs as there are lanes for their rows */
		GPUSORT_UNROLL
		for (uint32_t step = 1; step < 32; step *= 2)
		{
			const uint32_t other = __shfl_up_sync(GPUSORT_ALL_LANES, end, step);

			end += lane >= step ? other : 0;
		}
		fits = listed_rows > 0 && end <= 32;
		taken = (uint32_t) __popc(__ballot_sync(GPUSORT_ALL_LANES, fits));
		begins = __reduce_or_sync(GPUSORT_ALL_LANES, fits ? 1u << (end - listed_rows) : 0);
		active = lane < __shfl_sync(GPUSORT_ALL_LANES, end, (int) taken - 1);

		/* the lane's run, and its row in it */
		first = 31 - (uint32_t) __clz(begins & up_to_lane);
		member = lane - first;
		run = __shfl_sync(GPUSORT_ALL_LANES, listed, __popc(begins & up_to_lane) - 1);
		run_rows = run & RUN_ROWS_MASK;
		run_ids = ids + (start + (run >> RUN_ROWS_BITS));
		if (active)
		{
			uint64_t made;

			id = run_ids[member];
			window = gpusort_pack_window64(&plan, gpusort_source_key<FORM>(&source, id, &made), from,
										   GPUSORT_TIE_WINDOW);
		}

		/* nothing is to be done for runs in which no row goes before the one before it */
		previous = __shfl_up_sync(GPUSORT_ALL_LANES, id, 1);
		before = __shfl_up_sync(GPUSORT_ALL_LANES, window, 1);
		descends = active && member > 0 && window < before;
		if (more && active && member > 0 && window == before)
			descends = compare_after<FORM>(source, plan, from + GPUSORT_TIE_WINDOW, id, previous) < 0;
		descents = __ballot_sync(GPUSORT_ALL_LANES, descends);
		if (descents == 0)
			continue;

		active = active && (descents >> first & (0xFFFFFFFF >> (32 - run_rows))) != 0;
		longest = __reduce_max_sync(GPUSORT_ALL_LANES, active ? run_rows : 0);
		rank = 0;
		for (uint32_t k = 0; k < longest; k++)
		{
			const int there = (int) (first + k) % 32;
			const uint64_t other = __shfl_sync(GPUSORT_ALL_LANES, window, there);
			const uint32_t other_id = __shfl_sync(GPUSORT_ALL_LANES, id, there);
			int order = other < window ? -1 : other > window;

			if (!active || k >= run_rows)
				continue;
			if (order == 0 && more && k != member)
				order = compare_after<FORM>(source, plan, from + GPUSORT_TIE_WINDOW, other_id, id);
			if (order < 0 || (order == 0 && k < member))
				rank++;
		}
		__syncwarp();
		if (active && rank != member)
			run_ids[rank] = id;
	}
}

/* Finds the runs of a level, a tile per warp, and orders the short ones that begin in it. */
template <int FORM>
static __global__ void
__launch_bounds__(SHORT_WARPS * 32, SHORT_BLOCKS)
	order_short_runs(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
					 uint32_t from, const GpuSortDecided decided, const uint32_t *keys, uint32_t *ids, uint32_t rows,
					 const GpuSortRunLists lists)
{
	__shared__ uint16_t found[SHORT_WARPS][TILE_ROWS / 2];
	const uint32_t warp = threadIdx.x / 32;

	/* tiles begin where four keys can be loaded at a time; the first may begin before the keys */
	const int64_t start = ((int64_t) blockIdx.x * SHORT_WARPS + warp) * TILE_ROWS -
		(int64_t) ((uintptr_t) keys / sizeof(uint32_t) % 4);

	if (start < rows)
	{
		const uint32_t count = find_runs(keys, start, rows, decided, lists, found[warp]);

		order_found<FORM>(source, plan, from, ids, start, found[warp], count);
	}
}

/* Returns true if row i of the run goes before row j.  A tag is (group << 16 | place in the run). */
static __device__ inline bool
goes_before(const uint64_t *windows, const uint32_t *tags, uint32_t i, uint32_t j)
{
	uint32_t group_i = tags[i] >> 16;
	uint32_t group_j = tags[j] >> 16;

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
		uint64_t window = windows[i];
		uint32_t tag = tags[i];

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
	uint32_t pairs = 1;

	while (2 * pairs < rows)
		pairs *= 2;
	for (uint32_t half = 1; half < rows; half *= 2)
	{
		for (uint32_t t = threadIdx.x; t < pairs; t += THREADS)
		{
			uint32_t low = t & (half - 1);
			uint32_t base = (t - low) * 2;
			uint32_t high = base + 2 * half - 1 - low;

			if (high < rows)
				put_in_order(windows, tags, base + low, high);
		}
		__syncthreads();
		for (uint32_t step = half / 2; step > 0; step /= 2)
		{
			for (uint32_t t = threadIdx.x; t < pairs; t += THREADS)
			{
				uint32_t low = t & (step - 1);
				uint32_t place = (t - low) * 2 + low;

				if (place + step < rows)
					put_in_order(windows, tags, place, place + step);
			}
			__syncthreads();
		}
	}
}

/* Returns true if a run has the order already that bitonic_sort would give it.  All of the block's threads. */
template <int THREADS>
static __device__ bool
in_order(const uint64_t *windows, const uint32_t *tags, uint32_t rows)
{
	bool descends = false;

	for (uint32_t i = threadIdx.x + 1; i < rows; i += THREADS)
		descends = descends || goes_before(windows, tags, i, i - 1);
	return !block_any(descends);
}

/* Returns true if rows i and j of a sorted run still tie. */
static __device__ inline bool
still_tied(const uint64_t *windows, const uint32_t *tags, uint32_t i, uint32_t j)
{
	return windows[i] == windows[j] && tags[i] >> 16 == tags[j] >> 16;
}

/* The first row that ties with row i of a sorted run. */
static __device__ uint32_t
first_tied(const uint64_t *windows, const uint32_t *tags, uint32_t i)
{
	uint32_t below = 0; /* rows known to go before the group */
	uint32_t first = i;

	while (below < first)
	{
		uint32_t middle = (below + first) / 2;

		if (still_tied(windows, tags, middle, i))
			first = middle;
		else
			below = middle + 1;
	}
	return first;
}

/* Puts the runs of a list in order, one per block at a time; CAPACITY rows at most. */
template <int FORM, int THREADS, int CAPACITY>
static __global__ void
__launch_bounds__(THREADS)
	order_middle_runs(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
					  uint32_t from, uint32_t *ids, const GpuSortTiedRun *runs, const uint32_t *count)
{
	__shared__ uint64_t windows[CAPACITY];
	__shared__ uint32_t tags[CAPACITY];
	__shared__ uint32_t run_ids[CAPACITY];
	static_assert(CAPACITY / THREADS <= 32, "a bit for each row of a thread");

	for (uint32_t number = blockIdx.x; number < *count; number += gridDim.x)
	{
		const GpuSortTiedRun run = runs[number];
		uint32_t next_tags[CAPACITY / THREADS];
		uint32_t tied;
		uint64_t made;
		bool moved = false;

		for (uint32_t i = threadIdx.x; i < run.rows; i += THREADS)
		{
			const uint32_t id = ids[run.start + i];

			run_ids[i] = id;
			tags[i] = i;
			windows[i] =
				gpusort_pack_window64(&plan, gpusort_source_key<FORM>(&source, id, &made), from, GPUSORT_TIE_WINDOW);
		}
		__syncthreads();
		if (!in_order<THREADS>(windows, tags, run.rows))
		{
			moved = true;
			bitonic_sort<THREADS>(windows, tags, run.rows);
		}

		for (uint32_t next = from + GPUSORT_TIE_WINDOW; next < plan.packed_bits; next += GPUSORT_TIE_WINDOW)
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
			if (!block_any(tied != 0))
				break;
			for (int k = 0; k < CAPACITY / THREADS; k++)
			{
				const uint32_t i = threadIdx.x + k * THREADS;

				if (i >= run.rows)
					break;
				tags[i] = next_tags[k];
				windows[i] = 0;
				if (tied >> k & 1)
					windows[i] = gpusort_pack_window64(
						&plan, gpusort_source_key<FORM>(&source, run_ids[tags[i] & 0xFFFF], &made), next,
						GPUSORT_TIE_WINDOW);
			}
			__syncthreads();
			if (!in_order<THREADS>(windows, tags, run.rows))
			{
				moved = true;
				bitonic_sort<THREADS>(windows, tags, run.rows);
			}
		}

		for (uint32_t i = threadIdx.x; moved && i < run.rows; i += THREADS)
			ids[run.start + i] = run_ids[tags[i] & 0xFFFF];

		/* the next run takes the place of this one */
		__syncthreads();
	}
}

cudaError_t
gpusort_order_runs(const GpuSortDeviceSort *sort, const GpuSortTiedRows *tied, const GpuSortRunLists *lists,
				   cudaStream_t stream)
{
	const uint32_t rows = tied->rows;
	const uint64_t block_rows = SHORT_WARPS * TILE_ROWS;
	const uint32_t before = (uint32_t) ((uintptr_t) tied->keys / sizeof(uint32_t) % 4);
	const uint32_t tiles = (uint32_t) (((uint64_t) rows + before + block_rows - 1) / block_rows);
	const uint32_t warp_runs = rows / (GPUSORT_SHORT_RUN + 1);
	const uint32_t block_runs = rows / (GPUSORT_WARP_RUN + 1);
	const uint32_t warp_blocks = warp_runs < WARP_RUN_BLOCKS ? warp_runs : WARP_RUN_BLOCKS;
	const uint32_t blocks = block_runs < BLOCK_RUN_BLOCKS ? block_runs : BLOCK_RUN_BLOCKS;
	cudaError_t status = cudaMemsetAsync(lists->counts, 0, sizeof(*lists->counts), stream);

	if (status != cudaSuccess)
		return status;

#define SHORT_RUNS(FORM) order_short_runs<FORM>
#define WARP_RUNS(FORM)  order_middle_runs<FORM, 32, GPUSORT_WARP_RUN>
#define BLOCK_RUNS(FORM) order_middle_runs<FORM, BLOCK_THREADS, GPUSORT_BLOCK_RUN>
	GPUSORT_START_BY_FORM(&sort->source, SHORT_RUNS, tiles, SHORT_WARPS * 32, stream, sort->source, *sort->plan,
						  tied->from, tied->decided, tied->keys, tied->ids, rows, *lists);
	if (warp_blocks > 0)
		GPUSORT_START_BY_FORM(&sort->source, WARP_RUNS, warp_blocks, 32, stream, sort->source, *sort->plan, tied->from,
							  tied->ids, lists->warp_runs, &lists->counts->warp_runs);
	if (blocks > 0)
		GPUSORT_START_BY_FORM(&sort->source, BLOCK_RUNS, blocks, BLOCK_THREADS, stream, sort->source, *sort->plan,
							  tied->from, tied->ids, lists->block_runs, &lists->counts->block_runs);
#undef SHORT_RUNS
#undef WARP_RUNS
#undef BLOCK_RUNS
	return cudaGetLastError();
}
