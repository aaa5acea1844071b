/*-------------------------------------------------------------------------
 *
 * device_memory.h
 *	  A device's memory: what is promised to sorts, and the blocks it is given out
 *	  in.
 *
 * PROMISES
 *	A sort's need is what it surely takes to finish: its chunks' slabs, its
 *	staging buffers and the work memory for its rows.  It is promised the larger
 *	of that and what it estimated, so that two sorts which fit one after the
 *	other do not starve each other halfway.  The promises of all sorts together
 *	never exceed the limit.
 *
 * BLOCKS
 *	Memory is taken from CUDA in blocks of a few sizes (gpusort_block_size) and
 *	goes to a cache when a sort ends, so that repeated queries allocate nothing:
 *	cudaMalloc takes long and cudaFree waits for the whole device.  A block is
 *	reused for its exact size only, which keeps the promises true to the byte.
 *	Cached blocks are freed, oldest first, when a new one would exceed the limit
 *	or the device has no more to give.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_MEMORY_H
#define GPUSORT_DEVICE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "service/engine.h"

struct GpuSortCudaDevice;

typedef struct GpuSortBlock
{
	void *base; /* device address; NULL: no block */
	size_t bytes;
} GpuSortBlock;

/* All of it under the device's lock. */
typedef struct GpuSortMemory
{
	uint64_t limit;
	uint64_t promised;   /* to all sorts */
	uint64_t needed;     /* by all sorts; not more than promised */
	uint64_t held;       /* in blocks, lent or cached */
	GpuSortBlock *cache; /* the oldest first */
	int cached;
	int cache_size;
} GpuSortMemory;

/* One sort's share; belongs to the sort's thread. */
typedef struct GpuSortShare
{
	uint64_t estimate; /* promised at least */
	uint64_t need;
} GpuSortShare;

extern void gpusort_memory_init(GpuSortMemory *memory, uint64_t limit);

/* Frees the cache.  The device is the calling thread's. */
extern void gpusort_memory_free(GpuSortMemory *memory);

/* Changes what is promised to a sort; MEMORY_LIMIT, and nothing changed, when it does not fit. */
extern int gpusort_memory_promise(struct GpuSortCudaDevice *device, GpuSortShare *share, GpuSortShare wanted,
								  GpuSortError *error);

/* Did it fail because a device, or what gpusort may use of it, is full? */
extern bool gpusort_lacks_memory(const GpuSortError *error);

/* The bytes that a block for so many bytes has: at most an eighth more. */
extern size_t gpusort_block_size(uint64_t bytes);

/* bytes is a gpusort_block_size.  The block is the caller's until it gives it back. */
extern int gpusort_block_take(struct GpuSortCudaDevice *device, size_t bytes, GpuSortBlock *block,
							  GpuSortError *error);

/* Nothing may be under way on it.  *block is cleared; giving no block is legal. */
extern void gpusort_block_give(struct GpuSortCudaDevice *device, GpuSortBlock *block);

#endif /* GPUSORT_DEVICE_MEMORY_H */
