/*-------------------------------------------------------------------------
 *
 * shape.h
 *	  What the model of time asks of a node, of a path (path_time.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHAPE_H
#define GPUSORT_SHAPE_H

#include "compat.h"

#include "facts/windows.h"
#include "nodes/pg_list.h"

/*
 * A path or node of ours has to be faster than another by a fifth of what it does itself, for what the model says is
 * not known that well; and by some time (gpusort_least_gain).
 */
#define GPUSORT_MARGIN 1.2

/* By how much estimated numbers of rows can be wrong. */
#define GPUSORT_GUESS 10.0

typedef enum GpuSortNodeKind
{
	GPUSORT_NODE_HASH_GROUPS, /* groups, DISTINCT and set operations by a hash table */
	GPUSORT_NODE_SORTED_GROUPS,
	GPUSORT_NODE_UNIQUE, /* groups without aggregates, from rows in order */
	GPUSORT_NODE_SETOP,  /* from rows in order */
	GPUSORT_NODE_WINDOW,
	GPUSORT_NODE_NUMBERING, /* a window over a GpuSort that only numbers rows */
	GPUSORT_NODE_RUNNING,   /* another window over a GpuSort whose functions follow from the rows before */
	GPUSORT_NODE_HASH_JOIN,
	GPUSORT_NODE_MERGE_JOIN,
	GPUSORT_NODE_MERGE_APPEND,
	GPUSORT_NODE_GATHER,
	GPUSORT_NODE_GATHER_MERGE,
	GPUSORT_NODE_OTHER, /* takes what its cost says */
} GpuSortNodeKind;

/* The aggregates of a node, by what their transitions cost. */
typedef struct GpuSortAggregates
{
	int values;         /* number of aggregates whose state is a value */
	int states;         /* number of those whose state has memory of its own */
	double sorts;       /* number of those that sort each group (DISTINCT, ORDER BY), weighted: 1 for numbers */
	int sorts_in_order; /* number of ordered sets that sort rows already in order */
} GpuSortAggregates;

/* A node without what is below it, in one process. */
typedef struct GpuSortShape
{
	GpuSortNodeKind kind;
	double rows;       /* input rows; the outer side's for a join */
	double inner_rows; /* of a join */
	double rows_out;
	double groups;
	double frequent; /* fraction of the rows whose groups are frequent, and so in the cache */
	int width;       /* bytes of an input row; the outer side's for a join */
	int inner_width; /* of a join */
	GpuSortAggregates aggregates;
	double memory;     /* bytes that its hash table may take before it spills; 0 means no limit */
	double entry;      /* bytes of a group in a hash table */
	double table_rows; /* rows in a hash join's table, which processes may share */
	double batches;    /* number of a hash join's batches */
	double comparison; /* for a merge join: how many times as long as for numbers a comparison takes; 0 means 1 */
	int workers;       /* those of a Gather */
	double cost;       /* for other nodes */
} GpuSortShape;

extern double gpusort_node_time(const GpuSortShape *shape);
extern double gpusort_store_time(double rows, double width);
extern double gpusort_time_in_ranges(double above, double rows, double processes);
extern double gpusort_time_of_part(double above, double processes);
extern double gpusort_start_time(int workers);
extern double gpusort_range_processes(int workers);
extern double gpusort_plan_processes(int workers);
extern double gpusort_crowd(int workers);
extern GpuSortNodeKind gpusort_window_kind(const GpuSortWindowNeeds *needs, GpuSortAggregates *aggregates);
extern double gpusort_window_again_time(const GpuSortWindowNeeds *needs, double rows);

#endif /* GPUSORT_SHAPE_H */
