/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  What each process does that builds an index: it puts its part of the heap's rows into the sort, and loads ranges.
 *
 * A worker also takes part in verifying the order, where that is to be done.  One that starts late has no rows to put;
 * one that has loaded another module than the leader, or cannot read the sort, leaves everything to others.
 *
 *-------------------------------------------------------------------------
 */
#include "index/worker.h"

#include "access/genam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "catalog/index.h"
#include "index/load_ranges.h"
#include "parallel/command_workers.h"
#include "parallel/participants.h"
#include "utils/rel.h"

extern PGDLLEXPORT void gpusort_index_worker(dsm_segment *segment, shm_toc *toc);

/*
 * Makes this process's part of the sort, for the parts of the heap that it will claim; progress: it is reported.
 * Everything belongs to the current memory context.
 */
void
gpusort_build_create_sort(GpuSortBuild *build, bool progress)
{
	build->rows = gpusort_index_rows_create(build->heap, build->index);
	gpusort_heap_source_init(&build->source, build->rows, build->info, &build->shared->share, progress);
	build->sort = gpusort_sort_create(&build->rows->rows, &build->source.source, build->order.columns, build->order.count);
	build->sort->estimated_rows = build->shared->rows;
	build->sort->estimated_width = build->shared->width;
	build->sort->stays = true;
	/* equal keys are in one range */
	build->parallel = gpusort_parallel_sort_create(build->sort, build->order.count - 1, NULL);
	build->set.bordered = true;
	gpusort_sort_set_add(&build->set, build->parallel);
}

/* Tells what this process has found in its part of the heap, whose rows it has put. */
void
gpusort_build_note_figures(GpuSortBuild *build)
{
	GpuSortBuildFigures *figures = &build->shared->figures[ParallelWorkerNumber + 1];

	figures->heap_tuples = build->source.heap_tuples;
	figures->tuples = build->source.tuples;
	figures->broken_chains = build->info->ii_BrokenHotChain;
}

/* Does all that a worker does. */
static void
run_worker(GpuSortBuild *build)
{
	const GpuSortClaims *claims = &build->shared->claims;
	const GpuSortParticipant own = {.set = &build->set, .claims = &build->shared->claims};

	gpusort_participant_ingest(&own);
	gpusort_build_note_figures(build);
	if (gpusort_participant_await_ranges(&own) && claims->ranges > 1 && gpusort_participant_open(&own))
	{
		gpusort_load_ranges(build, ParallelWorkerNumber + 1);
		gpusort_sort_set_close(&build->set);
	}
	gpusort_sort_set_end(&build->set);
	gpusort_parallel_sort_detach(build->parallel);
}

/* Where a worker starts. */
void
gpusort_index_worker(dsm_segment *segment, shm_toc *toc)
{
	const GpuSortCommandWorker worker = gpusort_command_worker_begin(toc);
	GpuSortBuildShared *shared = worker.shared;
	GpuSortBuild build = {.shared = shared};
	LOCKMODE heap_lock;
	LOCKMODE index_lock;
	const char *why_not;

	if (shared == NULL)
		return;
	/* the leader's */
	heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	build.heap = table_open(shared->heap, heap_lock);
	build.index = index_open(shared->index, index_lock);
	build.info = BuildIndexInfo(build.index);
	build.info->ii_Unique = shared->unique;
	build.info->ii_Concurrent = shared->concurrent;
	SharedFileSetAttach(&shared->files, segment);
	if (gpusort_index_order(build.index, &build.order, &why_not))
	{
		gpusort_build_create_sort(&build, false);
		gpusort_command_worker_attach(&worker, build.parallel);
		run_worker(&build);
	}
	gpusort_command_worker_end(&worker);
	index_close(build.index, index_lock);
	table_close(build.heap, heap_lock);
}
