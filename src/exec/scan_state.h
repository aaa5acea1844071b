/*-------------------------------------------------------------------------
 *
 * scan_state.h
 *	  The state of a GpuSort node, for the files of exec/ alone.
 *
 * What a node is, beside the sort of its child's rows (sort/sort.h):
 * made by executor.c, but for stream, which is stream.c's, and for percentiles, unique, running and window, which are
 * those of percentiles.c, unique.c, running.c and window_ranges.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SCAN_STATE_H
#define GPUSORT_SCAN_STATE_H

#include "compat.h"

#include "exec/gather.h"
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
	uint64 emitted;         /* rows, that the sort has given since its beginning */
	bool ended;             /* there is no row behind those in store, or those that were emitted */
	bool keeping;           /* each emitted row goes into store, and rows come from there first */
	Tuplestorestate *store; /* emitted rows, to go back to, or NULL */
	bool rewound;           /* the node has started over with the same rows */
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
	GpuSortPlanSource source;          /* used without ingest */
	struct GpuSortIngestState *ingest; /* the source below Gather; NULL if only this process reads the child */
	GpuSortBeginning beginning;        /* what this node's own workers have to find */
	bool workers_ended;                /* this node's own workers have ended, so the child cannot be read again */
	GpuSortHeapRows *rows;
	GpuSortState *sort;
	GpuSortParallelSort *parallel;          /* set if several processes read the rows; NULL if this one reads all */
	LimitState *limit;                      /* a Limit above, if only its rows are wanted, or NULL */
	struct GpuSortPercentiles *percentiles; /* of an Agg right above that reads rows by number, or NULL */

	struct GpuSortUnique *unique;       /* of a Unique right above that compares values as they are stored, or NULL */
	struct GpuSortRunning *running;     /* of a WindowAgg right above that keeps only a state, or NULL */
	struct GpuSortWindowRanges *window; /* of a WindowAgg right above that reads ranges with rows near them, or NULL */

	/* a merge join's inner side; if it has no row none of this node's rows is wanted.  Or NULL */
	struct GpuSortScanState *inner;

	GpuSortRowStream stream;
	struct GpuSortAhead *ahead; /* rows that a client fetches, for ahead.c, or NULL */
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
