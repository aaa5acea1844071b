/*-------------------------------------------------------------------------
 *
 * reclaimer.cu
 *	  The thread that has idle memory freed; see reclaimer.h.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/reclaimer.h"

#include <errno.h>
#include <time.h>

#include "engine/check.h"

/* Memory goes back to the driver when it was free for so many seconds, and twice that at most. */
#define GPUSORT_AGE_SECONDS 30

/* Returns true if there may be something to free some day. */
static bool
is_aging(const GpuSortDeviceSet *set, GpuSortHostBuffers *buffers)
{
	for (int i = 0; i < set->count; i++)
	{
		if (!__atomic_load_n(&set->devices[i].dead, __ATOMIC_ACQUIRE) && gpusort_memory_is_aging(&set->devices[i]))
			return true;
	}
	return gpusort_host_buffers_are_aging(buffers);
}

void
gpusort_reclaim(const GpuSortDeviceSet *set, GpuSortHostBuffers *buffers)
{
	GpuSortError ignored;

	for (int i = 0; i < set->count; i++)
	{
		if (gpusort_device_use(&set->devices[i], &ignored) == 0)
			gpusort_memory_age(&set->devices[i]);
	}
	gpusort_host_buffers_age(buffers, set);
}

static void *
reclaimer_main(void *argument)
{
	GpuSortReclaimer *reclaimer = (GpuSortReclaimer *) argument;

	pthread_mutex_lock(&reclaimer->lock);
	while (!reclaimer->closing)
	{
		struct timespec until;
		int status = 0;

		if (!is_aging(reclaimer->set, reclaimer->buffers))
		{
			reclaimer->asleep = true;
			pthread_cond_wait(&reclaimer->change, &reclaimer->lock);
			reclaimer->asleep = false;
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += GPUSORT_AGE_SECONDS;
		while (status == 0 && !reclaimer->closing)
			status = pthread_cond_timedwait(&reclaimer->change, &reclaimer->lock, &until);
		if (status == ETIMEDOUT)
		{
			pthread_mutex_unlock(&reclaimer->lock);
			gpusort_reclaim(reclaimer->set, reclaimer->buffers);
			pthread_mutex_lock(&reclaimer->lock);
		}
	}
	pthread_mutex_unlock(&reclaimer->lock);
	return NULL;
}

int
gpusort_reclaimer_start(GpuSortReclaimer *reclaimer, const GpuSortDeviceSet *set, GpuSortHostBuffers *buffers,
						GpuSortError *error)
{
	pthread_condattr_t attributes;

	reclaimer->set = set;
	reclaimer->buffers = buffers;
	pthread_mutex_init(&reclaimer->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&reclaimer->change, &attributes);
	pthread_condattr_destroy(&attributes);
	if (pthread_create(&reclaimer->thread, NULL, reclaimer_main, reclaimer) != 0)
	{
		pthread_cond_destroy(&reclaimer->change);
		pthread_mutex_destroy(&reclaimer->lock);
		return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "no thread could be started");
	}
	reclaimer->started = true;
	return 0;
}

void
gpusort_reclaimer_stop(GpuSortReclaimer *reclaimer)
{
	if (!reclaimer->started)
		return;
	pthread_mutex_lock(&reclaimer->lock);
	reclaimer->closing = true;
	pthread_cond_signal(&reclaimer->change);
	pthread_mutex_unlock(&reclaimer->lock);
	pthread_join(reclaimer->thread, NULL);
	pthread_cond_destroy(&reclaimer->change);
	pthread_mutex_destroy(&reclaimer->lock);
	reclaimer->started = false;
}

void
gpusort_reclaimer_wake(GpuSortReclaimer *reclaimer)
{
	pthread_mutex_lock(&reclaimer->lock);
	if (reclaimer->asleep)
		pthread_cond_signal(&reclaimer->change);
	pthread_mutex_unlock(&reclaimer->lock);
}
