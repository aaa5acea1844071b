/*-------------------------------------------------------------------------
 *
 * partial_output.h
 *	  The GpuSortOutput node whose rows go to the node above it in the same process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARTIAL_OUTPUT_H
#define GPUSORT_PARTIAL_OUTPUT_H

#include "compat.h"

#include "nodes/execnodes.h"

extern Node *gpusort_partial_output_create_state(void);
extern void gpusort_partial_output_note_gather(PlanState *ps, PlanState *gather);

#endif /* GPUSORT_PARTIAL_OUTPUT_H */
