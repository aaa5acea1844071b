/*-------------------------------------------------------------------------
 *
 * merge.h
 *	  Sorted runs as one order of rows, given out by partitions of their keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_MERGE_H
#define GPUSORT_EXTERNAL_MERGE_H

#include "service/call_watch.h"
#include "service/external/runs.h"
#include "service/external/ranges.h"

typedef struct GpuSortMerge GpuSortMerge;

/* What is merged, and by which threads; belongs to the caller, and must not change during the merge. */
typedef struct GpuSortMergeSource
{
	const GpuSortEngineHandle *handle;
	int cpus; /* that the process may use */
	const GpuSortRequest *request;
	const GpuSortRuns *runs; /* at least one, each with rows */
	const int *cancelled;
	GpuSortCallWatch *watch; /* the loaders', GPUSORT_JOB_LOADERS of them */
} GpuSortMergeSource;

extern GpuSortMerge *gpusort_merge_create(const GpuSortMergeSource *source, uint32_t bits, const GpuSortBorders *like,
										  GpuSortError *error);
extern int gpusort_merge_find_rows(GpuSortMerge *merge, GpuSortError *error);
extern int gpusort_merge_cut(const GpuSortMerge *merge, uint32_t most, uint64_t *first_rows, GpuSortBorders **borders,
							 GpuSortError *error);
extern int gpusort_merge_cut_like(const GpuSortMerge *merge, const GpuSortBorders *borders, uint64_t *first_rows,
								  GpuSortError *error);
extern int gpusort_merge_emit(GpuSortMerge *merge, uint64_t first, uint64_t end, char *chunk, GpuSortEmitted *emitted,
							  GpuSortError *error);
extern void gpusort_merge_free(GpuSortMerge *merge);

#endif /* GPUSORT_EXTERNAL_MERGE_H */
