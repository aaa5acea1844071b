/*-------------------------------------------------------------------------
 *
 * ranks.h
 *	  row_number(), rank() and dense_rank() over rows that GpuSort emits.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RANKS_H
#define GPUSORT_RANKS_H

#include "compat.h"

#include "nodes/execnodes.h"

/* What a WindowAgg above a GpuSort counts. */
typedef struct GpuSortRankCounters
{
	int64 row_number; /* of the row at hand in its partition; 0: there is none yet */
	int64 rank;
	int64 dense_rank;
	bool ended;
	bool by_peers;        /* rank or dense_rank is asked for */
	const int64 **values; /* by number of the window function: which of the three it is */
} GpuSortRankCounters;

/* The beginning of a GpuSort's state, which is all of it that ranks.c knows. */
typedef struct GpuSortRankedScan
{
	CustomScanState css; /* must be first field */
	GpuSortRankCounters counters;
} GpuSortRankedScan;

extern void gpusort_ranks_consider(WindowAggState *window, GpuSortRankedScan *scan);

#endif /* GPUSORT_RANKS_H */
