/*-------------------------------------------------------------------------
 *
 * node_kinds.h
 *	  The nodes that may run range by range of sorted rows: one table, of paths and of finished plans.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NODE_KINDS_H
#define GPUSORT_NODE_KINDS_H

#include "compat.h"

#include "facts/windows.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* What a node does to ranges of the rows that it reads. */
typedef enum GpuSortRangeRule
{
	GPUSORT_RANGES_PASS,   /* rows stay in their ranges */
	GPUSORT_RANGES_GROUP,  /* rows that are equal in its grouping columns must be in one range */
	GPUSORT_RANGES_WINDOW, /* likewise for partitions, or peers if a window may continue from another range */
	GPUSORT_RANGES_SORT,   /* it sorts the rows of each range again */
	GPUSORT_RANGES_JOIN,   /* two inputs are cut at the same borders, and joined */
	GPUSORT_RANGES_SETS,   /* two inputs are cut at the same borders, and compared as sets */
} GpuSortRangeRule;

/* Columns that a finished node groups by. */
typedef struct GpuSortGrouping
{
	int count;
	const AttrNumber *attnos; /* in the child's rows */
	const Oid *operators;     /* equality operators */
	const Oid *collations;
} GpuSortGrouping;

/* The rows below a path that may run by ranges of them. */
typedef struct GpuSortPathRanges
{
	PlannerInfo *root;
	const PathKey *key;  /* ranges are cut by its values; NULL if the rows are in no such order */
	bool shared;         /* processes already share the rows, below a Gather */
	const char *why_not; /* why a path does not run by ranges, for a message; NULL if nobody would expect it to */
} GpuSortPathRanges;

/* A kind of node.  Functions may be NULL. */
typedef struct GpuSortNodeRow
{
	NodeTag plan;
	NodeTag path; /* the kind of path that becomes this node; T_Invalid if there are several, or none that matters */
	GpuSortRangeRule ranges;
	bool can_end_columns; /* it computes its columns, and the last of them can be removed */
	GpuSortGrouping (*grouping)(const Plan *plan);

	/* Returns true if a path whose columns workers may compute may run by ranges; NULL means always. */
	bool (*path_may_run)(GpuSortPathRanges *ranges, const Path *path);
} GpuSortNodeRow;

extern const GpuSortNodeRow *gpusort_node_row(const Plan *plan);
extern bool gpusort_path_may_run_by_ranges(GpuSortPathRanges *ranges, const Path *path);
extern bool gpusort_may_run_in_ranges(GpuSortPathRanges *ranges, Node *expression);
extern GpuSortWindowNeeds gpusort_window_path_needs(const WindowAggPath *path);
extern bool gpusort_window_path_keeps(const WindowAggPath *path, GpuSortKeptRows *kept);
extern bool gpusort_key_parts_both_sides(const PathKey *key);
extern bool gpusort_join_keeps_side(JoinType type, bool outer);
extern PathKey *gpusort_unknown_key(const PathKey *key);
extern const PathKey *gpusort_joined_range_key(const MergePath *path, const PathKey *outer, const PathKey *inner);
extern bool gpusort_joins_range_keys(const MergePath *path, const PathKey *outer, const PathKey *inner);

#endif /* GPUSORT_NODE_KINDS_H */
