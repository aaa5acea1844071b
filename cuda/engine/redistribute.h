/*-------------------------------------------------------------------------
 *
 * redistribute.h
 *	  One sort over several devices: which rows each of them sorts, and bringing
 *	  their refs there.
 *
 * The rows of a sort have a total order: by key, then by the place they were put
 * at.  Splitters, one fewer than there are shards, are rows of the sort; shard p sorts
 * and emits the rows from splitter p - 1 on to below splitter p.  As the order
 * is total, rows of the same key are split like any others, and the shards are as
 * even as the sample is good, whatever the keys are.
 *
 *	1. A sample of rows, spread evenly over the sort, is put in order on the host.
 *	   Splitters are taken from it so that each shard gets as many rows as were put
 *	   on its device: for so many it has work memory.
 *	2. Each device makes a histogram of every chunk it has: how many rows go to which
 *	   shard.  The host's scan of them, chunks in the order they were put, tells where
 *	   the rows of each chunk start in each shard.
 *	3. Each device writes ref and partial key of its rows straight into the memory of the
 *	   devices they go to, in the order they have in the chunk.
 *
 * After that each shard has its rows in the order they were put, and is sorted like
 * a sort on one device, stably.  Rows themselves stay where they are: a ref names
 * the chunk, every device has the table of all chunks, and reads the others'.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REDISTRIBUTE_H
#define GPUSORT_REDISTRIBUTE_H

#include "engine/sort_state.h"

/* Bytes of device memory that it takes beside the shards' work memory: per chunk of the sort, and all the rest. */
#define GPUSORT_REDISTRIBUTION_PER_CHUNK (sizeof(GpuSortDeviceChunk) + (1 + GPUSORT_SHARDS_MAX) * sizeof(uint32_t))
#define GPUSORT_REDISTRIBUTION_FIXED     ((uint64_t) 6 << 20)

/* Steps 1 and 2: sets rows of all shards.  Waits.  Whatever it returns, gpusort_redistribution_free is due. */
extern int gpusort_redistribution_plan(GpuSort *sort, GpuSortError *error);

/*
 * Step 3: refs and partial keys (if they have room) of all shards, whose work memory is
 * there.  Waits, and gives back what the steps have allocated.
 */
extern int gpusort_redistribute_rows(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error);

/* Frees what the host has of it, if it has any; nothing may be running. */
extern void gpusort_redistribution_free(GpuSort *sort);

#endif /* GPUSORT_REDISTRIBUTE_H */
