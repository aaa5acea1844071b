/*-------------------------------------------------------------------------
 *
 * external_sort.h
 *	  A sort of any size: in an engine or, when that has no memory left, in runs
 *	  that are merged by ranges of keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_SORT_H
#define GPUSORT_EXTERNAL_SORT_H

#include "service/call_watch.h"
#include "service/engine.h"
#include "service/external/ranges.h"
#include "service/machine/memory.h"

typedef struct GpuSortExternal GpuSortExternal;

/* The result of a call. */
typedef enum GpuSortProgress
{
	GPUSORT_PROGRESS_FAILED = -1, /* failed; see *error */
	GPUSORT_PROGRESS_DONE,
	GPUSORT_PROGRESS_LACKS_SPACE, /* nothing was done; call again when there is more file space */
} GpuSortProgress;

/* What a sort works with; all of it outlives the sort. */
typedef struct GpuSortExternalMeans
{
	GpuSortEngineHandle handle;
	GpuSortHostMemory *run_memory;    /* for runs; NULL if these go to files only */
	int cpus;                         /* that the process may use */
	const int *cancelled;             /* atomic */
	GpuSortCallWatch *watch;          /* of the caller's thread */
	GpuSortCallWatch *loader_watches; /* of threads that are made here, GPUSORT_JOB_LOADERS of them */
	uint32_t *steps;                  /* atomic: as in a watch */
} GpuSortExternalMeans;

extern GpuSortExternal *gpusort_external_create(const GpuSortExternalMeans *means, const GpuSortRequest *request);
extern int gpusort_external_begin(GpuSortExternal *external, GpuSortPlace *place, GpuSortError *error);
extern bool gpusort_external_has_begun(const GpuSortExternal *external);
extern uint32_t gpusort_external_runs(const GpuSortExternal *external);
extern int gpusort_external_reserve(GpuSortExternal *external, uint32_t rows_max, GpuSortError *error);
extern GpuSortProgress gpusort_external_put(GpuSortExternal *external, const void *chunk, uint32_t rows, uint32_t bytes,
											uint32_t rows_max, uint64_t *lacking, GpuSortError *error);
extern int gpusort_external_add_space(GpuSortExternal *external, uint64_t owner, int descriptor, uint64_t start,
									  uint64_t bytes, GpuSortError *error);
extern GpuSortProgress gpusort_external_sort(GpuSortExternal *external, GpuSortOutcome *outcome, uint64_t *lacking,
											 GpuSortError *error);
extern int gpusort_external_emit(GpuSortExternal *external, uint64_t first, uint64_t end, void *chunk,
								 GpuSortEmitted *emitted, GpuSortError *error);
extern int gpusort_external_cut(GpuSortExternal *external, uint32_t bits, uint32_t most, uint64_t *first_rows,
								GpuSortBorders **borders, GpuSortError *error);
extern void gpusort_external_end(GpuSortExternal *external);

#endif /* GPUSORT_EXTERNAL_SORT_H */
