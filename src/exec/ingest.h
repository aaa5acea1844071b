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

#include "sort/writer.h"
#include "parallel/order_check.h"
#include "node.h"
#include "nodes/execnodes.h"

/* The node in the leader, as the GpuSort node above Gather sees it. */
typedef struct GpuSortIngestState GpuSortIngestState;

extern GpuSortIngestState *gpusort_ingest_find(PlanState *child, const GpuSortPlanInfo *info);
extern void gpusort_ingest_start(GpuSortIngestState *state, GpuSortWriter *writer, GpuSortKeys *keys,
								 bool common_later, bool stay);
extern TupleTableSlot *gpusort_ingest_next(GpuSortIngestState *state);
extern void gpusort_ingest_settle_common_prefixes(GpuSortIngestState *state);
extern void gpusort_ingest_collect(GpuSortIngestState *state, GpuSortPut *put);
extern bool gpusort_ingest_may_stay(const GpuSortIngestState *state);
extern int gpusort_ingest_processes(const GpuSortIngestState *state);
extern int gpusort_ingest_stayed(const GpuSortIngestState *state);
extern bool gpusort_ingest_is_strange(const GpuSortIngestState *state);
extern bool gpusort_ingest_check_order(GpuSortIngestState *state, const GpuSortOrderReader *own, uint64 *pairs,
									   GpuSortFailure *failure);
extern void gpusort_ingest_let_go(GpuSortIngestState *state);
extern void gpusort_ingest_finish(GpuSortIngestState *state);
extern void gpusort_ingest_reset(GpuSortIngestState *state);

#endif /* GPUSORT_INGEST_H */
