/*-------------------------------------------------------------------------
 *
 * exchange_paths.h
 *	  Paths of what all processes do above sorts, range by range.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXCHANGE_PATHS_H
#define GPUSORT_EXCHANGE_PATHS_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern Path *gpusort_with_exchanges(PlannerInfo *root, Path *path);

#endif /* GPUSORT_EXCHANGE_PATHS_H */
