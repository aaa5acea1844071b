/*-------------------------------------------------------------------------
 *
 * device.h
 *	  One GPU: what it is, its memory, and its lanes.
 *
 * A device belongs to the engine and lives as long as it.  Everything under
 * "lock" is shared by the threads of all sorts on the device; no lock is held
 * over a CUDA call that may wait.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_H
#define GPUSORT_DEVICE_H

#include <cuda_runtime.h>
#include <pthread.h>

#include "engine/device_memory.h"
#include "engine/sort_state.h"
#include "service/engine.h"

/*
 * What a sort needs of a device beside memory for its rows.  Lanes are made
 * once; sorts borrow them, one after the other.
 */
typedef struct GpuSortLane
{
	struct GpuSortLane *next; /* while free */

	cudaStream_t compute; /* every kernel, in order */
	cudaStream_t copies;  /* H2D copies of chunks, later D2H copies */

	cudaEvent_t uploaded;        /* the chunk has left the caller's memory */
	cudaEvent_t computed;        /* results are in the mirror */
	cudaEvent_t downloaded;      /* the chunk is in the caller's memory */
	cudaEvent_t gather_begun[2]; /* with times; one pair per staging buffer */
	cudaEvent_t gathered[2];

	GpuSortDeviceState *state;  /* device memory */
	GpuSortDeviceState *mirror; /* pinned host memory, a copy of *state */
	void *sort_mirror;          /* pinned host memory, the device sort's */
} GpuSortLane;

typedef struct GpuSortCudaDevice
{
	int ordinal; /* as CUDA counts */
	uint64_t memory_total;
	bool ecc;              /* its memory corrects errors */
	uint32_t work_per_row; /* bytes that a sort takes beside its rows (reservation.h) */
	char name[GPUSORT_NAME_BYTES];
	char detail[GPUSORT_NAME_BYTES];

	pthread_mutex_t lock;

	/* under lock */
	GpuSortDeviceMemory memory;
	GpuSortLane *lanes; /* free ones */

	/* written once, under lock; dead is read without */
	int dead;
	char dead_text[GPUSORT_TEXT_BYTES];
} GpuSortCudaDevice;

/* The engine's devices. */
typedef struct GpuSortDeviceSet
{
	GpuSortCudaDevice *devices;
	int count;
	bool joined; /* each can read and write the memory of each other */

	/* Sorts of so many estimated rows use all devices from the start, if joined. */
	uint64_t large_rows;
} GpuSortDeviceSet;

/*
 * Makes the device's context, learns what it is and how much memory gpusort may
 * use there (memory_limit bytes, or 90 % of what is free if 0).  Fails with
 * NO_ENGINE when this library has no code for it.
 */
extern int gpusort_device_open(GpuSortCudaDevice *device, int ordinal, uint64_t memory_limit,
							   GpuSortError *error);

/*
 * Lets each device read and write the memory of each other,
 * if they are several and all can: set->joined.
 */
extern void gpusort_devices_join(GpuSortDeviceSet *set);

/* Frees all that the device has.  No sort may be left on it. */
extern void gpusort_device_close(GpuSortCudaDevice *device);

/* Makes the device the calling thread's.  Fails when it is dead. */
extern int gpusort_device_use(GpuSortCudaDevice *device, GpuSortError *error);

/*
 * Borrows a lane, its state reset.  *lane is NULL before; if it is not afterwards, the caller has
 * to release it, even if this failed.
 */
extern int gpusort_lane_acquire(GpuSortCudaDevice *device, GpuSortLane **lane, GpuSortError *error);

/* Gives a lane back; nothing may be running on it. */
extern void gpusort_lane_release(GpuSortCudaDevice *device, GpuSortLane *lane);

/*
 * Waits for an event; fails with the error of what came before it, if there is one.  Looks often
 * for the first 50 us, as short waits are the common ones, then sleeps.
 */
extern int gpusort_wait(GpuSortCudaDevice *device, cudaEvent_t event, GpuSortError *error);

#endif /* GPUSORT_DEVICE_H */
