/*-------------------------------------------------------------------------
 *
 * gather.h
 *	  Reads from a Gather of whose rows some are empty, or which has workers where the statement has none.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GATHER_H
#define GPUSORT_GATHER_H

#include "compat.h"

#include "nodes/execnodes.h"

extern TupleTableSlot *gpusort_gather_row(PlanState *gather);
extern void gpusort_gather_uncount_row(PlanState *gather);
extern bool gpusort_gather_begin_workers(PlanState *gather);
extern void gpusort_gather_end_workers(PlanState *gather);

#endif /* GPUSORT_GATHER_H */
