/*-------------------------------------------------------------------------
 *
 * sort_nodes.h
 *	  Puts GpuSort in the place of the Sort nodes of a finished plan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_NODES_H
#define GPUSORT_SORT_NODES_H

#include "compat.h"

#include "plan/finish/place.h"

extern void gpusort_sort_node_replace(GpuSortPlanPlace *place, Plan **link);
extern void gpusort_merge_join_drop_material(MergeJoin *join);

#endif /* GPUSORT_SORT_NODES_H */
