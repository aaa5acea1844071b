/*-------------------------------------------------------------------------
 *
 * rmg_partition.h
 *	  One pass of RMG sort's radix partitioning, on one device: a stretch of keys
 *	  split by eight of their bits (rmg_partition.cu).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RMG_PARTITION_H
#define GPUSORT_RMG_PARTITION_H

#include <cuda_runtime.h>
#include <stdint.h>

#define GPUSORT_RMG_BITS  8
#define GPUSORT_RMG_RADIX (1 << GPUSORT_RMG_BITS)

/* Device memory is the caller's.  A stretch of no keys has no work: do not ask for it. */
typedef struct GpuSortRmgStretch
{
	const void *keys;
	void *split; /* as many keys, elsewhere */
	uint64_t count;
	uint16_t *tiles;     /* histogram of each tile: gpusort_rmg_tiles() * GPUSORT_RMG_RADIX */
	uint64_t *histogram; /* GPUSORT_RMG_RADIX; begins as 0 */
	uint64_t *cursors;   /* GPUSORT_RMG_RADIX; where each digit's next key goes */
	int shift;           /* the digit's lowest bit */
} GpuSortRmgStretch;

/* Keys of a tile, which one block handles. */
extern uint32_t gpusort_rmg_tile_keys(int key_bytes);

extern uint64_t gpusort_rmg_tiles(uint64_t count, int key_bytes);

/* Fills tiles, histogram and cursors. */
extern cudaError_t gpusort_rmg_count(const GpuSortRmgStretch *stretch, int key_bytes, cudaStream_t stream);

/* Afterwards: fills split, by ascending digit; within a digit in no order.  Uses cursors up. */
extern cudaError_t gpusort_rmg_scatter(const GpuSortRmgStretch *stretch, int key_bytes, cudaStream_t stream);

#endif /* GPUSORT_RMG_PARTITION_H */
