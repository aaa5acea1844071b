/*-------------------------------------------------------------------------
 *
 * page_ahead.h
 *	  Tells the processor ahead of memory that a scan is to read soon.
 *
 * Pages of a table lie in shared buffers and seldom in the processor's caches, and waiting for their tuples would be a
 * third of the time in which a process takes rows in.  While the tuples of one page are worked at, the next page is
 * fetched into the caches, a little of it with each tuple.
 *
 * Which page is next is a guess, that of the block behind the current one, made where the last guess was right:
 * parallel scans jump.  A wrong one costs memory bandwidth and nothing else.  Where there is no guess, or the block is
 * in no buffer, the current page is fetched likewise, its first lines at once.
 *
 * Legal order of calls: begin for each batch of tuples of a page, then fetch for each tuple of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PAGE_AHEAD_H
#define GPUSORT_PAGE_AHEAD_H

#include "compat.h"

#include "access/heapam.h"

/* Bytes that the processor fetches at once. */
#define GPUSORT_CACHE_LINE 64

/* Filled with zeros at first. */
typedef struct GpuSortPageAhead
{
	BlockNumber block; /* the current page */
	int pause;         /* number of pages that are not looked up */
	const char *next;  /* memory below this, down to end, is fetched */
	const char *end;
	int step; /* bytes for each tuple of the current page */
} GpuSortPageAhead;

extern void gpusort_page_ahead_begin(GpuSortPageAhead *ahead, HeapScanDesc scan);

/* Fetches so many bytes. */
static pg_attribute_always_inline void
gpusort_page_ahead_fetch_bytes(GpuSortPageAhead *ahead, int bytes)
{
	const char *to = Max(ahead->next - bytes, ahead->end);

	for (const char *line = ahead->next; line > to;)
	{
		line -= GPUSORT_CACHE_LINE;
		__builtin_prefetch(line);
	}
	ahead->next = to;
}

/* Fetches a tuple's part. */
static pg_attribute_always_inline void
gpusort_page_ahead_fetch(GpuSortPageAhead *ahead)
{
	gpusort_page_ahead_fetch_bytes(ahead, ahead->step);
}

#endif /* GPUSORT_PAGE_AHEAD_H */
