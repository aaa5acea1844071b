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

extern CustomScan *gpusort_citus_scan(PlannerInfo *root, RelOptInfo *rel);
extern List *gpusort_citus_tasks(const CustomScan *scan);
extern const char *gpusort_citus_conninfo(void);
extern const char *gpusort_citus_why_not_connect(void);

#endif /* GPUSORT_SHARD_CITUS_H */
