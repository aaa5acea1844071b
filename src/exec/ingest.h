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

#include "client/writer.h"
#include "node.h"
#include "nodes/execnodes.h"

/* The node in the leader, as the GpuSort node above Gather sees it. */
typedef struct GpuSortIngestState GpuSortIngestState;

extern GpuSortIngestState *gpusort_ingest_find(PlanState *child, const GpuSortPlanInfo *info);
extern void gpusort_ingest_start(GpuSortIngestState *state, GpuSortWriter *writer, GpuSortKeys *keys,
								 bool common_later);
extern void gpusort_ingest_settle_common_prefixes(GpuSortIngestState *state);
extern void gpusort_ingest_collect(GpuSortIngestState *state, GpuSortPut *put);
extern void gpusort_ingest_reset(GpuSortIngestState *state);

#endif /* GPUSORT_INGEST_H */
