/*-------------------------------------------------------------------------
 *
 * levels.h
 *	  The pages of a btree, made of its tuples in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LEVELS_H
#define GPUSORT_LEVELS_H

#include "compat.h"

#include "access/nbtree.h"
#include "index/pivots.h"
#include "pages/range_pages.h"

typedef struct GpuSortLevels GpuSortLevels;

extern GpuSortLevels *gpusort_levels_create(Relation heap, Relation index, BTScanInsert key);
extern void gpusort_levels_add(GpuSortLevels *levels, IndexTuple tuple, Size posting_bytes);
extern void gpusort_levels_finish(GpuSortLevels *levels);

/* For ranges of the rows: the leaves alone; and then the levels above all leaves */
extern GpuSortLevels *gpusort_levels_create_leaves(Relation heap, Relation index, BTScanInsert key,
												   GpuSortRangePages *pages, GpuSortPivots *pivots);
extern void gpusort_levels_end_range(GpuSortLevels *levels, bool last);
extern void gpusort_levels_link(Page *pages, int count, BlockNumber first, bool last);
extern GpuSortLevels *gpusort_levels_create_above(Relation heap, Relation index, BTScanInsert key, BlockNumber end);
extern void gpusort_levels_add_leaf(GpuSortLevels *levels, IndexTuple high_key);

#endif /* GPUSORT_LEVELS_H */
