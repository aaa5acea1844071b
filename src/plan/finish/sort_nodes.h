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

#include "plan/decisions.h"

extern void gpusort_sort_nodes_replace(PlannedStmt *stmt, bool rescannable, GpuSortDecisions *decisions);

#endif /* GPUSORT_SORT_NODES_H */
