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
	GPUSORT_RANGES_GROUP,  /* rows that are equal in the columns that it groups by have to be in one range */
	GPUSORT_RANGES_WINDOW, /* so have those of a partition, or peers, where a window may go on from another range */
	GPUSORT_RANGES_SORT,   /* it sorts the rows of each range again */
	GPUSORT_RANGES_JOIN,   /* those of two inputs are cut at the same borders, and joined */
	GPUSORT_RANGES_SETS,   /* the same, and compared */
} GpuSortRangeRule;

/* Columns that a finished node groups by. */
typedef struct GpuSortGrouping
{
	int count;
	const AttrNumber *attnos; /* in the child's rows */
	const Oid *operators;     /* of equality */
	const Oid *collations;
} GpuSortGrouping;

/* The rows below a path, of which ranges are asked for. */
typedef struct GpuSortPathRanges
{
	PlannerInfo *root;
	const PathKey *key;  /* by whose values ranges are cut; NULL: rows are in no such order */
	bool shared;         /* processes share the rows already, below a Gather */
	const char *why_not; /* a path does not run by them, as the rest of a sentence; NULL: nobody expects it to */
} GpuSortPathRanges;

/* A kind of node.  Functions that are NULL have nothing to say. */
typedef struct GpuSortNodeRow
{
	NodeTag plan;
	NodeTag path; /* that is made into it; T_Invalid: several, or of no interest */
	GpuSortRangeRule ranges;
	bool can_end_columns; /* it computes its columns, and can do without the last of them */
	GpuSortGrouping (*grouping)(const Plan *plan);

	/* Returns true if a path, whose columns workers may compute, may run by ranges of rows with a key; NULL: it may. */
	bool (*path_may_run)(GpuSortPathRanges *ranges, const Path *path);
} GpuSortNodeRow;

extern const GpuSortNodeRow *gpusort_node_row(const Plan *plan);
extern bool gpusort_path_may_run_by_ranges(GpuSortPathRanges *ranges, const Path *path);
extern bool gpusort_may_run_in_ranges(GpuSortPathRanges *ranges, Node *expression);
extern GpuSortWindowNeeds gpusort_window_path_needs(const WindowAggPath *path);
extern bool gpusort_key_parts_both_sides(const PathKey *key);
extern bool gpusort_join_keeps_side(JoinType type, bool outer);
extern PathKey *gpusort_unknown_key(const PathKey *key);
extern const PathKey *gpusort_joined_range_key(const MergePath *path, const PathKey *outer, const PathKey *inner);
extern bool gpusort_joins_range_keys(const MergePath *path, const PathKey *outer, const PathKey *inner);

#endif /* GPUSORT_NODE_KINDS_H */
