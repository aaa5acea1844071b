/*-------------------------------------------------------------------------
 *
 * set_operations.h
 *	  INTERSECT and EXCEPT by sorting, with inputs that several processes can read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SET_OPERATIONS_H
#define GPUSORT_SET_OPERATIONS_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern Path *gpusort_partial_append(PlannerInfo *root, RelOptInfo *rel, AppendPath *append);
extern Path *gpusort_sorted_set_operation(PlannerInfo *root, RelOptInfo *rel, Path *path, bool parallel);

#endif /* GPUSORT_SET_OPERATIONS_H */
