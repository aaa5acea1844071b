/*-------------------------------------------------------------------------
 *
 * combine.h
 *	  Splits grouping sets into groups of parts of the rows, and sets of these.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COMBINE_H
#define GPUSORT_COMBINE_H

#include "compat.h"

#include "nodes/plannodes.h"

/* The grouping set that has the columns of all others.  Its arrays belong to the plan. */
typedef struct GpuSortFinestSet
{
	int count;
	AttrNumber *attnos; /* of the rows that are grouped */
	Oid *operators;
	Oid *collations;
	double groups;    /* an estimate */
	List *aggregates; /* of Aggref: all that are computed */
} GpuSortFinestSet;

extern bool gpusort_combine_may_sets(const Agg *agg, GpuSortFinestSet *finest);
extern Agg *gpusort_combine_split_sets(Agg *agg, const GpuSortFinestSet *finest, AggStrategy strategy, Plan *below,
									   int plan_node_id);

#endif /* GPUSORT_COMBINE_H */
