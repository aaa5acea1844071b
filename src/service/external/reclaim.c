/*-------------------------------------------------------------------------
 *
 * reclaim.c
 *	  Sorts that have memory which they do not need just now; see reclaim.h.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stddef.h>

#include "service/external/reclaim.h"

/* Under the lock, which is taken before those of holders. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(GpuSortMemoryHolders, GpuSortMemoryHolder) holders = LIST_HEAD_INITIALIZER(holders);

/* From now on a holder may be asked.  The caller has no lock that its function takes. */
void
gpusort_memory_holder_add(GpuSortMemoryHolder *holder)
{
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&holders, holder, neighbours);
	pthread_mutex_unlock(&lock);
}

/* From now on it is not. */
void
gpusort_memory_holder_remove(GpuSortMemoryHolder *holder)
{
	pthread_mutex_lock(&lock);
	LIST_REMOVE(holder, neighbours);
	pthread_mutex_unlock(&lock);
}

/*
* Makes all holders give up what they can do without, for a merge, which is one itself, or for a sort that waits for
 * memory, which is NULL.  Returns true if that gave some back.
 */
bool
gpusort_memory_reclaim(const GpuSortMemoryHolder *asker)
{
	bool gave = false;
	GpuSortMemoryHolder *holder;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(holder, &holders, neighbours)
	{
		if (holder != asker && (asker != NULL || !holder->to_merges))
			gave |= holder->reclaim(holder);
	}
	pthread_mutex_unlock(&lock);
	return gave;
}
