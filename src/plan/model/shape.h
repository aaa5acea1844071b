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

/* Estimated numbers of rows can be wrong by so much. */
#define GPUSORT_GUESS 10.0

typedef enum GpuSortNodeKind
{
	GPUSORT_NODE_HASH_GROUPS, /* by a hash table: groups, DISTINCT, set operations */
	GPUSORT_NODE_SORTED_GROUPS,
	GPUSORT_NODE_UNIQUE, /* groups of rows in order, without aggregates */
	GPUSORT_NODE_SETOP,  /* of rows in order */
	GPUSORT_NODE_WINDOW,
	GPUSORT_NODE_NUMBERING, /* a window that numbers rows of a GpuSort, which passes them on */
	GPUSORT_NODE_RUNNING,   /* another whose functions follow from the rows before, of a GpuSort's */
	GPUSORT_NODE_HASH_JOIN,
	GPUSORT_NODE_MERGE_JOIN,
	GPUSORT_NODE_MERGE_APPEND,
	GPUSORT_NODE_GATHER,
	GPUSORT_NODE_GATHER_MERGE,
	GPUSORT_NODE_OTHER, /* what its cost says */
} GpuSortNodeKind;

/* The aggregates of a node: what their transitions take. */
typedef struct GpuSortAggregates
{
	int values;         /* whose state is a value */
	int states;         /* whose state has memory of its own */
	double sorts;       /* with DISTINCT or ORDER BY, which sort the rows of each group: as many as of numbers */
	int sorts_in_order; /* the same, of rows that are in order: ordered sets */
} GpuSortAggregates;

/* A node, beside what is below it, in one process. */
typedef struct GpuSortShape
{
	GpuSortNodeKind kind;
	double rows;       /* in; of a join the outer side's */
	double inner_rows; /* of a join */
	double rows_out;
	double groups;
	double frequent; /* part of the rows that groups have whose place in a hash table is always in the cache */
	int width;       /* bytes of a row that comes in; of a join the outer side's */
	int inner_width; /* of a join */
	GpuSortAggregates aggregates;
	double memory;     /* bytes that its hash table may take, before it goes to disk; 0: as much as it likes */
	double entry;      /* bytes of a group in a hash table */
	double table_rows; /* of a hash join's table, which processes may share */
	double batches;    /* of a hash join */
	double comparison; /* of a merge join: how many times as long as of numbers a comparison takes; 0: as long */
	int workers;       /* of a Gather */
	double cost;       /* of another node */
} GpuSortShape;

extern double gpusort_node_time(const GpuSortShape *shape);
extern double gpusort_time_in_ranges(double above, double rows, double processes);
extern double gpusort_time_of_part(double above, double processes);
extern double gpusort_start_time(int workers);
extern double gpusort_range_processes(int workers);
extern double gpusort_plan_processes(int workers);
extern double gpusort_crowd(int workers);
extern GpuSortNodeKind gpusort_window_kind(const GpuSortWindowNeeds *needs, GpuSortAggregates *aggregates);
extern double gpusort_window_again_time(const GpuSortWindowNeeds *needs, double rows);

#endif /* GPUSORT_SHAPE_H */
