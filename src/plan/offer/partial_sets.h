/*-------------------------------------------------------------------------
 *
 * partial_sets.h
 *	  Grouping sets of groups that processes make of their rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARTIAL_SETS_H
#define GPUSORT_PARTIAL_SETS_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern double gpusort_sets_fewest_groups(const GroupingSetsPath *path);
extern bool gpusort_sets_are_split(PlannerInfo *root, const GroupingSetsPath *path, double *groups);
extern Path *gpusort_partial_sets_path(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel,
									   const GroupingSetsPath *like);
extern Path *gpusort_finest_apart_path(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel,
									   const GroupingSetsPath *like, Path *sorted);

#endif /* GPUSORT_PARTIAL_SETS_H */
