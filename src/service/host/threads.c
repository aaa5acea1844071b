/*-------------------------------------------------------------------------
 *
 * threads.c
 *	  Worker threads of the host engine, shared by all its sorts.
 *
 * gpusort_threads_run(threads, n, run, arg) calls run(arg, 0) to run(arg, n - 1),
 * each once, in any order, and returns when all are done.  The calling thread
 * does its share, so a sort makes progress however busy the workers are, and
 * "threads" counts the caller as one.  It may be called from several threads at
 * once, and not from within a task.
 *
 * The tasks of one call form a region.  Regions with tasks left are in a list,
 * oldest first; a worker takes tasks off the first one until there are none.
 * Everything but the next task's number is under one lock, which is taken once
 * per region and worker and not per task.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "service/host/threads.h"

typedef struct Region
{
	GpuSortTask run;
	void *arg;
	uint32_t ntasks;
	uint32_t next;       /* atomic */
	int workers;         /* inside now */
	pthread_cond_t left; /* workers became 0 */
	struct Region *following;
} Region;

struct GpuSortThreads
{
	pthread_mutex_t lock;
	pthread_cond_t work; /* a region was added, or closing */
	Region *regions;
	bool closing;
	int nworkers;
	pthread_t *workers;
};

static void
run_tasks(Region *region)
{
	uint32_t task;

	while ((task = __atomic_fetch_add(&region->next, 1, __ATOMIC_RELAXED)) < region->ntasks)
		region->run(region->arg, task);
}

/* Takes a region out of the list, if it is there.  With the lock held. */
static void
unlink_region(GpuSortThreads *threads, Region *region)
{
	for (Region **link = &threads->regions; *link != NULL; link = &(*link)->following)
	{
		if (*link == region)
		{
			*link = region->following;
			return;
		}
	}
}

static void *
worker_main(void *arg)
{
	GpuSortThreads *threads = arg;

	pthread_mutex_lock(&threads->lock);
	for (;;)
	{
		Region *region = threads->regions;

		if (region != NULL)
		{
			region->workers++;
			pthread_mutex_unlock(&threads->lock);
			run_tasks(region);
			pthread_mutex_lock(&threads->lock);
			unlink_region(threads, region);
			if (--region->workers == 0)
				pthread_cond_signal(&region->left);
		}
		else if (threads->closing)
			break;
		else
			pthread_cond_wait(&threads->work, &threads->lock);
	}
	pthread_mutex_unlock(&threads->lock);
	return NULL;
}

/* Starts count - 1 workers; NULL when there is no memory.  Fewer workers than asked for are no error. */
GpuSortThreads *
gpusort_threads_create(int count)
{
	GpuSortThreads *threads = calloc(1, sizeof(GpuSortThreads));

	if (threads == NULL)
		return NULL;
	pthread_mutex_init(&threads->lock, NULL);
	pthread_cond_init(&threads->work, NULL);
	threads->workers = calloc(count > 1 ? count - 1 : 1, sizeof(pthread_t));
	while (threads->workers != NULL && threads->nworkers < count - 1)
	{
		if (pthread_create(&threads->workers[threads->nworkers], NULL, worker_main, threads) != 0)
			break;
		threads->nworkers++;
	}
	return threads;
}

/* Ends the workers.  No region may be running. */
void
gpusort_threads_destroy(GpuSortThreads *threads)
{
	pthread_mutex_lock(&threads->lock);
	threads->closing = true;
	pthread_cond_broadcast(&threads->work);
	pthread_mutex_unlock(&threads->lock);
	for (int i = 0; i < threads->nworkers; i++)
		pthread_join(threads->workers[i], NULL);
	pthread_cond_destroy(&threads->work);
	pthread_mutex_destroy(&threads->lock);
	free(threads->workers);
	free(threads);
}

/* How many threads run tasks, the caller of run included. */
int
gpusort_threads_count(GpuSortThreads *threads)
{
	return threads->nworkers + 1;
}

/* Runs the tasks 0 to ntasks - 1 and returns when all are done; see file header. */
void
gpusort_threads_run(GpuSortThreads *threads, uint32_t ntasks, GpuSortTask run, void *arg)
{
	Region region = {.run = run, .arg = arg, .ntasks = ntasks};
	Region **link;
	uint32_t helpers = ntasks - 1;

	if (ntasks <= 1 || threads->nworkers == 0)
	{
		run_tasks(&region);
		return;
	}
	pthread_cond_init(&region.left, NULL);
	pthread_mutex_lock(&threads->lock);
	for (link = &threads->regions; *link != NULL; link = &(*link)->following)
		;
	*link = &region;
	if (helpers >= (uint32_t) threads->nworkers)
		pthread_cond_broadcast(&threads->work);
	else
		while (helpers-- > 0)
			pthread_cond_signal(&threads->work);
	pthread_mutex_unlock(&threads->lock);

	run_tasks(&region);

	pthread_mutex_lock(&threads->lock);
	unlink_region(threads, &region);
	while (region.workers > 0)
		pthread_cond_wait(&region.left, &threads->lock);
	pthread_mutex_unlock(&threads->lock);
	pthread_cond_destroy(&region.left);
}
