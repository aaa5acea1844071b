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
#include "nodes/plannodes.h"
#include "plan/admission.h"

/*
 * The part of a row's cost that falls on ingest, which parallel processes
 * share: two fifths measured with the host engine, two thirds with a GPU.
 */
#define GPUSORT_INGEST_PART 0.5

/* What a sort costs over its input, in PostgreSQL's unit. */
typedef struct GpuSortCost
{
	double setup;
	double row;
	double compare; /* of columns that are not encoded, per row; the leader's */
} GpuSortCost;

extern GpuSortCost gpusort_path_cost(PlannerInfo *root, const Path *input, List *pathkeys,
									 const GpuSortAdmission *admission);
extern GpuSortCost gpusort_sort_node_cost(List *rtable, const Sort *sort, double rows,
										  const GpuSortAdmission *admission);

#endif /* GPUSORT_COST_H */
