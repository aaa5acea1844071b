/*-------------------------------------------------------------------------
 *
 * expressions.h
 *	  The expressions of a finished plan's node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXPRESSIONS_H
#define GPUSORT_EXPRESSIONS_H

#include "compat.h"

#include "nodes/plannodes.h"

/* Whose columns the Vars of an expression are. */
typedef enum GpuSortColumnsOf
{
	GPUSORT_OF_NOBODY,
	GPUSORT_OF_SCAN,  /* of the scanned relation; where the node has a target list of what it scans, of that */
	GPUSORT_OF_INDEX, /* of the scanned index */
	GPUSORT_OF_OUTER, /* of the plan below, or the outer one */
	GPUSORT_OF_SIDES, /* of the outer plan and the inner one */
	GPUSORT_OF_NODE,  /* of the node's own rows */
	GPUSORT_OF_ANY,   /* of what is not looked into */
} GpuSortColumnsOf;

/* An expression, or a list of such. */
typedef struct GpuSortPlanExpression
{
	Node *node;
	GpuSortColumnsOf columns;
	bool noted; /* the node's extParam and allParam tell its parameters */
} GpuSortPlanExpression;

typedef void (*GpuSortExpressionCallback)(const GpuSortPlanExpression *expression, void *arg);

extern void gpusort_plan_each_expression(const Plan *plan, GpuSortExpressionCallback callback, void *arg);

#endif /* GPUSORT_EXPRESSIONS_H */
