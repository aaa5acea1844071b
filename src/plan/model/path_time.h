/*-------------------------------------------------------------------------
 *
 * path_time.h
 *	  How long a path takes, where PostgreSQL's costs do not say.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PATH_TIME_H
#define GPUSORT_PATH_TIME_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern bool gpusort_groups_by_key(const PathKey *key, List *clauses, List *tlist);
extern bool gpusort_joins_range_keys(const MergePath *path, const PathKey *outer, const PathKey *inner);
extern double gpusort_path_advantage(PlannerInfo *root, const Path *ours, const Path *native);
extern void gpusort_path_set_cost(Path *ours, const Path *native, double advantage);
extern void gpusort_path_raise_cost(PlannerInfo *root, Path *ours, const Path *native);

#endif /* GPUSORT_PATH_TIME_H */
