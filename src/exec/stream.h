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

extern TupleTableSlot *gpusort_stream_row(CustomScanState *node);
extern TupleTableSlot *gpusort_stream_exec(PlanState *ps);
extern bool gpusort_stream_sort(GpuSortScanState *state);
extern void gpusort_stream_mark(GpuSortScanState *state);
extern void gpusort_stream_restore(GpuSortScanState *state);
extern void gpusort_stream_start_over(GpuSortScanState *state);
extern bool gpusort_stream_rewind(GpuSortScanState *state, GpuSortFailure *failure);
extern void gpusort_stream_end(GpuSortScanState *state);

#endif /* GPUSORT_STREAM_H */
