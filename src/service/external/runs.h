/*-------------------------------------------------------------------------
 *
 * runs.h
 *	  Sorted runs of records, in blocks, and where keys are in them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_RUNS_H
#define GPUSORT_EXTERNAL_RUNS_H

#include "service/engine.h"
#include "service/errors.h"
#include "service/external/storage/storage.h"

/* One run: blocks in order. */
typedef struct GpuSortRun
{
	GpuSortRunBlock *blocks;
	uint64_t *first_keys;  /* key_words for each block */
	uint64_t *rows_before; /* each block, in the run */
	uint32_t nblocks;
	uint64_t rows;
	uint64_t bytes; /* of records */
} GpuSortRun;

/* All runs of a sort, in the order in which their rows were put. */
typedef struct GpuSortRuns
{
	GpuSortStorage *storage;
	uint32_t key_words;
	GpuSortRun *runs;
	uint32_t nruns;
	uint32_t room;
	uint64_t rows;
	uint64_t record_bytes;
	uint64_t row_bytes; /* padded, without keys */
	uint64_t largest;   /* bytes of the largest run */
} GpuSortRuns;

/* A place in a run: before this record of this block; at the end nblocks, 0, 0. */
typedef struct GpuSortRunPlace
{
	uint32_t block;
	uint32_t row;  /* records before it in the block */
	uint32_t byte; /* and their bytes */
} GpuSortRunPlace;

/* Compares keys; returns less than 0, 0, or more. */
static inline int
gpusort_compare_keys(const uint64_t *a, const uint64_t *b, uint32_t words)
{
	for (uint32_t w = 0; w < words; w++)
	{
		if (a[w] != b[w])
			return a[w] < b[w] ? -1 : 1;
	}
	return 0;
}

/* Returns the bytes of a record, its key and its row, padded; 0 if no record of at most this many bytes is there. */
static inline uint32_t
gpusort_record_bytes(const char *record, uint32_t key_words, uint64_t most)
{
	uint32_t key_bytes = key_words * sizeof(uint64_t);
	uint64_t length;

	if (most < key_bytes + 8)
		return 0;
	length = GPUSORT_ALIGN8(*(const uint32_t *) (record + key_bytes));
	return length >= 8 && key_bytes + length <= most ? (uint32_t) (key_bytes + length) : 0;
}

extern int gpusort_runs_write(GpuSortRuns *runs, const GpuSortEngineOps *ops, GpuSort *sort, uint64_t rows,
							  uint64_t bytes, const int *cancelled, GpuSortError *error);
extern int gpusort_runs_find(const GpuSortRuns *runs, uint32_t run, const uint64_t *key, char *scratch,
							 GpuSortRunPlace *place, GpuSortError *error);
extern uint64_t gpusort_runs_rows_before(const GpuSortRun *run, GpuSortRunPlace place);
extern void gpusort_runs_free(GpuSortRuns *runs);

extern int gpusort_runs_damaged(GpuSortError *error);
extern bool gpusort_runs_lack_memory(const GpuSortError *error);

#endif /* GPUSORT_EXTERNAL_RUNS_H */
