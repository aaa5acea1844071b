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
#include "plan/offer/admission.h"

/* What a sort costs over its input, in PostgreSQL's unit. */
typedef struct GpuSortCost
{
	double margin; /* cost over time, in units that take PostgreSQL's sort as long */
	double setup;

	/* per row */
	double ingest;  /* shared by parallel processes */
	double order;   /* from ingest to the first row: the leader waits for it */
	double emit;    /* the leader's */
	double compare; /* of rows that the keys do not tell apart, the leader's */
	double ties;    /* of that: of different strings that are alike in the first level of a collation */
} GpuSortCost;

extern GpuSortCost gpusort_path_cost(PlannerInfo *root, const Path *input, List *pathkeys,
									 const GpuSortAdmission *admission);
extern GpuSortCost gpusort_sort_node_cost(List *rtable, const Sort *sort, double rows,
										  const GpuSortAdmission *admission);
extern double gpusort_top_n_cost(double rows, double first, int width, bool string_key);
extern GpuSortCost gpusort_cost_of_first(GpuSortCost cost, double rows, double first);
extern GpuSortCost gpusort_cost_scaled(GpuSortCost cost, double factor);

#endif /* GPUSORT_COST_H */
