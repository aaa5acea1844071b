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
	const Path *input; /* its rows are sorted; a partial path if gathered or shared */
	bool gathered;
	bool shared;      /* all processes read the sorted rows, by ranges */
	double rows;      /* in all processes together */
	GpuSortTime time; /* without the input's time */

	const Path *range_top; /* the highest path above that runs by ranges of its rows, or NULL */
	bool range_parts;      /* the aggregate right above range_top aggregates each range in parts */
	bool only_formed;      /* ranges pay only if workers form rows as the bytes that leave the server */
	bool by_range;         /* its input runs by ranges, and PostgreSQL sorts the rows of each range instead */
	const char *why_alone; /* as in GpuSortPlanInfo */
	GpuSortUse use;        /* how the path right above uses the order */
	GpuSortBlockIndex block_index;
	List *counted; /* as in GpuSortPlanInfo; the target's last columns (run_counts.c) */
} GpuSortPath;

/* A partial path that groups its rows. */
typedef struct GpuSortGroupsPath
{
	CustomPath custom;       /* must be first field */
	List *clauses;           /* the clauses that it groups by */
	double groups;           /* estimated number; a process may have fewer */
	List *aggregates;        /* Aggrefs whose states the groups have */
	uint64 transition_space; /* as in GroupingSetsPath */
} GpuSortGroupsPath;

extern const CustomScanMethods gpusort_columns_scan_methods;

extern bool gpusort_path_is_sort(const Path *path);
extern Path *gpusort_path_input(const Path *path);
extern Path *gpusort_path_over(const Path *path, Path *input);
extern Path *gpusort_path_in_ranges(const Path *path, Path *partial);
extern Path *gpusort_partial_of(const Path *path);
extern Path *gpusort_path_in_table_order(PlannerInfo *root, Path *path);
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
