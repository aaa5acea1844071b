/*-------------------------------------------------------------------------
 *
 * plan_time.h
 *	  Whether grouping sets take less time of groups that processes make.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_TIME_H
#define GPUSORT_PLAN_TIME_H

#include "compat.h"

#include "plan/finish/combine.h"

extern bool gpusort_partial_groups_save_time(const Agg *agg, const Gather *gather, const GpuSortFinestSet *finest);

#endif /* GPUSORT_PLAN_TIME_H */
