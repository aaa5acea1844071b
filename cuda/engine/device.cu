/*-------------------------------------------------------------------------
 *
 * device.cu
 *	  Opening and closing a GPU, and its lanes; see device.h.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/check.h"
#include "sort/device_sort.h"

#define GPUSORT_SPIN_NS 50000

static void lane_free(GpuSortLane *lane);

/* Its code is there if that of all kernels of this library is. */
static __global__ void
present()
{
}

/* Returns true if this library has code for the calling thread's device. */
static bool
kernels_present(void)
{
	cudaFuncAttributes attributes;
	cudaError_t status = cudaFuncGetAttributes(&attributes, present);

	(void) cudaGetLastError();
	return status == cudaSuccess;
}

int
gpusort_device_open(GpuSortCudaDevice *device, int ordinal, uint64_t memory_limit, GpuSortError *error)
{
	cudaDeviceProp properties;
	int driver = 0;
	size_t free_bytes = 0;
	size_t total_bytes = 0;

	memset(device, 0, sizeof(*device));
	device->ordinal = ordinal;
	pthread_mutex_init(&device->lock, NULL);

	GPUSORT_CUDA(NULL, error, cudaGetDeviceProperties(&properties, ordinal));
	GPUSORT_CUDA(NULL, error, cudaDriverGetVersion(&driver));

	/* A waiting thread leaves its core to the backends. */
	GPUSORT_CUDA(NULL, error, cudaInitDevice(ordinal, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid));
	GPUSORT_CUDA(NULL, error, cudaSetDevice(ordinal));

	snprintf(device->name, sizeof(device->name), "%.*s", GPUSORT_NAME_BYTES - 1, properties.name);
	device->ecc = properties.ECCEnabled != 0;
	snprintf(device->detail, sizeof(device->detail), "sm_%d%d, driver %d.%d",
			 properties.major, properties.minor, driver / 1000, driver % 1000 / 10);

	if (!kernels_present())
		return gpusort_fail(error, GPUSORT_REASON_NO_ENGINE,
							"this build has no code for device %d, %s of compute capability %d.%d",
							ordinal, device->name, properties.major, properties.minor);

	GPUSORT_CUDA(NULL, error, cudaMemGetInfo(&free_bytes, &total_bytes));
	device->memory_total = total_bytes;

	/* More than there is cannot be reserved. */
	if (memory_limit == 0)
		memory_limit = free_bytes / 10 * 9;
	else if (memory_limit > free_bytes)
		memory_limit = free_bytes;
	gpusort_memory_init(&device->memory, memory_limit);
	return 0;
}

void
gpusort_devices_join(GpuSortDeviceSet *set)
{
	bool joined = set->count > 1;

	for (int i = 0; i < set->count && joined; i++)
	{
		joined = cudaSetDevice(set->devices[i].ordinal) == cudaSuccess;
		for (int k = 0; k < set->count && joined; k++)
		{
			int can = 0;
			cudaError_t status = cudaSuccess;

			if (k == i)
				continue;
			joined = cudaDeviceCanAccessPeer(&can, set->devices[i].ordinal, set->devices[k].ordinal) == cudaSuccess &&
				can != 0;
			if (joined)
				status = cudaDeviceEnablePeerAccess(set->devices[k].ordinal, 0);
			if (status != cudaSuccess && status != cudaErrorPeerAccessAlreadyEnabled)
				joined = false;
		}
	}
	(void) cudaGetLastError();
	set->joined = joined;
}

void
gpusort_device_close(GpuSortCudaDevice *device)
{
	(void) cudaSetDevice(device->ordinal);
	while (device->lanes != NULL)
	{
		GpuSortLane *lane = device->lanes;

		device->lanes = lane->next;
		lane_free(lane);
	}
	gpusort_memory_free(&device->memory);
	pthread_mutex_destroy(&device->lock);
}

int
gpusort_device_use(GpuSortCudaDevice *device, GpuSortError *error)
{
	if (__atomic_load_n(&device->dead, __ATOMIC_ACQUIRE))
		return gpusort_fail(error, GPUSORT_REASON_DEVICE, "%s", device->dead_text);
	GPUSORT_CUDA(device, error, cudaSetDevice(device->ordinal));
	return 0;
}

/* Fills in a lane that is all zero; what it made is freed by lane_free, also after a failure. */
static int
lane_fill(GpuSortCudaDevice *device, GpuSortLane *lane, GpuSortError *error)
{
	const unsigned int plain = cudaEventBlockingSync | cudaEventDisableTiming;

	GPUSORT_CUDA(device, error, cudaStreamCreateWithFlags(&lane->compute, cudaStreamNonBlocking));
	GPUSORT_CUDA(device, error, cudaStreamCreateWithFlags(&lane->copies, cudaStreamNonBlocking));
	GPUSORT_CUDA(device, error, cudaEventCreateWithFlags(&lane->uploaded, plain));
	GPUSORT_CUDA(device, error, cudaEventCreateWithFlags(&lane->computed, plain));
	GPUSORT_CUDA(device, error, cudaEventCreateWithFlags(&lane->downloaded, plain));
	for (int i = 0; i < 2; i++)
	{
		GPUSORT_CUDA(device, error, cudaEventCreateWithFlags(&lane->gather_begun[i], cudaEventBlockingSync));
		GPUSORT_CUDA(device, error, cudaEventCreateWithFlags(&lane->gathered[i], cudaEventBlockingSync));
	}
	GPUSORT_CUDA(device, error, cudaMalloc((void **) &lane->state, sizeof(GpuSortDeviceState)));
	GPUSORT_CUDA(device, error, cudaMallocHost((void **) &lane->mirror, sizeof(GpuSortDeviceState)));
	GPUSORT_CUDA(device, error, cudaMallocHost(&lane->sort_mirror, GPUSORT_DEVICE_SORT_MIRROR_BYTES));
	return 0;
}

/* Errors have no use here: the lane is going away. */
static void
lane_free(GpuSortLane *lane)
{
	if (lane->compute != NULL)
		(void) cudaStreamDestroy(lane->compute);
	if (lane->copies != NULL)
		(void) cudaStreamDestroy(lane->copies);
	if (lane->uploaded != NULL)
		(void) cudaEventDestroy(lane->uploaded);
	if (lane->computed != NULL)
		(void) cudaEventDestroy(lane->computed);
	if (lane->downloaded != NULL)
		(void) cudaEventDestroy(lane->downloaded);
	for (int i = 0; i < 2; i++)
	{
		if (lane->gather_begun[i] != NULL)
			(void) cudaEventDestroy(lane->gather_begun[i]);
		if (lane->gathered[i] != NULL)
			(void) cudaEventDestroy(lane->gathered[i]);
	}
	if (lane->state != NULL)
		(void) cudaFree(lane->state);
	if (lane->mirror != NULL)
		(void) cudaFreeHost(lane->mirror);
	if (lane->sort_mirror != NULL)
		(void) cudaFreeHost(lane->sort_mirror);
	(void) cudaGetLastError();
	free(lane);
}

int
gpusort_lane_acquire(GpuSortCudaDevice *device, GpuSortLane **acquired, GpuSortError *error)
{
	GpuSortLane *lane;

	pthread_mutex_lock(&device->lock);
	lane = device->lanes;
	if (lane != NULL)
		device->lanes = lane->next;
	pthread_mutex_unlock(&device->lock);

	if (lane == NULL)
	{
		lane = (GpuSortLane *) calloc(1, sizeof(GpuSortLane));
		if (lane == NULL)
			return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "out of memory");
		if (lane_fill(device, lane, error) != 0)
		{
			lane_free(lane);
			return -1;
		}
	}

	/* From here on the caller releases it. */
	lane->next = NULL;
	*acquired = lane;
	GPUSORT_CUDA(device, error, cudaMemsetAsync(lane->state, 0, sizeof(GpuSortDeviceState), lane->compute));
	GPUSORT_CUDA(device, error,
				 (cudaError_t) gpusort_key_stats_reset(&lane->state->keys, (GpuSortStream) lane->compute));
	return 0;
}

void
gpusort_lane_release(GpuSortCudaDevice *device, GpuSortLane *lane)
{
	pthread_mutex_lock(&device->lock);
	lane->next = device->lanes;
	device->lanes = lane;
	pthread_mutex_unlock(&device->lock);
}

int
gpusort_wait(GpuSortCudaDevice *device, cudaEvent_t event, GpuSortError *error)
{
	struct timespec start;
	struct timespec now;
	cudaError_t status;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
	{
		status = cudaEventQuery(event);
		if (status == cudaSuccess)
			return 0;
		if (status != cudaErrorNotReady)
			return gpusort_cuda_failed(device, status, "cudaEventQuery", error);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < GPUSORT_SPIN_NS);

	GPUSORT_CUDA(device, error, cudaEventSynchronize(event));
	return 0;
}
