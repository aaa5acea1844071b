/*-------------------------------------------------------------------------
 *
 * shard_queries.h
 *	  Asks each shard for its groups or first rows where a statement asks for all rows of all shards.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARD_QUERIES_H
#define GPUSORT_SHARD_QUERIES_H

#include "compat.h"

#include "nodes/params.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"

extern bool gpusort_may_ask_shards(const Query *query);
extern bool gpusort_ask_shards(Query *query, PlannedStmt *native, ParamListInfo params, double *most);
extern double gpusort_fetched_rows(PlannedStmt *stmt, double most);

#endif /* GPUSORT_SHARD_QUERIES_H */
