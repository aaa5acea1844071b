/*-------------------------------------------------------------------------
 *
 * expression_values.h
 *	  How many values an expression of a table's columns has.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXPRESSION_VALUES_H
#define GPUSORT_EXPRESSION_VALUES_H

#include "compat.h"

#include "nodes/nodes.h"

extern double gpusort_expression_values(Oid table, const Node *expr);

#endif /* GPUSORT_EXPRESSION_VALUES_H */
