/*-------------------------------------------------------------------------
 *
 * parallel_check.h
 *	  Has the order of shared sorts' rows verified by all of their processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARALLEL_CHECK_H
#define GPUSORT_PARALLEL_CHECK_H

#include "compat.h"

#include "parallel/claims.h"
#include "parallel/order_check.h"
#include "parallel/sort_set.h"

extern bool gpusort_parallel_check_lead(GpuSortSortSet *set, GpuSortClaims *claims, int processes,
										GpuSortFailure *failure);
extern bool gpusort_parallel_check_follow(GpuSortSortSet *set, GpuSortClaims *claims, GpuSortFailure *failure);

#endif /* GPUSORT_PARALLEL_CHECK_H */
