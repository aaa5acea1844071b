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
extern bool gpusort_plan_passes_rows_on(const Plan *plan);
extern void gpusort_plan_each_child(Plan *plan, GpuSortPlanCallback callback, void *arg);
extern void gpusort_plan_each_of_statement(PlannedStmt *stmt, GpuSortPlanCallback callback, void *arg);
extern int gpusort_plan_last_node_id(PlannedStmt *stmt);
extern void gpusort_plan_refer_to_child(CustomScan *scan);
extern List *gpusort_plan_columns(const Plan *plan, int count);
extern void gpusort_plan_take_estimates(Plan *plan, const Plan *from);
extern void gpusort_plan_put_above(Plan *plan, Plan *child, int plan_node_id);
extern Result *gpusort_plan_project(Plan *child, List *targetlist, int plan_node_id);

#endif /* GPUSORT_PLAN_TREE_H */
