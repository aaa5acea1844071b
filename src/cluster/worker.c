/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  What each process does that copies a table's rows: it puts its part of them into the sort, and writes ranges.
 *
 * A worker also takes part in verifying the order, where that is to be done.  One that starts late has no rows to put;
 * one that has loaded another module than the leader, or cannot read the sort, leaves everything to others.
 *
 *-------------------------------------------------------------------------
 */
#include "cluster/worker.h"

#include "access/genam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "commands/progress.h"
#include "parallel/command_workers.h"
#include "parallel/participants.h"
#include "pgstat.h"
#include "utils/rel.h"

extern PGDLLEXPORT void gpusort_cluster_worker(dsm_segment *segment, shm_toc *toc);

/* Rows are counted for all to see, and progress is told, once in so many. */
#define ROWS_TOLD 1024

/* Ends the work of all, as a GpuSortTupleUnfit. */
static void
leave_to_postgresql(void *arg)
{
	GpuSortFailure failure;

	(void) gpusort_failure_set(&failure, GPUSORT_REASON_NONE, "there are rows that not everybody sees alike");
	gpusort_claims_stop(arg, &failure);
}

/*
 * Makes this process's part of the sort, for the pages of the table that it will claim.  Everything belongs to the
 * current memory context.
 */
void
gpusort_copy_create_sort(GpuSortCopy *copy)
{
	copy->rows = gpusort_table_rows_create(copy->task.table, copy->task.index);
	gpusort_tuple_source_init(&copy->source, &copy->task, &copy->shared->tuples, copy->order.columns,
							  copy->order.count);
	copy->source.unfit = leave_to_postgresql;
	copy->source.arg = &copy->shared->claims;
	copy->sort = gpusort_sort_create(&copy->rows->rows, &copy->source.source, copy->order.columns, copy->order.count);
	copy->sort->estimated_rows = copy->shared->rows;
	copy->sort->estimated_width = copy->shared->width;
	copy->sort->stays = true;
	copy->parallel = gpusort_parallel_sort_create(copy->sort, copy->order.count, NULL);
	copy->set.bordered = true;
	gpusort_sort_set_add(&copy->set, copy->parallel);
}

/* Adds rows to those that all processes have written. */
static void
count_rows(const GpuSortCopy *copy, uint64 rows)
{
	const uint64 written = pg_atomic_add_fetch_u64(&copy->shared->written, rows);

	if (!IsParallelWorker())
		pgstat_progress_update_param(PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN, written);
}

/* Puts the rows of the next range that was asked for into pages; false, with a reason, if rows are lost. */
static bool
write_range(GpuSortCopy *copy, GpuSortHeapPages *pages, uint32 range, GpuSortFailure *failure)
{
	uint64 rows = 0;
	char *row;

	if (!gpusort_sort_set_ask(&copy->set, range, failure) || !gpusort_sort_set_begin_range(&copy->set, failure))
		return false;
	while ((row = gpusort_sort_next(copy->sort, true)) != NULL)
	{
		uint32 length;
		HeapTupleHeader tuple = gpusort_table_row_tuple(row, &length);

		gpusort_heap_pages_put_tuple(pages, tuple, length);
		if (++rows % ROWS_TOLD == 0)
			count_rows(copy, ROWS_TOLD);
	}
	if (copy->set.lost)
	{
		*failure = copy->sort->reason;
		return false;
	}
	count_rows(copy, rows % ROWS_TOLD);
	gpusort_heap_pages_end(pages);
	return true;
}

/* Writes the ranges that this process, of that number, claims, until there is none.  The sort must be open. */
void
gpusort_copy_write_ranges(GpuSortCopy *copy, int process)
{
	GpuSortClaims *claims = &copy->shared->claims;
	GpuSortHeapPages *pages = gpusort_heap_pages_open(&copy->shared->into, &claims->stop, NULL);
	GpuSortFailure failure = {0};
	int range;

	while ((range = gpusort_claims_next(claims, process)) >= 0)
	{
		gpusort_heap_pages_begin(pages, range);
		if (!IsParallelWorker())
			gpusort_sort_set_show(&copy->set, range);
		if (!write_range(copy, pages, range, &failure))
		{
			gpusort_claims_stop(claims, &failure);
			break;
		}
	}
	(void) gpusort_heap_pages_close(pages);
}

/* Does all that a worker does. */
static void
run_worker(GpuSortCopy *copy)
{
	const GpuSortClaims *claims = &copy->shared->claims;
	const GpuSortParticipant own = {.set = &copy->set, .claims = &copy->shared->claims};

	gpusort_participant_ingest(&own);
	if (gpusort_participant_await_ranges(&own) && claims->ranges > 1 && gpusort_participant_open(&own))
	{
		gpusort_copy_write_ranges(copy, ParallelWorkerNumber + 1);
		gpusort_sort_set_close(&copy->set);
	}
	gpusort_sort_set_end(&copy->set);
	gpusort_parallel_sort_detach(copy->parallel);
}

/* Where a worker starts. */
void
gpusort_cluster_worker(dsm_segment *segment, shm_toc *toc)
{
	const GpuSortCommandWorker worker = gpusort_command_worker_begin(toc);
	GpuSortCopyShared *shared = worker.shared;
	GpuSortCopy copy = {.shared = shared};
	const char *why_not;

	if (shared == NULL)
		return;
	copy.task = (GpuSortClusterTask){
		.table = table_open(shared->table, AccessShareLock), /* the leader's lock keeps others out */
		.copy = table_open(shared->copy, AccessShareLock),
		.index = index_open(shared->index, AccessShareLock),
		.oldest_xmin = shared->oldest_xmin,
		.freeze_limit = shared->freeze_limit,
		.multi_cutoff = shared->multi_cutoff};
	if (gpusort_cluster_order(copy.task.table, copy.task.index, &copy.order, &why_not))
	{
		gpusort_copy_create_sort(&copy);
		gpusort_command_worker_attach(&worker, copy.parallel);
		run_worker(&copy);
	}
	gpusort_command_worker_end(&worker);
	index_close(copy.task.index, AccessShareLock);
	table_close(copy.task.copy, AccessShareLock);
	table_close(copy.task.table, AccessShareLock);
}
