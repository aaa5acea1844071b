/*-------------------------------------------------------------------------
 *
 * statistics.h
 *	  What gpusort has done, by database.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STATISTICS_H
#define GPUSORT_STATISTICS_H

#include "compat.h"

#include "datatype/timestamp.h"
#include "server/reasons.h"

/* Times of a sort in milliseconds, by phase. */
typedef struct GpuSortTimes
{
	double queue;       /* until there were chunks and memory */
	double ingest;      /* reading and encoding rows, the child included, without the wait in the queue */
	double upload_wait; /* waiting for chunks, and for the last uploads; not part of ingest */
	double sort;        /* in the engine: compaction, sort, check */
	double gather;      /* in the engine: putting rows into order */
	double emit;        /* waiting for rows that had not arrived */
	double ties;        /* ordering runs of equal keys with the comparator */
} GpuSortTimes;

/* Counts for the sorts of one database. */
typedef struct GpuSortStats
{
	Oid database; /* InvalidOid for all beyond the first GPUSORT_STATS_DATABASES */
	uint64 sorts; /* done by the service, or of the first rows alone by the processes of a query */
	uint64 rows;
	uint64 bytes;
	uint64 temp_bytes; /* bytes written to temporary files */
	uint64 runs;
	uint64 tie_rows;
	GpuSortTimes ms;
	uint64 index_builds;    /* the number of sorts that built an index */
	uint64 declined_builds; /* index builds that were left to PostgreSQL, of tables that are not empty */
	uint64 formed_rows;     /* rows that parallel workers formed as bytes for a client, or put into a table */
	uint64 formed_bytes;    /* bytes of formed rows */
	uint64 small_sorts;     /* sorts of few rows that PostgreSQL did; not counted as fallbacks */
	uint64 fallbacks;
	uint64 fallbacks_by_reason[GPUSORT_REASONS];
} GpuSortStats;

/* Number of databases that are counted separately; all others share one more entry. */
#define GPUSORT_STATS_DATABASES 64

/* Counts of all databases: entries of those that have sorted, in no order, then the shared entry. */
typedef struct GpuSortAllStats
{
	TimestampTz reset;
	int count; /* of databases that have sorted, or GPUSORT_STATS_DATABASES + 1 */
	GpuSortStats databases[GPUSORT_STATS_DATABASES + 1];
} GpuSortAllStats;

extern void gpusort_stats_count_sort(const GpuSortStats *sort);
extern void gpusort_stats_count_small_sort(void);
extern void gpusort_stats_count_index_build(bool declined);
extern void gpusort_stats_count_fallback(int reason);
extern void gpusort_stats_count_formed(uint64 rows, uint64 bytes);
extern void gpusort_stats_get(GpuSortAllStats *stats);
extern GpuSortStats gpusort_stats_sum(const GpuSortAllStats *stats);
extern void gpusort_stats_clear(void);

#endif /* GPUSORT_STATISTICS_H */
