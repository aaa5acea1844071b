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
#include "plan/finish/place.h"

extern bool gpusort_mode_by_counts(GpuSortFinish *finish, Agg *agg, Plan *below, const GpuSortPlanInfo *info);

#endif /* GPUSORT_MODE_H */
