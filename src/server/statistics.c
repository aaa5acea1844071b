/*-------------------------------------------------------------------------
 *
 * statistics.c
 *	  What gpusort has done, by database; and why it did not.
 *
 * It is in shared memory (shared.c), under its lock, since the server started or since it was
 * cleared.  A database has an entry from its first sort on; when all are taken, those that
 * come later share one.
 *
 *-------------------------------------------------------------------------
 */
#include "server/statistics.h"

#include "miscadmin.h"
#include "server/shared.h"
#include "utils/timestamp.h"

/* Indexed by GpuSortReason and the client's own; also the keys of gpusort_stats.fallback_reasons. */
static const char *const reason_names[GPUSORT_REASONS] = {
	[GPUSORT_REASON_NONE] = "none",
	[GPUSORT_REASON_NO_ENGINE] = "no engine",
	[GPUSORT_REASON_MEMORY_LIMIT] = "memory limit",
	[GPUSORT_REASON_MEMORY_BUSY] = "memory in use",
	[GPUSORT_REASON_NO_MEMORY] = "out of memory",
	[GPUSORT_REASON_POOL] = "staging pool",
	[GPUSORT_REASON_TOO_MANY_ROWS] = "too many rows",
	[GPUSORT_REASON_DRAINING] = "service restarting",
	[GPUSORT_REASON_BUILD] = "another build",
	[GPUSORT_REASON_DEVICE] = "device error",
	[GPUSORT_REASON_ORDER_CHECK] = "order check",
	[GPUSORT_REASON_BAD_CHUNK] = "bad chunk",
	[GPUSORT_REASON_STORAGE] = "run storage",
	[GPUSORT_REASON_INTERNAL] = "internal",
	[GPUSORT_REASON_UNAVAILABLE] = "service unavailable",
	[GPUSORT_REASON_LOST] = "service lost",
	[GPUSORT_REASON_RECHECK] = "row recheck",
	[GPUSORT_REASON_FEW_ROWS] = "few rows",
	[GPUSORT_REASON_NOT_ALLOWED] = "not allowed",
	[GPUSORT_REASON_VERIFY] = "verification",
	[GPUSORT_REASON_COLLATION] = "collation",
	[GPUSORT_REASON_TIES] = "ties",
};

/* Returns the name of a GpuSortReason, or of one of the client's own. */
const char *
gpusort_reason_name(int reason)
{
	return reason >= 0 && reason < GPUSORT_REASONS ? reason_names[reason] : "unknown";
}

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
	to->small_sorts += from->small_sorts;
	to->fallbacks += from->fallbacks;
	for (int i = 0; i < GPUSORT_REASONS; i++)
		to->fallbacks_by_reason[i] += from->fallbacks_by_reason[i];
}

/* Adds what a sort was, or several were, to this session's database. */
void
gpusort_stats_count_sort(const GpuSortStats *sort)
{
	GpuSortShared *state = gpusort_shared();

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

/* Adds a sort that PostgreSQL's tuplesort had to do. */
void
gpusort_stats_count_fallback(int reason)
{
	GpuSortStats sort = {.fallbacks = 1};

	if (reason >= 0 && reason < GPUSORT_REASONS)
		sort.fallbacks_by_reason[reason] = 1;
	gpusort_stats_count_sort(&sort);
}

/* Fills in a consistent copy of the statistics. */
void
gpusort_stats_get(GpuSortAllStats *stats)
{
	GpuSortShared *state = gpusort_shared();

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
	GpuSortShared *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	memset(&state->stats, 0, sizeof(state->stats));
	state->stats.reset = GetCurrentTimestamp();
	LWLockRelease(&state->lock);
}
