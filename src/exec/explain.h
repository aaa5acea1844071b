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

#include "nodes/extensible.h" /* ExplainState, wherever the version has it */

extern void gpusort_explain(CustomScanState *node, List *ancestors, ExplainState *es);

#endif /* GPUSORT_EXPLAIN_H */
