/*-------------------------------------------------------------------------
 *
 * upper_paths.h
 *	  Paths over GpuSort of windows, GROUP BY, DISTINCT and set operations.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UPPER_PATHS_H
#define GPUSORT_UPPER_PATHS_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern void gpusort_offer_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
									  RelOptInfo *output_rel, const GroupPathExtraData *grouping);

#endif /* GPUSORT_UPPER_PATHS_H */
