/*-------------------------------------------------------------------------
 *
 * ingest.h
 *	  The GpuSortIngest node: ingests rows below Gather.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INGEST_H
#define GPUSORT_INGEST_H

#include "compat.h"

#include "node.h"
#include "nodes/execnodes.h"
#include "sort/heap_rows.h"
#include "sort/sort.h"

/* The node in the leader, as the GpuSort above Gather sees it. */
typedef struct GpuSortIngestState GpuSortIngestState;

extern GpuSortIngestState *gpusort_ingest_find(PlanState *child, const GpuSortPlanInfo *info);
extern GpuSortSource *gpusort_ingest_source(GpuSortIngestState *state, const GpuSortHeapRows *rows, bool may_restart);
extern void gpusort_ingest_set_sort(GpuSortIngestState *state, GpuSortState *sort);
extern void gpusort_ingest_sort(GpuSortIngestState *state, GpuSortState *sort);
extern void gpusort_ingest_reset(GpuSortIngestState *state);

#endif /* GPUSORT_INGEST_H */
