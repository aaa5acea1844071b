/*-------------------------------------------------------------------------
 *
 * range_pages.h
 *	  The pages of a relation that several processes make, each of ranges of the rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RANGE_PAGES_H
#define GPUSORT_RANGE_PAGES_H

#include "compat.h"

#include "service/protocol.h"
#include "storage/block.h"
#include "storage/bufpage.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "utils/relcache.h"

/* Segments of a file have so many locks; more segments share them. */
#define GPUSORT_SEGMENT_LOCKS 32

/* Where the pages of ranges are: in shared memory, for range_pages.c alone, but for end when all processes are done. */
typedef struct GpuSortRangePlaces
{
	ConditionVariable changed;             /* placed, or *stop */
	LWLock writing[GPUSORT_SEGMENT_LOCKS]; /* held by who writes to a segment of the file */
	LWLock lock;                           /* guards what follows */
	uint32 placed;                         /* the ranges up to this one, itself included, have places */
	BlockNumber end;                       /* of the file, which has so many blocks */
	BlockNumber first[GPUSORT_RANGES_MAX + 1];
	BlockNumber pages[GPUSORT_RANGES_MAX]; /* that a range has; InvalidBlockNumber: not known */
} GpuSortRangePlaces;

typedef struct GpuSortRangePages GpuSortRangePages;

/* Completes pages when their place is known: successive blocks from first on; last: the relation has no more. */
typedef void (*GpuSortPagesPlaced)(Page *pages, int count, BlockNumber first, bool last);

extern void gpusort_range_places_init(GpuSortRangePlaces *places, BlockNumber first, BlockNumber blocks);
extern void gpusort_range_places_wake(GpuSortRangePlaces *places);

extern GpuSortRangePages *gpusort_range_pages_create(Relation relation, GpuSortRangePlaces *places, int most,
													 const volatile bool *stop, GpuSortPagesPlaced placed);
extern void gpusort_range_pages_begin(GpuSortRangePages *own, uint32 number);
extern Page gpusort_range_pages_add(GpuSortRangePages *own);
extern void gpusort_range_pages_end(GpuSortRangePages *own, bool last);
extern void gpusort_range_pages_finish(GpuSortRangePages *own);

#endif /* GPUSORT_RANGE_PAGES_H */
