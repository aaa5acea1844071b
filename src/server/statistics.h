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
	double ingest;      /* of rows, their production by the child included; the wait in the queue is no part of it */
	double upload_wait; /* for chunks, and for the last uploads; no part of ingest */
	double sort;        /* in the engine: compaction, sort, check */
	double gather;      /* in the engine: putting rows into order */
	double emit;        /* waiting for rows that had not arrived */
	double ties;        /* ordering runs of equal keys with the comparator */
} GpuSortTimes;

/* What sorts have done that were sorted in one database. */
typedef struct GpuSortStats
{
	Oid database; /* InvalidOid: of those beyond the first GPUSORT_STATS_DATABASES */
	uint64 sorts; /* done by the service, or of the first rows alone by the processes of a query */
	uint64 rows;
	uint64 bytes;
	uint64 temp_bytes; /* written to temporary files */
	uint64 runs;
	uint64 tie_rows;
	GpuSortTimes ms;
	uint64 index_builds;    /* of the sorts, those of indexes that were built */
	uint64 declined_builds; /* of indexes of tables that have pages, left to PostgreSQL */
	uint64 formed_rows;     /* that parallel workers formed as the bytes that leave the server */
	uint64 formed_bytes;    /* of these */
	uint64 small_sorts;     /* of few rows, done by PostgreSQL: no fallbacks */
	uint64 fallbacks;
	uint64 fallbacks_by_reason[GPUSORT_REASONS];
} GpuSortStats;

/* So many databases are counted apart, and all others together, in one entry more. */
#define GPUSORT_STATS_DATABASES 64

/* Of all databases; the entries of those that have sorted, in no order, and then that of the others. */
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
