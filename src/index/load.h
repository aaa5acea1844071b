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

#include "nodes/execnodes.h"
#include "utils/relcache.h"

typedef struct GpuSortBtreeLoad GpuSortBtreeLoad;

extern GpuSortBtreeLoad *gpusort_load_create(Relation heap, Relation index, const IndexInfo *info);
extern void gpusort_load_row(GpuSortBtreeLoad *load, char *row);
extern void gpusort_load_finish(GpuSortBtreeLoad *load);

#endif /* GPUSORT_LOAD_H */
