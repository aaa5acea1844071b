/*-------------------------------------------------------------------------
 *
 * shared_sort.h
 *	  A GpuSort whose rows are put and read by several processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_SORT_H
#define GPUSORT_SHARED_SORT_H

#include "parallel/order_check.h"
#include "exec/scan_state.h"
#include "exec/sort_set.h"

extern void gpusort_shared_sort_create(GpuSortScanState *state);
extern void gpusort_shared_sort_lose(GpuSortScanState *state, const GpuSortFailure *failure);
extern void gpusort_shared_sort_drop(GpuSortScanState *state);
extern const GpuSortFailure *gpusort_shared_sort_failure(const GpuSortScanState *state);
extern bool gpusort_shared_sort_is_stopped(const GpuSortScanState *state);
extern GpuSortOrderedRows *gpusort_shared_sort_rows(const GpuSortScanState *state);

/* The node's callbacks for dynamic shared memory */
extern Size gpusort_shared_sort_estimate(CustomScanState *node, ParallelContext *pcxt);
extern void gpusort_shared_sort_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
extern void gpusort_shared_sort_reinitialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
extern void gpusort_shared_sort_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate);
extern void gpusort_shared_sort_shutdown(CustomScanState *node);

/* The leader's */
extern bool gpusort_shared_sorts_begin(GpuSortSharedSorts *sorts, int readers, GpuSortFailure *failure);
extern void gpusort_shared_sorts_refuse(GpuSortSharedSorts *sorts, const GpuSortFailure *failure);
extern bool gpusort_shared_sorts_order(GpuSortSharedSorts *sorts, int processes, uint32 *ranges, GpuSortFailure *failure);
extern void gpusort_shared_sorts_show(GpuSortSharedSorts *sorts, uint32 range);
extern bool gpusort_shared_sorts_finish(GpuSortSharedSorts *sorts, GpuSortFailure *failure);
extern bool gpusort_shared_sorts_verify(GpuSortSharedSorts *sorts, GpuSortFailure *failure);
extern void gpusort_shared_sorts_release(GpuSortSharedSorts *sorts);
extern void gpusort_shared_sorts_end(GpuSortSharedSorts *sorts);

/* Everybody's */
extern void gpusort_shared_sorts_rescan(GpuSortSharedSorts *sorts, Bitmapset *changed);
extern bool gpusort_shared_sorts_ingest(GpuSortSharedSorts *sorts, const volatile bool *stop, bool *whole, GpuSortFailure *failure);
extern bool gpusort_shared_sorts_join_to_order(GpuSortSharedSorts *sorts, GpuSortFailure *failure);
extern bool gpusort_shared_sorts_have_rows(GpuSortSharedSorts *sorts);
extern bool gpusort_shared_sorts_open(GpuSortSharedSorts *sorts, const volatile bool *stop, GpuSortFailure *failure);
extern bool gpusort_shared_sorts_ask(GpuSortSharedSorts *sorts, uint32 range, GpuSortFailure *failure);
extern void gpusort_shared_sorts_close(GpuSortSharedSorts *sorts);

#endif /* GPUSORT_SHARED_SORT_H */
