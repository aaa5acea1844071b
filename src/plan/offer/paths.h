/*-------------------------------------------------------------------------
 *
 * paths.h
 *	  The paths of GpuSort, GpuSortIngest and GpuSortOutput, and the plans made of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PATHS_H
#define GPUSORT_PATHS_H

#include "compat.h"

#include "node.h"
#include "nodes/pathnodes.h"
#include "plan/model/sort_time.h"

/* A path of GpuSort. */
typedef struct GpuSortPath
{
	CustomPath custom; /* must be first field */
	const Path *input; /* whose rows are sorted: a partial path, if they are gathered */
	bool gathered;
	bool shared;      /* all processes read its rows, by ranges: those of input, a partial path */
	double rows;      /* of all processes */
	bool verified;    /* all rows are read, to be verified, before the first is emitted */
	GpuSortTime time; /* over the input */

	/* So many nodes above it run by ranges of its rows, not counting those that pass rows on, and why no more */
	int range_nodes;
	GpuSortAlone alone;
} GpuSortPath;

extern bool gpusort_path_is_sort(const Path *path);
extern Path *gpusort_path_input(const Path *path);
extern Path *gpusort_path_over(const Path *path, Path *input);
extern Path *gpusort_partial_of(const Path *path);
extern Path *gpusort_sorted_path(PlannerInfo *root, RelOptInfo *rel, Path *input, Path *partial, List *pathkeys);
extern int gpusort_count_columns(List *exprs, const EquivalenceMember *member);
extern int gpusort_path_key_columns(const Path *path, const PathKey *key);
extern Path *gpusort_shared_path(PlannerInfo *root, Path *partial, List *pathkeys);
extern Path *gpusort_output_path(PlannerInfo *root, RelOptInfo *rel, Path *child, int workers);
extern bool gpusort_path_is_output(const Path *path);
extern Path *gpusort_output_path_child(const Path *path);
extern double gpusort_path_shared_order_time(const GpuSortPath *path);
extern double gpusort_path_more_rows_time(const Path *path, double rows, double factor);

#endif /* GPUSORT_PATHS_H */
