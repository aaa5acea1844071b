/*-------------------------------------------------------------------------
 *
 * joint_sort.h
 *	  Sorts whose rows several processes put, and read by ranges.
 *
 * LEGAL ORDER OF CALLS
 *	Every process makes the same sorts (sort/sort.h), each with a source of its own part of the rows, and of each
 *	a GpuSortJointSort.  Those that are cut at the same borders are a GpuSortJointSorts: one, or two to be merged.
 *	What the processes share is in dynamic shared memory: the leader calls estimate and initialize before workers
 *	start, a worker attach; the leader reinitialize before they start again, all detach before the memory goes.
 *	Without workers there is none.  Then
 *
 *		leader			begin, before workers start, or refuse
 *		each process	ingest: puts its part
 *		one process		order, when all have (joint_order.c): the leader, or after join_to_order a worker
 *		each process	open: to read; the order is verified now (joint_check.c)
 *		each process	(ask, for a range or the one after it; begin_range, and then its rows are read with
 *						gpusort_sort_next)*
 *		worker			close
 *		leader			finish, when workers have ended; release
 *		each process	end at any time: the next is begin or, in a worker, nothing
 *
 *	participants.h tells which process does what, and when.  Where a function returns false, with a reason, the rows are
 *	lost to all, and the caller decides what comes of it: refuse has PostgreSQL sort in the leader alone.  While
 *	rows are read, sorts->lost says so: what has been made of the range at hand is void.
 *
 * MEMORY
 *	What is of one sort is in the context of the GpuSortState; the rest belongs to the context that was current at
 *	create.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOINT_SORT_H
#define GPUSORT_JOINT_SORT_H

#include "compat.h"

#include "parallel/claims.h"
#include "parallel/order_check.h"
#include "parallel/sort_set.h"
#include "sort/sort.h"
#include "storage/dsm.h"

extern GpuSortJointSort *gpusort_joint_sort_create(GpuSortState *sort, int range_columns);
extern GpuSortState *gpusort_joint_sort_sort(const GpuSortJointSort *own);
extern const GpuSortFailure *gpusort_joint_sort_refusal(const GpuSortJointSort *own);
extern GpuSortOrderedRows *gpusort_joint_sort_rows(const GpuSortJointSort *own);
extern void gpusort_joint_sort_drop(GpuSortJointSort *own);

/* What the processes share */
extern Size gpusort_joint_sort_estimate(const GpuSortJointSort *own, int nworkers);
extern void gpusort_joint_sort_initialize(GpuSortJointSort *own, void *shared, dsm_segment *segment, int nworkers);
extern void gpusort_joint_sort_reinitialize(GpuSortJointSort *own);
extern void gpusort_joint_sort_attach(GpuSortJointSort *own, void *shared);
extern void gpusort_joint_sort_detach(GpuSortJointSort *own);

/* The leader's */
extern bool gpusort_joint_sorts_begin(GpuSortJointSorts *sorts, int readers, GpuSortFailure *failure);
extern void gpusort_joint_sorts_refuse(GpuSortJointSorts *sorts, const GpuSortFailure *failure);
extern bool gpusort_joint_sorts_order(GpuSortJointSorts *sorts, int processes, uint32 *ranges, GpuSortFailure *failure);
extern void gpusort_joint_sorts_show(GpuSortJointSorts *sorts, uint32 range);
extern bool gpusort_joint_sorts_finish(GpuSortJointSorts *sorts, GpuSortFailure *failure);
extern void gpusort_joint_sorts_release(GpuSortJointSorts *sorts);
extern void gpusort_joint_sorts_end(GpuSortJointSorts *sorts);

/* Everybody's */
extern bool gpusort_joint_sorts_ingest(GpuSortJointSorts *sorts, const volatile bool *stop, bool *whole,
									   GpuSortFailure *failure);
extern bool gpusort_joint_sorts_join_to_order(GpuSortJointSorts *sorts, GpuSortFailure *failure);
extern bool gpusort_joint_sorts_have_rows(GpuSortJointSorts *sorts);
extern bool gpusort_joint_sorts_open(GpuSortJointSorts *sorts, const volatile bool *stop, GpuSortFailure *failure);
extern uint64 gpusort_joint_sorts_near(const GpuSortJointSorts *sorts, uint32 range, uint64 *after);
extern bool gpusort_joint_sorts_ask(GpuSortJointSorts *sorts, uint32 range, GpuSortFailure *failure);
extern bool gpusort_joint_sorts_begin_range(GpuSortJointSorts *sorts, GpuSortFailure *failure);
extern void gpusort_joint_sorts_note_lost(const GpuSortJointSorts *sorts, GpuSortClaims *claims);
extern void gpusort_joint_sorts_close(GpuSortJointSorts *sorts);

#endif /* GPUSORT_JOINT_SORT_H */
