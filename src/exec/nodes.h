/*-------------------------------------------------------------------------
 *
 * nodes.h
 *	  The GpuSort nodes below a GpuSortOutput, whose rows several processes read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NODES_H
#define GPUSORT_NODES_H

#include "exec/scan_state.h"
#include "parallel/sort_set.h"

/* The GpuSorts of a plan below GpuSortOutput, in the order of the plan. */
typedef struct GpuSortNodes
{
	GpuSortScanState **nodes;
	GpuSortSortSet set; /* of the nodes' sorts */
	int rescan_param;   /* all nodes from the GpuSortOutput down restart when this parameter changes */
	bool started;       /* the nodes have started on a range, so they must restart for another */
} GpuSortNodes;

extern void gpusort_nodes_find(GpuSortNodes *nodes, PlanState *ps, int rescan_param);
extern bool gpusort_nodes_begin(GpuSortNodes *nodes, int participants, GpuSortFailure *failure);
extern void gpusort_nodes_rescan(GpuSortNodes *nodes, Bitmapset *changed);
extern bool gpusort_nodes_begin_range(GpuSortNodes *nodes, PlanState *plan, GpuSortFailure *failure);

#endif /* GPUSORT_NODES_H */
