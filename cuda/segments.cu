/*-------------------------------------------------------------------------
 *
 * segments.cu
 *	  Runs of rows that tie on the bits sorted so far, by the bits that follow.
 *
 * A level is an array of 32-bit keys in order and the ids of their rows.  The first
 * level is the sorted prefixes of all rows.  A run is a maximal stretch of equal
 * keys; what happens to it depends on how many rows it has:
 *
 *	2 to 32			order_short_runs, in the pass that finds the runs: their next 64 bits
 *					are fetched, and each row counts how many of its run go before it.
 *					Rows in no run cost the 4 bytes of their key.
 *	33 to 2048		listed, then order_middle_runs: a bitonic network in shared
 *					memory (Batcher; after Bainville's local sorts) by the next 64
 *					bits, again while rows tie and there are bits.  One warp per run
 *					up to 256 rows, a block beyond.
 *	longer			listed.  Those that are in order already are dropped from the list,
 *					and all rows of the others make the next level: (run number, as many
 *					of the next bits as fit beside it in 32) is a key, the radix core
 *					sorts by it, and the ids go back to their runs' places.
 *
 * tied_runs.cu has all but the last.
 *
 * So a row is fetched again only as long as it ties, and only runs longer than 2048
 * rows cost the host's waiting.  One sort by (run number, bits) takes the place of
 * one by the bits and one by the run number: there are at most 2^32 / 2049 long runs,
 * so at least 11 bits fit, and when there are few runs nearly 32.
 *
 * RUNS IN ORDER
 *	Long runs are mostly rows with equal keys, which no level would change.  A run in
 *	which no row's key is smaller than that of the row before it is in order, and is
 *	that of a stable sort: ids of equal keys have the order that they shall have, as
 *	whatever sorted them so far was stable.  sample_runs looks at some neighbours of
 *	each run and marks it as mixed at the first descent; check_runs looks at all
 *	neighbours of those that are not marked; keep_mixed_runs makes the list of what is
 *	left.  So what has no order costs next to nothing, and what has is not looked at
 *	again in any level.
 *
 * Everything is stable: the order that ids have in a run decides last.
 *
 * Moved per row of a level: key 4 bytes; tied row: id 4, a sector or two of its key, 4
 * for the id if it moves; row of a long run in order: id 4, sectors of its key; of
 * another: id 4, sectors of its key, 8, the core's (4 passes: 64), ids 4 + 4, and a
 * level of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "segments.h"

#include "check.h"
#include "radix_sort.h"
#include "tied_runs.h"

/* Rows of a block that goes over the rows of long runs: at most two runs meet in it. */
#define LEVEL_THREADS	256
#define LEVEL_TILE		1024

/* Pairs of neighbours of a run that a warp looks at first. */
#define SAMPLE_PAIRS	64
#define SAMPLE_WARPS	8

static_assert(LEVEL_TILE <= GPUSORT_BLOCK_RUN, "a tile of a level holds at most two runs");
static_assert(SAMPLE_PAIRS < GPUSORT_BLOCK_RUN, "a sample is of different pairs");

/* Everything in temp. */
typedef struct TieTemp
{
	GpuSortRunLists lists;
	GpuSortLongRun *level_runs; /* the runs that the level is made of; changes places with lists.long_runs */
	uint32_t   *mixed;			/* of each long run: is not in order */
	void	   *core;			/* where levels lie, too */
	size_t		core_bytes;
} TieTemp;

/* The last of the runs that begins at or before offset. */
static __device__ uint32_t
run_at(const GpuSortLongRun *runs, uint32_t count, uint32_t offset)
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
	GpuSortLongRun runs[2];
} TileRuns;

static __device__ void
find_tile_runs(TileRuns *tile, const GpuSortLongRun *runs, uint32_t count)
{
	if (threadIdx.x == 0)
	{
		tile->first = run_at(runs, count, blockIdx.x * LEVEL_TILE);
		tile->runs[0] = runs[tile->first];
		tile->runs[1] = tile->first + 1 < count ? runs[tile->first + 1] : GpuSortLongRun{0, UINT32_MAX};
		tile->next_offset = tile->runs[1].offset;
	}
	__syncthreads();
}

/* Is the key of row b, which comes right after row a, smaller than a's?  Both tie on the bits before `from`. */
template <int FORM>
static __device__ inline bool
is_descent(const GpuSortKeySource &source, const GpuSortPackPlan &plan, uint32_t from, uint64_t window_a, uint32_t a,
		   uint64_t window_b, uint32_t b)
{
	if (window_a != window_b || from + GPUSORT_TIE_WINDOW >= plan.packed_bits)
		return window_b < window_a;
	return compare_after<FORM>(source, plan, from + GPUSORT_TIE_WINDOW, b, a) < 0;
}

/* One past the last row of run `number` among the rows of all long runs. */
static __device__ inline uint32_t
run_offset_end(const GpuSortLongRun *runs, uint32_t count, uint32_t rows, uint32_t number)
{
	return number + 1 < count ? runs[number + 1].offset : rows;
}

/* mixed[i] = some neighbours in run i, evenly spread over it, are not in order.  A warp for each run. */
template <int FORM>
static __global__ void __launch_bounds__(SAMPLE_WARPS * 32)
sample_runs(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan, uint32_t from,
			const GpuSortLongRun *runs, uint32_t count, uint32_t rows, const uint32_t *ids, uint32_t *mixed)
{
	const uint32_t number = blockIdx.x * SAMPLE_WARPS + threadIdx.x / 32;
	const uint32_t lane = threadIdx.x % 32;
	bool		descends = false;

	if (number >= count)
		return;
	const uint32_t start = runs[number].start;
	const uint32_t last = run_offset_end(runs, count, rows, number) - runs[number].offset - 1;

	for (uint32_t pair = lane; pair < SAMPLE_PAIRS; pair += 32)
	{
		const uint32_t at = start + (uint32_t) ((uint64_t) (last - 1) * pair / (SAMPLE_PAIRS - 1));

		descends = descends || compare_after<FORM>(source, plan, from, ids[at + 1], ids[at]) < 0;
	}
	descends = __any_sync(GPUSORT_ALL_LANES, descends);
	if (lane == 0)
		mixed[number] = descends;
}

/*
 * Marks the runs in which some row's key is smaller than that of the row before it.  A block for
 * each tile of their rows; nothing is looked at in runs that are marked.
 */
template <int FORM>
static __global__ void __launch_bounds__(LEVEL_THREADS)
check_runs(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan, uint32_t from,
		   const GpuSortLongRun *runs, uint32_t count, uint32_t rows, const uint32_t *ids, uint32_t *mixed)
{
	constexpr int items = LEVEL_TILE / LEVEL_THREADS;
	__shared__ TileRuns tile;
	__shared__ uint32_t known[2];	/* to be mixed */
	__shared__ uint64_t tile_windows[LEVEL_TILE + 1];	/* of the row before the tile, and its own */
	__shared__ uint32_t tile_ids[LEVEL_TILE + 1];
	const uint64_t start = (uint64_t) blockIdx.x * LEVEL_TILE;
	uint32_t	own[items];
	uint64_t	made;

	find_tile_runs(&tile, runs, count);
	if (threadIdx.x < 2)
		known[threadIdx.x] = tile.first + threadIdx.x >= count || *(volatile uint32_t *) &mixed[tile.first + threadIdx.x];
	__syncthreads();
	if (known[0] && (known[1] || tile.next_offset >= start + LEVEL_TILE))
		return;

	/* all ids, then all keys: each fetch waits for nothing but what it needs */
GPUSORT_UNROLL
	for (int k = 0; k < items; k++)
	{
		const uint64_t j = start + k * LEVEL_THREADS + threadIdx.x;
		const GpuSortLongRun run = tile.runs[j >= tile.next_offset];

		own[k] = j < rows ? ids[run.start + ((uint32_t) j - run.offset)] : 0;
	}
GPUSORT_UNROLL
	for (int k = 0; k < items; k++)
	{
		const uint32_t i = k * LEVEL_THREADS + threadIdx.x;

		if (start + i < rows)
		{
			tile_ids[i + 1] = own[k];
			tile_windows[i + 1] = gpusort_pack_window64(&plan, gpusort_source_key<FORM>(&source, own[k], &made), from,
														GPUSORT_TIE_WINDOW);
		}
	}
	if (threadIdx.x == 0 && start > tile.runs[0].offset)
	{
		const uint32_t id = ids[tile.runs[0].start + ((uint32_t) start - tile.runs[0].offset) - 1];

		tile_ids[0] = id;
		tile_windows[0] = gpusort_pack_window64(&plan, gpusort_source_key<FORM>(&source, id, &made), from,
												GPUSORT_TIE_WINDOW);
	}
	__syncthreads();
	for (int k = 0; k < items; k++)
	{
		const uint32_t i = k * LEVEL_THREADS + threadIdx.x;
		const uint32_t which = start + i >= tile.next_offset;

		/* the first row of a run has no row before it */
		if (start + i >= rows || start + i == tile.runs[which].offset || known[which])
			continue;
		if (is_descent<FORM>(source, plan, from, tile_windows[i], tile_ids[i], tile_windows[i + 1], tile_ids[i + 1]))
			mixed[tile.first + which] = 1;
	}
}

/* Lists those runs anew that are mixed. */
static __global__ void
keep_mixed_runs(const GpuSortLongRun *runs, uint32_t count, uint32_t rows, const uint32_t *mixed, GpuSortRunCounts *counts,
				GpuSortLongRun *kept)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
	{
		if (mixed[i])
			list_long_run(counts, kept, runs[i].start,
						  run_offset_end(runs, count, rows, (uint32_t) i) - runs[i].offset);
	}
}

/* Makes the level of all long runs: keys[j] = (run number, next `bits` bits), level_ids[j] = the row's id. */
template <int FORM>
static __global__ void __launch_bounds__(LEVEL_THREADS)
gather_level(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
			 uint32_t from, uint32_t bits, const GpuSortLongRun *runs, uint32_t count, uint32_t rows, const uint32_t *ids,
			 uint32_t *keys, uint32_t *level_ids)
{
	constexpr int items = LEVEL_TILE / LEVEL_THREADS;
	__shared__ TileRuns tile;
	const uint64_t start = (uint64_t) blockIdx.x * LEVEL_TILE + threadIdx.x;
	uint32_t	own[items];

	find_tile_runs(&tile, runs, count);
GPUSORT_UNROLL
	for (int k = 0; k < items; k++)
	{
		const uint64_t j = start + k * LEVEL_THREADS;
		const GpuSortLongRun run = tile.runs[j >= tile.next_offset];

		own[k] = j < rows ? ids[run.start + ((uint32_t) j - run.offset)] : 0;
	}
GPUSORT_UNROLL
	for (int k = 0; k < items; k++)
	{
		const uint64_t j = start + k * LEVEL_THREADS;
		const uint32_t number = tile.first + (j >= tile.next_offset);
		uint64_t	made;

		if (j < rows)
		{
			keys[j] = (uint32_t) ((uint64_t) number << bits |
								  gpusort_pack_window(&plan, gpusort_source_key<FORM>(&source, own[k], &made), from, bits));
			level_ids[j] = own[k];
		}
	}
}

/* Puts the ids of a level back where they came from. */
static __global__ void __launch_bounds__(LEVEL_THREADS)
scatter_level(const GpuSortLongRun *runs, uint32_t count, uint32_t rows, const uint32_t *level_ids, uint32_t *ids)
{
	__shared__ TileRuns tile;

	find_tile_runs(&tile, runs, count);
	for (int k = 0; k < LEVEL_TILE / LEVEL_THREADS; k++)
	{
		const uint64_t j = (uint64_t) blockIdx.x * LEVEL_TILE + k * LEVEL_THREADS + threadIdx.x;

		if (j < rows)
		{
			const GpuSortLongRun run = tile.runs[j >= tile.next_offset];

			ids[run.start + ((uint32_t) j - run.offset)] = level_ids[j];
		}
	}
}

/* From places in a level, which is made of parents, to places among all rows. */
static __global__ void
place_runs(GpuSortLongRun *runs, const GpuSortRunCounts *counts, const GpuSortLongRun *parents, uint32_t parent_count)
{
	const uint32_t count = (uint32_t) (counts->long_runs >> 32);

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
	{
		const GpuSortLongRun parent = parents[run_at(parents, parent_count, runs[i].start)];

		runs[i].start = parent.start + (runs[i].start - parent.offset);
	}
}

/* Lays temp out for so many rows; base may be NULL when only the size is wanted. */
static cudaError_t
lay_out(char *base, uint32_t rows, TieTemp *work, size_t *temp_bytes)
{
	size_t		end = 0;
	size_t		counts = gpusort_lay_temp(&end, sizeof(GpuSortRunCounts));
	size_t		warp_runs = gpusort_lay_temp(&end, (rows / (GPUSORT_SHORT_RUN + 1)) * sizeof(GpuSortTiedRun));
	size_t		block_runs = gpusort_lay_temp(&end, (rows / (GPUSORT_WARP_RUN + 1)) * sizeof(GpuSortTiedRun));
	size_t		long_runs = gpusort_lay_temp(&end, (rows / (GPUSORT_BLOCK_RUN + 1)) * sizeof(GpuSortLongRun));
	size_t		level_runs = gpusort_lay_temp(&end, (rows / (GPUSORT_BLOCK_RUN + 1)) * sizeof(GpuSortLongRun));
	size_t		mixed = gpusort_lay_temp(&end, (rows / (GPUSORT_BLOCK_RUN + 1)) * sizeof(uint32_t));
	size_t		core = 0;
	cudaError_t status = cudaSuccess;

	*work = {};

	/* without long runs there is no level to sort */
	if (rows > GPUSORT_BLOCK_RUN)
	{
		status = gpusort_radix_room_bytes(rows, &work->core_bytes);
		core = gpusort_lay_temp(&end, work->core_bytes);
	}
	work->lists.counts = (GpuSortRunCounts *) (base + counts);
	work->lists.warp_runs = (GpuSortTiedRun *) (base + warp_runs);
	work->lists.block_runs = (GpuSortTiedRun *) (base + block_runs);
	work->lists.long_runs = (GpuSortLongRun *) (base + long_runs);
	work->level_runs = (GpuSortLongRun *) (base + level_runs);
	work->mixed = (uint32_t *) (base + mixed);
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
		status = gpusort_order_runs(sort, *from, level.keys_out, level.ids_out, rows, &work->lists, stream);
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

/* Takes the runs that are in order out of those in work->level_runs, and lists the others in work->lists.long_runs. */
static cudaError_t
drop_runs_in_order(const GpuSortDeviceSort *sort, uint32_t from, uint32_t count, uint32_t rows, const uint32_t *ids,
				   const TieTemp *work, cudaStream_t stream)
{
	const uint32_t tiles = (uint32_t) (((uint64_t) rows + LEVEL_TILE - 1) / LEVEL_TILE);
	cudaError_t status;

#define SAMPLE_RUNS(FORM)	sample_runs<FORM>
#define CHECK_RUNS(FORM)	check_runs<FORM>
	GPUSORT_START_BY_FORM(&sort->source, SAMPLE_RUNS, (count + SAMPLE_WARPS - 1) / SAMPLE_WARPS, SAMPLE_WARPS * 32, stream,
						  sort->source, *sort->plan, from, work->level_runs, count, rows, ids, work->mixed);
	if ((status = cudaGetLastError()) != cudaSuccess)
		return status;
	GPUSORT_START_BY_FORM(&sort->source, CHECK_RUNS, tiles, LEVEL_THREADS, stream, sort->source, *sort->plan, from,
						  work->level_runs, count, rows, ids, work->mixed);
	if ((status = cudaGetLastError()) != cudaSuccess)
		return status;
#undef SAMPLE_RUNS
#undef CHECK_RUNS
	status = cudaMemsetAsync(work->lists.counts, 0, sizeof(GpuSortRunCounts), stream);
	if (status != cudaSuccess)
		return status;
	GPUSORT_START_KERNEL(keep_mixed_runs, 64, 256, stream, work->level_runs, count, rows, work->mixed,
						 work->lists.counts, work->lists.long_runs);
	return cudaGetLastError();
}

/* Moves the long runs that are listed to work->level_runs and tells how many, and of how many rows.  Waits. */
static int
take_long_runs(const GpuSortDeviceSort *sort, TieTemp *work, uint32_t *count, uint32_t *rows, cudaStream_t stream)
{
	const GpuSortRunCounts *found = (const GpuSortRunCounts *) sort->wait.mirror;
	GpuSortLongRun *runs = work->lists.long_runs;
	cudaError_t status;
	int			waited;

	status = cudaMemcpyAsync(sort->wait.mirror, work->lists.counts, sizeof(*found), cudaMemcpyDeviceToHost, stream);
	if (status != cudaSuccess)
		return status;
	if ((waited = gpusort_device_wait(&sort->wait, stream)) != 0)
		return waited;
	*count = (uint32_t) (found->long_runs >> 32);
	*rows = (uint32_t) found->long_runs;
	work->lists.long_runs = work->level_runs;
	work->level_runs = runs;
	return cudaSuccess;
}

int
gpusort_order_ties(const GpuSortDeviceSort *sort, uint32_t from, uint32_t rows, const uint32_t *keys, uint32_t *ids,
				   void *temp, size_t temp_bytes, cudaStream_t stream)
{
	uint32_t	long_runs;
	uint32_t	long_rows;
	size_t		needed;
	TieTemp		work;
	int			status;

	if (sort->plan->packed_bits <= from || rows <= 1)
		return cudaSuccess;
	if ((status = lay_out((char *) temp, rows, &work, &needed)) != cudaSuccess)
		return status;
	if (needed > temp_bytes || sort->wait.mirror == NULL)
		return cudaErrorInvalidValue;

	status = gpusort_order_runs(sort, from, keys, ids, rows, &work.lists, stream);
	while (status == cudaSuccess && from < sort->plan->packed_bits && rows > GPUSORT_BLOCK_RUN)
	{
		if ((status = take_long_runs(sort, &work, &long_runs, &long_rows, stream)) != 0 || long_runs == 0)
			break;
		if ((status = drop_runs_in_order(sort, from, long_runs, long_rows, ids, &work, stream)) != 0 ||
			(status = take_long_runs(sort, &work, &long_runs, &long_rows, stream)) != 0 || long_runs == 0)
			break;
		status = sort_level(sort, &from, long_runs, long_rows, ids, &work, stream);
	}
	return status;
}
