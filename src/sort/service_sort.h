/*-------------------------------------------------------------------------
 *
 * service_sort.h
 *	  A sort's part in the service: its beginning, its order, its end; for the rooms sort/ and parallel/ alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_SORT_H
#define GPUSORT_SERVICE_SORT_H

#include "server/statistics.h"
#include "sort/sort.h"

extern bool gpusort_service_sort_checks_order(const GpuSortState *sort);
extern bool gpusort_service_sort_begin(GpuSortState *sort, int participants, GpuSortFailure *failure);
extern bool gpusort_service_sort_wait(GpuSortState *sort, const GpuSortPut *others, uint64 first,
									  GpuSortFailure *failure);
extern bool gpusort_service_sort_order(GpuSortState *sort, const GpuSortPut *others, uint64 first,
									   GpuSortExpected *expected, GpuSortFailure *failure);
extern uint64 gpusort_service_sort_first(const GpuSortState *sort, bool sorted);
extern bool gpusort_service_sort_rewind(GpuSortState *sort, GpuSortFailure *failure);
extern void gpusort_service_sort_note_times(GpuSortState *sort, instr_time ingested);
extern void gpusort_service_sort_release(GpuSortState *sort);
extern GpuSortTimes gpusort_service_sort_times(const GpuSortState *sort);
extern uint32 gpusort_service_sort_runs(const GpuSortState *sort);
extern uint64 gpusort_service_sort_tie_rows(const GpuSortState *sort);
extern void gpusort_service_sort_create_check(GpuSortState *sort);

/* For a parallel sort */
extern bool gpusort_service_sort_join(GpuSortState *sort, uint64 token, uint32 generation,
									  const GpuSortExpected *expected, bool verified, GpuSortFailure *failure);
extern void gpusort_service_sort_open(GpuSortState *sort, const GpuSortExpected *expected, bool unreported);
extern void gpusort_service_sort_learn(GpuSortState *sort, const GpuSortOutcome *outcome, const GpuSortTimes *ms,
									   uint64 pairs);
extern void gpusort_service_sort_note_check(GpuSortState *sort, uint64 pairs, double ms);

/* Shows others in gpusort_jobs how far the sort is; rows ingested are shown by the writer. */
static inline void
gpusort_service_sort_show(GpuSortState *sort, GpuSortPhase phase, uint64 rows_out)
{
	if (sort->service.job == NULL)
		return;
	sort->service.job->phase = phase;
	sort->service.job->rows_out = rows_out;
}

#endif /* GPUSORT_SERVICE_SORT_H */
