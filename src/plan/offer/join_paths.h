/*-------------------------------------------------------------------------
 *
 * join_paths.h
 *	  Merge joins of what GpuSort has sorted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOIN_PATHS_H
#define GPUSORT_JOIN_PATHS_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern bool gpusort_partial_trial;

extern void gpusort_add_join_paths(PlannerInfo *root, RelOptInfo *join_rel, RelOptInfo *outer_rel,
								   RelOptInfo *inner_rel, JoinType type, JoinPathExtraData *extra);

#endif /* GPUSORT_JOIN_PATHS_H */
