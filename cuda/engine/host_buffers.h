/*-------------------------------------------------------------------------
 *
 * host_buffers.h
 *	  Buffers of a chunk in pinned host memory, from and to which devices copy at
 *	  full speed and without the CPU.
 *
 * Pinning takes longer than a copy, so buffers are kept for the next sort that takes one, until
 * they age.  All may be called from any thread.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_BUFFERS_H
#define GPUSORT_HOST_BUFFERS_H

#include "engine/device.h"

/* The most buffers, used or not: pinned memory is lost to the rest of the machine. */
#define GPUSORT_HOST_BUFFERS_MAX 64

typedef struct GpuSortHostBuffers
{
	pthread_mutex_t lock;

	/* under lock */
	void *free[GPUSORT_HOST_BUFFERS_MAX]; /* the last one is the next to be taken */
	int free_count;
	int count;  /* of all */
	int unused; /* the fewest that were free since the last age */
} GpuSortHostBuffers;

/* No buffers yet. */
extern void gpusort_host_buffers_init(GpuSortHostBuffers *buffers);

/* Frees all that are not in use, which should be all.  On the calling thread's device. */
extern void gpusort_host_buffers_free(GpuSortHostBuffers *buffers);

/* A buffer of GPUSORT_CHUNK_BYTES, with anything in it; NULL if there are too many, or no memory. */
extern void *gpusort_host_buffer_get(GpuSortHostBuffers *buffers, const GpuSortDeviceSet *set);

extern void gpusort_host_buffer_put(GpuSortHostBuffers *buffers, void *buffer);

/* Frees what was not needed since the last call. */
extern void gpusort_host_buffers_age(GpuSortHostBuffers *buffers, const GpuSortDeviceSet *set);

/* Returns true if there is any buffer. */
extern bool gpusort_host_buffers_are_aging(GpuSortHostBuffers *buffers);

#endif /* GPUSORT_HOST_BUFFERS_H */
