/*-------------------------------------------------------------------------
 *
 * host_buffers.cu
 *	  Pinned buffers; see host_buffers.h.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/host_buffers.h"

#include <string.h>

void
gpusort_host_buffers_init(GpuSortHostBuffers *buffers)
{
	memset(buffers, 0, sizeof(*buffers));
	pthread_mutex_init(&buffers->lock, NULL);
}

void
gpusort_host_buffers_free(GpuSortHostBuffers *buffers)
{
	while (buffers->free_count > 0)
		(void) cudaFreeHost(buffers->free[--buffers->free_count]);
	(void) cudaGetLastError();
	pthread_mutex_destroy(&buffers->lock);
}

/* Has the calling thread use a device that lives, whose context the memory is pinned in; false if there is none. */
static bool
use_any_device(const GpuSortDeviceSet *set)
{
	GpuSortError ignored;

	for (int i = 0; i < set->count; i++)
	{
		if (gpusort_device_use(&set->devices[i], &ignored) == 0)
			return true;
	}
	return false;
}

/* Takes a free buffer, or NULL.  Under lock. */
static void *
take_free(GpuSortHostBuffers *buffers)
{
	if (buffers->free_count == 0)
		return NULL;
	buffers->free_count--;
	if (buffers->unused > buffers->free_count)
		buffers->unused = buffers->free_count;
	return buffers->free[buffers->free_count];
}

void *
gpusort_host_buffer_get(GpuSortHostBuffers *buffers, const GpuSortDeviceSet *set)
{
	void *buffer;
	bool may_make;

	pthread_mutex_lock(&buffers->lock);
	buffer = take_free(buffers);
	may_make = buffer == NULL && buffers->count < GPUSORT_HOST_BUFFERS_MAX;
	buffers->count += may_make;
	pthread_mutex_unlock(&buffers->lock);
	if (!may_make)
		return buffer;

	if (!use_any_device(set) || cudaHostAlloc(&buffer, GPUSORT_CHUNK_BYTES, cudaHostAllocPortable) != cudaSuccess)
	{
		(void) cudaGetLastError();
		buffer = NULL;
		pthread_mutex_lock(&buffers->lock);
		buffers->count--;
		pthread_mutex_unlock(&buffers->lock);
	}
	return buffer;
}

void
gpusort_host_buffer_put(GpuSortHostBuffers *buffers, void *buffer)
{
	pthread_mutex_lock(&buffers->lock);
	buffers->free[buffers->free_count++] = buffer;
	pthread_mutex_unlock(&buffers->lock);
}

void
gpusort_host_buffers_age(GpuSortHostBuffers *buffers, const GpuSortDeviceSet *set)
{
	int unused;

	pthread_mutex_lock(&buffers->lock);
	unused = buffers->unused;
	pthread_mutex_unlock(&buffers->lock);

	/* Memory of dead devices waits for close. */
	while (unused-- > 0 && use_any_device(set))
	{
		void *buffer;

		pthread_mutex_lock(&buffers->lock);
		buffer = take_free(buffers);
		buffers->count -= buffer != NULL;
		pthread_mutex_unlock(&buffers->lock);
		if (buffer == NULL || cudaFreeHost(buffer) != cudaSuccess)
			break;
	}
	(void) cudaGetLastError();

	pthread_mutex_lock(&buffers->lock);
	buffers->unused = buffers->free_count;
	pthread_mutex_unlock(&buffers->lock);
}

bool
gpusort_host_buffers_are_aging(GpuSortHostBuffers *buffers)
{
	bool are_aging;

	pthread_mutex_lock(&buffers->lock);
	are_aging = buffers->count > 0;
	pthread_mutex_unlock(&buffers->lock);
	return are_aging;
}
