/*-------------------------------------------------------------------------
 *
 * presorted.h
 *	  Takes sorts out of aggregates whose rows come in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PRESORTED_H
#define GPUSORT_PRESORTED_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern AggPath *gpusort_presorted_settle(PlannerInfo *root, const AggPath *agg, bool in_ranges);
extern Path *gpusort_presorted_columns(const AggPath *agg, AggPath *settled);
extern Path *gpusort_presorted_path(PlannerInfo *root, AggPath *agg, bool in_ranges);
extern Path *gpusort_with_refs(PlannerInfo *root, Path *path, List *exprs);
extern void gpusort_number_aggregates(const PlannerInfo *root, const PathTarget *target, List *having);

#endif /* GPUSORT_PRESORTED_H */
