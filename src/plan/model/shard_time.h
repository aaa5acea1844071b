/*-------------------------------------------------------------------------
 *
 * shard_time.h
 *	  How long it takes to get the rows of shards: foreign tables of several servers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARD_TIME_H
#define GPUSORT_SHARD_TIME_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern const Path *gpusort_shard_path(const Path *path);
extern bool gpusort_paths_are_of_shards(const List *paths);
extern bool gpusort_path_reads_shards_at_once(const Path *path);
extern double gpusort_fetch_time(double rows, int width);
extern double gpusort_shard_time(const Path *path, bool at_once);

#endif /* GPUSORT_SHARD_TIME_H */
