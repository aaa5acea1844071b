/*-------------------------------------------------------------------------
 *
 * plan_reasons.h
 *	  What EXPLAIN (GPUSORT) and gpusort_explain() say of a plan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_REASONS_H
#define GPUSORT_PLAN_REASONS_H

#include "compat.h"

#include "nodes/plannodes.h"

/* What the lines of a plan's nodes, and the last one of the service, begin with. */
#define GPUSORT_REASON_LABEL  "GpuSort"
#define GPUSORT_SERVICE_LABEL "GpuSort Service"

extern List *gpusort_plan_reasons(PlannedStmt *stmt);
extern const char *gpusort_plan_service(void);

#endif /* GPUSORT_PLAN_REASONS_H */
