/*-------------------------------------------------------------------------
 *
 * joint_check.h
 *	  Has the order of shared sorts' rows verified by all of their processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOINT_CHECK_H
#define GPUSORT_JOINT_CHECK_H

#include "compat.h"

#include "parallel/claims.h"
#include "parallel/order_check.h"
#include "parallel/sort_set.h"

extern bool gpusort_joint_check_lead(GpuSortJointSorts *sorts, GpuSortClaims *claims, int processes,
									 GpuSortFailure *failure);
extern bool gpusort_joint_check_follow(GpuSortJointSorts *sorts, GpuSortClaims *claims, GpuSortFailure *failure);

#endif /* GPUSORT_JOINT_CHECK_H */
