/*-------------------------------------------------------------------------
 *
 * scan_state.h
 *	  The state of a GpuSort node, for the files of exec/ alone.
 *
 * What a node is, beside the sort of its child's rows (sort/sort.h):
 * made by executor.c, but for stream, which is stream.c's, and for percentiles, running and window, which are those
 * of percentiles.c, running.c and window_ranges.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SCAN_STATE_H
#define GPUSORT_SCAN_STATE_H

#include "compat.h"

#include "exec/plan_source.h"
#include "node.h"
#include "nodes/execnodes.h"
#include "parallel/parallel_sort.h"
#include "sort/heap_rows.h"
#include "sort/sort.h"
#include "utils/tuplestore.h"

/* The rows emitted. */
typedef struct GpuSortRowStream
{
	bool ended;             /* there is no row after those in store */
	bool keeping;           /* every row emitted goes into store; rows come from there first */
	Tuplestorestate *store; /* rows emitted, for going back to; NULL: none yet */
	bool marked;            /* mark is set: a position in the reader's chunk */
	GpuSortReaderMark mark;
} GpuSortRowStream;

typedef struct GpuSortScanState
{
	CustomScanState css; /* must be first field */

	/* from the plan */
	GpuSortPlanInfo info;
	int eflags;

	/* made once */
	GpuSortPlanSource source;          /* where there is no ingest */
	struct GpuSortIngestState *ingest; /* below Gather: the source; NULL: the child is read by this process alone */
	bool workers_ended;                /* those that this node has started: the child cannot be read again */
	GpuSortHeapRows *rows;
	GpuSortState *sort;
	GpuSortParallelSort *parallel;          /* several processes read the rows; NULL: this one reads all */
	LimitState *limit;                      /* above: only its rows are wanted; NULL: all */
	struct GpuSortPercentiles *percentiles; /* an Agg's right above, which reads rows by their numbers; NULL: none */

	struct GpuSortRunning *running;     /* a WindowAgg's right above, where what it computes is; NULL: it is not */
	struct GpuSortWindowRanges *window; /* the same, which reads ranges with rows near them; NULL: it does not */

	/* a merge join's inner side: if it has no row, none of this node's is wanted; NULL: all are */
	struct GpuSortScanState *inner;

	GpuSortRowStream stream;
} GpuSortScanState;

/* Returns the node as PostgreSQL sees it. */
static inline PlanState *
gpusort_plan_state(GpuSortScanState *state)
{
	return &state->css.ss.ps;
}

/* Returns the node whose rows are sorted. */
static inline PlanState *
gpusort_child(GpuSortScanState *state)
{
	return outerPlanState(gpusort_plan_state(state));
}

#endif /* GPUSORT_SCAN_STATE_H */
