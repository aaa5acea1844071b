/*-------------------------------------------------------------------------
 *
 * tie_break.cu
 *	  Runs of rows that tie on the bits sorted so far, by the bits that follow.
 *
 * A level is an array of 32-bit keys in order and the ids of their rows.  The first
 * level is the sorted partial keys of all rows.  A run is a maximal stretch of equal
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
 * tied_runs.cu has all but the last; runs_in_order.cu finds which long ones need no level.
 *
 * So a row is fetched again only as long as it ties, and only runs longer than 2048
 * rows cost the host's waiting.  One sort by (run number, bits) takes the place of
 * one by the bits and one by the run number: there are at most 2^32 / 2049 long runs,
 * so at least 11 bits fit, and when there are few runs nearly 32.
 *
 * Everything is stable: the order that ids have in a run decides last.
 *
 * Moved per row of a level: key 4 bytes; tied row: id 4, a sector or two
 * of its key, 4 for the id if it moves; row of a long run in order:
 * id 4, sectors of its key; of another: id 4, sectors of its key,
 * 8, the core's (4 passes: 64), ids 4 + 4, and a level of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/tie_break.h"

#include "sort/launch.h"
#include "sort/radix/radix_sort.h"
#include "sort/region.h"
#include "sort/sort_step.h"
#include "sort/tied_runs.h"

/* Everything in temp. */
typedef struct TieTemp
{
	GpuSortRunLists lists;
	GpuSortLongRun *level_runs; /* the runs that the level is made of; changes places with lists.long_runs */
	void *dropping;             /* for gpusort_drop_runs_in_order */
	void *core;                 /* where levels lie, too */
	size_t core_bytes;
} TieTemp;

/* Makes the level of all long runs: keys[j] = (run number, next `bits` bits), level_ids[j] = the row's id. */
template <int FORM>
static __global__ void
__launch_bounds__(GPUSORT_RUNS_THREADS)
	gather_level(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
				 uint32_t from, uint32_t bits, const __grid_constant__ GpuSortLongRuns runs, const uint32_t *ids,
				 uint32_t *keys, uint32_t *level_ids)
{
	constexpr int items = GPUSORT_RUNS_TILE / GPUSORT_RUNS_THREADS;
	__shared__ TileRuns tile;
	const uint64_t start = (uint64_t) blockIdx.x * GPUSORT_RUNS_TILE + threadIdx.x;
	uint32_t own[items];

	find_tile_runs(&tile, runs, blockIdx.x * GPUSORT_RUNS_TILE);
	GPUSORT_UNROLL
	for (int k = 0; k < items; k++)
	{
		const uint64_t j = start + k * GPUSORT_RUNS_THREADS;
		const GpuSortLongRun run = tile.runs[j >= tile.next_offset];

		own[k] = j < runs.rows ? ids[run.start + ((uint32_t) j - run.offset)] : 0;
	}
	GPUSORT_UNROLL
	for (int k = 0; k < items; k++)
	{
		const uint64_t j = start + k * GPUSORT_RUNS_THREADS;
		const uint32_t number = tile.first + (j >= tile.next_offset);
		uint64_t made;

		if (j < runs.rows)
		{
			keys[j] =
				(uint32_t) ((uint64_t) number << bits |
							gpusort_pack_window(&plan, gpusort_source_key<FORM>(&source, own[k], &made), from, bits));
			level_ids[j] = own[k];
		}
	}
}

/* Puts the ids of a level back where they came from. */
static __global__ void
__launch_bounds__(GPUSORT_RUNS_THREADS)
	scatter_level(const __grid_constant__ GpuSortLongRuns runs, const uint32_t *level_ids, uint32_t *ids)
{
	__shared__ TileRuns tile;

	find_tile_runs(&tile, runs, blockIdx.x * GPUSORT_RUNS_TILE);
	for (int k = 0; k < GPUSORT_RUNS_TILE / GPUSORT_RUNS_THREADS; k++)
	{
		const uint64_t j = (uint64_t) blockIdx.x * GPUSORT_RUNS_TILE + k * GPUSORT_RUNS_THREADS + threadIdx.x;

		if (j < runs.rows)
		{
			const GpuSortLongRun run = tile.runs[j >= tile.next_offset];

			ids[run.start + ((uint32_t) j - run.offset)] = level_ids[j];
		}
	}
}

/* From places in a level, which is made of parents, to places among all rows. */
static __global__ void
place_runs(GpuSortLongRun *runs, const GpuSortRunCounts *counts, const __grid_constant__ GpuSortLongRuns parents)
{
	const uint32_t count = (uint32_t) (counts->long_runs >> 32);

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
	{
		const GpuSortLongRun parent = parents.runs[run_at(parents, runs[i].start)];

		runs[i].start = parent.start + (runs[i].start - parent.offset);
	}
}

/* Lays temp out for so many rows; base may be NULL when only the size is wanted. */
static cudaError_t
lay_out(char *base, uint32_t rows, TieTemp *work, size_t *temp_bytes)
{
	size_t end = 0;
	size_t counts = gpusort_region_lay(&end, sizeof(GpuSortRunCounts));
	size_t warp_runs = gpusort_region_lay(&end, (rows / (GPUSORT_SHORT_RUN + 1)) * sizeof(GpuSortTiedRun));
	size_t block_runs = gpusort_region_lay(&end, (rows / (GPUSORT_WARP_RUN + 1)) * sizeof(GpuSortTiedRun));
	size_t long_runs = gpusort_region_lay(&end, (rows / (GPUSORT_BLOCK_RUN + 1)) * sizeof(GpuSortLongRun));
	size_t level_runs = gpusort_region_lay(&end, (rows / (GPUSORT_BLOCK_RUN + 1)) * sizeof(GpuSortLongRun));
	size_t dropping = gpusort_region_lay(&end, gpusort_drop_runs_bytes(rows));
	size_t core = 0;
	cudaError_t status = cudaSuccess;

	*work = {};

	/* without long runs there is no level to sort */
	if (rows > GPUSORT_BLOCK_RUN)
	{
		status = gpusort_radix_room_bytes(rows, &work->core_bytes);
		core = gpusort_region_lay(&end, work->core_bytes);
	}
	work->lists.counts = (GpuSortRunCounts *) (base + counts);
	work->lists.warp_runs = (GpuSortTiedRun *) (base + warp_runs);
	work->lists.block_runs = (GpuSortTiedRun *) (base + block_runs);
	work->lists.long_runs = (GpuSortLongRun *) (base + long_runs);
	work->level_runs = (GpuSortLongRun *) (base + level_runs);
	work->dropping = base + dropping;
	work->core = base + core;
	*temp_bytes = end;
	return status;
}

cudaError_t
gpusort_break_ties_bytes(uint32_t rows, uint32_t packed_bits, size_t *temp_bytes)
{
	TieTemp work;

	*temp_bytes = 0;
	return packed_bits > 32 ? lay_out(NULL, rows, &work, temp_bytes) : cudaSuccess;
}

/* Bits of a number below count. */
static uint32_t
number_bits(uint32_t count)
{
	uint32_t bits = 0;

	while (bits < 32 && (count - 1) >> bits != 0)
		bits++;
	return bits;
}

/*
 * Makes a level of long runs, all of it in the core's own memory, sorts it by as many of the
 * bits from *from on as fit, orders its runs but the long ones, which are left in
 * work->lists.long_runs, and puts all ids back.
 */
static cudaError_t
sort_level(const GpuSortDeviceSort *sort, uint32_t *from, const GpuSortLongRuns *runs, uint32_t *ids,
		   const TieTemp *work, cudaStream_t stream)
{
	const uint32_t tiles = (uint32_t) (((uint64_t) runs->rows + GPUSORT_RUNS_TILE - 1) / GPUSORT_RUNS_TILE);
	const uint32_t run_bits = number_bits(runs->count);
	const uint32_t bits = gpusort_pack_window_bits(sort->plan, *from, 32 - run_bits);
	const bool more = *from + bits < sort->plan->packed_bits;
	GpuSortRadixRoom level;
	GpuSortRadixSort core = {};
	cudaError_t status = gpusort_radix_room(work->core, runs->rows, (int) (run_bits + bits), &level);

	if (status != cudaSuccess)
		return status;
#define GATHER_LEVEL(FORM) gather_level<FORM>
	GPUSORT_START_BY_FORM(&sort->source, GATHER_LEVEL, tiles, GPUSORT_RUNS_THREADS, stream, sort->source, *sort->plan,
						  *from, bits, *runs, ids, level.keys_in, level.ids_in);
#undef GATHER_LEVEL
	if ((status = cudaGetLastError()) != cudaSuccess)
		return status;

	*from += bits;
	core.temp = work->core;
	core.temp_bytes = work->core_bytes;
	core.keys_in = level.keys_in;
	core.ids_in = level.ids_in;
	core.rows = runs->rows;
	core.bits = (int) (run_bits + bits);
	core.keys_out = more ? level.keys_out : NULL;
	core.ids_out = level.ids_out;
	status = gpusort_radix_sort(&core, stream);
	if (status == cudaSuccess && more)
	{
		const GpuSortTiedRows tied = {level.keys_out, level.ids_out, runs->rows, *from, {0, 0}};

		status = gpusort_order_runs(sort, &tied, &work->lists, stream);
		if (status == cudaSuccess)
		{
			GPUSORT_START_KERNEL(place_runs, 64, 256, stream, work->lists.long_runs, work->lists.counts, *runs);
			status = cudaGetLastError();
		}
	}
	if (status != cudaSuccess)
		return status;
	GPUSORT_START_KERNEL(scatter_level, tiles, GPUSORT_RUNS_THREADS, stream, *runs, level.ids_out, ids);
	return cudaGetLastError();
}

/* Moves the long runs that are listed to work->level_runs, and tells which they are.  Waits. */
static int
take_long_runs(const GpuSortDeviceSort *sort, TieTemp *work, GpuSortLongRuns *runs, cudaStream_t stream)
{
	const GpuSortRunCounts *found = (const GpuSortRunCounts *) sort->wait.mirror;
	GpuSortLongRun *taken = work->lists.long_runs;
	cudaError_t status;
	int waited;

	status = cudaMemcpyAsync(sort->wait.mirror, work->lists.counts, sizeof(*found), cudaMemcpyDeviceToHost, stream);
	if (status != cudaSuccess)
		return status;
	if ((waited = gpusort_device_wait(&sort->wait, stream)) != 0)
		return waited;
	*runs = GpuSortLongRuns{taken, (uint32_t) (found->long_runs >> 32), (uint32_t) found->long_runs};
	work->lists.long_runs = work->level_runs;
	work->level_runs = taken;
	return cudaSuccess;
}

int
gpusort_break_ties(const GpuSortDeviceSort *sort, const GpuSortTiedRows *tied, void *temp, size_t temp_bytes,
				   cudaStream_t stream)
{
	GpuSortTiedRows left = *tied;
	GpuSortLongRuns runs;
	size_t needed;
	TieTemp work;
	int status;

	if (sort->plan->packed_bits <= left.from || left.rows <= 1)
		return cudaSuccess;
	if ((status = lay_out((char *) temp, left.rows, &work, &needed)) != cudaSuccess)
		return status;
	if (needed > temp_bytes || sort->wait.mirror == NULL)
		return cudaErrorInvalidValue;

	status = gpusort_order_runs(sort, tied, &work.lists, stream);
	while (status == cudaSuccess && left.from < sort->plan->packed_bits && left.rows > GPUSORT_BLOCK_RUN)
	{
		if ((status = take_long_runs(sort, &work, &runs, stream)) != 0 || runs.count == 0)
			break;
		if ((status = gpusort_drop_runs_in_order(sort, &left, &runs, work.lists.counts, work.lists.long_runs,
												 work.dropping, stream)) != 0 ||
			(status = take_long_runs(sort, &work, &runs, stream)) != 0 || runs.count == 0)
			break;
		status = sort_level(sort, &left.from, &runs, left.ids, &work, stream);
	}
	return status;
}
