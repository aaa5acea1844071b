/*-------------------------------------------------------------------------
 *
 * fallback.h
 *	  The ways of a sort to PostgreSQL's own; for sort.c, and exec/ingest.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FALLBACK_H
#define GPUSORT_FALLBACK_H

#include "sort/sort.h"

extern void gpusort_fallback_few(GpuSortState *sort);
extern void gpusort_fallback_refused(GpuSortState *sort, const GpuSortFailure *failure);
extern void gpusort_fallback_feed(GpuSortState *sort);
extern void gpusort_fallback_full(GpuSortState *sort);
extern bool gpusort_fallback_read_back(GpuSortState *sort, const GpuSortFailure *full, GpuSortFailure *failure);
extern void gpusort_fallback_disordered(GpuSortState *sort, const GpuSortFailure *disordered);
extern void gpusort_fallback_lost(GpuSortState *sort, const GpuSortFailure *failure);

#endif /* GPUSORT_FALLBACK_H */
