/*-------------------------------------------------------------------------
 *
 * node_safety.h
 *	  Whether parallel workers may compute what nodes of a finished plan do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NODE_SAFETY_H
#define GPUSORT_NODE_SAFETY_H

#include "compat.h"

#include "facts/parallel_safety.h"
#include "nodes/plannodes.h"

extern void gpusort_safety_init(GpuSortSafety *safety, PlannedStmt *stmt);
extern bool gpusort_safety_of_node(GpuSortSafety *safety, const Plan *plan);

#endif /* GPUSORT_NODE_SAFETY_H */
