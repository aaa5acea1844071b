/*-------------------------------------------------------------------------
 *
 * sort_step.h
 *	  What the steps of the device sort (device_sort.h) share: how the host waits, and
 *	  whether a quantile map is looked for.  Not for others.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_STEP_H
#define GPUSORT_SORT_STEP_H

#include <cuda_runtime.h>

#include "sort/device_sort.h"

/* Waits for the stream as the caller wants it; 0, or the sort's status. */
static inline int
gpusort_device_wait(const GpuSortDeviceWait *wait, cudaStream_t stream)
{
	if (wait->wait != NULL)
		return wait->wait(wait->context, (GpuSortStream) stream);
	return (int) cudaStreamSynchronize(stream);
}

/*
 * Returns true if a sort may go by partial keys of its own choice, and it is worth looking
 * whether keys are skewed.
 */
extern bool gpusort_may_map(const GpuSortDeviceSort *sort);

#endif /* GPUSORT_SORT_STEP_H */
