/*-------------------------------------------------------------------------
 *
 * block_ranges.h
 *	  The ranges of blocks of a table, with what a BRIN index says of each.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BLOCK_RANGES_H
#define GPUSORT_BLOCK_RANGES_H

#include "compat.h"

#include "access/attnum.h"
#include "storage/block.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"
#include "utils/sortsupport.h"

typedef struct GpuSortBlockRange
{
	BlockNumber start;
	BlockNumber blocks;
	bool summarised; /* no value in it comes before best; false: nothing is known of it */
	bool null;       /* best is NULL */
	Datum best;
} GpuSortBlockRange;

/* All blocks of a table, in the order in which a scan reads them. */
typedef struct GpuSortBlockRanges
{
	uint32 count;
	GpuSortBlockRange *ranges;
} GpuSortBlockRanges;

extern GpuSortBlockRanges gpusort_block_ranges_read(Relation table, Oid index, AttrNumber column, SortSupport order,
													Snapshot snapshot);

#endif /* GPUSORT_BLOCK_RANGES_H */
