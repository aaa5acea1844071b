/*-------------------------------------------------------------------------
 *
 * kept_rows.h
 *	  Which rows of each group the nodes above a finished sort look at.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEPT_ROWS_H
#define GPUSORT_KEPT_ROWS_H

#include "compat.h"

#include "node.h"
#include "plan/node_kinds.h"

/* What a plan looks at of the rows of one below it. */
typedef struct GpuSortLooksAt
{
	GpuSortKeptRows kept;   /* but for its columns; without a bound: all rows */
	GpuSortGrouping groups; /* tells groups apart */
	GpuSortGrouping order;  /* tells peers apart, within a group */
} GpuSortLooksAt;

extern GpuSortLooksAt gpusort_plan_looks_at(const Plan *plan, const GpuSortLooksAt *above);
extern void gpusort_note_kept_rows(CustomScan *scan, const GpuSortLooksAt *above);

#endif /* GPUSORT_KEPT_ROWS_H */
