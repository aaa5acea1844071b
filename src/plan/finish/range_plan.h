/*-------------------------------------------------------------------------
 *
 * range_plan.h
 *	  Which finished plans may run range by range of their sorted rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RANGE_PLAN_H
#define GPUSORT_RANGE_PLAN_H

#include "compat.h"

#include "nodes/extensible.h"
#include "nodes/plannodes.h"
#include "node.h"
#include "plan/finish/node_safety.h"

/* A leading sort column at whose borders ranges may be cut. */
typedef struct GpuSortRangeColumn GpuSortRangeColumn;

/* What is known of a plan that may run range by range. */
typedef struct GpuSortRangePlan
{
	bool partial;                /* the rows are a partial plan's */
	List *sorts;                 /* of CustomScan: the GpuSorts that it reads, over Gather or shared, in their order */
	int ncolumns;                /* so many leading columns of all these sorts are the same below and here */
	GpuSortRangeColumn *columns; /* and may part ranges */
	GpuSortUseKind use;          /* what the node right above the sort makes of the order */
	bool works;                  /* it does more than to pass rows on */
	int partition_columns;       /* as in GpuSortOutputInfo */
} GpuSortRangePlan;

extern bool gpusort_is_gathered_sort(const Plan *plan);
extern Oid *gpusort_range_key_types(const GpuSortRangePlan *ranges);
extern bool gpusort_range_plan_find(const Plan *plan, bool partial, GpuSortSafety *safety, GpuSortRangePlan *ranges);

#endif /* GPUSORT_RANGE_PLAN_H */
