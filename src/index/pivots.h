/*-------------------------------------------------------------------------
 *
 * pivots.h
 *	  The high keys of the leaf pages that several processes make, in temporary files.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PIVOTS_H
#define GPUSORT_PIVOTS_H

#include "compat.h"

#include "access/itup.h"
#include "storage/sharedfileset.h"

typedef struct GpuSortPivots GpuSortPivots;

extern GpuSortPivots *gpusort_pivots_create(SharedFileSet *files, int process);
extern void gpusort_pivots_add(GpuSortPivots *pivots, IndexTuple pivot);
extern GpuSortPivots *gpusort_pivots_open(SharedFileSet *files, int process);
extern IndexTuple gpusort_pivots_next(GpuSortPivots *pivots);
extern void gpusort_pivots_close(GpuSortPivots *pivots);

#endif /* GPUSORT_PIVOTS_H */
