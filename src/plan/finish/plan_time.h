/*-------------------------------------------------------------------------
 *
 * plan_time.h
 *	  Whether what is above a sort takes less time in several processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_TIME_H
#define GPUSORT_PLAN_TIME_H

#include "compat.h"

#include "plan/finish/combine.h"
#include "plan/finish/range_plan.h"

extern bool gpusort_lift_saves_time(const Plan *plan, const GpuSortRangePlan *ranges);
extern bool gpusort_partial_groups_save_time(const Agg *agg, const Gather *gather, const GpuSortFinestSet *finest);

#endif /* GPUSORT_PLAN_TIME_H */
