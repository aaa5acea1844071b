/*-------------------------------------------------------------------------
 *
 * join_paths.h
 *	  Merge joins of what GpuSort has sorted, in the place of a join that PostgreSQL has chosen.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOIN_PATHS_H
#define GPUSORT_JOIN_PATHS_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern Path *gpusort_joined_path(PlannerInfo *root, JoinPath *native, bool parallel);

#endif /* GPUSORT_JOIN_PATHS_H */
