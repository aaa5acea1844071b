/*-------------------------------------------------------------------------
 *
 * explain.h
 *	  What EXPLAIN shows of a GpuSort node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXPLAIN_H
#define GPUSORT_EXPLAIN_H

#include "compat.h"

#include "commands/explain.h"
#include "nodes/execnodes.h"

extern void gpusort_explain(CustomScanState *node, List *ancestors, ExplainState *es);

#endif /* GPUSORT_EXPLAIN_H */
