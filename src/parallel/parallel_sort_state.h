/*-------------------------------------------------------------------------
 *
 * parallel_sort_state.h
 *	  The state of a sort whose rows several processes put and read, for parallel_sort.c, parallel_order.c and sort_set.c
 *	  alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARALLEL_SORT_STATE_H
#define GPUSORT_PARALLEL_SORT_STATE_H

#include "parallel/parallel_ingest.h"
#include "parallel/order_check.h"
#include "parallel/sort_set.h"
#include "server/statistics.h"
#include "sort/sort.h"
#include "storage/dsm.h"
#include "storage/sharedfileset.h"

/* In dynamic shared memory. */
typedef struct GpuSortParallelSortShared
{
	dsm_handle segment;
	SharedFileSet files;
	bool long_rows; /* somebody has put some into the files */
	GpuSortOrderedRows sorted;
	GpuSortPut leader_put;  /* once the leader has left the ingest to others, if workers order */
	GpuSortOutcome outcome; /* these and the times for EXPLAIN in the leader, whoever has had the rows sorted */
	GpuSortTimes ms;
	GpuSortWhole whole;                 /* ranges that workers have read to their ends; guarded by ingest.lock */
	GpuSortParallelIngestShared ingest; /* variable length: must be last field */
} GpuSortParallelSortShared;

struct GpuSortParallelSort
{
	GpuSortState *sort;
	int range_columns;                 /* rows that are equal in so many leading columns are in one range; 0: all rows are */
	GpuSortParallelSortShared *shared; /* NULL: there are no workers */
	GpuSortOrderedRows *sorted;        /* shared's, or this process's own */
	GpuSortParallelIngest ingest;
	bool workers_order;     /* as in GpuSortSortSet */
	GpuSortFailure refusal; /* why PostgreSQL is to sort, in this process alone; reason NONE: it is not */
	GpuSortFailure unlike;  /* what was read is not what was put; reason NONE: nothing was found wrong */
	MemoryContext context;
};

#endif /* GPUSORT_PARALLEL_SORT_STATE_H */
