/*-------------------------------------------------------------------------
 *
 * output.h
 *	  The GpuSortOutput node: runs the plan below it for ranges of sorted rows, in each process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_OUTPUT_H
#define GPUSORT_OUTPUT_H

#include "compat.h"

#include "client/failure.h"
#include "client/row_queue.h"
#include "exec/claims.h"
#include "exec/scan_state.h"
#include "nodes/execnodes.h"

/* The node in the leader, as the GpuSortExchange node above Gather sees it. */
typedef struct GpuSortOutputState GpuSortOutputState;

/* What the first row asked for has come to. */
typedef enum GpuSortOutputOutcome
{
	GPUSORT_OUTPUT_RANGES, /* the rows are to be read range by range */
	GPUSORT_OUTPUT_SERIAL, /* the rows come through Gather, from the leader alone */
	GPUSORT_OUTPUT_FAILED, /* the service has lost them */
} GpuSortOutputOutcome;

extern GpuSortOutputState *gpusort_output_find(PlanState *gather);
extern GpuSortScanState *gpusort_output_first_sort(GpuSortOutputState *state);

extern void gpusort_output_begin(GpuSortOutputState *state);
extern GpuSortOutputOutcome gpusort_output_outcome(const GpuSortOutputState *state);
extern uint32 gpusort_output_ranges(const GpuSortOutputState *state);
extern int gpusort_output_claim(GpuSortOutputState *state, uint32 range);
extern int gpusort_output_claim_next(GpuSortOutputState *state);
extern GpuSortRowQueueReader *gpusort_output_queue(GpuSortOutputState *state, int process);
extern bool gpusort_output_begin_range(GpuSortOutputState *state, uint32 range);
extern TupleTableSlot *gpusort_output_row(GpuSortOutputState *state);
extern bool gpusort_output_has_failed(const GpuSortOutputState *state);
extern bool gpusort_output_is_shut_down(const GpuSortOutputState *state);
extern void gpusort_output_stop(GpuSortOutputState *state);
extern void gpusort_output_finish(GpuSortOutputState *state);
extern void gpusort_output_fall_back(GpuSortOutputState *state);
extern void gpusort_output_reset(GpuSortOutputState *state);
pg_noreturn extern void gpusort_output_report_lost(GpuSortOutputState *state, bool emitted);

#endif /* GPUSORT_OUTPUT_H */
