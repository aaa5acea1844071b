/*-------------------------------------------------------------------------
 *
 * cuda_runtime.h
 *	  As much of CUDA as the cuda engine uses, on the CPU: its sources compile
 *	  against this as plain C++, so that all of the engine but CUB and the
 *	  device's own behaviour is tested where there is no GPU, also under the
 *	  address sanitizer.
 *
 * Kernels run block by block; the threads of a block are coroutines on the
 * calling thread, and a barrier that not all of them reach ends the program.
 *
 * Streams run as late or as early as CUDA allows, at random: when work is given to
 * them, or not until someone waits for it, and then only what must have run.  So
 * a missing wait, or one for the wrong stream, shows as wrong results soon.
 *
 * Device memory is filled with garbage when it is allocated.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EMULATED_CUDA_RUNTIME_H
#define GPUSORT_EMULATED_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include <functional>
#include <tuple>

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __shared__	static thread_local

struct dim3
{
	unsigned int x;
	unsigned int y;
	unsigned int z;

	dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1) : x(x_), y(y_), z(z_)
	{
	}
};

extern thread_local dim3 threadIdx;
extern thread_local dim3 blockIdx;
extern thread_local dim3 blockDim;
extern thread_local dim3 gridDim;

/* What threads of a block do together. */
extern void __syncthreads();
extern const uint32_t *emulate_warp_exchange(uint32_t mask, uint32_t value);

template <typename Combine>
static inline uint32_t
emulate_warp_reduce(uint32_t mask, uint32_t value, Combine combine)
{
	const uint32_t *values = emulate_warp_exchange(mask, value);
	uint32_t	result = values[0];

	for (int i = 1; i < 32; i++)
		result = combine(result, values[i]);
	return result;
}

#define __reduce_or_sync(mask, value)	emulate_warp_reduce(mask, value, [](uint32_t a, uint32_t b) { return a | b; })
#define __reduce_and_sync(mask, value)	emulate_warp_reduce(mask, value, [](uint32_t a, uint32_t b) { return a & b; })
#define __reduce_xor_sync(mask, value)	emulate_warp_reduce(mask, value, [](uint32_t a, uint32_t b) { return a ^ b; })
#define __reduce_add_sync(mask, value)	emulate_warp_reduce(mask, value, [](uint32_t a, uint32_t b) { return a + b; })

static inline uint32_t
__ballot_sync(uint32_t mask, bool vote)
{
	const uint32_t *votes = emulate_warp_exchange(mask, vote);
	uint32_t	result = 0;

	for (int i = 0; i < 32; i++)
		result |= votes[i] << i;
	return result;
}

#define __popc(bits)				__builtin_popcount(bits)
#define __ffs(bits)					__builtin_ffs((int) (bits))
#define atomicAdd(place, value)		__atomic_fetch_add(place, value, __ATOMIC_RELAXED)
#define atomicOr(place, value)		__atomic_fetch_or(place, value, __ATOMIC_RELAXED)
#define atomicAnd(place, value)		__atomic_fetch_and(place, value, __ATOMIC_RELAXED)
#define atomicXor(place, value)		__atomic_fetch_xor(place, value, __ATOMIC_RELAXED)

typedef enum cudaError_t
{
	cudaSuccess,
	cudaErrorMemoryAllocation,
	cudaErrorLaunchFailure,
	cudaErrorNotReady,
} cudaError_t;

typedef enum cudaMemcpyKind
{
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
} cudaMemcpyKind;

enum
{
	cudaDeviceScheduleBlockingSync,
	cudaInitDeviceFlagsAreValid,
	cudaStreamNonBlocking,
	cudaHostRegisterPortable,
	cudaEventBlockingSync = 1,
	cudaEventDisableTiming = 2,
};

struct cudaDeviceProp
{
	char		name[256];
	int			major;
	int			minor;
};

struct cudaFuncAttributes
{
	int			unused;
};

typedef struct EmulatedStream *cudaStream_t;
typedef struct EmulatedEvent *cudaEvent_t;

extern cudaError_t cudaGetLastError();
extern const char *cudaGetErrorString(cudaError_t status);
extern cudaError_t cudaGetDeviceCount(int *count);
extern cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
extern cudaError_t cudaDriverGetVersion(int *version);
extern cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags);
extern cudaError_t cudaSetDevice(int device);
extern cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
extern cudaError_t cudaMalloc(void **memory, size_t bytes);
extern cudaError_t cudaFree(void *memory);
extern cudaError_t cudaMallocHost(void **memory, size_t bytes);
extern cudaError_t cudaFreeHost(void *memory);
extern cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned int flags);
extern cudaError_t cudaHostUnregister(void *memory);
extern cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
extern cudaError_t cudaStreamDestroy(cudaStream_t stream);
extern cudaError_t cudaStreamQuery(cudaStream_t stream);
extern cudaError_t cudaStreamSynchronize(cudaStream_t stream);
extern cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
extern cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
extern cudaError_t cudaEventDestroy(cudaEvent_t event);
extern cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
extern cudaError_t cudaEventQuery(cudaEvent_t event);
extern cudaError_t cudaEventSynchronize(cudaEvent_t event);
extern cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begun, cudaEvent_t ended);
extern cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
extern cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);

template <typename Kernel>
static inline cudaError_t
cudaFuncGetAttributes(cudaFuncAttributes *attributes, Kernel)
{
	attributes->unused = 0;
	return cudaSuccess;
}

/* Appends work to a stream. */
extern void emulate_append(cudaStream_t stream, std::function<void()> work);

/* Runs a kernel's blocks, one after the other. */
extern void emulate_blocks(dim3 grid, dim3 block, const std::function<void()> &kernel);

template <typename Kernel, typename... Arguments>
static inline void
emulate_launch(Kernel kernel, dim3 grid, dim3 block, cudaStream_t stream, Arguments... arguments)
{
	emulate_append(stream, [=]() {
		emulate_blocks(grid, block, [=]() { kernel(arguments...); });
	});
}

#define GPUSORT_START_KERNEL(kernel, grid, block, stream, ...) \
	emulate_launch(kernel, grid, block, stream, __VA_ARGS__)

#endif							/* GPUSORT_EMULATED_CUDA_RUNTIME_H */
