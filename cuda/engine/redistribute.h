/*-------------------------------------------------------------------------
 *
 * spread.h
 *	  One sort over several devices: which rows each of them sorts, and bringing
 *	  their refs there.
 *
 * The rows of a sort have a total order: by key, then by the place they were put
 * at.  Splitters, one fewer than there are parts, are rows of the sort; part p sorts
 * and gives out the rows from splitter p - 1 on to below splitter p.  As the order
 * is total, rows of the same key are split like any others, and the shares are as
 * even as the sample is good, whatever the keys are.
 *
 *	1. A sample of rows, spread evenly over the sort, is put in order on the host.
 *	   Splitters are taken from it so that each part gets as many rows as were put
 *	   on its device: for so many it has work memory.
 *	2. Each device counts for every chunk it has how many rows go to which part.
 *	   From these the host works out where the rows of each chunk start in each
 *	   part, chunks in the order they were put.
 *	3. Each device writes ref and prefix of its rows straight into the memory of the
 *	   devices they go to, in the order they have in the chunk.
 *
 * After that each part has its rows in the order they were put, and is sorted like
 * a sort on one device, stably.  Rows themselves stay where they are: a ref names
 * the chunk, every device has the table of all chunks, and reads the others'.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SPREAD_H
#define GPUSORT_SPREAD_H

#include "engine/sort_state.h"

/* Device memory that it takes beside the parts' work memory: per chunk, and all the rest. */
#define GPUSORT_SPREAD_PER_CHUNK (sizeof(GpuSortDeviceChunk) + (1 + GPUSORT_PARTS_MAX) * sizeof(uint32_t))
#define GPUSORT_SPREAD_FIXED     ((uint64_t) 6 << 20)

/* Steps 1 and 2: sets rows of all parts.  Waits. */
extern int gpusort_spread_count(GpuSort *sort, GpuSortError *error);

/*
 * Step 3: refs and prefixes (if they have room) of all parts, whose work memory is
 * there.  Waits, and gives back what the steps have taken.
 */
extern int gpusort_spread_rows(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error);

/* Frees what is left; nothing may be under way. */
extern void gpusort_spread_free(GpuSort *sort);

#endif /* GPUSORT_SPREAD_H */
