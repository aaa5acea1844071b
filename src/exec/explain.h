/*-------------------------------------------------------------------------
 *
 * explain.h
 *	  What EXPLAIN shows for a GpuSort node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXPLAIN_H
#define GPUSORT_EXPLAIN_H

#include "compat.h"

#include "parallel/claims.h"
#include "exec/scan_state.h"
#include "nodes/extensible.h" /* ExplainState, wherever the version has it */

extern void gpusort_explain_keys(GpuSortScanState *state, const char *label, int columns, List *ancestors,
								 ExplainState *es);
extern void gpusort_explain_processes(const GpuSortProcessFigures *figures, int nprocesses, ExplainState *es);
extern void gpusort_explain(CustomScanState *node, List *ancestors, ExplainState *es);

#endif /* GPUSORT_EXPLAIN_H */
