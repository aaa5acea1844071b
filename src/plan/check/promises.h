/*-------------------------------------------------------------------------
 *
 * promises.h
 *	  Whether finished plans run by ranges what their paths were thought to.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PROMISES_H
#define GPUSORT_PROMISES_H

#include "compat.h"

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

extern void gpusort_promises_note(PlannerInfo *root, Path *path, double first);
extern void gpusort_promises_check(PlannedStmt *stmt);

#endif /* GPUSORT_PROMISES_H */
