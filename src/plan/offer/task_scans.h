/*-------------------------------------------------------------------------
 *
 * task_scans.h
 *	  Partial paths of what Citus asks of its nodes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TASK_SCANS_H
#define GPUSORT_TASK_SCANS_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern void gpusort_task_scans_add(PlannerInfo *root, RelOptInfo *rel);
extern bool gpusort_path_is_task_scan(const Path *path);
extern double gpusort_task_scan_rows(const Path *path);

#endif /* GPUSORT_TASK_SCANS_H */
