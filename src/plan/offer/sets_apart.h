/*-------------------------------------------------------------------------
 *
 * sets_apart.h
 *	  Grouping sets of many groups, each of a sort of its own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SETS_APART_H
#define GPUSORT_SETS_APART_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern List *gpusort_sets_apart_paths(PlannerInfo *root, RelOptInfo *grouped_rel, RelOptInfo *input_rel,
									  const GroupingSetsPath *like, bool parallel);

#endif /* GPUSORT_SETS_APART_H */
