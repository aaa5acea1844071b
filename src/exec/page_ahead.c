/*-------------------------------------------------------------------------
 *
 * page_ahead.c
 *	  Tells the processor ahead of memory that a scan is to read soon.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/page_ahead.h"

#include "storage/bufmgr.h"

/*
 * Pages not looked up after one that is in no buffer.  Looking for it has made the system read it, which it does by
 * itself where a table is read from front to back.
 */
#define PAUSE 31

/* Bytes of the current page that are fetched at once. */
#define FIRST_BYTES (8 * GPUSORT_CACHE_LINE)

/* Returns the page that is likely to follow the current one, or NULL.  It is not pinned, and must not be read. */
static Page
find_next(GpuSortPageAhead *ahead, HeapScanDesc scan, BlockNumber before)
{
	const BlockNumber block = scan->rs_cblock;
	Buffer buffer;

	if (block != before + 1 || block + 1 >= scan->rs_nblocks)
		return NULL;
	if (ahead->pause > 0)
	{
		ahead->pause--;
		return NULL;
	}
	buffer = PrefetchBuffer(scan->rs_base.rs_rd, MAIN_FORKNUM, block + 1).recent_buffer;
	if (BufferIsValid(buffer))
		return BufferGetPage(buffer);
	ahead->pause = PAUSE;
	return NULL;
}

/*
 * Begins with a page of the scan, whose tuples are read next.  The page after it is taken to be as full as this one:
 * tuples lie at the end of a page, the first ones last.
 */
void
gpusort_page_ahead_begin(GpuSortPageAhead *ahead, HeapScanDesc scan)
{
	const Page page = BufferGetPage(scan->rs_cbuf);
	const int bytes = BLCKSZ - TYPEALIGN_DOWN(GPUSORT_CACHE_LINE, ((PageHeader) page)->pd_upper);
	const BlockNumber before = ahead->block;
	Page next;

	if (scan->rs_cblock == before)
		return;
	ahead->block = scan->rs_cblock;
	next = find_next(ahead, scan, before);
	ahead->next = (next != NULL ? next : page) + BLCKSZ;
	ahead->end = ahead->next - bytes;
	ahead->step = TYPEALIGN(GPUSORT_CACHE_LINE, bytes / scan->rs_ntuples);
	if (next == NULL)
		gpusort_page_ahead_fetch_bytes(ahead, FIRST_BYTES);
}
