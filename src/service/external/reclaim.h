/*-------------------------------------------------------------------------
 *
 * reclaim.h
 *	  Memory that sorts have and do not need just now, for one that waits for memory.
 *
 * Who has such memory is in a list as long as it lives, with a function that gives it up:
 * a merge its partitions that nobody reads, a sort that waits for its first rows the room that was made for them.
 * The function may be called from any thread, at any time until remove returns.
 * It must not wait: what is in use gets on by itself, and is asked again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_RECLAIM_H
#define GPUSORT_EXTERNAL_RECLAIM_H

#include <stdbool.h>
#include <sys/queue.h>

typedef struct GpuSortMemoryHolder
{
	bool (*reclaim)(struct GpuSortMemoryHolder *holder); /* returns true if that gave some back */

	LIST_ENTRY(GpuSortMemoryHolder)
	neighbours;
} GpuSortMemoryHolder;

extern void gpusort_memory_holder_add(GpuSortMemoryHolder *holder);
extern void gpusort_memory_holder_remove(GpuSortMemoryHolder *holder);
extern bool gpusort_memory_reclaim(const GpuSortMemoryHolder *asker);

#endif /* GPUSORT_EXTERNAL_RECLAIM_H */
