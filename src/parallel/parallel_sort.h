/*-------------------------------------------------------------------------
 *
 * parallel_sort.h
 *	  A sort whose rows several processes put; they read it by ranges, or the leader reads it alone.
 *
 * It always belongs to a set: sort_set.h has the order of calls.  The first functions here are for the maker of a set,
 * the others for the set.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARALLEL_SORT_H
#define GPUSORT_PARALLEL_SORT_H

#include "compat.h"

#include "parallel/parallel_ingest.h"
#include "service/protocol.h"
#include "sort/sort.h"
#include "storage/dsm.h"

typedef struct GpuSortParallelSort GpuSortParallelSort;

/* The rows of all processes, in order and cut into ranges.  The process that orders them publishes this. */
typedef struct GpuSortOrderedRows
{
	GpuSortExpected expected;
	uint32 ranges;
	uint32 part_ranges;                        /* ranges in each part to be verified but the last, or 0 */
	uint64 pairs;                              /* pairs of neighbours that were compared; claims.c adds them up */
	uint64 first_rows[GPUSORT_RANGES_MAX + 1]; /* number of each range's first row; then the number of all rows */
} GpuSortOrderedRows;

extern GpuSortParallelSort *gpusort_parallel_sort_create(GpuSortState *sort, int range_columns, GpuSortInput *part);
extern GpuSortParallelIngest *gpusort_parallel_sort_part(GpuSortParallelSort *own);
extern GpuSortState *gpusort_parallel_sort_sort(const GpuSortParallelSort *own);
extern const GpuSortFailure *gpusort_parallel_sort_refusal(const GpuSortParallelSort *own);
extern GpuSortOrderedRows *gpusort_parallel_sort_rows(const GpuSortParallelSort *own);
extern void gpusort_parallel_sort_take_back(GpuSortParallelSort *own, const GpuSortFailure *full);
extern void gpusort_parallel_sort_drop(GpuSortParallelSort *own);

/* Shared memory */
extern Size gpusort_parallel_sort_estimate(const GpuSortParallelSort *own, int nworkers);
extern void gpusort_parallel_sort_initialize(GpuSortParallelSort *own, void *shared, dsm_segment *segment,
											 int nworkers);
extern void gpusort_parallel_sort_reinitialize(GpuSortParallelSort *own);
extern void gpusort_parallel_sort_attach(GpuSortParallelSort *own, void *shared);
extern bool gpusort_parallel_sort_has_long_rows(const GpuSortParallelSort *own);
extern void gpusort_parallel_sort_keep(GpuSortParallelSort *own, const volatile bool *stop);
extern void gpusort_parallel_sort_detach(GpuSortParallelSort *own);

/* For sort_set.c: the functions of sort_set.h for one sort of the set */
extern bool gpusort_parallel_sort_leader_reads(const GpuSortParallelSort *own);
extern int gpusort_parallel_sort_range_columns(const GpuSortParallelSort *own);
extern bool gpusort_parallel_sort_begin(GpuSortParallelSort *own, const GpuSortPrefix *prefixes, bool common_later,
										int participants, bool workers_order, GpuSortFailure *failure);
extern void gpusort_parallel_sort_refuse(GpuSortParallelSort *own, const GpuSortFailure *reason);
extern bool gpusort_parallel_sort_ingest(GpuSortParallelSort *own, bool workers_order, const volatile bool *stop,
										 bool *whole, GpuSortFailure *failure);
extern bool gpusort_parallel_sort_join(GpuSortParallelSort *own, bool sorted, GpuSortFailure *failure);
extern bool gpusort_parallel_sort_order(GpuSortParallelSort *own, GpuSortFailure *failure);
extern bool gpusort_parallel_sort_cut(GpuSortParallelSort *own, const GpuSortParallelSort *like, uint32 bits,
									  uint32 most, GpuSortFailure *failure);
extern bool gpusort_parallel_sort_open(GpuSortParallelSort *own, const volatile bool *stop, bool *lost,
									   GpuSortFailure *failure);
extern void gpusort_parallel_sort_close(GpuSortParallelSort *own);
extern bool gpusort_parallel_sort_finish(GpuSortParallelSort *own, GpuSortFailure *failure);
extern void gpusort_parallel_sort_end(GpuSortParallelSort *own);

#endif /* GPUSORT_PARALLEL_SORT_H */
