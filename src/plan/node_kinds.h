/*-------------------------------------------------------------------------
 *
 * node_kinds.h
 *	  The nodes that may run range by range of sorted rows: one table, of finished plans and of paths.
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

/* What a finished node computes beside its target list and its filter. */
typedef struct GpuSortComputed
{
	List *expressions;
	List *functions; /* their OIDs */
} GpuSortComputed;

/* A kind of node.  Functions that are NULL have nothing to say. */
typedef struct GpuSortNodeRow
{
	NodeTag plan;
	NodeTag path; /* that is made into it; T_Invalid: several, or of no interest */
	GpuSortRangeRule ranges;
	const char *not_grouped; /* of those that group: why not, where the sort begins with another column */
	bool can_end_columns;    /* it computes its columns, and can do without the last of them */

	/*
	 * Returns true if it may run range by range; partial: in a partial plan.
	 * Otherwise *why_not can say why.
	 */
	bool (*may_run)(const Plan *plan, bool partial, const char **why_not);
	GpuSortGrouping (*grouping)(const Plan *plan);
	void (*computed)(const Plan *plan, GpuSortComputed *computed);

	/* Returns true if it is thought to run by ranges of key, from a path; NULL: if workers may compute its columns. */
	bool (*path_may_run)(PlannerInfo *root, const Path *path, const PathKey *key, bool shared);
} GpuSortNodeRow;

extern const GpuSortNodeRow *gpusort_node_row(const Plan *plan);
extern bool gpusort_path_may_run_by_ranges(PlannerInfo *root, const Path *path, const PathKey *key, bool shared);
extern GpuSortWindowNeeds gpusort_window_path_needs(const WindowAggPath *path);
extern bool gpusort_key_parts_both_sides(const PathKey *key);
extern bool gpusort_join_keeps_side(JoinType type, bool outer);
extern PathKey *gpusort_unknown_key(const PathKey *key);
extern const PathKey *gpusort_joined_range_key(const MergePath *path, const PathKey *outer, const PathKey *inner);
extern bool gpusort_joins_range_keys(const MergePath *path, const PathKey *outer, const PathKey *inner);

#endif /* GPUSORT_NODE_KINDS_H */
