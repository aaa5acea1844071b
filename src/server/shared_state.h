/*-------------------------------------------------------------------------
 *
 * shared_state.h
 *	  What is in shared memory.
 *
 * For the units of src/server that have a part of it: nobody else includes this.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_STATE_H
#define GPUSORT_SHARED_STATE_H

#include "compat.h"

#include "server/distrusted.h"
#include "server/jobs.h"
#include "server/service_state.h"
#include "server/statistics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"

typedef struct GpuSortSharedState
{
	LWLock lock; /* guards everything except the fields that GpuSortJobSlot names */
	ConditionVariable service_changed;
	GpuSortService service;
	GpuSortAllStats stats;
	int ndistrusted;
	GpuSortDistrusted distrusted[GPUSORT_DISTRUSTED_MAX];
	GpuSortJobSlot jobs[GPUSORT_JOB_SLOTS];
} GpuSortSharedState;

extern GpuSortSharedState *gpusort_shared(void);

#endif /* GPUSORT_SHARED_STATE_H */
