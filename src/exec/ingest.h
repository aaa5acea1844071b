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
#include "sort/peers.h"

/* The node in the leader, as the GpuSort node above Gather sees it. */
typedef struct GpuSortIngestState GpuSortIngestState;

extern GpuSortIngestState *gpusort_ingest_find(PlanState *child, const GpuSortPlanInfo *info);
extern void gpusort_ingest_connect(GpuSortIngestState *state, const GpuSortHeapRows *rows, bool may_restart,
								   GpuSortSource **source, GpuSortPeers **peers);

#endif /* GPUSORT_INGEST_H */
