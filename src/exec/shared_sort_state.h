/*-------------------------------------------------------------------------
 *
 * shared_sort_state.h
 *	  The state of a GpuSort whose rows are put and read by several processes, for shared_sort.c and shared_order.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_SORT_STATE_H
#define GPUSORT_SHARED_SORT_STATE_H

#include "parallel/joint_ingest.h"
#include "parallel/order_check.h"
#include "exec/scan_state.h"
#include "exec/sort_set.h"
#include "portability/instr_time.h"
#include "storage/dsm.h"
#include "storage/sharedfileset.h"

/* In dynamic shared memory. */
typedef struct GpuSortSortShared
{
	dsm_handle segment;
	SharedFileSet files;
	bool long_rows; /* somebody has put some into the files */
	GpuSortOrderedRows sorted;
	GpuSortPut leader_put;  /* once the leader has left the ingest to others, if none leads */
	GpuSortOutcome outcome; /* these and the times for EXPLAIN in the leader, whoever has had the rows sorted */
	GpuSortTimes ms;
	GpuSortWhole whole;       /* ranges that workers have read to their ends; guarded by joint.lock */
	GpuSortJointShared joint; /* variable length: must be last field */
} GpuSortSortShared;

/* The part of the node's state that is this file's. */
struct GpuSortSharedSort
{
	GpuSortSortShared *shared;  /* NULL: there are no workers */
	GpuSortOrderedRows *sorted; /* shared's, or this process's own */
	GpuSortJointIngest joint;
	GpuSortSharedSorts *sorts; /* this one is of these; NULL: begun by nobody yet */
	const volatile bool *stop; /* no rows are wanted any more */
	GpuSortFailure failure;    /* why this process is to sort alone, or has lost its rows */
	GpuSortFailure unlike;     /* what was read is not what was put; reason NONE: nothing was found wrong */
	instr_time begun;
};

typedef struct GpuSortSharedSort GpuSortSharedSort;

#endif /* GPUSORT_SHARED_SORT_STATE_H */
