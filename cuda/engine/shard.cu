/*-------------------------------------------------------------------------
 *
 * shard.cu
 *	  Beginning and ending a sort's shards; see shard.h.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/shard.h"

#include <stdlib.h>
#include <string.h>

#include "engine/check.h"
#include "engine/device.h"
#include "engine/reservation.h"

/* Gives back what a shard has.  Nothing may be running that uses it. */
static void
shard_release(GpuSortShard *shard)
{
	GpuSortCudaDevice *device = shard->device;
	GpuSortDeviceReservation nothing = {0, 0};
	GpuSortError ignored;

	/* On a dead device it fails at once, which is fine. */
	(void) cudaSetDevice(device->ordinal);
	if (shard->lane != NULL)
		gpusort_lane_release(device, shard->lane);
	for (uint32_t i = 0; i < shard->slab_count; i++)
		gpusort_block_release(device, &shard->slabs[i].block);
	gpusort_block_release(device, &shard->redistribution_block);
	gpusort_block_release(device, &shard->work_block);
	gpusort_block_release(device, &shard->staging);
	(void) gpusort_memory_reserve(device, &shard->reservation, nothing, &ignored);

	gpusort_memory_leave(device);
	free(shard->slabs);
}

/* Adds a shard on this device, with this reservation to begin with. */
static int
add_shard_on(GpuSort *sort, GpuSortCudaDevice *device, GpuSortDeviceReservation reservation, GpuSortError *error)
{
	GpuSortShard *shard = &sort->shards[sort->shard_count];

	if (gpusort_device_use(device, error) != 0)
		return -1;
	memset(shard, 0, sizeof(*shard));
	shard->sort = sort;
	shard->device = device;
	shard->ahead = -1;

	gpusort_memory_join(device);
	if (gpusort_memory_reserve(device, &shard->reservation, reservation, error) != 0 ||
		gpusort_lane_acquire(device, &shard->lane, error) != 0 ||
		gpusort_block_acquire(device, GPUSORT_STAGING_BYTES, &shard->staging, error) != 0)
	{
		/* all that may be running is the lane's reset */
		if (shard->lane != NULL)
			(void) cudaStreamSynchronize(shard->lane->compute);
		(void) cudaGetLastError();
		shard_release(shard);
		return -1;
	}
	sort->shard_count++;
	return 0;
}

/* Returns the living device without a shard that has the most memory left; NULL if there is none. */
static GpuSortCudaDevice *
best_device(const GpuSort *sort)
{
	GpuSortCudaDevice *best = NULL;
	uint64_t most = 0;

	for (int i = 0; i < sort->set->count; i++)
	{
		GpuSortCudaDevice *device = &sort->set->devices[i];
		uint64_t left;
		bool used = false;

		for (uint32_t p = 0; p < sort->shard_count; p++)
			used |= sort->shards[p].device == device;
		if (used || __atomic_load_n(&device->dead, __ATOMIC_ACQUIRE))
			continue;
		pthread_mutex_lock(&device->lock);
		left = device->memory.share.limit - device->memory.share.used;
		pthread_mutex_unlock(&device->lock);
		if (best == NULL || left > most)
		{
			best = device;
			most = left;
		}
	}
	return best;
}

/* Adds shards on so many devices; what is estimated is reserved on them in equal parts. */
static int
begin_on(GpuSort *sort, uint32_t count, uint64_t estimated_rows, uint64_t estimated_bytes, GpuSortError *error)
{
	const GpuSortDeviceReservation reservation =
		gpusort_first_reservation(sort->set, estimated_rows / count, estimated_bytes / count);

	while (sort->shard_count < count)
	{
		GpuSortCudaDevice *device = best_device(sort);

		/* With all of them dead, the first one says why. */
		if (device == NULL)
			return gpusort_device_use(&sort->set->devices[0], error);
		if (add_shard_on(sort, device, reservation, error) != 0)
			return -1;
	}
	return 0;
}

/* Returns how many devices one sort may use now. */
static uint32_t
shards_max(const GpuSort *sort)
{
	uint32_t living = 0;

	if (!sort->set->joined)
		return 1;
	for (int i = 0; i < sort->set->count && living < GPUSORT_SHARDS_MAX; i++)
		living += !__atomic_load_n(&sort->set->devices[i].dead, __ATOMIC_ACQUIRE);
	return living > 0 ? living : 1;
}

int
gpusort_shards_begin(GpuSort *sort, uint64_t estimated_rows, uint64_t estimated_bytes, GpuSortError *error)
{
	const uint32_t most = shards_max(sort);
	bool large = estimated_rows >= sort->set->large_rows;
	bool busy = false;

	if (!large)
	{
		if (begin_on(sort, 1, estimated_rows, estimated_bytes, error) == 0)
			return 0;
		if (!gpusort_lacks_memory(error) || (most == 1 && !sort->spill))
			return -1;
	}

	/* All of them, or as many as have room: each one's part grows as they get fewer. */
	for (uint32_t count = most; count > 0; count--)
	{
		if (begin_on(sort, count, estimated_rows, estimated_bytes, error) == 0)
			return 0;
		if (!gpusort_lacks_memory(error))
			return -1;
		gpusort_shards_end(sort);
		busy |= error->reason == GPUSORT_REASON_MEMORY_BUSY;
	}

	/* What has files to go to only has to begin. */
	if (sort->spill)
	{
		if (begin_on(sort, 1, 0, 0, error) == 0)
			return 0;
		if (!gpusort_lacks_memory(error))
			return -1;
	}

	/* What fits all of them, but for other sorts, is not too large for being too large for one. */
	if (busy)
		error->reason = GPUSORT_REASON_MEMORY_BUSY;
	return -1;
}

int
gpusort_shard_add(GpuSort *sort, GpuSortError *error)
{
	GpuSortCudaDevice *device = best_device(sort);

	if (!sort->set->joined || device == NULL || sort->shard_count == GPUSORT_SHARDS_MAX)
		return gpusort_fail(error, GPUSORT_REASON_MEMORY_LIMIT, "no other device takes a part of the sort");
	return add_shard_on(sort, device, gpusort_first_reservation(sort->set, 0, 0), error);
}

void
gpusort_shards_end(GpuSort *sort)
{
	/* Kernels of one shard use what the others have; so first of all wait for all.  Dead devices fail at once. */
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		(void) cudaSetDevice(sort->shards[p].device->ordinal);
		(void) cudaStreamSynchronize(sort->shards[p].lane->copies);
		(void) cudaStreamSynchronize(sort->shards[p].lane->compute);
	}
	(void) cudaGetLastError();
	while (sort->shard_count > 0)
		shard_release(&sort->shards[--sort->shard_count]);
}

int
gpusort_check_cancel(const GpuSort *sort, GpuSortError *error)
{
	if (__atomic_load_n(sort->cancelled, __ATOMIC_RELAXED))
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "the sort was cancelled");
	return 0;
}
