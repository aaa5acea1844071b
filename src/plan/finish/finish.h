/*-------------------------------------------------------------------------
 *
 * finish.h
 *	  The pass over the finished plans of a statement.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FINISH_H
#define GPUSORT_FINISH_H

#include "compat.h"

#include "nodes/plannodes.h"
#include "plan/decisions.h"
#include "plan/statement.h"

extern void gpusort_finish(PlannedStmt *stmt, const GpuSortStatement *statement, GpuSortDecisions *decisions);

#endif /* GPUSORT_FINISH_H */
