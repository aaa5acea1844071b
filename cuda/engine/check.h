/*-------------------------------------------------------------------------
 *
 * check.h
 *	  Every CUDA call of the engine goes through here: a call that fails turns
 *	  into a GpuSortError and the function that made it returns -1.
 *
 * Memory that the device cannot give is NO_MEMORY and harms nobody.  After an
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

/* Starts a kernel; grid and block are counts or dim3, the rest its arguments. */
#ifndef GPUSORT_START_KERNEL
#define GPUSORT_START_KERNEL(kernel, grid, block, stream, ...) \
	kernel<<<grid, block, 0, stream>>>(__VA_ARGS__)
#endif

/*
 * The same with so many bytes of dynamic shared memory, also more than the 48 KiB that
 * need no asking for; never more than most_bytes, which is always the same for a kernel:
 * the limit belongs to the kernel on its device, so threads that asked for different
 * ones could take each other's between asking and starting.  The kernel has the memory
 * as GPUSORT_DYNAMIC_SHARED(type, name).
 */
#ifndef GPUSORT_START_KERNEL_SHARED_OF
#define GPUSORT_START_KERNEL_SHARED_OF(kernel, grid, block, shared_bytes, most_bytes, stream, ...) \
	do                                                                                             \
	{                                                                                              \
		if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,              \
								 (int) (most_bytes)) == cudaSuccess)                               \
			kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__);                            \
	} while (0)
#define GPUSORT_DYNAMIC_SHARED(type, name)                                  \
	extern __shared__ __align__(16) unsigned char gpusort_dynamic_shared[]; \
	type *name = reinterpret_cast<type *>(gpusort_dynamic_shared)
#endif

/* For a kernel that always has the same number of bytes. */
#define GPUSORT_START_KERNEL_SHARED(kernel, grid, block, shared_bytes, stream, ...) \
	GPUSORT_START_KERNEL_SHARED_OF(kernel, grid, block, shared_bytes, shared_bytes, stream, __VA_ARGS__)

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
