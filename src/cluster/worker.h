/*-------------------------------------------------------------------------
 *
 * worker.h
 *	  What the processes that copy a table's rows share, and what each of them does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLUSTER_WORKER_H
#define GPUSORT_CLUSTER_WORKER_H

#include "compat.h"

#include "cluster/copy.h"
#include "cluster/copy_choice.h"
#include "cluster/tuple_source.h"
#include "pages/heap_pages.h"
#include "parallel/sort_set.h"
#include "sort/table_rows.h"

/* In dynamic shared memory, but where there are no workers.  The leader writes it before workers start. */
typedef struct GpuSortCopyShared
{
	GpuSortClaims claims;
	Oid table;
	Oid copy;
	Oid index;
	TransactionId oldest_xmin;
	TransactionId freeze_limit;
	MultiXactId multi_cutoff;
	double rows; /* estimated */
	int width;   /* estimated bytes */
	GpuSortTupleShare tuples;
	pg_atomic_uint64 written; /* rows */
	GpuSortNewTableShared into;
} GpuSortCopyShared;

/* A process's part of a copy. */
typedef struct GpuSortCopy
{
	GpuSortClusterTask task;
	GpuSortIndexOrder order;
	GpuSortCopyShared *shared;
	GpuSortTableRows *rows;
	GpuSortTupleSource source;
	GpuSortState *sort;
	GpuSortParallelSort *parallel;
	GpuSortSortSet set;
} GpuSortCopy;

extern void gpusort_copy_create_sort(GpuSortCopy *copy);
extern void gpusort_copy_write_ranges(GpuSortCopy *copy, int process);

#endif /* GPUSORT_CLUSTER_WORKER_H */
