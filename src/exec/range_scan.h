/*-------------------------------------------------------------------------
 *
 * range_scan.h
 *	  A sequential scan that reads ranges of blocks, those first that can have the first rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RANGE_SCAN_H
#define GPUSORT_RANGE_SCAN_H

#include "compat.h"

#include "node.h"
#include "nodes/execnodes.h"
#include "sort/source.h"

typedef struct GpuSortRangeScan GpuSortRangeScan;

/* What EXPLAIN tells of the last scan. */
typedef struct GpuSortRangeCounts
{
	bool in_use; /* false: all blocks were read, in their order */
	uint32 read;
	uint32 ranges;
} GpuSortRangeCounts;

extern GpuSortRangeScan *gpusort_range_scan_create(SeqScanState *node, const GpuSortBlockIndex *index,
												   const GpuSortColumn *column);
extern void gpusort_range_scan_begin(GpuSortRangeScan *scan, bool in_use);
extern void gpusort_range_scan_restart(GpuSortRangeScan *scan);
extern bool gpusort_range_scan_is_in_use(const GpuSortRangeScan *scan);
extern bool gpusort_range_scan_is_between(const GpuSortRangeScan *scan);
extern bool gpusort_range_scan_next(GpuSortRangeScan *scan, GpuSortThreshold *threshold);
extern GpuSortRangeCounts gpusort_range_scan_counts(const GpuSortRangeScan *scan);

#endif /* GPUSORT_RANGE_SCAN_H */
