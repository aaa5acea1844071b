/*-------------------------------------------------------------------------
 *
 * check_plan.h
 *	  Refuses finished plans that break the executor's rules.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CHECK_PLAN_H
#define GPUSORT_CHECK_PLAN_H

#include "compat.h"

#include "nodes/plannodes.h"

extern void gpusort_check_plan(PlannedStmt *stmt);

#endif /* GPUSORT_CHECK_PLAN_H */
