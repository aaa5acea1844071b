/*-------------------------------------------------------------------------
 *
 * parallel_sort.h
 *	  Sorts whose rows several processes put, and read by ranges.
 *
 * LEGAL ORDER OF CALLS
 *	Every process makes the same sorts (sort/sort.h), each with a source of its own part of the rows, and of each
 *	a GpuSortParallelSort.  Those that are cut at the same borders are a GpuSortSortSet: one, or two to be merged.
 *	What the processes share is in dynamic shared memory: the leader calls estimate and initialize before workers
 *	start, a worker attach; the leader reinitialize before they start again, all detach before the memory goes.
 *	Without workers there is none.  Then
 *
 *		leader			begin, before workers start, or refuse
 *		each process	ingest: puts its part
 *		one process		order, when all have (parallel_order.c): the leader, or after join_to_order a worker
 *		each process	open: to read; the order is verified now (parallel_check.c)
 *		each process	(ask, for a range or the one after it; begin_range, and then its rows are read with
 *						gpusort_sort_next)*
 *		worker			close
 *		leader			finish, when workers have ended; release
 *		each process	end at any time: the next is begin or, in a worker, nothing
 *
 *	participants.h tells which process does what, and when.  Where a function returns false, with a reason, the rows are
 *	lost to all, and the caller decides what comes of it: refuse has PostgreSQL sort in the leader alone.  While
 *	rows are read, set->lost says so: what has been made of the range at hand is void.
 *
 * MEMORY
 *	What is of one sort is in the context of the GpuSortState; the rest belongs to the context that was current at
 *	create.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARALLEL_SORT_H
#define GPUSORT_PARALLEL_SORT_H

#include "compat.h"

#include "parallel/claims.h"
#include "parallel/order_check.h"
#include "parallel/sort_set.h"
#include "sort/sort.h"
#include "storage/dsm.h"

extern GpuSortParallelSort *gpusort_parallel_sort_create(GpuSortState *sort, int range_columns);
extern GpuSortState *gpusort_parallel_sort_sort(const GpuSortParallelSort *own);
extern const GpuSortFailure *gpusort_parallel_sort_refusal(const GpuSortParallelSort *own);
extern GpuSortOrderedRows *gpusort_parallel_sort_rows(const GpuSortParallelSort *own);
extern void gpusort_parallel_sort_drop(GpuSortParallelSort *own);

/* What the processes share */
extern Size gpusort_parallel_sort_estimate(const GpuSortParallelSort *own, int nworkers);
extern void gpusort_parallel_sort_initialize(GpuSortParallelSort *own, void *shared, dsm_segment *segment, int nworkers);
extern void gpusort_parallel_sort_reinitialize(GpuSortParallelSort *own);
extern void gpusort_parallel_sort_attach(GpuSortParallelSort *own, void *shared);
extern void gpusort_parallel_sort_detach(GpuSortParallelSort *own);

/* The leader's */
extern bool gpusort_sort_set_begin(GpuSortSortSet *set, int readers, GpuSortFailure *failure);
extern void gpusort_sort_set_refuse(GpuSortSortSet *set, const GpuSortFailure *failure);
extern bool gpusort_sort_set_order(GpuSortSortSet *set, int processes, uint32 *ranges, GpuSortFailure *failure);
extern void gpusort_sort_set_show(GpuSortSortSet *set, uint32 range);
extern bool gpusort_sort_set_finish(GpuSortSortSet *set, GpuSortFailure *failure);
extern void gpusort_sort_set_release(GpuSortSortSet *set);
extern void gpusort_sort_set_end(GpuSortSortSet *set);

/* Everybody's */
extern bool gpusort_sort_set_ingest(GpuSortSortSet *set, const volatile bool *stop, bool *whole,
									GpuSortFailure *failure);
extern bool gpusort_sort_set_join_to_order(GpuSortSortSet *set, GpuSortFailure *failure);
extern bool gpusort_sort_set_have_rows(GpuSortSortSet *set);
extern bool gpusort_sort_set_open(GpuSortSortSet *set, const volatile bool *stop, GpuSortFailure *failure);
extern uint64 gpusort_sort_set_near(const GpuSortSortSet *set, uint32 range, uint64 *after);
extern bool gpusort_sort_set_ask(GpuSortSortSet *set, uint32 range, GpuSortFailure *failure);
extern bool gpusort_sort_set_begin_range(GpuSortSortSet *set, GpuSortFailure *failure);
extern void gpusort_sort_set_note_lost(const GpuSortSortSet *set, GpuSortClaims *claims);
extern void gpusort_sort_set_close(GpuSortSortSet *set);

#endif /* GPUSORT_PARALLEL_SORT_H */
