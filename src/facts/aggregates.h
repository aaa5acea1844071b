/*-------------------------------------------------------------------------
 *
 * aggregates.h
 *	  What is known of PostgreSQL's aggregates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_AGGREGATES_H
#define GPUSORT_AGGREGATES_H

#include "compat.h"

#include "node.h"
#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"
#include "nodes/primnodes.h"

extern bool gpusort_aggregate_is_of_any_order(Oid aggregate);
extern bool gpusort_aggregate_is_of_parts(Oid aggregate);
extern bool gpusort_aggregate_is_percentile(Oid aggregate);
extern bool gpusort_aggregate_is_hypothetical(Oid aggregate);
extern bool gpusort_aggregate_may_be_counted(const Aggref *aggregate);
extern bool gpusort_aggregate_may_be_partial(const Aggref *aggregate);
extern List *gpusort_aggregates_of(const PlannerInfo *root, const PathTarget *target, List *having);
extern bool gpusort_aggregate_sorts_by(const Aggref *aggregate, const SortGroupClause *clause,
									   const GpuSortColumn *column);
extern const Aggref *gpusort_aggregate_without_cast(const Aggref *aggregate);

#endif /* GPUSORT_AGGREGATES_H */
