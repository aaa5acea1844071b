/*-------------------------------------------------------------------------
 *
 * device_memory.cu
 *	  Reservations and blocks; see device_memory.h.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/device_memory.h"

#include <stdlib.h>
#include <string.h>

#include "engine/check.h"
#include "engine/device.h"

#define GPUSORT_BLOCK_MIN ((uint64_t) 2 << 20)
#define MEGABYTES(n)      ((double) (n) / (1 << 20))

void
gpusort_memory_init(GpuSortDeviceMemory *memory, uint64_t limit)
{
	memset(memory, 0, sizeof(*memory));
	memory->limit = limit;
}

void
gpusort_memory_free(GpuSortDeviceMemory *memory)
{
	for (int i = 0; i < memory->cached; i++)
		(void) cudaFree(memory->cache[i].base);
	(void) cudaGetLastError();
	free(memory->cache);
	memset(memory, 0, sizeof(*memory));
}

static uint64_t
reservation_bytes(GpuSortDeviceReservation reservation)
{
	return reservation.estimate > reservation.need ? reservation.estimate : reservation.need;
}

int
gpusort_memory_reserve(GpuSortCudaDevice *device, GpuSortDeviceReservation *reservation,
					   GpuSortDeviceReservation wanted, GpuSortError *error)
{
	GpuSortDeviceMemory *memory = &device->memory;
	uint64_t others;
	uint64_t left;
	bool fits;

	pthread_mutex_lock(&device->lock);
	others = memory->reserved - reservation_bytes(*reservation);
	left = memory->limit > others ? memory->limit - others : 0;

	/* Making it smaller always works. */
	fits = reservation_bytes(wanted) <= left || reservation_bytes(wanted) <= reservation_bytes(*reservation);
	if (fits)
	{
		memory->reserved = others + reservation_bytes(wanted);
		memory->needed += wanted.need - reservation->need;
		*reservation = wanted;
	}
	pthread_mutex_unlock(&device->lock);

	if (!fits)
		return gpusort_fail(error,
							reservation_bytes(wanted) <= memory->limit ? GPUSORT_REASON_MEMORY_BUSY
																	   : GPUSORT_REASON_MEMORY_LIMIT,
							"the sort needs %.1f MB of memory on device %d, where gpusort.device_memory leaves %.1f MB",
							MEGABYTES(reservation_bytes(wanted)), device->ordinal, MEGABYTES(left));
	return 0;
}

bool
gpusort_lacks_memory(const GpuSortError *error)
{
	return error->reason == GPUSORT_REASON_MEMORY_LIMIT || error->reason == GPUSORT_REASON_MEMORY_BUSY ||
		error->reason == GPUSORT_REASON_NO_MEMORY;
}

size_t
gpusort_block_size(uint64_t bytes)
{
	uint64_t step;

	if (bytes <= GPUSORT_BLOCK_MIN)
		return GPUSORT_BLOCK_MIN;

	/* eight sizes from one power of two to the next */
	step = (UINT64_C(1) << (63 - __builtin_clzll(bytes - 1))) / 8;
	return (bytes + step - 1) / step * step;
}

/* Takes the block number i out of the cache.  Under lock. */
static GpuSortBlock
cache_remove(GpuSortDeviceMemory *memory, int i)
{
	GpuSortBlock block = memory->cache[i];

	memory->cached--;
	memmove(&memory->cache[i], &memory->cache[i + 1], sizeof(GpuSortBlock) * (memory->cached - i));
	return block;
}

int
gpusort_block_acquire(GpuSortCudaDevice *device, size_t bytes, GpuSortBlock *block, GpuSortError *error)
{
	GpuSortDeviceMemory *memory = &device->memory;
	cudaError_t status;

	/* The latest released is the likeliest to be in some cache of the device's own. */
	pthread_mutex_lock(&device->lock);
	for (int i = memory->cached; i-- > 0;)
	{
		if (memory->cache[i].bytes == bytes)
		{
			*block = cache_remove(memory, i);
			pthread_mutex_unlock(&device->lock);
			return 0;
		}
	}
	memory->held += bytes;
	pthread_mutex_unlock(&device->lock);

	/* Make room within the limit, then, if the device has none, at the cost of the whole cache. */
	block->base = NULL;
	block->bytes = bytes;
	status = cudaErrorMemoryAllocation;
	for (;;)
	{
		GpuSortBlock old = {NULL, 0};
		bool full;

		pthread_mutex_lock(&device->lock);
		full = memory->held > memory->limit;
		if (full && memory->cached > 0)
			old = cache_remove(memory, 0);
		memory->held -= old.bytes;
		pthread_mutex_unlock(&device->lock);

		if (old.base == NULL)
		{
			status = cudaMalloc(&block->base, bytes);
			if (status != cudaErrorMemoryAllocation)
				break;
			(void) cudaGetLastError();

			pthread_mutex_lock(&device->lock);
			if (memory->cached > 0)
				old = cache_remove(memory, 0);
			memory->held -= old.bytes;
			pthread_mutex_unlock(&device->lock);
			if (old.base == NULL)
				break;
		}
		status = cudaFree(old.base);
		if (status != cudaSuccess)
			break;
	}

	if (status != cudaSuccess)
	{
		block->base = NULL;
		block->bytes = 0;
		pthread_mutex_lock(&device->lock);
		memory->held -= bytes;
		pthread_mutex_unlock(&device->lock);
		return gpusort_cuda_failed(device, status, "cudaMalloc", error);
	}
	return 0;
}

void
gpusort_block_release(GpuSortCudaDevice *device, GpuSortBlock *block)
{
	GpuSortDeviceMemory *memory = &device->memory;
	bool kept = true;

	if (block->base == NULL)
		return;

	pthread_mutex_lock(&device->lock);
	if (memory->cached == memory->cache_size)
	{
		int size = memory->cache_size > 0 ? 2 * memory->cache_size : 64;
		GpuSortBlock *larger = (GpuSortBlock *) realloc(memory->cache, sizeof(GpuSortBlock) * size);

		if (larger != NULL)
		{
			memory->cache = larger;
			memory->cache_size = size;
		}
		else
			kept = false;
	}
	if (kept)
		memory->cache[memory->cached++] = *block;
	else
		memory->held -= block->bytes;
	pthread_mutex_unlock(&device->lock);

	if (!kept)
		(void) cudaFree(block->base);
	block->base = NULL;
	block->bytes = 0;
}
