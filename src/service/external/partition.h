/*-------------------------------------------------------------------------
 *
 * partition.h
 *	  The rows of all runs whose keys are in one interval, in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_PARTITION_H
#define GPUSORT_EXTERNAL_PARTITION_H

#include "service/external/interval_reader.h"
#include "service/external/merge.h"

/* Of a partition of which that is not known yet. */
#define GPUSORT_ROWS_UNKNOWN UINT64_MAX

typedef enum GpuSortPartitionState
{
	GPUSORT_PARTITION_CLOSED,
	GPUSORT_PARTITION_LOADING,
	GPUSORT_PARTITION_OPEN,
} GpuSortPartitionState;

typedef struct GpuSortMergePartition
{
	uint64_t *first_key; /* it has the keys from here on; NULL: from the first of all on */
	uint64_t first_row;  /* number of its first row, or ROWS_UNKNOWN */
	uint64_t rows;       /* or ROWS_UNKNOWN */
	uint64_t loaded;     /* rows that were found when it was loaded; the loader's while LOADING, as this: */
	uint64_t bytes;      /* of their records */
	GpuSortPartitionState state;
	uint64_t *only_key; /* all its keys are this one, too many for the memory: rows come as they were put; else NULL */
	uint64_t emitted;   /* rows given out since it was opened, and: */
	double used;        /* when last, by gpusort_clock_ms */

	/* OPEN */
	GpuSort *sort;               /* in order; NULL: it has no rows, or only_key */
	GpuSortKeyInterval interval; /* only_key: where they are */
	GpuSortIntervalReader reader;
	uint64_t reader_row; /* only_key: of the partition, before which the reader is */
	char *buffer;        /* only_key: records; behind them GPUSORT_CHUNK_BYTES for the reader */
	uint32_t buffered;   /* their bytes, and: */
	uint32_t taken;      /* those that were given out */
} GpuSortMergePartition;

/* What a partition is read with, GPUSORT_CHUNK_BYTES each; the caller's. */
typedef struct GpuSortLoadMemory
{
	char *chunk;   /* that is put */
	char *scratch; /* the reader's */
} GpuSortLoadMemory;

/* What came of loading. */
typedef enum GpuSortLoad
{
	GPUSORT_LOAD_FAILED = -1,
	GPUSORT_LOAD_DONE,
	GPUSORT_LOAD_NO_ROOM, /* the engine has no memory for it now; *error says why */
} GpuSortLoad;

extern GpuSortLoad gpusort_partition_load(const GpuSortMergeSource *source, GpuSortMergePartition *partition,
										  const uint64_t *end_key, const GpuSortLoadMemory *memory,
										  GpuSortError *error);
extern int gpusort_partition_emit(const GpuSortMergeSource *source, GpuSortMergePartition *partition, uint64_t first,
								  uint64_t end, char *chunk, GpuSortEmitted *emitted, GpuSortError *error);
extern void gpusort_partition_close(const GpuSortMergeSource *source, GpuSortMergePartition *partition);
extern int gpusort_partition_middle_key(const GpuSortMergeSource *source, const GpuSortMergePartition *partition,
										const uint64_t *end_key, const GpuSortLoadMemory *memory, uint64_t *key,
										bool *single, GpuSortError *error);

#endif /* GPUSORT_EXTERNAL_PARTITION_H */
