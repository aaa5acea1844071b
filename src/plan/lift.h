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

#include "nodes/plannodes.h"

extern void gpusort_lift(PlannedStmt *stmt, bool rescannable, int cursor_options);

#endif /* GPUSORT_LIFT_H */
