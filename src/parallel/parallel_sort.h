/*-------------------------------------------------------------------------
 *
 * parallel_sort.h
 *	  A sort whose rows several processes put, and read by ranges, or the leader alone.
 *
 * It is always one of a set: sort_set.h has the order of calls.  Who makes a set calls the first functions here, the
 * set calls the others.
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
	uint32 part_ranges;                        /* in a part to be verified, but for the last part; 0: none is */
	uint64 pairs;                              /* of neighbours that have been compared; claims.c adds them up */
	uint64 first_rows[GPUSORT_RANGES_MAX + 1]; /* of each range; then the number of rows */
} GpuSortOrderedRows;

extern GpuSortParallelSort *gpusort_parallel_sort_create(GpuSortState *sort, int range_columns, GpuSortInput *part);
extern GpuSortParallelIngest *gpusort_parallel_sort_part(GpuSortParallelSort *own);
extern GpuSortState *gpusort_parallel_sort_sort(const GpuSortParallelSort *own);
extern const GpuSortFailure *gpusort_parallel_sort_refusal(const GpuSortParallelSort *own);
extern GpuSortOrderedRows *gpusort_parallel_sort_rows(const GpuSortParallelSort *own);
extern void gpusort_parallel_sort_take_back(GpuSortParallelSort *own, const GpuSortFailure *full);
extern void gpusort_parallel_sort_drop(GpuSortParallelSort *own);

/* What the processes share */
extern Size gpusort_parallel_sort_estimate(const GpuSortParallelSort *own, int nworkers);
extern void gpusort_parallel_sort_initialize(GpuSortParallelSort *own, void *shared, dsm_segment *segment,
											 int nworkers);
extern void gpusort_parallel_sort_reinitialize(GpuSortParallelSort *own);
extern void gpusort_parallel_sort_attach(GpuSortParallelSort *own, void *shared);
extern bool gpusort_parallel_sort_keep(GpuSortParallelSort *own, const volatile bool *stop);
extern void gpusort_parallel_sort_detach(GpuSortParallelSort *own);

/* The set's, which do for one sort what sort_set.h says of all */
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
