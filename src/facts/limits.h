/*-------------------------------------------------------------------------
 *
 * limits.h
 *	  How many rows LIMIT and OFFSET ask for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LIMITS_H
#define GPUSORT_LIMITS_H

#include "compat.h"

#include "nodes/nodes.h"
#include "nodes/params.h"

extern double gpusort_limit_rows(Node *count, Node *offset, double rows, bool *known);
extern bool gpusort_known_limit(Node *limit, ParamListInfo params, int64 *number);

#endif /* GPUSORT_LIMITS_H */
