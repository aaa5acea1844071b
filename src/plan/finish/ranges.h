/*-------------------------------------------------------------------------
 *
 * ranges.h
 *	  Tells nodes of finished plans by which columns processes share rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_RANGES_H
#define GPUSORT_PLAN_RANGES_H

#include "compat.h"

#include "nodes/extensible.h"
#include "plan/finish/place.h"

extern void gpusort_ranges_settle_partial(const GpuSortPlanPlace *place, CustomScan *output);
extern void gpusort_ranges_start_workers(const CustomScan *exchange);
extern bool gpusort_is_gathered_sort(const Plan *plan);
extern void gpusort_ranges_settle_exchange(GpuSortFinish *finish, CustomScan *exchange);
extern void gpusort_ranges_tell_alone(const GpuSortPlanPlace *place, const Plan *plan);

#endif /* GPUSORT_PLAN_RANGES_H */
