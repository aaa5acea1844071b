/*-------------------------------------------------------------------------
 *
 * native_time.h
 *	  How long PostgreSQL's own nodes take, read off paths, in ns.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NATIVE_TIME_H
#define GPUSORT_NATIVE_TIME_H

#include "compat.h"

#include "nodes/pathnodes.h"
#include "plan/model/shape.h"

extern double gpusort_path_group_time(PlannerInfo *root, GpuSortNodeKind kind, const Path *input, double rows,
									  double groups, double frequent, uint64 transition_space,
									  const GpuSortAggregates *aggregates);
extern GpuSortAggregates gpusort_aggregates_shape(PlannerInfo *root, List *aggregates, const Path *input,
												  bool in_groups, const GpuSortAggregates *sorts);
extern double gpusort_transition_sorts(PlannerInfo *root, List *aggregates, const Bitmapset *transitions,
									   const Path *input);
extern double gpusort_path_sets_time(PlannerInfo *root, const GroupingSetsPath *path, double rows, double more);
extern double gpusort_rows_time(GpuSortNodeKind kind, double rows);
extern double gpusort_cost_time(double cost);
extern double gpusort_path_native_sort_time(PlannerInfo *root, List *keys, const Path *input, double rows,
											double first);
extern double gpusort_shared_pages_cost(PlannerInfo *root, const Path *path);

#endif /* GPUSORT_NATIVE_TIME_H */
