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

typedef struct GpuSortLevels GpuSortLevels;

extern GpuSortLevels *gpusort_levels_create(Relation heap, Relation index, BTScanInsert key);
extern void gpusort_levels_add(GpuSortLevels *levels, IndexTuple tuple, Size posting_bytes);
extern void gpusort_levels_finish(GpuSortLevels *levels);

#endif /* GPUSORT_LEVELS_H */
