/*-------------------------------------------------------------------------
 *
 * orders_apart.h
 *	  Aggregates of all rows that want several orders, those of each order in an Agg of its own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ORDERS_APART_H
#define GPUSORT_ORDERS_APART_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern Path *gpusort_orders_apart_path(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *input_rel,
									   const GroupPathExtraData *grouping, bool parallel);

#endif /* GPUSORT_ORDERS_APART_H */
