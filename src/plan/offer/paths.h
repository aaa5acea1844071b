/*-------------------------------------------------------------------------
 *
 * paths.h
 *	  The paths of GpuSort and its other nodes, and of such as stand for something, and the plans made of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PATHS_H
#define GPUSORT_PATHS_H

#include "compat.h"

#include "node.h"
#include "nodes/extensible.h"
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
	GpuSortTime time; /* over the input */

	const Path *range_top; /* the highest path above it that runs by ranges of its rows; NULL: none does */
	bool range_parts;      /* the aggregate right above has something below it in the ranges, or its part of each */
	bool only_formed;      /* that does only where rows are formed as the bytes that leave the server */
	bool by_range;         /* its input runs by ranges, and PostgreSQL sorts the rows of each in its place */
	const char *why_alone; /* as in GpuSortPlanInfo */
	GpuSortUse use;        /* what the path right above makes of the order */
	GpuSortBlockIndex block_index;
} GpuSortPath;

/* A partial path of groups of its rows. */
typedef struct GpuSortGroupsPath
{
	CustomPath custom;       /* must be first field */
	List *clauses;           /* that they are by */
	double groups;           /* an estimate; a process can have fewer */
	List *aggregates;        /* of Aggref, of which the groups have states */
	uint64 transition_space; /* as in GroupingSetsPath */
} GpuSortGroupsPath;

extern const CustomScanMethods gpusort_columns_scan_methods;

extern bool gpusort_path_is_sort(const Path *path);
extern Path *gpusort_path_input(const Path *path);
extern Path *gpusort_path_over(const Path *path, Path *input);
extern Path *gpusort_path_in_ranges(const Path *path, Path *partial);
extern Path *gpusort_partial_of(const Path *path);
extern Path *gpusort_sorted_path(PlannerInfo *root, RelOptInfo *rel, Path *input, Path *partial, List *pathkeys);
extern Path *gpusort_first_blocks_path(PlannerInfo *root, RelOptInfo *rel, Path *scan, double rows, List *pathkeys,
									   const GpuSortBlockIndex *index, double index_time);
extern int gpusort_count_columns(List *exprs, const EquivalenceMember *member);
extern int gpusort_find_column(List *exprs, const Expr *expr);
extern int gpusort_path_key_columns(const Path *path, const PathKey *key);
extern List *gpusort_path_missing_columns(const Path *path, List *pathkeys);
extern Path *gpusort_shared_path(PlannerInfo *root, Path *partial, List *pathkeys);
extern Path *gpusort_output_path(PlannerInfo *root, RelOptInfo *rel, Path *child, int workers);
extern bool gpusort_path_is_output(const Path *path);
extern Path *gpusort_partial_path_child(const Path *path);
extern Path *gpusort_exchange_path(PlannerInfo *root, Path *child, const Path *whole, int workers, bool only_formed);
extern Path *gpusort_groups_path(RelOptInfo *rel, Path *partial, List *clauses, double groups, List *aggregates,
								 uint64 transition_space);
extern bool gpusort_path_is_groups(const Path *path);
extern Path *gpusort_groups_path_over(const Path *path, Path *partial);
extern Path *gpusort_columns_path(Path *agg, AggSplit split, PathTarget *columns);
extern double gpusort_path_shared_order_time(const GpuSortPath *path);
extern double gpusort_path_more_rows_time(const Path *path, double rows, double factor);

#endif /* GPUSORT_PATHS_H */
