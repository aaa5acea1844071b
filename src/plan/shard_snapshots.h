/*-------------------------------------------------------------------------
 *
 * shard_snapshots.h
 *	  Whether a plan reads a server's tables in one snapshot, and can again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARD_SNAPSHOTS_H
#define GPUSORT_SHARD_SNAPSHOTS_H

#include "compat.h"

#include "nodes/plannodes.h"

extern bool gpusort_reads_shards_in_two_ways(PlannedStmt *stmt);
extern bool gpusort_reads_once(PlannedStmt *stmt);

#endif /* GPUSORT_SHARD_SNAPSHOTS_H */
