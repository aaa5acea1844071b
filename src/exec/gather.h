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

/* What a node has found when it began, which workers have to find, too */
typedef struct GpuSortBeginning
{
	Oid user;
	uint64 changes; /* of functions, roles and the like, in this session */
} GpuSortBeginning;

extern TupleTableSlot *gpusort_gather_row(PlanState *gather);
extern void gpusort_gather_uncount_row(PlanState *gather);
extern GpuSortBeginning gpusort_gather_beginning(void);
extern bool gpusort_gather_begin_workers(PlanState *gather, const GpuSortBeginning *beginning);
extern void gpusort_gather_end_workers(PlanState *gather);

#endif /* GPUSORT_GATHER_H */
