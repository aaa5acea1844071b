/*-------------------------------------------------------------------------
 *
 * partial_ranges.h
 *	  Settles in finished plans how processes share ranges of sorted rows below a Gather.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARTIAL_RANGES_H
#define GPUSORT_PARTIAL_RANGES_H

#include "compat.h"

#include "nodes/plannodes.h"

extern void gpusort_partial_ranges_settle(PlannedStmt *stmt);

#endif /* GPUSORT_PARTIAL_RANGES_H */
