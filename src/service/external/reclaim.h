/*-------------------------------------------------------------------------
 *
 * reclaim.h
 *	  Memory that sorts have and do not need just now, for one that waits for memory.
 *
 * Who has such memory is in a list as long as it lives, with a function that gives it up:
 * a merge its partitions that nobody reads, a sort that waits for its first rows the room that was made for them.
 * The latter wants it back when the rows come, which cannot be refused then.  So it gives it to merges alone, which
 * would fail without it and give memory back in their turn, and not to another sort, which keeps what it has until it
 * has been read, and in a plan that may be after the rows have come.
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
	bool (*reclaim)(struct GpuSortMemoryHolder *holder); /* returns true if it gave back some memory */
	bool to_merges;                                      /* it gives memory only to merges */

	LIST_ENTRY(GpuSortMemoryHolder)
	neighbours;
} GpuSortMemoryHolder;

extern void gpusort_memory_holder_add(GpuSortMemoryHolder *holder);
extern void gpusort_memory_holder_remove(GpuSortMemoryHolder *holder);
extern bool gpusort_memory_reclaim(const GpuSortMemoryHolder *asker);

#endif /* GPUSORT_EXTERNAL_RECLAIM_H */
