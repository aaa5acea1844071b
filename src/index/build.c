/*-------------------------------------------------------------------------
 *
 * build.c
 *	  Builds a btree by a sort in the service.
 *
 * The heap's tuples are sorted by the index's columns and their TIDs, put by the processes that the planner allows
 * (worker.c), the leader among them.  Where they are many, all of these processes make the leaf pages, each of ranges
 * of the rows (load_ranges.c), and what is on disk at the end is what PostgreSQL's own build makes, but that pages end
 * where ranges do, and the levels above lie behind the leaves.  Else the leader makes the pages (load.c), and there is
 * no difference.
 *
 * Where the service takes no part, or loses rows before the first page is written, nothing has been done and
 * PostgreSQL builds the index; later it is an error.  Any error ends the transaction, which removes the file.
 *
 *-------------------------------------------------------------------------
 */
#include "index/build.h"

#include "access/nbtree.h"
#include "commands/progress.h"
#include "index/build_choice.h"
#include "index/load.h"
#include "index/load_ranges.h"
#include "index/worker.h"
#include "miscadmin.h"
#include "parallel/command_workers.h"
#include "parallel/participants.h"
#include "pgstat.h"
#include "server/reasons.h"
#include "server/statistics.h"
#include "settings.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Progress is told once in so many tuples. */
#define TUPLES_TOLD 1024

/* The leader's part. */
typedef struct Leader
{
	GpuSortBuild build;
	GpuSortCommandWorkers workers;
} Leader;

static Size
shared_bytes(int workers)
{
	return add_size(offsetof(GpuSortBuildShared, figures), mul_size(workers + 1, sizeof(GpuSortBuildFigures)));
}

/* Makes what processes share, in memory that is zeroed. */
static void
init_shared(Leader *leader, GpuSortBuildShared *shared)
{
	const GpuSortBuild *build = &leader->build;

	gpusort_claims_create(&shared->claims);
	gpusort_claims_start(&shared->claims);
	shared->heap = RelationGetRelid(build->heap);
	shared->index = RelationGetRelid(build->index);
	shared->rows = build->order.rows;
	shared->width = build->order.width;
	shared->unique = build->info->ii_Unique;
	shared->concurrent = build->info->ii_Concurrent;
	pg_atomic_init_u64(&shared->loaded, 0);
	gpusort_range_places_init(&shared->places, BTREE_METAPAGE + 1, 0);
	gpusort_heap_share_init(&shared->share, build->heap);
}

/* Starts workers for a sort that has been begun in the service; the leader's shared state moves to their memory. */
static void
start_workers(Leader *leader, int wanted)
{
	GpuSortBuild *build = &leader->build;
	GpuSortCommandWorkers *workers = &leader->workers;
	GpuSortBuildShared *shared =
		gpusort_command_workers_prepare(workers, "gpusort_index_worker", wanted, shared_bytes(wanted), build->parallel);

	if (shared == NULL)
		return;
	init_shared(leader, shared);
	shared->workers = workers->context->nworkers;
	SharedFileSetInit(&shared->files, workers->context->seg);
	build->shared = shared;
	build->source.share = &shared->share;
	gpusort_command_workers_launch(workers);
}

/* Ends the sort, and gives back what was shared; workers have ended. */
static void
end_sort(Leader *leader)
{
	gpusort_sort_set_end(&leader->build.set);
	gpusort_parallel_sort_detach(leader->build.parallel);
	gpusort_command_workers_end(&leader->workers);
}

/*
 * Puts the rows, with all processes, which are sorted, cut into ranges and verified then; false, with a reason, if that
 * is not to be.  One range is the leader's; several are for all.  Errors: rows are lost, and there are pages already.
 */
static bool
sort_rows(Leader *leader, GpuSortFailure *failure)
{
	GpuSortBuild *build = &leader->build;
	const GpuSortParticipant own = {
		.set = &build->set,
		.claims = &build->shared->claims,
		.processes = gpusort_command_workers_processes(&leader->workers)};

	gpusort_participant_ingest(&own);
	gpusort_build_note_figures(build);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_PERFORMSORT_1);
	if (gpusort_participant_await_ranges(&own))
		return true;
	gpusort_command_workers_finish(&leader->workers);
	*failure = own.claims->failure;
	/* A worker may have written pages of rows in order, and then lost the rows, before the leader has read any. */
	if (RelationGetNumberOfBlocks(build->index) > 0)
		gpusort_sort_report_lost(true, failure);
	return false;
}

/* Adds up what all processes have found in the heap; workers have ended. */
static IndexBuildResult *
sum_up(const Leader *leader)
{
	const GpuSortBuild *build = &leader->build;
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));

	for (int i = 0; i < gpusort_command_workers_processes(&leader->workers); i++)
	{
		const GpuSortBuildFigures *figures = &build->shared->figures[i];

		result->heap_tuples += figures->heap_tuples;
		result->index_tuples += figures->tuples;
		build->info->ii_BrokenHotChain |= figures->broken_chains;
	}
	return result;
}

/* Loads the rows in order into the index, in the leader alone; it is an error if rows are lost. */
static void
load_rows(Leader *leader, uint32 ranges)
{
	GpuSortBuild *build = &leader->build;
	GpuSortBtreeLoad *load = gpusort_load_create(build->heap, build->index, build->info);
	GpuSortFailure failure = {0};
	uint64 loaded = 0;
	char *row;

	gpusort_command_workers_finish(&leader->workers);
	if (ranges > 0)
	{
		if (!gpusort_sort_set_ask(&build->set, 0, &failure) ||
			!gpusort_sort_set_begin_range(&build->set, &failure))
			gpusort_sort_report_lost(true, &failure);
		while ((row = gpusort_sort_next(build->sort, true)) != NULL)
		{
			gpusort_load_row(load, row);
			if (++loaded % TUPLES_TOLD == 0)
				pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, loaded);
		}
		if (build->set.lost)
			gpusort_sort_report_lost(true, &build->sort->reason);
	}
	pg_atomic_write_u64(&build->shared->loaded, loaded);
	gpusort_load_finish(load);
}

/* Loads ranges of the rows into the index, with all processes; it is an error if rows are lost. */
static void
load_in_ranges(Leader *leader, uint32 ranges)
{
	GpuSortBuild *build = &leader->build;
	const GpuSortClaims *claims = &build->shared->claims;

	if (gpusort_log_decisions)
		ereport(LOG,
				(errmsg("gpusort: index \"%s\" is loaded in %u ranges", RelationGetRelationName(build->index), ranges)));
	gpusort_load_ranges(build, GPUSORT_LEADER_PROCESS);
	gpusort_command_workers_finish(&leader->workers);
	if (claims->stop)
		gpusort_sort_report_lost(true, &claims->failure);
	gpusort_load_above(build);
}

/*
 * Loads the rows, and returns what was found and loaded.  Each row has been verified when it was read; only at the end
 * is it known that each was loaded once.  It is an error if rows are lost, or are others than those that were put.
 */
static IndexBuildResult *
load(Leader *leader)
{
	GpuSortBuild *build = &leader->build;
	const uint32 ranges = build->shared->claims.ranges;
	GpuSortFailure failure = {0};
	IndexBuildResult *result;
	uint64 rows;

	if (ranges > 1)
		load_in_ranges(leader, ranges);
	else
		load_rows(leader, ranges);
	result = sum_up(leader);
	rows = result->index_tuples;
	if (pg_atomic_read_u64(&build->shared->loaded) != rows)
		(void) gpusort_failure_set(&failure, GPUSORT_REASON_VERIFY, UINT64_FORMAT " tuples were loaded of " UINT64_FORMAT,
								   pg_atomic_read_u64(&build->shared->loaded), rows);
	if (failure.reason != GPUSORT_REASON_NONE || !gpusort_sort_set_finish(&build->set, &failure))
		gpusort_sort_report_lost(true, &failure);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, rows);
	return result;
}

/* Notes that PostgreSQL is to build the index after all, and why. */
static void
note_fallback(Relation index, const GpuSortFailure *failure)
{
	gpusort_stats_count_fallback(failure->reason);
	if (gpusort_log_decisions)
		ereport(LOG,
				(errmsg("gpusort: index \"%s\" is left to PostgreSQL: %s", RelationGetRelationName(index), failure->text)));
}

/*
 * Builds the index; NULL if it has not been begun, and PostgreSQL is to build it.  Everything belongs to the current
 * memory context.
 */
static IndexBuildResult *
build_index(Relation heap, Relation index, IndexInfo *info, const GpuSortIndexOrder *order)
{
	Leader *leader = palloc0(sizeof(Leader));
	GpuSortBuild *build = &leader->build;
	IndexBuildResult *result;
	GpuSortFailure failure = {0};

	build->heap = heap;
	build->index = index;
	build->info = info;
	build->order = *order;
	build->shared = palloc0(shared_bytes(0));
	init_shared(leader, build->shared);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN);
	gpusort_build_create_sort(build, true);
	if (!gpusort_sort_set_begin(&build->set, 1 + info->ii_ParallelWorkers, &failure))
	{
		end_sort(leader);
		note_fallback(index, &failure);
		return NULL;
	}
	if (info->ii_ParallelWorkers > 0)
		start_workers(leader, info->ii_ParallelWorkers);
	if (!sort_rows(leader, &failure))
	{
		end_sort(leader);
		note_fallback(index, &failure);
		return NULL;
	}
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL,
								 gpusort_parallel_sort_rows(build->parallel)->expected.rows);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PROGRESS_BTREE_PHASE_LEAF_LOAD);
	result = load(leader);
	end_sort(leader);
	return result;
}

/* Counts a build of PostgreSQL's, unless there is nothing to sort, and tells the log who builds the index. */
static void
tell_choice(Relation heap, Relation index, const char *why_not)
{
	if (why_not != NULL && RelationGetNumberOfBlocks(heap) > 0)
		gpusort_stats_count_index_build(true);
	if (!gpusort_log_decisions)
		return;
	if (why_not == NULL)
		ereport(LOG, (errmsg("gpusort: building index \"%s\"", RelationGetRelationName(index))));
	else
		ereport(LOG,
				(errmsg("gpusort: index \"%s\" is left to PostgreSQL: %s", RelationGetRelationName(index), why_not)));
}

/* The method ambuild of a btree. */
IndexBuildResult *
gpusort_index_build(Relation heap, Relation index, IndexInfo *info)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort index build", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	IndexBuildResult *result = NULL;
	GpuSortIndexOrder order = {0};
	const char *why_not;

	if (gpusort_index_builds && gpusort_settings_enabled())
	{
		if (gpusort_index_is_chosen(heap, index, info, &order, &why_not))
		{
			tell_choice(heap, index, NULL);
			result = build_index(heap, index, info, &order);
		}
		else
			tell_choice(heap, index, why_not);
	}
	MemoryContextSwitchTo(caller);
	if (result != NULL)
	{
		IndexBuildResult *copy = palloc(sizeof(IndexBuildResult));

		*copy = *result;
		result = copy;
		gpusort_stats_count_index_build(false);
	}
	MemoryContextDelete(context);
	return result != NULL ? result : btbuild(heap, index, info);
}
