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

extern bool gpusort_order_check_lead(GpuSortSortSet *set, GpuSortClaims *claims, int processes,
									 GpuSortFailure *failure);
extern bool gpusort_order_check_follow(GpuSortSortSet *set, GpuSortClaims *claims, GpuSortFailure *failure);

#endif /* GPUSORT_ORDER_CHECK_H */
