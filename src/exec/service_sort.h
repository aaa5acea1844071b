/*-------------------------------------------------------------------------
 *
 * service_sort.h
 *	  One sort of a GpuSort in the service: its beginning, its order, its end.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_SORT_H
#define GPUSORT_SERVICE_SORT_H

#include "exec/scan_state.h"
#include "portability/instr_time.h"

extern bool gpusort_service_sort_begin(GpuSortScanState *state, GpuSortFailure *failure);
extern bool gpusort_service_sort_wait(GpuSortScanState *state, uint64 first, GpuSortFailure *failure);
extern bool gpusort_service_sort_order(GpuSortScanState *state, const GpuSortPut *others, uint64 first,
									   GpuSortExpected *expected, GpuSortFailure *failure);
extern uint64 gpusort_service_sort_first(const GpuSortScanState *state, bool sorted);
extern bool gpusort_service_sort_rewind(GpuSortScanState *state, GpuSortFailure *failure);
extern void gpusort_service_sort_note_times(GpuSortScanState *state, instr_time start, instr_time ingested);
extern void gpusort_service_sort_release(GpuSortScanState *state);
extern GpuSortTimes gpusort_service_sort_times(const GpuSortScanState *state);
extern uint32 gpusort_service_sort_runs(const GpuSortScanState *state);
extern uint64 gpusort_service_sort_tie_rows(const GpuSortScanState *state);
extern void gpusort_end_sort(GpuSortScanState *state);

/* Shows others in gpusort_jobs how far the sort is; rows ingested are shown by the writer. */
static inline void
gpusort_service_sort_show(GpuSortScanState *state, GpuSortPhase phase, uint64 rows_out)
{
	if (state->service.job == NULL)
		return;
	state->service.job->phase = phase;
	state->service.job->rows_out = rows_out;
}

#endif /* GPUSORT_SERVICE_SORT_H */
