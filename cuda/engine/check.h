/*-------------------------------------------------------------------------
 *
 * check.h
 *	  Every CUDA call of the engine goes through here: a call that fails turns
 *	  into a GpuSortError and the function that made it returns -1.
 *
 * Memory that the device cannot give is NO_MEMORY and affects no other sort.  After an
 * error that spoils the context (an illegal address, say) no further call on that
 * device succeeds; the device is marked dead and every sort on it fails with
 * the first error's text.  Only a new process helps.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CHECK_H
#define GPUSORT_CHECK_H

#include <cuda_runtime.h>

#include "service/engine.h"
#include "sort/launch.h"

struct GpuSortCudaDevice;

/* Fills *error and returns -1. */
extern int gpusort_fail(GpuSortError *error, GpuSortReason reason, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Fills *error for a CUDA call that returned status, marks the device dead when it
 * is, and returns -1.  `call` is the call's source text; the device may be NULL
 * while there is none yet.
 */
extern int gpusort_cuda_failed(struct GpuSortCudaDevice *device, cudaError_t status, const char *call,
							   GpuSortError *error);

#define GPUSORT_CUDA(device, error, call)                              \
	do                                                                 \
	{                                                                  \
		cudaError_t status_ = (call);                                  \
		if (status_ != cudaSuccess)                                    \
			return gpusort_cuda_failed(device, status_, #call, error); \
	} while (0)

#define GPUSORT_LAUNCH(device, error, kernel, grid, block, stream, ...)  \
	do                                                                   \
	{                                                                    \
		cudaError_t status_;                                             \
		GPUSORT_START_KERNEL(kernel, grid, block, stream, __VA_ARGS__);  \
		status_ = cudaGetLastError();                                    \
		if (status_ != cudaSuccess)                                      \
			return gpusort_cuda_failed(device, status_, #kernel, error); \
	} while (0)

#endif /* GPUSORT_CHECK_H */
