/*-------------------------------------------------------------------------
 *
 * paths.h
 *	  The paths of GpuSort and GpuSortIngest, and the plans made of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PATHS_H
#define GPUSORT_PATHS_H

#include "compat.h"

#include "nodes/pathnodes.h"
#include "plan/cost.h"

extern Path *gpusort_make_path(PlannerInfo *root, RelOptInfo *rel, Path *input, List *pathkeys, double rows,
							   GpuSortCost cost);
extern Path *gpusort_make_parallel_path(PlannerInfo *root, RelOptInfo *rel, Path *partial, List *pathkeys, double rows,
										GpuSortCost cost);

#endif /* GPUSORT_PATHS_H */
