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
#include "plan/model/cost.h"

/* A path of GpuSort. */
typedef struct GpuSortPath
{
	CustomPath custom; /* must be first field */
	const Path *input; /* whose rows are sorted: a partial path, if they are gathered */
	bool gathered;
	bool shared;      /* all processes read its rows, by ranges: those of input, a partial path */
	GpuSortCost cost; /* over the input, of the rows of all processes; ingest, if they are gathered, of its own */
} GpuSortPath;

extern Path *gpusort_make_path(PlannerInfo *root, RelOptInfo *rel, Path *input, List *pathkeys, double rows,
							   GpuSortCost cost);
extern Path *gpusort_make_parallel_path(PlannerInfo *root, RelOptInfo *rel, Path *partial, List *pathkeys, double rows,
										GpuSortCost cost);
extern Path *gpusort_make_shared_path(PlannerInfo *root, RelOptInfo *rel, Path *partial, List *pathkeys, double rows,
									  GpuSortCost cost);
extern bool gpusort_path_is_sort(const Path *path);
extern GpuSortAdmission gpusort_admit_path(const Path *input, List *pathkeys);
extern Path *gpusort_partial_of(const Path *path);
extern Path *gpusort_sorted_path(PlannerInfo *root, RelOptInfo *rel, Path *input, Path *partial, List *pathkeys);

#endif /* GPUSORT_PATHS_H */
