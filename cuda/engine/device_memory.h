/*-------------------------------------------------------------------------
 *
 * device_memory.h
 *	  A device's memory: what is reserved for sorts, and the blocks that they
 *	  allocate.
 *
 * RESERVATIONS
 *	A sort's need is the minimum that it takes to finish: its chunks' slabs, its
 *	staging buffers and the work memory for its rows.  The larger of that and what
 *	it estimated is reserved for it, so that two sorts which fit one after the
 *	other do not starve each other halfway.  The reservations of all sorts together
 *	never exceed the limit, and who may have how much of it memory_share.h says.
 *
 * BLOCKS
 *	Memory is allocated from CUDA in blocks of a few sizes (gpusort_block_size) and
 *	goes to a cache when a sort ends, so that repeated queries allocate nothing:
 *	cudaMalloc takes long and cudaFree waits for the whole device.  A block is
 *	reused for its exact size only, which keeps the reservations true to the byte.
 *	Cached blocks are freed, oldest first, when a new one would exceed the limit
 *	or the device has no more to give, and when they were not needed for a while
 *	(gpusort_memory_age), but for those that the device is to be warm with.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_MEMORY_H
#define GPUSORT_DEVICE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "service/engine.h"
#include "service/memory_share.h"

/*
 * Bytes of a device's memory that each sort is sure of.  Staging buffers, one chunk and the work
 * memory for the most rows that it can hold take up to 30.
 */
#define GPUSORT_DEVICE_SURE ((uint64_t) 32 << 20)

struct GpuSortCudaDevice;

typedef struct GpuSortBlock
{
	void *base; /* device address; NULL: no block */
	size_t bytes;
	bool warm;         /* never given back for its age */
	uint32_t released; /* while cached: since this age */
} GpuSortBlock;

/* All of it under the device's lock. */
typedef struct GpuSortDeviceMemory
{
	GpuSortMemoryShare share; /* reserved for sorts */

	/* in bytes */
	uint64_t needed; /* by all sorts; not more than reserved */
	uint64_t held;   /* in blocks, a sort's or cached */

	GpuSortBlock *cache; /* the oldest first */
	int cached;
	int cache_size;

	/* in bytes, of blocks that are not warm */
	uint64_t idle;   /* cached */
	uint64_t in_use; /* of sorts */
	uint64_t peak;   /* the most of that since the last age */
	uint32_t ages;   /* calls of gpusort_memory_age */
} GpuSortDeviceMemory;

/* What one sort has reserved: the larger of the two, in bytes; belongs to the sort's thread. */
typedef struct GpuSortDeviceReservation
{
	uint64_t estimate; /* what it is expected to need */
	uint64_t need;     /* the minimum that it takes to finish, as far as rows have come in */
} GpuSortDeviceReservation;

/* Makes *memory that of a device where gpusort may use so many bytes. */
extern void gpusort_memory_init(GpuSortDeviceMemory *memory, uint64_t limit);

/* Makes all cached blocks warm.  No sort may be on the device. */
extern void gpusort_memory_keep(GpuSortDeviceMemory *memory);

/*
 * Frees cached blocks that were not needed even at the busiest moment since the last call.  As
 * cudaFree waits for the whole device, few are freed while sorts are there, and only such as were
 * released several calls ago.  Called at intervals, it leaves what sorts keep taking, and after an
 * interval without any only what is warm.  The device is the calling thread's.
 */
extern void gpusort_memory_age(struct GpuSortCudaDevice *device);

/* Returns true if there is something that gpusort_memory_age may have to free some day. */
extern bool gpusort_memory_is_aging(struct GpuSortCudaDevice *device);

/* Frees the cache.  The device is the calling thread's. */
extern void gpusort_memory_free(GpuSortDeviceMemory *memory);

/* Counts a sort that will reserve memory, and counts it no longer. */
extern void gpusort_memory_join(struct GpuSortCudaDevice *device);
extern void gpusort_memory_leave(struct GpuSortCudaDevice *device);

/*
 * Changes a sort's *reservation into wanted; MEMORY_LIMIT, or MEMORY_BUSY if it would fit without
 * other sorts, and nothing changed, when it does not fit.  Making it smaller never fails.
 */
extern int gpusort_memory_reserve(struct GpuSortCudaDevice *device, GpuSortDeviceReservation *reservation,
								  GpuSortDeviceReservation wanted, GpuSortError *error);

/* The same of a sort that has all its rows and gives memory back next: what is kept for others is not kept from it. */
extern int gpusort_memory_reserve_last(struct GpuSortCudaDevice *device, GpuSortDeviceReservation *reservation,
									   GpuSortDeviceReservation wanted, GpuSortError *error);

/* Returns the bytes that a sort's reservation can be now. */
extern uint64_t gpusort_memory_room(struct GpuSortCudaDevice *device, const GpuSortDeviceReservation *reservation);

/*
 * Gives up what is reserved for no more than the estimate, if another sort was starved and this one
 * has more than its fair share.
 */
extern void gpusort_memory_yield(struct GpuSortCudaDevice *device, GpuSortDeviceReservation *reservation);

/* Returns true if a call failed because a device, or what gpusort may use of it, is full. */
extern bool gpusort_lacks_memory(const GpuSortError *error);

/* Returns the bytes that a block for so many bytes has: at most an eighth more, and 2 MiB at least. */
extern size_t gpusort_block_size(uint64_t bytes);

/*
 * Fills *block from the cache or from CUDA; bytes is a gpusort_block_size.  The block is the
 * caller's until it releases it.  NO_MEMORY, and no block, when the device has none.
 */
extern int gpusort_block_acquire(struct GpuSortCudaDevice *device, size_t bytes, GpuSortBlock *block,
								 GpuSortError *error);

/* Puts a block into the cache and clears *block.  Nothing may be running that uses it; it may be no block. */
extern void gpusort_block_release(struct GpuSortCudaDevice *device, GpuSortBlock *block);

#endif /* GPUSORT_DEVICE_MEMORY_H */
