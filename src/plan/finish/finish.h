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

extern void gpusort_finish(PlannedStmt *stmt, bool rescannable, GpuSortDecisions *decisions);

#endif /* GPUSORT_FINISH_H */
