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

/* A number of rows that is not known yet. */
#define GPUSORT_ROWS_UNKNOWN UINT64_MAX

typedef enum GpuSortPartitionState
{
	GPUSORT_PARTITION_CLOSED,
	GPUSORT_PARTITION_LOADING,
	GPUSORT_PARTITION_OPEN,
} GpuSortPartitionState;

typedef struct GpuSortMergePartition
{
	uint64_t *first_key; /* it begins at this key; NULL for the first partition */
	uint64_t first_row;  /* number of its first row, or ROWS_UNKNOWN */
	uint64_t rows;       /* or ROWS_UNKNOWN */
	uint64_t loaded;     /* rows found when it was loaded; while LOADING this and bytes belong to the loader */
	uint64_t bytes;      /* of their records */
	GpuSortPartitionState state;
	uint64_t *only_key; /* set if all its keys are equal and too many for the memory: rows come as they were put */
	uint64_t emitted;   /* rows emitted since it was opened, and: */
	double used;        /* when last, by gpusort_clock_ms */

	/* OPEN */
	GpuSort *sort;               /* its rows in order; NULL if it has none, or with only_key */
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

/* The result of loading. */
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
