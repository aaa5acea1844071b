/*-------------------------------------------------------------------------
 *
 * part.cu
 *	  Beginning and ending a sort's parts; see part.h.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/shard.h"

#include <stdlib.h>
#include <string.h>

#include "engine/check.h"
#include "engine/device.h"
#include "engine/redistribute.h"
#include "engine/upload.h"

/* Gives back what part has.  Nothing may be under way that uses it. */
static void
part_give_back(GpuSortPart *part)
{
	GpuSortCudaDevice *device = part->device;
	GpuSortShare nothing = {0, 0};
	GpuSortError ignored;

	/* On a dead device it fails at once, which is fine. */
	(void) cudaSetDevice(device->ordinal);
	if (part->lane != NULL)
		gpusort_lane_give(device, part->lane);
	for (uint32_t i = 0; i < part->slab_count; i++)
		gpusort_block_give(device, &part->slabs[i].block);
	gpusort_block_give(device, &part->spread_block);
	gpusort_block_give(device, &part->work_block);
	gpusort_block_give(device, &part->staging);
	(void) gpusort_memory_promise(device, &part->share, nothing, &ignored);

	pthread_mutex_lock(&device->lock);
	device->jobs--;
	pthread_mutex_unlock(&device->lock);
	free(part->slabs);
}

/* Adds a part on this device, with this share to begin with. */
static int
add_on(GpuSort *sort, GpuSortCudaDevice *device, GpuSortShare share, GpuSortError *error)
{
	GpuSortPart *part = &sort->parts[sort->part_count];

	if (gpusort_device_use(device, error) != 0)
		return -1;
	memset(part, 0, sizeof(*part));
	part->sort = sort;
	part->device = device;
	part->ahead = -1;

	pthread_mutex_lock(&device->lock);
	device->jobs++;
	pthread_mutex_unlock(&device->lock);

	if (gpusort_memory_promise(device, &part->share, share, error) != 0 ||
		gpusort_lane_take(device, &part->lane, error) != 0 ||
		gpusort_block_take(device, GPUSORT_STAGING_BYTES, &part->staging, error) != 0)
	{
		/* all that may be under way is the lane's reset */
		if (part->lane != NULL)
			(void) cudaStreamSynchronize(part->lane->compute);
		(void) cudaGetLastError();
		part_give_back(part);
		return -1;
	}
	sort->part_count++;
	return 0;
}

/* The living device without a part that has the most memory left; NULL: none. */
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

		for (uint32_t p = 0; p < sort->part_count; p++)
			used |= sort->parts[p].device == device;
		if (used || __atomic_load_n(&device->dead, __ATOMIC_ACQUIRE))
			continue;
		pthread_mutex_lock(&device->lock);
		left = device->memory.limit - device->memory.promised;
		pthread_mutex_unlock(&device->lock);
		if (best == NULL || left > most)
		{
			best = device;
			most = left;
		}
	}
	return best;
}

/* Parts on so many devices, each with its share of what is estimated. */
static int
begin_on(GpuSort *sort, uint32_t count, uint64_t estimated_rows, uint64_t estimated_bytes, GpuSortError *error)
{
	const GpuSortShare share = gpusort_first_share(sort->set, estimated_rows / count, estimated_bytes / count);

	while (sort->part_count < count)
	{
		GpuSortCudaDevice *device = best_device(sort);

		/* With all of them dead, the first one says why. */
		if (device == NULL)
			return gpusort_device_use(&sort->set->devices[0], error);
		if (add_on(sort, device, share, error) != 0)
			return -1;
	}
	return 0;
}

/* How many devices one sort may use now. */
static uint32_t
most_parts(const GpuSort *sort)
{
	uint32_t living = 0;

	if (!sort->set->joined)
		return 1;
	for (int i = 0; i < sort->set->count && living < GPUSORT_PARTS_MAX; i++)
		living += !__atomic_load_n(&sort->set->devices[i].dead, __ATOMIC_ACQUIRE);
	return living > 0 ? living : 1;
}

int
gpusort_parts_begin(GpuSort *sort, uint64_t estimated_rows, uint64_t estimated_bytes, GpuSortError *error)
{
	const uint32_t most = most_parts(sort);
	bool large = estimated_rows >= sort->set->large_rows;

	if (!large)
	{
		if (begin_on(sort, 1, estimated_rows, estimated_bytes, error) == 0)
			return 0;
		if (most == 1 || !gpusort_lacks_memory(error))
			return -1;
	}

	/* All of them, or as many as have room: each share grows as they get fewer. */
	for (uint32_t count = most; count > 0; count--)
	{
		if (begin_on(sort, count, estimated_rows, estimated_bytes, error) == 0)
			return 0;
		if (!gpusort_lacks_memory(error))
			return -1;
		gpusort_parts_end(sort);
	}
	return -1;
}

int
gpusort_part_add(GpuSort *sort, GpuSortError *error)
{
	GpuSortCudaDevice *device = best_device(sort);

	if (!sort->set->joined || device == NULL || sort->part_count == GPUSORT_PARTS_MAX)
		return gpusort_fail(error, GPUSORT_REASON_MEMORY_LIMIT, "no other device takes a part of the sort");
	return add_on(sort, device, gpusort_first_share(sort->set, 0, 0), error);
}

void
gpusort_parts_end(GpuSort *sort)
{
	/* Kernels of one part use what the others have; so first of all wait for all.  Dead devices fail at once. */
	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		(void) cudaSetDevice(sort->parts[p].device->ordinal);
		(void) cudaStreamSynchronize(sort->parts[p].lane->copies);
		(void) cudaStreamSynchronize(sort->parts[p].lane->compute);
	}
	(void) cudaGetLastError();
	gpusort_spread_free(sort);
	while (sort->part_count > 0)
		part_give_back(&sort->parts[--sort->part_count]);
}
