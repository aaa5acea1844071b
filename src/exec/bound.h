/*-------------------------------------------------------------------------
 *
 * bound.h
 *	  How many of its rows a GpuSort is asked for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BOUND_H
#define GPUSORT_BOUND_H

#include "compat.h"

#include "keys/keys.h"
#include "node.h"
#include "nodes/execnodes.h"
#include "nodes/params.h"
#include "sort/sort.h"

extern int gpusort_bound_children(PlanState *ps, PlanState ***children);
extern bool gpusort_bound_has_ties(const LimitState *limit, const PlanState *node, const GpuSortColumn *columns,
								   int ncolumns);
extern uint64 gpusort_bound_rows(const LimitState *limit, bool with_ties);
extern uint64 gpusort_bound_offset(const LimitState *limit, const PlanState *node);
extern void gpusort_bound_pass(LimitState *limit, uint64 rows);
extern GpuSortGroupRows gpusort_bound_of_groups(const GpuSortKeptRows *kept, ParamListInfo params);

#endif /* GPUSORT_BOUND_H */
