/*-------------------------------------------------------------------------
 *
 * page_source.h
 *	  The rows of a sequential scan, a page of its table at a time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PAGE_SOURCE_H
#define GPUSORT_PAGE_SOURCE_H

#include "compat.h"

#include "exec/range_scan.h"
#include "keys/keys.h"
#include "nodes/execnodes.h"
#include "sort/source.h"

typedef struct GpuSortPageSource GpuSortPageSource;

extern GpuSortPageSource *gpusort_page_source_create(PlanState *child, bool whole, bool stored,
													 const GpuSortColumn *columns, int ncolumns,
													 const GpuSortBlockIndex *index);
extern GpuSortRangeScan *gpusort_page_source_ranges(const GpuSortPageSource *pages);
extern bool gpusort_page_source_is_under_way(const GpuSortPageSource *pages);
extern int gpusort_page_source_next(GpuSortPageSource *pages, GpuSortSource *source, GpuSortRow *rows, int limit);

#endif /* GPUSORT_PAGE_SOURCE_H */
