/*-------------------------------------------------------------------------
 *
 * duplicates.h
 *	  Finds index tuples of equal keys among those that come in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DUPLICATES_H
#define GPUSORT_DUPLICATES_H

#include "compat.h"

#include "access/nbtree.h"

typedef struct GpuSortDuplicates GpuSortDuplicates;

extern GpuSortDuplicates *gpusort_duplicates_create(Relation heap, Relation index, BTScanInsert key,
													bool nulls_not_distinct);
extern void gpusort_duplicates_check(GpuSortDuplicates *duplicates, IndexTuple tuple);
extern void gpusort_duplicates_forget(GpuSortDuplicates *duplicates);

#endif /* GPUSORT_DUPLICATES_H */
