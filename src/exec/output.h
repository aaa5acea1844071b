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
#include "parallel/row_queue.h"
#include "parallel/claims.h"
#include "exec/nodes.h"
#include "exec/window_ranges.h"
#include "nodes/execnodes.h"

/* What the first row asked for has come to. */
typedef enum GpuSortOutputOutcome
{
	GPUSORT_OUTPUT_RANGES, /* the rows are to be read range by range */
	GPUSORT_OUTPUT_SERIAL, /* the rows come through Gather, from the leader alone */
	GPUSORT_OUTPUT_FAILED, /* the service has lost them */
} GpuSortOutputOutcome;

/* In dynamic shared memory, or where there are no workers in the leader's; the workers' row queues follow. */
typedef struct GpuSortOutputShared
{
	uint64 build; /* of the leader's module: one of another build knows no more of this */
	int nworkers; /* and row queues */
	GpuSortWindowShared window;
	GpuSortClaims claims;
} GpuSortOutputShared;

/* The node: for output.c alone, but that GpuSortExchange looks at outcome, and at shared while there are ranges. */
typedef struct GpuSortOutputState
{
	CustomScanState css; /* must be first field */
	GpuSortNodes nodes;
	GpuSortWindowRanges window;
	GpuSortOutputShared *shared; /* NULL: there is none yet */
	bool in_segment;             /* it is in Gather's memory, and workers may be there */

	/* the leader's */
	ParallelContext *workers; /* valid while in_segment */
	GpuSortOutputShared *own; /* what is shared where there are no workers; NULL: not made */
	GpuSortOutputOutcome outcome;
	bool ingested;
	GpuSortRowQueueReader **queues; /* by worker; NULL: none is open */
	TupleTableSlot *empty_row;
} GpuSortOutputState;

extern GpuSortOutputState *gpusort_output_find(PlanState *gather);

extern void gpusort_output_begin(GpuSortOutputState *state, int readers);
extern int gpusort_output_claim(GpuSortOutputState *state, uint32 range);
extern int gpusort_output_claim_next(GpuSortOutputState *state);
extern GpuSortRowQueueReader *gpusort_output_queue(GpuSortOutputState *state, int process);
extern bool gpusort_output_ask(GpuSortOutputState *state, uint32 range);
extern bool gpusort_output_begin_range(GpuSortOutputState *state);
extern TupleTableSlot *gpusort_output_row(GpuSortOutputState *state);
extern void gpusort_output_stop(GpuSortOutputState *state);
extern void gpusort_output_finish(GpuSortOutputState *state);
extern void gpusort_output_fall_back(GpuSortOutputState *state);
extern void gpusort_output_reset(GpuSortOutputState *state);
pg_noreturn extern void gpusort_output_report_lost(GpuSortOutputState *state, bool emitted);

/* Returns the GpuSort whose keys the ranges are of. */
static inline GpuSortScanState *
gpusort_output_first_sort(const GpuSortOutputState *state)
{
	return state->nodes.nodes[0];
}

/* Returns true if a process has lost rows; the ranges must be there. */
static inline bool
gpusort_output_has_failed(const GpuSortOutputState *state)
{
	return state->shared->claims.stop;
}

/* Returns true if Gather has been shut down, which had workers. */
static inline bool
gpusort_output_is_shut_down(const GpuSortOutputState *state)
{
	return state->shared == NULL;
}

#endif /* GPUSORT_OUTPUT_H */
