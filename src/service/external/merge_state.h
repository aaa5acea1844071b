/*-------------------------------------------------------------------------
 *
 * merge_state.h
 *	  What the units of a merge share: merge.c gives rows out, merge_plan.c knows the partitions,
 *	  merge_load.c loads them.  Nobody else includes this.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_MERGE_STATE_H
#define GPUSORT_EXTERNAL_MERGE_STATE_H

#include <pthread.h>

#include "service/external/reclaim.h"
#include "service/external/merge.h"
#include "service/external/partition.h"
#include "service/external/storage/chunk_buffer.h"

/*
 * Partitions that are to fit into the memory beside those that are loaded: one is read, and one's size was misjudged.
 */
#define PARTITIONS_BESIDE 2

/*
 * A thread that loads partitions: each reads and checks what the disk has, and half of the processors are for sorting.
 */
typedef struct GpuSortMergeLoader
{
	GpuSortMerge *merge;
	GpuSortMergeSource source; /* with a watch of its own */
	pthread_t thread;
	GpuSortChunkBuffer chunk;
	GpuSortLoadMemory memory; /* the first loader's is find_rows' before it starts */
} GpuSortMergeLoader;

struct GpuSortMerge
{
	GpuSortMergeSource source;
	uint32_t bits; /* partitions begin at keys with zeros behind this many bits, except those that were cut again */
	uint32_t capacity;
	GpuSortMergeLoader loaders[GPUSORT_JOB_LOADERS];
	uint32_t nloaders; /* number of loaders to start, and: */
	uint32_t started;

	pthread_mutex_t lock;
	pthread_cond_t change;
	GpuSortMergePartition **partitions; /* by ascending keys */
	uint32_t count;
	uint32_t room;
	uint32_t open; /* number of partitions that are loading or open, and: */
	uint32_t loading;
	GpuSortMergePartition *wanted;  /* the partition that the sort's thread waits for, or NULL */
	GpuSortMergePartition *emitted; /* the partition whose rows are being emitted, or NULL */
	GpuSortMergePartition *latest;  /* the last partition, in order, whose rows were wanted, or NULL */
	bool no_room;                   /* nothing is loaded ahead until a partition was closed */
	uint64_t busy_bytes;            /* a partition with more bytes is cut in two if others have the memory */
	bool closing;
	bool failed;
	GpuSortError error;

	GpuSortMemoryHolder holder; /* from when there are loaders on */
};

/* merge_plan.c */
extern int gpusort_merge_plan(GpuSortMerge *merge, uint64_t bytes, const GpuSortBorders *like, GpuSortError *error);
extern int gpusort_merge_insert(GpuSortMerge *merge, uint32_t at, const uint64_t *key, GpuSortError *error);
extern uint32_t gpusort_merge_place_of(const GpuSortMerge *merge, const GpuSortMergePartition *partition);
extern const uint64_t *gpusort_merge_end_key(const GpuSortMerge *merge, uint32_t at);
extern void gpusort_merge_note_rows(GpuSortMerge *merge, uint32_t at);
extern int gpusort_merge_rows_below(const GpuSortMerge *merge, const uint64_t *key, char *scratch, uint64_t *rows,
									GpuSortError *error);

/* merge_load.c */
extern uint32_t gpusort_merge_choose_loaders(int cpus, uint64_t bytes);
extern int gpusort_merge_make_loaders(GpuSortMerge *merge, GpuSortError *error);
extern int gpusort_merge_start_loaders(GpuSortMerge *merge, GpuSortError *error);
extern void gpusort_merge_end_loaders(GpuSortMerge *merge);
extern void gpusort_merge_close_partition(GpuSortMerge *merge, GpuSortMergePartition *partition);
extern void gpusort_merge_wait(GpuSortMerge *merge);

#endif /* GPUSORT_EXTERNAL_MERGE_STATE_H */
