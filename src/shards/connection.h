/*-------------------------------------------------------------------------
 *
 * connection.h
 *	  Connections to the servers of postgres_fdw, for reading in one snapshot from several processes, and to the nodes
 *	  of Citus, for reading in a snapshot each.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARD_CONNECTION_H
#define GPUSORT_SHARD_CONNECTION_H

#include "compat.h"

#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"

/* The longest name of a snapshot, with its end */
#define GPUSORT_SNAPSHOT_NAME_BYTES 64

typedef struct GpuSortShardConnection GpuSortShardConnection;

/* What a connection to a node of Citus is made of */
typedef struct GpuSortNode
{
	const char *host;
	int port;
	Oid user;
	const char *conninfo;    /* options that all nodes have */
	const char *application; /* what the connection is named */
	int timeout;             /* seconds after which a node that has not answered is given up */
} GpuSortNode;

extern DefElem *gpusort_shard_option(const List *options, const char *name);
extern bool gpusort_shard_may_connect(Oid server, Oid user);
extern const char *gpusort_shard_snapshot(EState *estate, Oid server, Oid user, const char **why_not);
extern GpuSortShardConnection *gpusort_shard_connect(EState *estate, Oid server, Oid user, const char *snapshot,
													 const char **why_not);
extern GpuSortShardConnection *gpusort_shard_connect_to_node(const GpuSortNode *node, const char **why_not);
extern void gpusort_shard_release(GpuSortShardConnection *connection);
extern void gpusort_shard_close(GpuSortShardConnection *connection);
extern int gpusort_shard_version(const GpuSortShardConnection *connection);
extern bool gpusort_shard_ask(GpuSortShardConnection *connection, const char *sql, char **values, int count,
							  const char **why_not);
extern void gpusort_shard_copy_begin(GpuSortShardConnection *connection, const char *sql);
extern char *gpusort_shard_copy_row(GpuSortShardConnection *connection, int *length);

#endif /* GPUSORT_SHARD_CONNECTION_H */
