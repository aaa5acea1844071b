/*-------------------------------------------------------------------------
 *
 * gather.h
 *	  Reads from a Gather through which the leader's part of the plan below sends empty rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GATHER_H
#define GPUSORT_GATHER_H

#include "compat.h"

#include "nodes/execnodes.h"

extern TupleTableSlot *gpusort_gather_row(PlanState *gather);
extern void gpusort_gather_uncount_row(PlanState *gather);

#endif /* GPUSORT_GATHER_H */
