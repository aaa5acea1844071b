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

extern List *gpusort_sets_of(const GroupingSetsPath *path);
extern List *gpusort_set_clauses(PlannerInfo *root, const GroupingSetData *set);
extern double gpusort_sets_fewest_groups(const GroupingSetsPath *path);
extern Path *gpusort_sets_of_groups_path(PlannerInfo *root, const Path *path);
extern Path *gpusort_partial_sets_path(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel,
									   const GroupingSetsPath *like);
extern Path *gpusort_other_sets_path(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel,
									 const GroupingSetsPath *like, List *others);

extern bool gpusort_path_is_sets_of_groups(const Path *path);
extern Path *gpusort_sets_over_parts(PlannerInfo *root, const GroupingSetsPath *sets);

#endif /* GPUSORT_PARTIAL_SETS_H */
