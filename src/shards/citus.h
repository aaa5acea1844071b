/*-------------------------------------------------------------------------
 *
 * citus.h
 *	  What Citus has planned for its nodes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARD_CITUS_H
#define GPUSORT_SHARD_CITUS_H

#include "compat.h"

#include "node.h"
#include "nodes/pathnodes.h"
#include "shards/connection.h"

extern CustomScan *gpusort_citus_scan(PlannerInfo *root, RelOptInfo *rel);
extern List *gpusort_citus_tasks(const CustomScan *scan);
extern const char *gpusort_citus_application_name(void);
extern GpuSortNode gpusort_citus_node(const GpuSortCitusTask *task, Oid user, const char *application);
extern const char *gpusort_citus_why_not_connect(void);

#endif /* GPUSORT_SHARD_CITUS_H */
