/*-------------------------------------------------------------------------
 *
 * own_workers.h
 *	  GpuSorts and GpuSortExchanges that start workers themselves, where PostgreSQL runs a statement without.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_OWN_WORKERS_H
#define GPUSORT_OWN_WORKERS_H

#include "compat.h"

#include "nodes/plannodes.h"
#include "plan/statement.h"

extern bool gpusort_own_workers_settle(PlannedStmt *stmt, GpuSortOwnWorkers kind);
extern bool gpusort_own_workers_would_help(PlannedStmt *stmt);

#endif /* GPUSORT_OWN_WORKERS_H */
