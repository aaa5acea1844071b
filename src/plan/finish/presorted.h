/*-------------------------------------------------------------------------
 *
 * presorted.h
 *	  Takes sorts out of aggregates whose rows come in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PRESORTED_H
#define GPUSORT_PRESORTED_H

#include "compat.h"

#include "nodes/plannodes.h"

extern void gpusort_presorted_settle(PlannedStmt *stmt);

#endif /* GPUSORT_PRESORTED_H */
