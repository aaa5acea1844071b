/*-------------------------------------------------------------------------
 *
 * statistics.c
 *	  What gpusort has done, by database.
 *
 * It is in shared memory (shared_state.h), under its lock, since the server
 * started or since it was cleared.  A database has an entry from its first sort on;
 * when all are taken, those that come later share one.
 *
 *-------------------------------------------------------------------------
 */
#include "server/statistics.h"

#include "miscadmin.h"
#include "server/shared_state.h"
#include "utils/timestamp.h"

/* The entry of this session's database; the lock is held. */
static GpuSortStats *
own_stats(GpuSortAllStats *stats)
{
	for (int i = 0; i < Min(stats->count, GPUSORT_STATS_DATABASES); i++)
	{
		if (stats->databases[i].database == MyDatabaseId)
			return &stats->databases[i];
	}
	if (stats->count < GPUSORT_STATS_DATABASES)
	{
		stats->databases[stats->count].database = MyDatabaseId;
		return &stats->databases[stats->count++];
	}
	stats->count = GPUSORT_STATS_DATABASES + 1;
	return &stats->databases[GPUSORT_STATS_DATABASES];
}

static void
add_stats(GpuSortStats *to, const GpuSortStats *from)
{
	to->sorts += from->sorts;
	to->rows += from->rows;
	to->bytes += from->bytes;
	to->temp_bytes += from->temp_bytes;
	to->runs += from->runs;
	to->tie_rows += from->tie_rows;
	to->ms.queue += from->ms.queue;
	to->ms.ingest += from->ms.ingest;
	to->ms.upload_wait += from->ms.upload_wait;
	to->ms.sort += from->ms.sort;
	to->ms.gather += from->ms.gather;
	to->ms.emit += from->ms.emit;
	to->ms.ties += from->ms.ties;
	to->index_builds += from->index_builds;
	to->declined_builds += from->declined_builds;
	to->formed_rows += from->formed_rows;
	to->formed_bytes += from->formed_bytes;
	to->small_sorts += from->small_sorts;
	to->fallbacks += from->fallbacks;
	for (int i = 0; i < GPUSORT_REASONS; i++)
		to->fallbacks_by_reason[i] += from->fallbacks_by_reason[i];
}

/* Adds what a sort was, or several were, to this session's database. */
void
gpusort_stats_count_sort(const GpuSortStats *sort)
{
	GpuSortSharedState *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	add_stats(own_stats(&state->stats), sort);
	LWLockRelease(&state->lock);
}

/* Adds a sort whose rows were too few for the service. */
void
gpusort_stats_count_small_sort(void)
{
	const GpuSortStats sort = {.small_sorts = 1};

	gpusort_stats_count_sort(&sort);
}

/* Adds an index that was built, whose sort counts for itself, or that was left to PostgreSQL. */
void
gpusort_stats_count_index_build(bool declined)
{
	const GpuSortStats build = {.index_builds = !declined, .declined_builds = declined};

	gpusort_stats_count_sort(&build);
}

/* Adds a sort that PostgreSQL's tuplesort had to do. */
void
gpusort_stats_count_fallback(int reason)
{
	GpuSortStats sort = {.fallbacks = 1};

	if (reason >= 0 && reason < GPUSORT_REASONS)
		sort.fallbacks_by_reason[reason] = 1;
	gpusort_stats_count_sort(&sort);
}

/* Adds rows that parallel workers formed. */
void
gpusort_stats_count_formed(uint64 rows, uint64 bytes)
{
	const GpuSortStats formed = {.formed_rows = rows, .formed_bytes = bytes};

	gpusort_stats_count_sort(&formed);
}

/* Fills in a consistent copy of the statistics. */
void
gpusort_stats_get(GpuSortAllStats *stats)
{
	GpuSortSharedState *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_SHARED);
	*stats = state->stats;
	LWLockRelease(&state->lock);
}

/* Returns what was done in all databases together. */
GpuSortStats
gpusort_stats_sum(const GpuSortAllStats *stats)
{
	GpuSortStats sum = {0};

	for (int i = 0; i < stats->count; i++)
		add_stats(&sum, &stats->databases[i]);
	return sum;
}

/* Starts the statistics anew. */
void
gpusort_stats_clear(void)
{
	GpuSortSharedState *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	memset(&state->stats, 0, sizeof(state->stats));
	state->stats.reset = GetCurrentTimestamp();
	LWLockRelease(&state->lock);
}
