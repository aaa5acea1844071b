/*-------------------------------------------------------------------------
 *
 * reclaimer.h
 *	  A thread that gives back to the driver what sorts have not needed for a while.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RECLAIMER_H
#define GPUSORT_RECLAIMER_H

#include <pthread.h>

#include "engine/device.h"
#include "engine/host_buffers.h"

/* All zero: not started. */
typedef struct GpuSortReclaimer
{
	const GpuSortDeviceSet *set;
	GpuSortHostBuffers *buffers;
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;
	pthread_cond_t change; /* closing, or a sort began or a buffer was made while it was asleep */
	bool asleep;
	bool closing;
} GpuSortReclaimer;

/* Starts the thread, for the devices of a set and for buffers, which outlive it. */
extern int gpusort_reclaimer_start(GpuSortReclaimer *reclaimer, const GpuSortDeviceSet *set,
								   GpuSortHostBuffers *buffers, GpuSortError *error);

/* Ends the thread, if it was started. */
extern void gpusort_reclaimer_stop(GpuSortReclaimer *reclaimer);

/* To be called when a sort has begun, or somebody got a buffer. */
extern void gpusort_reclaimer_wake(GpuSortReclaimer *reclaimer);

/* What the thread does at intervals: the memory of all devices ages, and the buffers. */
extern void gpusort_reclaim(const GpuSortDeviceSet *set, GpuSortHostBuffers *buffers);

#endif /* GPUSORT_RECLAIMER_H */
