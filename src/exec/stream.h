/*-------------------------------------------------------------------------
 *
 * stream.h
 *	  Emits the rows of a GpuSort to the node above.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STREAM_H
#define GPUSORT_STREAM_H

#include "exec/scan_state.h"
#include "exec/sort_set.h"

extern TupleTableSlot *gpusort_stream_row(CustomScanState *node);
extern TupleTableSlot *gpusort_stream_exec(PlanState *ps);

/* In stage STREAM */
extern void gpusort_stream_mark(GpuSortScanState *state);
extern void gpusort_stream_restore(GpuSortScanState *state);
extern bool gpusort_stream_rewind(GpuSortScanState *state, GpuSortFailure *failure);

/* When a range has been asked for */
extern bool gpusort_stream_begin_ranges(GpuSortSharedSorts *sorts, PlanState *plan, int rescan_param, bool *started,
										GpuSortFailure *failure);
extern bool gpusort_stream_begin_range(GpuSortScanState *state, GpuSortFailure *failure);

#endif /* GPUSORT_STREAM_H */
