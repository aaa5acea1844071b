/*-------------------------------------------------------------------------
 *
 * ingest_state.h
 *	  The state of a GpuSortIngest node, for ingest.c and ingest_sort.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INGEST_STATE_H
#define GPUSORT_INGEST_STATE_H

#include "exec/ingest.h"
#include "exec/plan_source.h"
#include "parallel/parallel_ingest.h"
#include "parallel/order_check.h"

/* In dynamic shared memory. */
typedef struct IngestShared
{
	uint64 build; /* of the leader's module: one of another build knows no more of this */
	bool stays;   /* workers that have handed over all of their rows stay, to verify the order of all */
	GpuSortClaims claims;
	GpuSortOrderedRows rows;
	GpuSortParallelIngestShared ingest; /* variable length: must be last field */
} IngestShared;

/* What the GpuSort above Gather has of the node. */
typedef struct IngestSource
{
	GpuSortPlanSource plan; /* must be first field: Gather's rows */
	GpuSortIngestState *ingest;
} IngestSource;

struct GpuSortIngestState
{
	CustomScanState css; /* must be first field */
	GpuSortPlanInfo info;
	GpuSortParallelIngest ingest; /* without a writer rows go up */
	GpuSortHeapRows *rows;
	GpuSortPlanSource child; /* of input */
	GpuSortInput input;
	IngestShared *shared; /* NULL: there are no workers */
	bool is_member;       /* a worker is to join the sort */
	bool ended;           /* the child has no more rows */
	bool passed;          /* rows of it have gone up */

	/* the leader's */
	IngestSource source; /* of the sort above */
	GatherState *gather; /* above */
	bool holds;          /* an empty row goes up, again and again, when the child has no more */
	bool held;           /* one has */
	bool participates;   /* the leader has a part of the rows */
	TupleTableSlot *empty_row;
	uint64 leader_rows; /* ingested by this node here */
	int nworkers;       /* entries in worker_rows; 0 before collect */
	uint64 *worker_rows;
};

extern const CustomExecMethods gpusort_ingest_exec_methods;
extern void gpusort_ingest_stop(GpuSortIngestState *state);

#endif /* GPUSORT_INGEST_STATE_H */
