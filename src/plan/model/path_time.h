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

extern double gpusort_path_advantage(PlannerInfo *root, const Path *ours, const Path *native);
extern void gpusort_path_set_cost(Path *ours, const Path *native, double advantage);
extern void gpusort_path_raise_cost(PlannerInfo *root, Path *ours, const Path *native);

#endif /* GPUSORT_PATH_TIME_H */
