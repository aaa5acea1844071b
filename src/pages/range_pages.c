/*-------------------------------------------------------------------------
 *
 * range_pages.c
 *	  The pages of a relation that several processes make, each of ranges of the rows.
 *
 * Where a range's pages belong in the file is known when all ranges before it have told how many they have.  So a
 * process keeps the pages of a range in memory, tells their number, waits for its place, has the pages completed, which
 * may know their block numbers now, and logs and writes them.  A range of more pages than there may be in memory waits
 * for its place earlier, and writes what it has.  Ranges are claimed in rising order and wait for those before them
 * alone, so that the first of them never waits.
 *
 * The file is made longer by one process at a time, before others hear of the places, and by zeros at its end alone:
 * PostgreSQL fills up a segment that is not whole when it makes the next one, which is right only where nobody writes
 * behind the end.
 *
 * Legal order of calls.  The leader: init, before workers start.  Each process: create, and for each range that it
 * claims begin, add for each page, end.  Who stops the work of all calls wake.  When it is stopped, pages are dropped.
 * Errors of the disk are raised.  All belongs to the memory context that was current at create.
 *
 *-------------------------------------------------------------------------
 */
#include "pages/range_pages.h"

#include "pages/page_writer.h"
#include "server/shared.h"
#include "server/wait_events.h"
#include "storage/smgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Memory for pages is taken in pieces of so many. */
#define PIECE 64

struct GpuSortRangePages
{
	Relation relation;
	GpuSortRangePlaces *places;
	const volatile bool *stop; /* all are to end */
	GpuSortPagesPlaced placed;
	GpuSortPageWriter *writer;
	char *zeros; /* a page */
	Page *pages; /* of the current range that are not written */
	int count;   /* of them */
	int room;    /* for so many there is memory */
	int most;    /* so many there may be */

	/* the current range */
	uint32 range;
	BlockNumber written; /* pages of it */
};

/* Makes what is shared: no range has pages yet; the first begins at this block.  The file has so many blocks. */
void
gpusort_range_places_init(GpuSortRangePlaces *places, BlockNumber first, BlockNumber blocks)
{
	ConditionVariableInit(&places->changed);
	gpusort_shared_init_lock(&places->lock);
	places->placed = 0;
	places->first[0] = first;
	places->end = blocks;
	for (int i = 0; i < GPUSORT_RANGES_MAX; i++)
		places->pages[i] = InvalidBlockNumber;
}

/* Wakes processes that wait for a place, when all are to end. */
void
gpusort_range_places_wake(GpuSortRangePlaces *places)
{
	ConditionVariableBroadcast(&places->changed);
}

/* Begins, in a process, to write pages of a relation, of which there may be most in memory. */
GpuSortRangePages *
gpusort_range_pages_create(Relation relation, GpuSortRangePlaces *places, int most, const volatile bool *stop,
						   GpuSortPagesPlaced placed)
{
	GpuSortRangePages *own = palloc0(sizeof(GpuSortRangePages));

	own->relation = relation;
	own->places = places;
	own->stop = stop;
	own->placed = placed;
	own->writer = gpusort_page_writer_create(relation, MaxBlockNumber); /* pages are written when the file has them */
	own->zeros = (char *) TYPEALIGN(PAGE_ALIGNMENT, palloc0(BLCKSZ + PAGE_ALIGNMENT));
	own->most = Max(most, PIECE);
	own->pages = palloc(own->most * sizeof(Page));
	return own;
}

/* Begins a range that this process has claimed. */
void
gpusort_range_pages_begin(GpuSortRangePages *own, uint32 range)
{
	own->range = range;
	own->written = 0;
	own->count = 0;
}

/* Extends the file to so many blocks; the caller holds the lock. */
static void
extend(GpuSortRangePages *own, BlockNumber end)
{
	if (end <= own->places->end)
		return;
	smgrextend(RelationGetSmgr(own->relation), MAIN_FORKNUM, end - 1, own->zeros, true);
	own->places->end = end;
}

/* Waits for the place of the current range; false if all are to end. */
static bool
wait_place(GpuSortRangePages *own)
{
	GpuSortRangePlaces *places = own->places;
	bool placed = false;

	ConditionVariablePrepareToSleep(&places->changed);
	while (!*own->stop && !placed)
	{
		LWLockAcquire(&places->lock, LW_SHARED);
		placed = places->placed >= own->range;
		LWLockRelease(&places->lock);
		if (!placed)
			ConditionVariableSleep(&places->changed, gpusort_wait_event(GPUSORT_WAIT_RANGES));
	}
	ConditionVariableCancelSleep();
	return placed;
}

/* Writes the pages in memory when the range has its place; last: the last of them is the relation's. */
static void
write_out(GpuSortRangePages *own, bool last)
{
	if (own->count > 0 && wait_place(own))
	{
		const BlockNumber first = own->places->first[own->range] + own->written;

		LWLockAcquire(&own->places->lock, LW_EXCLUSIVE);
		extend(own, first + own->count);
		LWLockRelease(&own->places->lock);
		own->placed(own->pages, own->count, first, last);
		gpusort_page_writer_put_many(own->writer, first, own->pages, own->count);
	}
	own->written += own->count;
	own->count = 0;
}

/* Makes room for another page. */
static void
add_piece(GpuSortRangePages *own)
{
	char *memory = MemoryContextAlloc(GetMemoryChunkContext(own), PIECE * BLCKSZ + PAGE_ALIGNMENT);

	memory = (char *) TYPEALIGN(PAGE_ALIGNMENT, memory);
	for (int i = 0; i < PIECE && own->room < own->most; i++)
		own->pages[own->room++] = memory + i * BLCKSZ;
}

/* Adds a page to the range, and returns its memory, which is the caller's until the next page or the range's end. */
Page
gpusort_range_pages_add(GpuSortRangePages *own)
{
	if (own->count == own->most)
		write_out(own, false);
	if (own->count == own->room)
		add_piece(own);
	return own->pages[own->count++];
}

/* Tells how many pages the range has, and others the places that follow from that. */
static void
tell_pages(GpuSortRangePages *own)
{
	GpuSortRangePlaces *places = own->places;

	LWLockAcquire(&places->lock, LW_EXCLUSIVE);
	places->pages[own->range] = own->written + own->count;
	for (; places->placed < GPUSORT_RANGES_MAX && places->pages[places->placed] != InvalidBlockNumber;
		 places->placed++)
		places->first[places->placed + 1] = places->first[places->placed] + places->pages[places->placed];
	extend(own, places->first[places->placed]);
	LWLockRelease(&places->lock);
	ConditionVariableBroadcast(&places->changed);
}

/* Ends the current range, all of whose pages have come: writes them; last: it is the relation's last. */
void
gpusort_range_pages_end(GpuSortRangePages *own, bool last)
{
	if (*own->stop)
		return;
	tell_pages(own);
	write_out(own, last);
}
