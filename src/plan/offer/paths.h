/*-------------------------------------------------------------------------
 *
 * paths.h
 *	  The paths of GpuSort and GpuSortIngest, and the plans made of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PATHS_H
#define GPUSORT_PATHS_H

#include "compat.h"

#include "nodes/pathnodes.h"
#include "plan/model/sort_time.h"

/* A path of GpuSort. */
typedef struct GpuSortPath
{
	CustomPath custom; /* must be first field */
	const Path *input; /* whose rows are sorted: a partial path, if they are gathered */
	bool gathered;
	bool verified;    /* all rows are read, to be verified, before the first is emitted */
	GpuSortTime time; /* over the input */
} GpuSortPath;

extern bool gpusort_path_is_sort(const Path *path);
extern Path *gpusort_path_input(const Path *path);
extern Path *gpusort_path_over(const Path *path, Path *input);
extern Path *gpusort_partial_of(const Path *path);
extern Path *gpusort_sorted_path(PlannerInfo *root, RelOptInfo *rel, Path *input, Path *partial, List *pathkeys);

#endif /* GPUSORT_PATHS_H */
