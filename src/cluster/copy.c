/*-------------------------------------------------------------------------
 *
 * copy.c
 *	  Copies a table's rows in the order of an index, by a sort in the service.
 *
 * The processes that PostgreSQL would build the index with read the table by the page, and put the tuples that are
 * alive into one sort (tuple_source.c, worker.c).  All of them then take ranges of the sorted tuples, and make and
 * write the new table's pages (pages/heap_pages.c).  What comes of a tuple is what PostgreSQL's copy makes of it; pages
 * end where ranges do.
 *
 * Where a tuple is met that is neither alive nor dead, where the service takes no part, or loses rows before the first
 * page is written, nothing has been done, and PostgreSQL copies the rows; later it is an error.  Any error ends the
 * transaction, which removes the file.
 *
 *-------------------------------------------------------------------------
 */
#include "cluster/copy.h"

#include "access/heapam.h"
#include "access/xact.h"
#include "cluster/worker.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "parallel/command_workers.h"
#include "parallel/participants.h"
#include "pgstat.h"
#include "server/reasons.h"
#include "server/statistics.h"
#include "settings.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* The leader's part. */
typedef struct CopyLeader
{
	GpuSortCopy copy;
	GpuSortCommandWorkers workers;
} CopyLeader;

/* Makes what so many processes share, in memory that is zeroed. */
static void
init_shared(const GpuSortCopy *copy, GpuSortCopyShared *shared, int processes)
{
	const GpuSortClusterTask *task = &copy->task;
	const GpuSortNewTable into = {
		.table = RelationGetRelid(task->copy),
		.xid = GetCurrentTransactionId(),
		.cid = GetCurrentCommandId(true),
		.options = HEAP_INSERT_SKIP_FSM | HEAP_INSERT_NO_LOGICAL, /* for values in the TOAST table */
		.rewritten = true,
		.memory = (Size) maintenance_work_mem * 1024 / processes,
		.toast_ids = task->copy->rd_toastoid};

	gpusort_claims_create(&shared->claims);
	gpusort_claims_start(&shared->claims);
	shared->table = RelationGetRelid(task->table);
	shared->copy = RelationGetRelid(task->copy);
	shared->index = RelationGetRelid(task->index);
	shared->oldest_xmin = task->oldest_xmin;
	shared->freeze_limit = task->freeze_limit;
	shared->multi_cutoff = task->multi_cutoff;
	shared->rows = copy->order.rows;
	shared->width = copy->order.width;
	gpusort_tuple_share_init(&shared->tuples, task->table);
	pg_atomic_init_u64(&shared->written, 0);
	gpusort_new_table_init(&shared->into, &into);
}

/* Starts workers for a sort that has been begun in the service; the leader's shared state moves to their memory. */
static void
start_workers(CopyLeader *leader, int wanted)
{
	GpuSortCopy *copy = &leader->copy;
	GpuSortCopyShared *shared = gpusort_command_workers_prepare(&leader->workers, "gpusort_cluster_worker", wanted,
																sizeof(GpuSortCopyShared), copy->parallel);

	if (shared == NULL)
		return;
	init_shared(copy, shared, 1 + wanted);
	copy->shared = shared;
	copy->source.share = &shared->tuples;
	copy->source.arg = &shared->claims;
	gpusort_command_workers_launch(&leader->workers);
}

/* Ends the sort, and gives back what was shared; workers have ended. */
static void
end_sort(CopyLeader *leader)
{
	gpusort_sort_set_end(&leader->copy.set);
	gpusort_parallel_sort_detach(leader->copy.parallel);
	gpusort_command_workers_end(&leader->workers);
}

/*
 * Puts the rows, with all processes, which are sorted, cut into ranges and verified then; false, with a reason, if that
 * is not to be.  Errors: rows are lost, and there are pages already.
 */
static bool
sort_rows(CopyLeader *leader, GpuSortFailure *failure)
{
	GpuSortCopy *copy = &leader->copy;
	const GpuSortParticipant own = {
		.set = &copy->set,
		.claims = &copy->shared->claims,
		.processes = gpusort_command_workers_processes(&leader->workers)};

	gpusort_participant_ingest(&own);
	pgstat_progress_update_param(PROGRESS_CLUSTER_PHASE, PROGRESS_CLUSTER_PHASE_SORT_TUPLES);
	if (gpusort_participant_await_ranges(&own))
		return true;
	gpusort_command_workers_finish(&leader->workers);
	*failure = own.claims->failure;
	if (gpusort_new_table_is_begun(&copy->shared->into))
		gpusort_sort_report_lost(true, failure);
	return false;
}

/*
 * Writes the rows, with all processes if there is more than a range; false, with a reason, if rows are lost before any
 * was written.  Each row has been verified when it was read; only at the end is it known that each was written once.
 * It is an error if rows are lost later, or others than those that were put.
 */
static bool
write_rows(CopyLeader *leader, GpuSortFailure *failure)
{
	GpuSortCopy *copy = &leader->copy;
	GpuSortCopyShared *shared = copy->shared;
	const uint64 rows = pg_atomic_read_u64(&shared->tuples.tuples);

	failure->reason = GPUSORT_REASON_NONE;
	pgstat_progress_update_param(PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED, rows);
	pgstat_progress_update_param(PROGRESS_CLUSTER_PHASE, PROGRESS_CLUSTER_PHASE_WRITE_NEW_HEAP);
	if (gpusort_log_decisions)
		ereport(LOG,
				(errmsg("gpusort: table \"%s\" is written in %u ranges", RelationGetRelationName(copy->task.table),
						shared->claims.ranges)));
	gpusort_copy_write_ranges(copy, GPUSORT_LEADER_PROCESS);
	gpusort_command_workers_finish(&leader->workers);
	if (shared->claims.stop)
	{
		*failure = shared->claims.failure;
		if (gpusort_new_table_is_begun(&shared->into))
			gpusort_sort_report_lost(true, failure);
		return false;
	}
	if (shared->into.places.placed != shared->claims.ranges)
		elog(ERROR, "%u of %u ranges of table \"%s\" are written", shared->into.places.placed, shared->claims.ranges,
			 RelationGetRelationName(copy->task.table));
	if (pg_atomic_read_u64(&shared->written) != rows)
		(void) gpusort_failure_set(failure, GPUSORT_REASON_VERIFY, UINT64_FORMAT " rows were written of " UINT64_FORMAT,
								   pg_atomic_read_u64(&shared->written), rows);
	if (failure->reason != GPUSORT_REASON_NONE || !gpusort_sort_set_finish(&copy->set, failure))
		gpusort_sort_report_lost(true, failure);
	return true;
}

/* Notes that PostgreSQL is to copy the rows after all, and why. */
static void
note_fallback(Relation table, const GpuSortFailure *failure)
{
	if (failure->reason != GPUSORT_REASON_NONE)
		gpusort_stats_count_fallback(failure->reason);
	if (gpusort_log_decisions)
		ereport(LOG,
				(errmsg("gpusort: PostgreSQL clusters table \"%s\": %s", RelationGetRelationName(table), failure->text)));
}

/* Copies the rows; false if that has not been begun.  Everything belongs to the current memory context. */
static bool
copy_rows(const GpuSortClusterTask *task, const GpuSortIndexOrder *order, int workers, GpuSortClusterResult *result)
{
	CopyLeader *leader = palloc0(sizeof(CopyLeader));
	GpuSortCopy *copy = &leader->copy;
	GpuSortFailure failure = {0};
	bool copied = false;

	copy->task = *task;
	copy->order = *order;
	copy->shared = palloc0(sizeof(GpuSortCopyShared));
	init_shared(copy, copy->shared, 1);
	pgstat_progress_update_param(PROGRESS_CLUSTER_PHASE, PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP);
	pgstat_progress_update_param(PROGRESS_CLUSTER_TOTAL_HEAP_BLKS, copy->shared->tuples.heap.blocks);
	gpusort_copy_create_sort(copy);
	if (gpusort_sort_set_begin(&copy->set, 1 + workers, &failure))
	{
		if (workers > 0)
			start_workers(leader, workers);
		copied = sort_rows(leader, &failure) && write_rows(leader, &failure);
		if (copied)
			pgstat_count_heap_scan(task->table);
	}
	if (!copied)
		note_fallback(task->table, &failure);
	result->tuples = pg_atomic_read_u64(&copy->shared->tuples.tuples);
	result->dead = pg_atomic_read_u64(&copy->shared->tuples.dead);
	end_sort(leader);
	return copied;
}

/* Copies a table's rows; false if nothing has been done, and PostgreSQL is to copy them. */
bool
gpusort_cluster_copy(const GpuSortClusterTask *task, GpuSortClusterResult *result)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort cluster", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GpuSortIndexOrder order = {0};
	const char *why_not;
	bool copied = false;

	if (gpusort_cluster_order(task->table, task->index, &order, &why_not))
	{
		order.rows = gpusort_cluster_estimate(task->table, &order.width);
		copied = copy_rows(task, &order, gpusort_cluster_workers(task->table, task->index), result);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return copied;
}
