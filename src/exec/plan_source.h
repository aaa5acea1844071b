/*-------------------------------------------------------------------------
 *
 * plan_source.h
 *	  The rows of a plan, as the source of a sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_SOURCE_H
#define GPUSORT_PLAN_SOURCE_H

#include "compat.h"

#include "exec/range_scan.h"
#include "nodes/execnodes.h"
#include "sort/heap_rows.h"

typedef struct GpuSortPlanSource
{
	GpuSortSource source; /* must be first field */
	PlanState *child;
	bool whole;             /* all attributes are visible */
	TupleTableSlot *stored; /* else the child's slot, with a tuple of the visible ones; NULL if rows must be formed */

	/*
	 * By scan, which is the child, or where that is an Append one of its parts, in their order: what gives the rows after
	 * the first by the page; NULL: they come one by one.
	 */
	struct GpuSortPageSource **pages;
	AppendState *append; /* the child, if its parts come by the page */
} GpuSortPlanSource;

extern void gpusort_plan_source_init(GpuSortPlanSource *plan, PlanState *child, const GpuSortHeapRows *rows,
									 const GpuSortColumn *columns, int ncolumns, bool may_restart,
									 const GpuSortBlockIndex *index);
extern GpuSortRangeScan *gpusort_plan_source_ranges(const GpuSortPlanSource *plan);

/* For sources that get a plan's rows in another way */
extern void gpusort_plan_source_show(GpuSortPlanSource *plan, TupleTableSlot *slot, GpuSortRow *row);
extern void gpusort_plan_source_restart(GpuSortSource *source);
extern bool gpusort_plan_source_table_column(GpuSortSource *source, AttrNumber attno, GpuSortTableColumn *column,
											 Oid *type);

#endif /* GPUSORT_PLAN_SOURCE_H */
