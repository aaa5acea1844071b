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

#include "nodes/execnodes.h"

extern PlanState *gpusort_bound_node(LimitState *limit);
extern uint64 gpusort_bound_rows(const LimitState *limit);
extern uint64 gpusort_bound_offset(const LimitState *limit, const PlanState *node);
extern void gpusort_bound_pass(LimitState *limit, uint64 rows);

#endif /* GPUSORT_BOUND_H */
