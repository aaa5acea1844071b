/*-------------------------------------------------------------------------
 *
 * ranks.h
 *	  row_number(), rank() and dense_rank() over rows that GpuSort gives out.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RANKS_H
#define GPUSORT_RANKS_H

#include "compat.h"

#include "nodes/execnodes.h"

/* What a WindowAgg above a GpuSort counts; in the state of the GpuSort. */
typedef struct GpuSortRanks
{
	int64 row_number; /* of the row at hand in its partition; 0: there is none yet */
	int64 rank;
	int64 dense_rank;
	bool ended;
	bool by_peers;        /* the last two are asked for */
	const int64 **values; /* by number of the function: which of the three it is */
} GpuSortRanks;

extern void gpusort_ranks_consider(WindowAggState *window);

#endif /* GPUSORT_RANKS_H */
