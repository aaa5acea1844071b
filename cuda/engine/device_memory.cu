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

/* Blocks that are freed by one age while sorts are on the device, and how many ages before they were released. */
#define GPUSORT_FREE_BESIDE_SORTS 4
#define GPUSORT_AGES_BESIDE_SORTS 4

#define MEGABYTES(n) ((double) (n) / (1 << 20))

void
gpusort_memory_init(GpuSortDeviceMemory *memory, uint64_t limit)
{
	memset(memory, 0, sizeof(*memory));
	memory->share.limit = limit;
	memory->share.each = GPUSORT_DEVICE_SURE;
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

void
gpusort_memory_join(GpuSortCudaDevice *device)
{
	pthread_mutex_lock(&device->lock);
	device->memory.share.sorts++;
	pthread_mutex_unlock(&device->lock);
}

void
gpusort_memory_leave(GpuSortCudaDevice *device)
{
	pthread_mutex_lock(&device->lock);
	device->memory.share.sorts--;
	pthread_mutex_unlock(&device->lock);
}

/* Has a reservation changed.  Under lock. */
static void
change_reservation(GpuSortDeviceMemory *memory, GpuSortDeviceReservation *reservation, GpuSortDeviceReservation wanted)
{
	const uint64_t own = reservation_bytes(*reservation);
	const uint64_t bytes = reservation_bytes(wanted);

	if (bytes > own)
		gpusort_share_take(&memory->share, own, bytes - own);
	else
		gpusort_share_give_back(&memory->share, own, own - bytes);
	memory->needed += wanted.need - reservation->need;
	*reservation = wanted;
}

static int
reserve(GpuSortCudaDevice *device, GpuSortDeviceReservation *reservation, GpuSortDeviceReservation wanted, bool last,
		GpuSortError *error)
{
	GpuSortMemoryShare *share = &device->memory.share;
	const uint64_t own = reservation_bytes(*reservation);
	const uint64_t bytes = reservation_bytes(wanted);
	uint64_t room;
	bool fits_alone;
	bool fits;

	pthread_mutex_lock(&device->lock);
	fits = bytes <= own || (last && bytes - own <= share->limit - share->used) ||
		gpusort_share_allows(share, own, bytes - own);
	fits_alone = gpusort_share_fits_alone(share, bytes);
	room = own + gpusort_share_room(share, own);
	if (fits)
		change_reservation(&device->memory, reservation, wanted);
	pthread_mutex_unlock(&device->lock);

	if (!fits)
		return gpusort_fail(error, fits_alone ? GPUSORT_REASON_MEMORY_BUSY : GPUSORT_REASON_MEMORY_LIMIT,
							"the sort needs %.1f MB of memory on device %d, where gpusort.device_memory leaves %.1f MB",
							MEGABYTES(bytes), device->ordinal, MEGABYTES(room));
	return 0;
}

int
gpusort_memory_reserve(GpuSortCudaDevice *device, GpuSortDeviceReservation *reservation,
					   GpuSortDeviceReservation wanted, GpuSortError *error)
{
	return reserve(device, reservation, wanted, false, error);
}

int
gpusort_memory_reserve_last(GpuSortCudaDevice *device, GpuSortDeviceReservation *reservation,
							GpuSortDeviceReservation wanted, GpuSortError *error)
{
	return reserve(device, reservation, wanted, true, error);
}

uint64_t
gpusort_memory_room(GpuSortCudaDevice *device, const GpuSortDeviceReservation *reservation)
{
	const uint64_t own = reservation_bytes(*reservation);
	uint64_t room;

	pthread_mutex_lock(&device->lock);
	room = own + gpusort_share_room(&device->memory.share, own);
	pthread_mutex_unlock(&device->lock);
	return room;
}

void
gpusort_memory_yield(GpuSortCudaDevice *device, GpuSortDeviceReservation *reservation)
{
	GpuSortMemoryShare *share = &device->memory.share;

	pthread_mutex_lock(&device->lock);
	if (reservation->estimate > reservation->need && reservation->estimate > gpusort_share_fair(share) &&
		gpusort_share_starving(share))
		change_reservation(&device->memory, reservation, {0, reservation->need});
	pthread_mutex_unlock(&device->lock);
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
	if (!block.warm)
		memory->idle -= block.bytes;
	memmove(&memory->cache[i], &memory->cache[i + 1], sizeof(GpuSortBlock) * (memory->cached - i));
	return block;
}

/* Notes that a sort has a block.  Under lock. */
static void
note_in_use(GpuSortDeviceMemory *memory, const GpuSortBlock *block)
{
	if (block->warm)
		return;
	memory->in_use += block->bytes;
	if (memory->in_use > memory->peak)
		memory->peak = memory->in_use;
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
			note_in_use(memory, block);
			pthread_mutex_unlock(&device->lock);
			return 0;
		}
	}
	memory->held += bytes;
	pthread_mutex_unlock(&device->lock);

	/* Make room within the limit, then, if the device has none, at the cost of the whole cache. */
	*block = {};
	block->bytes = bytes;
	status = cudaErrorMemoryAllocation;
	for (;;)
	{
		GpuSortBlock old = {};
		bool full;

		pthread_mutex_lock(&device->lock);
		full = memory->held > memory->share.limit;
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
		*block = {};
		pthread_mutex_lock(&device->lock);
		memory->held -= bytes;
		pthread_mutex_unlock(&device->lock);
		return gpusort_cuda_failed(device, status, "cudaMalloc", error);
	}
	pthread_mutex_lock(&device->lock);
	note_in_use(memory, block);
	pthread_mutex_unlock(&device->lock);
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
	if (!block->warm)
		memory->in_use -= block->bytes;
	block->released = memory->ages;
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
	{
		memory->cache[memory->cached++] = *block;
		if (!block->warm)
			memory->idle += block->bytes;
	}
	else
		memory->held -= block->bytes;
	pthread_mutex_unlock(&device->lock);

	if (!kept)
		(void) cudaFree(block->base);
	*block = {};
}

void
gpusort_memory_keep(GpuSortDeviceMemory *memory)
{
	for (int i = 0; i < memory->cached; i++)
		memory->cache[i].warm = true;
	memory->idle = 0;
	memory->peak = 0;
}

/* Takes the oldest block of at most so many bytes that is not warm out of the cache.  Under lock. */
static GpuSortBlock
remove_idle(GpuSortDeviceMemory *memory, uint64_t most)
{
	const bool beside_sorts = memory->share.sorts > 0;

	for (int i = 0; i < memory->cached; i++)
	{
		const GpuSortBlock *block = &memory->cache[i];

		if (beside_sorts && memory->ages - block->released < GPUSORT_AGES_BESIDE_SORTS)
			break;
		if (!block->warm && block->bytes <= most)
			return cache_remove(memory, i);
	}
	return {};
}

void
gpusort_memory_age(GpuSortCudaDevice *device)
{
	GpuSortDeviceMemory *memory = &device->memory;
	uint64_t keep;
	uint32_t beside_sorts = 0;

	pthread_mutex_lock(&device->lock);
	keep = memory->peak - memory->in_use;
	memory->peak = memory->in_use;
	memory->ages++;
	pthread_mutex_unlock(&device->lock);

	/* A sort may begin meanwhile. */
	while (beside_sorts < GPUSORT_FREE_BESIDE_SORTS)
	{
		GpuSortBlock block = {};

		pthread_mutex_lock(&device->lock);
		if (memory->idle > keep)
			block = remove_idle(memory, memory->idle - keep);
		memory->held -= block.bytes;
		beside_sorts += memory->share.sorts > 0;
		pthread_mutex_unlock(&device->lock);

		if (block.base == NULL || cudaFree(block.base) != cudaSuccess)
			break;
	}
	(void) cudaGetLastError();
}

bool
gpusort_memory_is_aging(GpuSortCudaDevice *device)
{
	bool is_aging;

	pthread_mutex_lock(&device->lock);
	is_aging = device->memory.idle > 0 || device->memory.share.sorts > 0;
	pthread_mutex_unlock(&device->lock);
	return is_aging;
}
