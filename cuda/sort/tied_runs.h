/*-------------------------------------------------------------------------
 *
 * tied_runs.h
 *	  Runs of rows that tie: what tied_runs.cu, which finds them and orders those of
 *	  few rows, runs_in_order.cu, which drops long ones that are in order, and
 *	  tie_break.cu, which makes levels of the others, share.  Not for others.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TIED_RUNS_H
#define GPUSORT_TIED_RUNS_H

#include <cuda_runtime.h>

#include "sort/bisect.h"
#include "sort/device_sort.h"
#include "sort/key_source.h"
#include "sort/portable.h"
#include "sort/tie_break.h"

/* The most rows of a run that a part of a warp, a warp and a block put in order. */
#define GPUSORT_SHORT_RUN 32
#define GPUSORT_WARP_RUN  256
#define GPUSORT_BLOCK_RUN 2048

/* Bits that one look at a row's key yields. */
#define GPUSORT_TIE_WINDOW 64

typedef struct GpuSortTiedRun
{
	uint32_t start;
	uint32_t rows;
} GpuSortTiedRun;

/* A run of more than GPUSORT_BLOCK_RUN rows. */
typedef struct GpuSortLongRun
{
	uint32_t start;  /* of its rows */
	uint32_t offset; /* of its rows in the next level */
} GpuSortLongRun;

typedef struct GpuSortRunCounts
{
	unsigned long long long_runs; /* count << 32 | rows, so that one addition yields number and offset */
	unsigned long long open_runs; /* long ones that may be in order; count << 32 | rows, too */
	uint32_t warp_runs;
	uint32_t block_runs;
} GpuSortRunCounts;

/* Runs as they are found, in any order; those of up to GPUSORT_SHORT_RUN rows are not listed. */
typedef struct GpuSortRunLists
{
	GpuSortRunCounts *counts;
	GpuSortTiedRun *warp_runs;
	GpuSortTiedRun *block_runs;
	GpuSortLongRun *long_runs;
} GpuSortRunLists;

/* Long runs in the order of their places; offset of the first is 0. */
typedef struct GpuSortLongRuns
{
	const GpuSortLongRun *runs;
	uint32_t count;
	uint32_t rows; /* of all of them */
} GpuSortLongRuns;

/*
 * Finds the runs of equal keys, and puts the ids of each in the order of the bits from
 * tied->from on, but those of the long runs, which it lists, and those of decided keys.
 */
extern cudaError_t gpusort_order_runs(const GpuSortDeviceSort *sort, const GpuSortTiedRows *tied,
									  const GpuSortRunLists *lists, cudaStream_t stream);

/*
 * Finds out which long runs of tied are in order already, and lists the others in kept[].
 * tied->keys are not looked at.  temp is of gpusort_drop_runs_bytes(tied->rows) bytes.  Of
 * *counts only long_runs has a meaning afterwards.
 */
extern size_t gpusort_drop_runs_bytes(uint32_t all_rows);
extern cudaError_t gpusort_drop_runs_in_order(const GpuSortDeviceSort *sort, const GpuSortTiedRows *tied,
											  const GpuSortLongRuns *runs, GpuSortRunCounts *counts,
											  GpuSortLongRun *kept, void *temp, cudaStream_t stream);

/* Adds a long run to a list; offsets rise with the places in it. */
static __device__ inline void
list_long_run(GpuSortRunCounts *counts, GpuSortLongRun *runs, uint32_t start, uint32_t rows)
{
	const unsigned long long before = atomicAdd(&counts->long_runs, 1ull << 32 | rows);

	runs[before >> 32] = GpuSortLongRun{start, (uint32_t) before};
}

/* Bits `from` and after of two rows' packed keys; both tie on those before. */
template <int FORM>
static __device__ int
compare_after(const GpuSortKeySource &source, const GpuSortPackPlan &plan, uint32_t from, uint32_t a, uint32_t b)
{
	uint64_t made[2];
	const uint64_t *key_a = gpusort_source_key<FORM>(&source, a, &made[0]);
	const uint64_t *key_b = gpusort_source_key<FORM>(&source, b, &made[1]);

	for (; from < plan.packed_bits; from += GPUSORT_TIE_WINDOW)
	{
		uint64_t window_a = gpusort_pack_window64(&plan, key_a, from, GPUSORT_TIE_WINDOW);
		uint64_t window_b = gpusort_pack_window64(&plan, key_b, from, GPUSORT_TIE_WINDOW);

		if (window_a != window_b)
			return window_a < window_b ? -1 : 1;
	}
	return 0;
}

/* The last of the runs that begins at or before offset. */
static __device__ inline uint32_t
run_at(const GpuSortLongRuns &runs, uint32_t offset)
{
	return gpusort_last_not_above(runs.count, offset, [&](uint32_t i)
								  { return runs.runs[i].offset; });
}

/*
 * A block goes over the rows of long runs a tile at a time.  At most two runs meet in one: that
 * of its first row, and the next.
 */
#define GPUSORT_RUNS_THREADS 256
#define GPUSORT_RUNS_TILE    1024

static_assert(GPUSORT_RUNS_TILE <= GPUSORT_BLOCK_RUN, "a tile of a level holds at most two runs");

typedef struct TileRuns
{
	uint32_t first;
	uint32_t next_offset;
	GpuSortLongRun runs[2];
} TileRuns;

/* All of the block's threads; ends with a barrier. */
static __device__ inline void
find_tile_runs(TileRuns *tile, const GpuSortLongRuns &runs, uint32_t start)
{
	if (threadIdx.x == 0)
	{
		tile->first = run_at(runs, start);
		tile->runs[0] = runs.runs[tile->first];
		tile->runs[1] = tile->first + 1 < runs.count ? runs.runs[tile->first + 1] : GpuSortLongRun{0, UINT32_MAX};
		tile->next_offset = tile->runs[1].offset;
	}
	__syncthreads();
}

/* One past the last row of run `number` among the rows of all long runs. */
static __device__ inline uint32_t
run_offset_end(const GpuSortLongRuns &runs, uint32_t number)
{
	return number + 1 < runs.count ? runs.runs[number + 1].offset : runs.rows;
}

#endif /* GPUSORT_TIED_RUNS_H */
