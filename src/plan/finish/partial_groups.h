/*-------------------------------------------------------------------------
 *
 * partial_groups.h
 *	  Has processes group rows that the leader would group by grouping sets.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARTIAL_GROUPS_H
#define GPUSORT_PARTIAL_GROUPS_H

#include "compat.h"

#include "nodes/plannodes.h"

extern void gpusort_partial_groups_settle(PlannedStmt *stmt);

#endif /* GPUSORT_PARTIAL_GROUPS_H */
