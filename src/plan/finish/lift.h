/*-------------------------------------------------------------------------
 *
 * lift.h
 *	  Has parallel processes run what is above a sort, too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LIFT_H
#define GPUSORT_LIFT_H

#include "compat.h"

#include "plan/decisions.h"

extern void gpusort_lift(PlannedStmt *stmt, GpuSortDecisions *decisions);

#endif /* GPUSORT_LIFT_H */
