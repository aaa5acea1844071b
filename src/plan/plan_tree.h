/*-------------------------------------------------------------------------
 *
 * plan_tree.h
 *	  Finds its way in finished plans, GpuSort's own nodes among them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_TREE_H
#define GPUSORT_PLAN_TREE_H

#include "compat.h"

#include "nodes/extensible.h"
#include "nodes/plannodes.h"

typedef void (*GpuSortPlanCallback)(Plan **child, void *arg);

extern bool gpusort_plan_is(const Plan *plan, const CustomScanMethods *methods);
extern void gpusort_plan_each_child(Plan *plan, GpuSortPlanCallback callback, void *arg);

#endif /* GPUSORT_PLAN_TREE_H */
