/*-------------------------------------------------------------------------
 *
 * load_ranges.c
 *	  Loads a btree in all processes that have sorted its rows.
 *
 * Each process claims ranges of the rows (claims.c), and makes and writes their leaf pages; when all have ended, the
 * leader makes the levels above them out of the pages' high keys.  Rows that are lost are noted in the claims, and end
 * the work of all; any other error ends the process, and with it the transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "index/load_ranges.h"

#include "access/parallel.h"
#include "commands/progress.h"
#include "index/levels.h"
#include "index/load.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/rel.h"

/* Rows are counted for all to see, and progress is told, once in so many. */
#define ROWS_TOLD 1024

/* Adds rows to those that all processes have loaded. */
static void
count_rows(GpuSortBuild *build, uint64 rows)
{
	const uint64 loaded = pg_atomic_add_fetch_u64(&build->shared->loaded, rows);

	if (!IsParallelWorker())
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, loaded);
}

/* Loads a range that this process has claimed; false, with a reason, if rows are lost. */
static bool
load_range(GpuSortBuild *build, GpuSortBtreeLoad *load, uint32 range, GpuSortFailure *failure)
{
	const bool last = range + 1 == build->shared->claims.ranges;
	uint64 rows = 0;
	char *row;

	if (!gpusort_sort_set_ask(&build->set, range, failure) ||
		!gpusort_sort_set_begin_range(&build->set, failure))
		return false;
	while ((row = gpusort_sort_next(build->sort, true)) != NULL)
	{
		gpusort_load_row(load, row);
		if (++rows % ROWS_TOLD == 0)
			count_rows(build, ROWS_TOLD);
	}
	if (build->set.lost)
	{
		*failure = build->sort->reason;
		return false;
	}
	count_rows(build, rows % ROWS_TOLD);
	gpusort_load_end_range(load, last);
	return true;
}

/* Returns how many pages a process may keep in memory. */
static int
pages_in_memory(const GpuSortBuild *build)
{
	return (Size) maintenance_work_mem * 1024 / (build->shared->workers + 1) / BLCKSZ;
}

/* Loads the ranges that this process, of that number, claims, until there is none.  The sorts must be open. */
void
gpusort_load_ranges(GpuSortBuild *build, int process)
{
	GpuSortBuildShared *shared = build->shared;
	GpuSortPivots *pivots = gpusort_pivots_create(&shared->files, process);
	GpuSortRangePages *pages = gpusort_range_pages_create(build->index, &shared->places, pages_in_memory(build),
														  &shared->claims.stop, gpusort_levels_link);
	GpuSortBtreeLoad *load = gpusort_load_create_leaves(build->heap, build->index, build->info, pages, pivots);
	GpuSortFailure failure = {0};
	int range;

	while ((range = gpusort_claims_next(&shared->claims, process)) >= 0)
	{
		gpusort_range_pages_begin(pages, range);
		if (!IsParallelWorker())
			gpusort_sort_set_show(&build->set, range);
		if (!load_range(build, load, range, &failure))
		{
			gpusort_claims_stop(&shared->claims, &failure);
			break;
		}
	}
	gpusort_range_pages_finish(pages);
	gpusort_pivots_close(pivots);
}

/* Makes, in the leader, the levels above all ranges, and brings all to disk; it is an error if a range is missing. */
void
gpusort_load_above(const GpuSortBuild *build)
{
	GpuSortBuildShared *shared = build->shared;
	const uint32 ranges = shared->claims.ranges;
	GpuSortPivots **pivots = palloc0((shared->workers + 1) * sizeof(GpuSortPivots *));
	GpuSortLevels *levels;

	if (shared->places.placed != ranges)
		elog(ERROR, "%u of %u ranges of index \"%s\" are loaded", shared->places.placed, ranges,
			 RelationGetRelationName(build->index));
	levels = gpusort_levels_create_above(build->heap, build->index, gpusort_load_key(build->index), shared->places.end);
	for (uint32 range = 0; range < ranges; range++)
	{
		const int owner = shared->claims.owners[range];
		const BlockNumber pages = shared->places.pages[range];

		if (pivots[owner] == NULL)
			pivots[owner] = gpusort_pivots_open(&shared->files, owner);
		for (BlockNumber page = 0; page < pages; page++)
		{
			const bool last = range + 1 == ranges && page + 1 == pages;

			gpusort_levels_add_leaf(levels, last ? NULL : gpusort_pivots_next(pivots[owner]));
		}
		CHECK_FOR_INTERRUPTS();
	}
	gpusort_levels_finish(levels);
	for (int i = 0; i <= shared->workers; i++)
	{
		if (pivots[i] != NULL)
			gpusort_pivots_close(pivots[i]);
	}
}
