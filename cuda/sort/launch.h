/*-------------------------------------------------------------------------
 *
 * launch.h
 *	  How kernels are started, the ones that take much shared memory included.
 *
 * A launch returns nothing; cudaGetLastError says whether it succeeded.  Where CUDA is
 * emulated the emulation's cuda_runtime.h has these macros.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LAUNCH_H
#define GPUSORT_LAUNCH_H

#include <cuda_runtime.h>

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

#endif /* GPUSORT_LAUNCH_H */
