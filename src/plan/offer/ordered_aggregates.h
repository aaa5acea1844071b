/*-------------------------------------------------------------------------
 *
 * ordered_aggregates.h
 *	  Aggregates that want their rows in an order, or each value once, over a GpuSort that gives them so.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ORDERED_AGGREGATES_H
#define GPUSORT_ORDERED_AGGREGATES_H

#include "compat.h"

#include "nodes/pathnodes.h"
#include "plan/model/shape.h"

/* How one order of the rows serves all aggregates of a node. */
typedef enum GpuSortServed
{
	GPUSORT_SERVED_NONE,        /* it does not serve all of them */
	GPUSORT_SERVED_ORDER,       /* aggregates with ORDER BY need not sort */
	GPUSORT_SERVED_DISTINCT,    /* all have DISTINCT of the same columns, which a Unique below provides */
	GPUSORT_SERVED_FIRST_ROWS,  /* those with DISTINCT filter the first row of each value, which a window numbers */
	GPUSORT_SERVED_PERCENTILES, /* all are percentiles, or rank() and its like, which read few rows (percentiles.c) */
	GPUSORT_SERVED_MODE,        /* all are mode(), for which the rows of each value are counted (mode.c) */
} GpuSortServed;

/* Lists of aggregates contain a query's Aggrefs. */
extern Path *gpusort_ordered_aggregates_path(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *input_rel,
											 const GroupPathExtraData *grouping, PathTarget *target, bool parallel);
extern List *gpusort_aggregates_of_one_order(PlannerInfo *root, List *aggregates);
extern bool gpusort_path_sorts_for_aggregates(PlannerInfo *root, const Path *path);
extern double gpusort_first_rows_time(List *aggregates, double rows);
extern bool gpusort_aggregates_combine(PlannerInfo *root, List *aggregates, GpuSortServed served);
extern GpuSortServed gpusort_aggregates_served(PlannerInfo *root, const AggPath *path, List *aggregates,
											   GpuSortAggregates *sorts);

#endif /* GPUSORT_ORDERED_AGGREGATES_H */
