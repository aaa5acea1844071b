/*-------------------------------------------------------------------------
 *
 * parallel_safety.h
 *	  Whether parallel workers may compute an expression.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARALLEL_SAFETY_H
#define GPUSORT_PARALLEL_SAFETY_H

#include "compat.h"

#include "nodes/pathnodes.h"

/* What is asked about the expressions of one statement, and found out. */
typedef struct GpuSortSafety
{
	List *subplans;          /* finished plans, by plan_id - 1; NIL: none is finished */
	Bitmapset *known_params; /* that initPlans set, whose values Gather passes to workers */
	Bitmapset *used_params;  /* those of them that the expressions read */
	const char *why_not;     /* about the last expression that is not safe */
} GpuSortSafety;

extern bool gpusort_safety_of_expression(GpuSortSafety *safety, Node *expression);
extern const char *gpusort_expression_hazard(PlannerInfo *root, Node *expression);
extern bool gpusort_expression_is_safe(PlannerInfo *root, Node *expression);

#endif /* GPUSORT_PARALLEL_SAFETY_H */
