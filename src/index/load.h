/*-------------------------------------------------------------------------
 *
 * load.h
 *	  Loads a btree with index rows in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LOAD_H
#define GPUSORT_LOAD_H

#include "compat.h"

#include "access/nbtree.h"
#include "index/pivots.h"
#include "pages/range_pages.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"

typedef struct GpuSortBtreeLoad GpuSortBtreeLoad;

extern BTScanInsert gpusort_load_key(Relation index);
extern GpuSortBtreeLoad *gpusort_load_create(Relation heap, Relation index, const IndexInfo *info);
extern void gpusort_load_row(GpuSortBtreeLoad *load, char *row);
extern void gpusort_load_finish(GpuSortBtreeLoad *load);

/* For ranges of the rows: the leaves alone */
extern GpuSortBtreeLoad *gpusort_load_create_leaves(Relation heap, Relation index, const IndexInfo *info,
													GpuSortRangePages *pages, GpuSortPivots *pivots);
extern void gpusort_load_end_range(GpuSortBtreeLoad *load, bool last);

#endif /* GPUSORT_LOAD_H */
