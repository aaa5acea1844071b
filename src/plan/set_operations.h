/*-------------------------------------------------------------------------
 *
 * set_operations.h
 *	  INTERSECT and EXCEPT by sorting, with an input that several processes can read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SET_OPERATIONS_H
#define GPUSORT_SET_OPERATIONS_H

#include "compat.h"

#include "nodes/pathnodes.h"

/* What a set operation reads. */
typedef struct GpuSortSetOpInput
{
	Path *rows;     /* of both sides, each with the number of its side */
	Path *partial;  /* the same rows in parallel; NULL: there is none */
	List *pathkeys; /* all columns but that number */
} GpuSortSetOpInput;

extern Path *gpusort_partial_append(PlannerInfo *root, RelOptInfo *rel, AppendPath *append);
extern bool gpusort_set_operation_input(PlannerInfo *root, const Path *path, GpuSortSetOpInput *input);
extern Path *gpusort_set_operation_over(PlannerInfo *root, RelOptInfo *rel, const Path *path, Path *sorted);

#endif /* GPUSORT_SET_OPERATIONS_H */
