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

/* How the rows of both sides reach their GpuSorts, and which processes join. */
typedef enum GpuSortJoinInput
{
	GPUSORT_JOIN_SERIAL,
	GPUSORT_JOIN_GATHERED, /* by a parallel ingest */
	GPUSORT_JOIN_SHARED,   /* likewise, and all processes join: of a partial path */
} GpuSortJoinInput;

extern Path *gpusort_sorted_side_path(PlannerInfo *root, MergePath *join, bool outer);
extern Path *gpusort_joined_path(PlannerInfo *root, JoinPath *native, GpuSortJoinInput input);
extern Path *gpusort_joined_ranges_path(PlannerInfo *root, JoinPath *native);
extern Path *gpusort_grouped_ranges_path(PlannerInfo *root, const AggPath *native, bool ordered);

#endif /* GPUSORT_JOIN_PATHS_H */
