/*-------------------------------------------------------------------------
 *
 * range_plan.h
 *	  By which columns a finished plan runs range by range of sorted rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RANGE_PLAN_H
#define GPUSORT_RANGE_PLAN_H

#include "compat.h"

#include "node.h"
#include "nodes/plannodes.h"

/* A leading sort column at whose borders ranges may be cut. */
typedef struct GpuSortRangeColumn GpuSortRangeColumn;

/* What is known of a plan that runs range by range. */
typedef struct GpuSortRangePlan
{
	List *sorts;                 /* the GpuSorts (CustomScans) that it reads, in their order */
	int ncolumns;                /* number of leading sort columns that this plan's rows still have unchanged */
	GpuSortRangeColumn *columns; /* these columns; they may divide ranges */
	GpuSortUseKind use;          /* how the node right above the sort uses the order */
	int partition_columns;       /* as in GpuSortOutputInfo */
} GpuSortRangePlan;

extern Oid *gpusort_range_key_types(const GpuSortRangePlan *ranges);
extern bool gpusort_range_plan_find(const Plan *plan, GpuSortRangePlan *ranges);

#endif /* GPUSORT_RANGE_PLAN_H */
