/*-------------------------------------------------------------------------
 *
 * partial_share.h
 *	  What the processes of a GpuSortOutput in a partial plan share, and when it begins and ends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARTIAL_SHARE_H
#define GPUSORT_PARTIAL_SHARE_H

#include "compat.h"

#include "parallel/claims.h"
#include "exec/nodes.h"
#include "nodes/extensible.h"

/* Where the next row of this process comes from. */
typedef enum GpuSortPartialStage
{
	GPUSORT_PARTIAL_BEGIN,  /* nowhere yet */
	GPUSORT_PARTIAL_RANGES, /* the range at hand */
	GPUSORT_PARTIAL_ALONE,  /* the plan below, which this process runs as a whole */
	GPUSORT_PARTIAL_ENDED,  /* there is none */
} GpuSortPartialStage;

/* In dynamic shared memory, or where there are no workers in the leader's. */
typedef struct GpuSortPartialShared
{
	uint64 build;   /* of the leader's module: one of another build knows no more of this */
	bool alone;     /* the service takes no part: one process does everything */
	int nprocesses; /* the leader and its workers, if all start */
	GpuSortClaims claims;
	GpuSortProcessFigures figures[FLEXIBLE_ARRAY_MEMBER]; /* by process, each of them writes its own */
} GpuSortPartialShared;

typedef struct GpuSortPartialState
{
	CustomScanState css; /* must be first field */
	GpuSortNodes nodes;
	GpuSortPartialShared *shared; /* NULL: there is none yet */
	GpuSortPartialStage stage;
	int asked; /* the next range, which is this process's; -1: there is none */

	/* the leader's */
	PlanState *gather;
	ParallelContext *workers;  /* NULL: shared is not in Gather's memory, and there are no workers */
	GpuSortPartialShared *own; /* what is shared then */

	/* for EXPLAIN, of the last run */
	uint32 ranges;
	int nprocesses;
	GpuSortProcessFigures *figures; /* NULL: none */
} GpuSortPartialState;

/* Without workers: in the process that is alone */
extern void gpusort_partial_begin_without_workers(GpuSortPartialState *state);

/* The leader's; no more rows are wanted; what has been done, while the shared memory is there */
extern void gpusort_partial_stop_workers(GpuSortPartialState *state);
extern void gpusort_partial_take_figures(GpuSortPartialState *state);

/* Of the node */
extern Size gpusort_partial_estimate_shared(CustomScanState *node, ParallelContext *pcxt);
extern void gpusort_partial_initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
extern void gpusort_partial_reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
extern void gpusort_partial_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate);

#endif /* GPUSORT_PARTIAL_SHARE_H */
