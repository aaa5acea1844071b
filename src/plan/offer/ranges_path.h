/*-------------------------------------------------------------------------
 *
 * ranges_path.h
 *	  Partial paths of what processes do with ranges of sorted rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RANGES_PATH_H
#define GPUSORT_RANGES_PATH_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern Path *gpusort_ranges_path(PlannerInfo *root, RelOptInfo *rel, Path *child);

#endif /* GPUSORT_RANGES_PATH_H */
