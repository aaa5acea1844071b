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

/*
 * The part of a row's cost that falls on its way in, which parallel processes
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

extern bool gpusort_would_use_cuda(uint32 engines);
extern GpuSortCost gpusort_path_cost(PlannerInfo *root, const Path *input, List *pathkeys, int encodable);
extern GpuSortCost gpusort_sort_node_cost(List *rtable, const Sort *sort, double rows, int encodable);

#endif /* GPUSORT_COST_H */
