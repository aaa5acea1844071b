/*-------------------------------------------------------------------------
 *
 * shard_scans.h
 *	  Partial paths of foreign tables.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARD_SCANS_H
#define GPUSORT_SHARD_SCANS_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern bool gpusort_path_is_shard_scan(const Path *path);
extern bool gpusort_path_is_whole_shard(const Path *path);
extern bool gpusort_path_appends_shard_scans(const Path *path);
extern void gpusort_shard_scans_prepare(PlannerInfo *root, RelOptInfo *rel, bool wanted);
extern void gpusort_shard_scans_add(PlannerInfo *root, RelOptInfo *rel);

#endif /* GPUSORT_SHARD_SCANS_H */
