/*-------------------------------------------------------------------------
 *
 * mode.h
 *	  mode() of all rows, by counting the rows of each value.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MODE_H
#define GPUSORT_MODE_H

#include "compat.h"

#include "node.h"
#include "nodes/plannodes.h"

extern bool gpusort_mode_by_counts(Agg *agg, const GpuSortPlanInfo *info, PlannedStmt *stmt);

#endif /* GPUSORT_MODE_H */
