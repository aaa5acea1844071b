/*-------------------------------------------------------------------------
 *
 * order_check.h
 *	  Verifies the order of a sort's rows in parts, by several processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ORDER_CHECK_H
#define GPUSORT_ORDER_CHECK_H

#include "compat.h"

#include "parallel/claims.h"
#include "parallel/sort_set.h"
#include "sort/collation_check.h"
#include "sort/reader.h"

/* What one process reads a sort with, to verify it. */
typedef struct GpuSortOrderReader
{
	GpuSortCollationCheck *check;
	GpuSortReader *reader;
	GpuSortClient *client;
} GpuSortOrderReader;

/* For a sort that is no set's, and is cut for this alone */
extern bool gpusort_order_cut(GpuSortClient *client, GpuSortOrderedRows *rows, int processes, GpuSortFailure *failure);
extern uint32 gpusort_order_divide(GpuSortOrderedRows *rows, int processes);
extern bool gpusort_order_check_parts(const GpuSortOrderReader *own, GpuSortOrderedRows *rows, GpuSortClaims *claims,
									  GpuSortFailure *failure);

/* For the sorts of a set */
extern bool gpusort_order_check_lead(GpuSortSortSet *set, GpuSortClaims *claims, int processes,
									 GpuSortFailure *failure);
extern bool gpusort_order_check_follow(GpuSortSortSet *set, GpuSortClaims *claims, GpuSortFailure *failure);

#endif /* GPUSORT_ORDER_CHECK_H */
