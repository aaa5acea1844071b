/*-------------------------------------------------------------------------
 *
 * shard_snapshots.c
 *	  Whether a plan reads a server's tables in one snapshot, and can again.
 *
 * postgres_fdw's scans, and the joins and aggregates that it sends, read in the snapshot of its own transaction in the
 * shard; GpuSortShardScans read in another one.  A GpuSortTaskScan has a snapshot for each task, which ends with it.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/shard_snapshots.h"

#include "node.h"
#include "plan/finish/plan_tree.h"

/* Servers */
typedef struct ShardReaders
{
	List *own;    /* those that GpuSortShardScans read */
	List *native; /* those that Foreign Scans read */
} ShardReaders;

/* A GpuSortPlanCallback. */
static void
find_readers(Plan **link, void *arg)
{
	ShardReaders *readers = arg;

	if (gpusort_node_is_shard_scan(*link))
	{
		const ForeignScan *whole = linitial_node(ForeignScan, ((CustomScan *) *link)->custom_plans);

		readers->own = list_append_unique_oid(readers->own, whole->fs_server);
		return;
	}
	if (IsA(*link, ForeignScan))
		readers->native = list_append_unique_oid(readers->native, ((ForeignScan *) *link)->fs_server);
	gpusort_plan_each_child(*link, find_readers, arg);
}

/* Returns true if a plan reads tables of one server by Foreign Scans, and others by GpuSortShardScans. */
bool
gpusort_reads_shards_in_two_ways(PlannedStmt *stmt)
{
	ShardReaders readers = {0};

	gpusort_plan_each_of_statement(stmt, find_readers, &readers);
	return list_length(list_difference_oid(readers.own, readers.native)) < list_length(readers.own);
}

/* A GpuSortPlanCallback: sets what arg points to if there is a GpuSortTaskScan. */
static void
find_tasks(Plan **link, void *arg)
{
	if (gpusort_node_is_task_scan(*link))
		*(bool *) arg = true;
	gpusort_plan_each_child(*link, find_tasks, arg);
}

/* Returns true if a plan has rows that can be read once only. */
bool
gpusort_reads_once(PlannedStmt *stmt)
{
	bool found = false;

	gpusort_plan_each_of_statement(stmt, find_tasks, &found);
	return found;
}
