/*-------------------------------------------------------------------------
 *
 * multi_devices.h
 *	  What the references over several GPUs share: the devices with two buffers
 *	  of keys each, the way of chunks up and down, the local sort, and the clock.
 *
 * One host thread gives work to all devices.  A device's keys lie in keys[0];
 * keys[1] is where they go next, and the two are swapped by their pointers.
 * Chunk d is rows d * chunk to (d + 1) * chunk - 1, as far as there are so many.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MULTI_DEVICES_H
#define GPUSORT_MULTI_DEVICES_H

#include "published/multi_reference.h"

#define GPUSORT_TRY(call)             \
	do                                \
	{                                 \
		cudaError_t status_ = (call); \
		if (status_ != cudaSuccess)   \
			return status_;           \
	} while (0)

/* For a kernel that has just been started, too. */
#define GPUSORT_TRY_STARTED() GPUSORT_TRY(cudaGetLastError())

#define GPUSORT_REFERENCE_STREAMS 2

typedef struct GpuSortReferenceDevice
{
	int ordinal;
	cudaStream_t streams[GPUSORT_REFERENCE_STREAMS];
	char *keys[2];
	void *temp[GPUSORT_REFERENCE_STREAMS]; /* of the local sorts on that stream */
} GpuSortReferenceDevice;

typedef struct GpuSortReferenceDevices
{
	int count;
	int key_bytes;
	uint64_t rows;     /* at most */
	uint64_t capacity; /* of a buffer, keys */
	size_t temp_bytes;
	GpuSortReferenceDevice device[GPUSORT_MULTI_REFERENCE_DEVICES];
} GpuSortReferenceDevices;

static inline uint64_t
gpusort_reference_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Rows of each device's chunk but the last's. */
static inline uint64_t
gpusort_reference_chunk(uint64_t rows, int devices)
{
	return (rows + (uint64_t) devices - 1) / (uint64_t) devices;
}

static inline void
gpusort_reference_swap_buffers(GpuSortReferenceDevice *device)
{
	char *keys = device->keys[0];

	device->keys[0] = device->keys[1];
	device->keys[1] = keys;
}

/* Milliseconds of a clock that only runs forward. */
extern double gpusort_reference_clock(void);

/* Milliseconds since *last, which becomes now. */
static inline double
gpusort_reference_lap(double *last)
{
	double begun = *last;

	*last = gpusort_reference_clock();
	return *last - begun;
}

/*
 * Takes streams and memory, and lets the devices reach each other's memory where
 * they can.  `devices` is zeroed first; after an error it is for
 * gpusort_reference_close_devices().
 */
extern cudaError_t gpusort_reference_open_devices(GpuSortReferenceDevices *devices, const int *ordinals, int count,
												  uint64_t rows, int key_bytes, uint64_t capacity);
extern void gpusort_reference_close_devices(GpuSortReferenceDevices *devices);

/* Waits for everything on all devices. */
extern cudaError_t gpusort_reference_wait(GpuSortReferenceDevices *devices);

/* Chunk d to device d's keys[0], or from there to its place on the host; and waits. */
extern cudaError_t gpusort_reference_upload(GpuSortReferenceDevices *devices, const void *host_keys, uint64_t rows);
extern cudaError_t gpusort_reference_download(GpuSortReferenceDevices *devices, void *host_keys, uint64_t rows);

/*
 * Sorts keys first to first + count - 1 of keys[0], which agree in all but their low
 * `bits` bits, on streams[stream] of the current device.  *result is where they
 * then lie, at the same place: keys[0] or keys[1].
 */
extern cudaError_t gpusort_reference_sort_range(const GpuSortReferenceDevices *devices,
												GpuSortReferenceDevice *device, int stream, uint64_t first,
												uint64_t count, int bits, int *result);

/* Sorts each device's chunk by all bits, into keys[0], and waits. */
extern cudaError_t gpusort_reference_sort_chunks(GpuSortReferenceDevices *devices, uint64_t rows);

#endif /* GPUSORT_MULTI_DEVICES_H */
