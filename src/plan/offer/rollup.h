/*-------------------------------------------------------------------------
 *
 * rollup.h
 *	  Grouping sets with a grand total, in two parts of which one has groups.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROLLUP_H
#define GPUSORT_ROLLUP_H

#include "compat.h"

#include "nodes/pathnodes.h"

/* The two parts. */
typedef struct GpuSortRollup
{
	GroupingSetsPath *groups; /* all sets but the empty one */
	Path *total;              /* the empty one: a row */
} GpuSortRollup;

extern bool gpusort_may_read_twice(PlannerInfo *root);
extern bool gpusort_rollup_split(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel,
								 const GroupingSetsPath *sorted, GpuSortRollup *parts);
extern List *gpusort_calls_of(const PathTarget *total, List *having);
extern bool gpusort_reads_aggregates_alone(const PathTarget *total, List *having);
extern PathTarget *gpusort_partial_target(PlannerInfo *root, List *aggregates);
extern Path *gpusort_total_path(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel,
								PathTarget *target, List *having, bool parallel);
extern Path *gpusort_grand_total_path(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel,
									  const GroupingSetsPath *like);
extern Path *gpusort_sets_join(PlannerInfo *root, RelOptInfo *grouped_rel, const GroupingSetsPath *like, List *parts);

#endif /* GPUSORT_ROLLUP_H */
