/*-------------------------------------------------------------------------
 *
 * cost.h
 *	  What the planner thinks that a GpuSort costs over its input.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COST_H
#define GPUSORT_COST_H

#include "compat.h"

#include "nodes/pathnodes.h"

/* What a sort costs over its input, in PostgreSQL's unit. */
typedef struct GpuSortCost
{
	double		setup;
	double		row;
	double		compare;		/* of columns that are not encoded, per row; the leader's */
} GpuSortCost;

extern bool gpusort_would_use_cuda(uint32 engines);
extern GpuSortCost gpusort_estimate_cost(PlannerInfo *root, const Path *input, int encodable);

#endif							/* GPUSORT_COST_H */
