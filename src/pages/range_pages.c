/*-------------------------------------------------------------------------
 *
 * range_pages.c
 *	  The pages of a relation that several processes make, each of ranges of the rows.
 *
 * Where a range's pages belong in the file is known when all ranges before it have told how many they have.  So a
 * process keeps the pages of a range in memory and tells their number.  When the range has its place, the pages are
 * completed, which may know their block numbers now, and logged and written.
 *
 * The kernel lets one process at a time write to a file, and a relation has one for each segment.  So a process writes
 * what it has where nobody else writes, and otherwise goes on to make pages of its next range.  Only when there is no
 * memory for more, or no range is left, does it wait: for the place of its first range, and for whoever writes there.
 * So pages are made while others are written, and several segments are written at the same time.
 *
 * Ranges are claimed in rising order, and a process waits for ranges before its own alone, so that the first of them
 * never waits.
 *
 * The file is made longer by one process at a time, before others hear of the places, and by zeros at its end alone:
 * PostgreSQL fills up a segment that is not whole when it makes the next one, which is right only where nobody writes
 * behind the end.
 *
 * Legal order of calls.  The leader: init, before workers start.  Each process: create, and for each range that it
 * claims begin, add for each page, end; then finish.  Who stops the work of all calls wake.  When it is stopped, pages
 * are dropped.  Errors of the disk are raised.  All belongs to the memory context that was current at create.
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

/* So many pages lie behind one another in memory, and are written together: some writes of the page writer. */
#define PIECE 64

typedef struct Piece
{
	struct Piece *next;
	int count; /* of pages */
	Page pages[PIECE];
} Piece;

/* A range whose pages lie in memory, or some last ones of them. */
typedef struct Range
{
	struct Range *next; /* the next one of this process whose pages wait to be written */
	uint32 number;
	BlockNumber written; /* pages of it */
	Piece *first;
	Piece *end; /* the last piece; NULL: there is none */
	bool last;  /* its last page is the relation's */
} Range;

struct GpuSortRangePages
{
	Relation relation;
	GpuSortRangePlaces *places;
	const volatile bool *stop; /* all are to end */
	GpuSortPagesPlaced placed;
	GpuSortPageWriter *writer;
	char *zeros;  /* a page */
	int left;     /* so many pieces more may be in memory */
	Piece *free;  /* pieces that have been written */
	Range *ended; /* ranges all of whose pages have come, that wait to be written, in order */
	Range *current;
};

/* Makes what is shared: no range has pages yet; the first begins at this block.  The file has so many blocks. */
void
gpusort_range_places_init(GpuSortRangePlaces *places, BlockNumber first, BlockNumber blocks)
{
	ConditionVariableInit(&places->changed);
	gpusort_shared_init_lock(&places->lock);
	for (int i = 0; i < lengthof(places->writing); i++)
		gpusort_shared_init_lock(&places->writing[i]);
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
	own->left = Max(most / PIECE, 1);
	return own;
}

/* Begins a range that this process has claimed. */
void
gpusort_range_pages_begin(GpuSortRangePages *own, uint32 number)
{
	Range *range = own->current;

	if (range == NULL)
		own->current = range = MemoryContextAlloc(GetMemoryChunkContext(own), sizeof(Range));
	*range = (Range){.number = number};
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

/* Returns true if a range has its place. */
static bool
has_place(GpuSortRangePages *own, const Range *range)
{
	bool placed;

	LWLockAcquire(&own->places->lock, LW_SHARED);
	placed = own->places->placed >= range->number;
	LWLockRelease(&own->places->lock);
	return placed;
}

/* Waits for the place of a range; false if all are to end. */
static bool
wait_place(GpuSortRangePages *own, const Range *range)
{
	ConditionVariable *changed = &own->places->changed;
	bool placed = false;

	ConditionVariablePrepareToSleep(changed);
	while (!*own->stop && !placed)
	{
		placed = has_place(own, range);
		if (!placed)
			ConditionVariableSleep(changed, gpusort_wait_event(GPUSORT_WAIT_RANGES));
	}
	ConditionVariableCancelSleep();
	return placed;
}

/* Returns where the first page of a range that has its place, and is not written, belongs. */
static BlockNumber
next_block(const GpuSortRangePages *own, const Range *range)
{
	return own->places->first[range->number] + range->written;
}

/* Returns the lock of the segment that this block is in. */
static LWLock *
segment_lock(const GpuSortRangePages *own, BlockNumber block)
{
	return &own->places->writing[block / RELSEG_SIZE % lengthof(own->places->writing)];
}

/* Returns how many pages a range has so far. */
static BlockNumber
count_pages(const Range *range)
{
	BlockNumber pages = range->written;

	for (const Piece *piece = range->first; piece != NULL; piece = piece->next)
		pages += piece->count;
	return pages;
}

/* Takes the first piece off a range. */
static void
free_piece(GpuSortRangePages *own, Range *range)
{
	Piece *piece = range->first;

	range->first = piece->next;
	if (range->first == NULL)
		range->end = NULL;
	piece->next = own->free;
	own->free = piece;
}

/* Drops the pages of a range. */
static void
drop_pages(GpuSortRangePages *own, Range *range)
{
	while (range->first != NULL)
		free_piece(own, range);
}

/* Writes the first piece of a range that has its place. */
static void
write_piece(GpuSortRangePages *own, Range *range)
{
	Piece *piece = range->first;
	const BlockNumber block = next_block(own, range);

	own->placed(piece->pages, piece->count, block, range->last && piece->next == NULL);
	gpusort_page_writer_put_many(own->writer, block, piece->pages, piece->count, segment_lock(own, block));
	range->written += piece->count;
	free_piece(own, range);
}

/* Forgets a range that has been written. */
static void
remove_range(Range **link)
{
	Range *range = *link;

	*link = range->next;
	pfree(range);
}

/* Returns true if nobody writes to the segment that a range's next page belongs in. */
static bool
is_segment_free(const GpuSortRangePages *own, const Range *range)
{
	LWLock *lock = segment_lock(own, next_block(own, range));

	if (!LWLockConditionalAcquire(lock, LW_EXCLUSIVE))
		return false;
	LWLockRelease(lock);
	return true;
}

/* Writes what can be written of ranges that have ended without waiting for anybody. */
static void
write_without_waiting(GpuSortRangePages *own)
{
	Range **link = &own->ended;

	while (*link != NULL && !*own->stop && has_place(own, *link))
	{
		Range *range = *link;

		while (range->first != NULL && is_segment_free(own, range))
			write_piece(own, range);
		if (range->first == NULL)
			remove_range(link);
		else
			link = &range->next;
	}
}

/* Writes the first piece of the first range that has ended, however long it takes; all are to end: drops it. */
static void
write_first(GpuSortRangePages *own)
{
	Range *range = own->ended;

	if (wait_place(own, range))
		write_piece(own, range);
	else
		drop_pages(own, range);
	if (range->first == NULL)
		remove_range(&own->ended);
}

/* Writes the pages of the current range, which more are to follow. */
static void
write_current(GpuSortRangePages *own)
{
	Range *range = own->current;

	if (!wait_place(own, range))
	{
		drop_pages(own, range);
		return;
	}
	LWLockAcquire(&own->places->lock, LW_EXCLUSIVE);
	extend(own, own->places->first[range->number] + count_pages(range));
	LWLockRelease(&own->places->lock);
	while (range->first != NULL)
		write_piece(own, range);
}

/* Returns memory for pages; writes others if there may be no more. */
static Piece *
find_piece(GpuSortRangePages *own)
{
	Piece *piece;
	char *memory;

	if (own->free == NULL && own->left == 0)
		write_without_waiting(own);
	if (own->free == NULL && own->left == 0)
	{
		if (own->ended != NULL)
			write_first(own);
		else
			write_current(own);
	}
	if (own->free != NULL)
	{
		piece = own->free;
		own->free = piece->next;
		return piece;
	}
	piece = MemoryContextAlloc(GetMemoryChunkContext(own), sizeof(Piece));
	memory = MemoryContextAlloc(GetMemoryChunkContext(own), PIECE * BLCKSZ + PAGE_ALIGNMENT);
	memory = (char *) TYPEALIGN(PAGE_ALIGNMENT, memory);
	for (int i = 0; i < PIECE; i++)
		piece->pages[i] = memory + i * BLCKSZ;
	own->left--;
	return piece;
}

/* Adds a page to the range, and returns its memory, which is the caller's until the next page or the range's end. */
Page
gpusort_range_pages_add(GpuSortRangePages *own)
{
	Range *range = own->current;

	if (range->end == NULL || range->end->count == PIECE)
	{
		Piece *piece = find_piece(own);

		piece->next = NULL;
		piece->count = 0;
		if (range->end == NULL)
			range->first = piece;
		else
			range->end->next = piece;
		range->end = piece;
	}
	return range->end->pages[range->end->count++];
}

/* Tells how many pages the current range has, and others the places that follow from that. */
static void
tell_pages(GpuSortRangePages *own)
{
	GpuSortRangePlaces *places = own->places;
	uint32 placed;

	LWLockAcquire(&places->lock, LW_EXCLUSIVE);
	places->pages[own->current->number] = count_pages(own->current);
	for (placed = places->placed; placed < GPUSORT_RANGES_MAX && places->pages[placed] != InvalidBlockNumber; placed++)
		places->first[placed + 1] = places->first[placed] + places->pages[placed];
	extend(own, places->first[placed]);
	places->placed = placed;
	LWLockRelease(&places->lock);
	ConditionVariableBroadcast(&places->changed);
}

/* Ends the current range, all of whose pages have come; last: it is the relation's last. */
void
gpusort_range_pages_end(GpuSortRangePages *own, bool last)
{
	Range *range = own->current;
	Range **link = &own->ended;

	if (*own->stop)
	{
		drop_pages(own, range);
		return;
	}
	tell_pages(own);
	if (range->first == NULL)
		return;
	range->last = last;
	while (*link != NULL)
		link = &(*link)->next;
	*link = range;
	own->current = NULL;
	write_without_waiting(own);
}

/* Writes what is left, when this process claims no more ranges; wakes those who wait for it if all are to end. */
void
gpusort_range_pages_finish(GpuSortRangePages *own)
{
	if (*own->stop)
		gpusort_range_places_wake(own->places);
	while (own->ended != NULL)
	{
		write_without_waiting(own);
		if (own->ended != NULL)
			write_first(own);
	}
}
