/*-------------------------------------------------------------------------
 *
 * parallel_safety.h
 *	  Whether what nodes of a finished plan compute may be computed in parallel workers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARALLEL_SAFETY_H
#define GPUSORT_PARALLEL_SAFETY_H

#include "compat.h"

#include "nodes/plannodes.h"

/* What is asked about one statement's nodes, and found out. */
typedef struct GpuSortSafety
{
	PlannedStmt *stmt;
	Bitmapset *initplan_params; /* that initPlans anywhere in the statement set, CTEs' aside */
	Bitmapset *used_params;     /* those of them that the nodes asked about read */
	const char *why_not;        /* of the last node that is not safe */
} GpuSortSafety;

extern void gpusort_safety_init(GpuSortSafety *safety, PlannedStmt *stmt);
extern bool gpusort_safety_of_node(GpuSortSafety *safety, const Plan *plan);

#endif /* GPUSORT_PARALLEL_SAFETY_H */
