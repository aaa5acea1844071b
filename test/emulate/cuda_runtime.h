/*-------------------------------------------------------------------------
 *
 * cuda_runtime.h
 *	  As much of CUDA as the cuda engine uses, on the CPU: its sources compile
 *	  against this as plain C++, so that all of the engine but the device's own
 *	  behaviour is tested where there is no GPU, also under the address sanitizer.
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
#include <string.h>

#include <algorithm>
#include <functional>
#include <tuple>

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __shared__       static thread_local
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__  inline
#define __launch_bounds__(...)
#define __restrict__

struct dim3
{
	unsigned int x;
	unsigned int y;
	unsigned int z;

	constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1)
		: x(x_), y(y_), z(z_)
	{
	}
};

struct uint4
{
	uint32_t x;
	uint32_t y;
	uint32_t z;
	uint32_t w;
};

extern __thread dim3 threadIdx;
extern __thread dim3 blockIdx;
extern __thread dim3 blockDim;
extern __thread dim3 gridDim;

/* What threads of a block do together. */
extern void __syncthreads();

/* What the lanes of a warp have told each other. */
struct EmulatedExchange
{
	uint32_t values[32];
	uint32_t votes; /* lowest bits of the values */
};

extern const EmulatedExchange *emulate_warp_exchange(uint32_t mask, uint32_t value);

template <typename Combine>
static inline uint32_t
emulate_warp_reduce(uint32_t mask, uint32_t value, Combine combine)
{
	const uint32_t *values = emulate_warp_exchange(mask, value)->values;
	uint32_t result = values[__builtin_ctz(mask)];

	for (int i = 1; i < 32; i++)
	{
		if (mask >> i & 1)
			result = combine(result, values[i]);
	}
	return result;
}

#define __reduce_or_sync(mask, value)  emulate_warp_reduce(mask, value, [](uint32_t a, uint32_t b) { return a | b; })
#define __reduce_and_sync(mask, value) emulate_warp_reduce(mask, value, [](uint32_t a, uint32_t b) { return a & b; })
#define __reduce_xor_sync(mask, value) emulate_warp_reduce(mask, value, [](uint32_t a, uint32_t b) { return a ^ b; })
#define __reduce_min_sync(mask, value) \
	emulate_warp_reduce(mask, value, [](uint32_t a, uint32_t b) { return a < b ? a : b; })
#define __reduce_max_sync(mask, value) \
	emulate_warp_reduce(mask, value, [](uint32_t a, uint32_t b) { return a > b ? a : b; })
#define __reduce_add_sync(mask, value) emulate_warp_reduce(mask, value, [](uint32_t a, uint32_t b) { return a + b; })

static inline uint32_t
__ballot_sync(uint32_t mask, bool vote)
{
	return emulate_warp_exchange(mask, vote)->votes;
}

/* The lanes whose value is this one's. */
static inline uint32_t
__match_any_sync(uint32_t mask, uint32_t value)
{
	const uint32_t *values = emulate_warp_exchange(mask, value)->values;
	uint32_t result = 0;

	for (int i = 0; i < 32; i++)
		result |= (uint32_t) (values[i] == value) << i;
	return result & mask;
}

#define __any_sync(mask, vote) (__ballot_sync(mask, vote) != 0)
#define __all_sync(mask, vote) (__ballot_sync(mask, vote) == (mask))
#define __syncwarp(...)        ((void) emulate_warp_exchange(0xFFFFFFFF, 0))
#define __activemask()         0xFFFFFFFFu

/* A value of 4 or 8 bytes of the lane that `source` says for this one; width 32 only. */
template <typename Value, typename Source>
static inline Value
emulate_shuffle(uint32_t mask, Value value, Source source)
{
	const int lane = threadIdx.x % 32;
	uint32_t words[2] = {0, 0};
	int from = source(lane);

	static_assert(sizeof(Value) <= sizeof(words), "shuffles move 4 or 8 bytes");
	if (from < 0 || from > 31)
		from = lane;
	memcpy(words, &value, sizeof(Value));
	for (size_t i = 0; i < (sizeof(Value) + 3) / 4; i++)
		words[i] = emulate_warp_exchange(mask, words[i])->values[from];
	memcpy(&value, words, sizeof(Value));
	return value;
}

template <typename Value>
static inline Value
__shfl_sync(uint32_t mask, Value value, int from)
{
	return emulate_shuffle(mask, value, [=](int)
						   { return from % 32; });
}

template <typename Value>
static inline Value
__shfl_up_sync(uint32_t mask, Value value, unsigned int places)
{
	return emulate_shuffle(mask, value, [=](int lane)
						   { return lane - (int) places; });
}

template <typename Value>
static inline Value
__shfl_down_sync(uint32_t mask, Value value, unsigned int places)
{
	return emulate_shuffle(mask, value, [=](int lane)
						   { return lane + (int) places; });
}

template <typename Value>
static inline Value
__shfl_xor_sync(uint32_t mask, Value value, int bits)
{
	return emulate_shuffle(mask, value, [=](int lane)
						   { return lane ^ bits; });
}

#define __popc(bits)             __builtin_popcount(bits)
#define __popcll(bits)           __builtin_popcountll(bits)
#define __ffs(bits)              __builtin_ffs((int) (bits))
#define __ffsll(bits)            __builtin_ffsll((long long) (bits))
#define __clz(bits)              ((bits) != 0 ? __builtin_clz(bits) : 32)
#define __clzll(bits)            ((bits) != 0 ? __builtin_clzll(bits) : 64)
#define __ldg(place)             (*(place))
#define __threadfence()          __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_block()    __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_system()   __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define atomicAdd(place, value)  __atomic_fetch_add(place, value, __ATOMIC_RELAXED)
#define atomicOr(place, value)   __atomic_fetch_or(place, value, __ATOMIC_RELAXED)
#define atomicAnd(place, value)  __atomic_fetch_and(place, value, __ATOMIC_RELAXED)
#define atomicXor(place, value)  __atomic_fetch_xor(place, value, __ATOMIC_RELAXED)
#define atomicSub(place, value)  __atomic_fetch_sub(place, value, __ATOMIC_RELAXED)
#define atomicExch(place, value) __atomic_exchange_n(place, value, __ATOMIC_RELAXED)

template <typename Place, typename Value>
static inline Place
emulate_atomic_best(Place *place, Value value, bool larger)
{
	Place old = __atomic_load_n(place, __ATOMIC_RELAXED);
	Place wanted = (Place) value;

	while (larger ? old < wanted : wanted < old)
	{
		if (__atomic_compare_exchange_n(place, &old, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			break;
	}
	return old;
}

#define atomicMin(place, value) emulate_atomic_best(place, value, false)
#define atomicMax(place, value) emulate_atomic_best(place, value, true)

template <typename Place>
static inline Place
atomicCAS(Place *place, Place expected, Place wanted)
{
	(void) __atomic_compare_exchange_n(place, &expected, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return expected;
}

typedef enum cudaError_t
{
	cudaSuccess,
	cudaErrorMemoryAllocation,
	cudaErrorLaunchFailure,
	cudaErrorNotReady,
	cudaErrorInvalidValue,
	cudaErrorPeerAccessAlreadyEnabled,
	cudaErrorUnknown,
} cudaError_t;

typedef enum cudaMemcpyKind
{
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice,
	cudaMemcpyHostToHost,
	cudaMemcpyDefault,
} cudaMemcpyKind;

typedef enum cudaFuncAttribute
{
	cudaFuncAttributeMaxDynamicSharedMemorySize,
} cudaFuncAttribute;

typedef enum cudaDeviceAttr
{
	cudaDevAttrMultiProcessorCount,
	cudaDevAttrComputeCapabilityMajor,
	cudaDevAttrMaxSharedMemoryPerBlockOptin,
} cudaDeviceAttr;

enum
{
	cudaDeviceScheduleBlockingSync,
	cudaInitDeviceFlagsAreValid,
	cudaStreamNonBlocking,
	cudaHostRegisterPortable,
	cudaHostAllocDefault = 0,
	cudaHostAllocPortable = 1,
	cudaEventBlockingSync = 1,
	cudaEventDisableTiming = 2,
};

struct cudaDeviceProp
{
	char name[256];
	int major;
	int minor;
	int ECCEnabled;
};

struct cudaFuncAttributes
{
	int unused;
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
extern cudaError_t cudaGetDevice(int *device);
extern cudaError_t cudaDeviceSynchronize();
extern cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
extern cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
extern cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags);
extern cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
extern cudaError_t cudaMalloc(void **memory, size_t bytes);
extern cudaError_t cudaFree(void *memory);
extern cudaError_t cudaMallocHost(void **memory, size_t bytes);
extern cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned int flags);
extern cudaError_t cudaFreeHost(void *memory);
extern cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned int flags);
extern cudaError_t cudaHostUnregister(void *memory);
extern cudaError_t cudaStreamCreate(cudaStream_t *stream);
extern cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
extern cudaError_t cudaStreamDestroy(cudaStream_t stream);
extern cudaError_t cudaStreamQuery(cudaStream_t stream);
extern cudaError_t cudaStreamSynchronize(cudaStream_t stream);
extern cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
extern cudaError_t cudaEventCreate(cudaEvent_t *event);
extern cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
extern cudaError_t cudaEventDestroy(cudaEvent_t event);
extern cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
extern cudaError_t cudaEventQuery(cudaEvent_t event);
extern cudaError_t cudaEventSynchronize(cudaEvent_t event);
extern cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begun, cudaEvent_t ended);
extern cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
extern cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
extern cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
									   cudaStream_t stream);
extern cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
									 size_t height, cudaMemcpyKind kind, cudaStream_t stream);
extern cudaError_t cudaMemset(void *to, int value, size_t bytes);
extern cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);

template <typename Kernel>
static inline cudaError_t
cudaFuncGetAttributes(cudaFuncAttributes *attributes, Kernel)
{
	attributes->unused = 0;
	return cudaSuccess;
}

template <typename Kernel>
static inline cudaError_t
cudaFuncSetAttribute(Kernel, cudaFuncAttribute, int)
{
	return cudaSuccess;
}

/* Forgets a fault, and makes the call-th call from now fail as GPUSORT_EMULATE_FAIL does; 0: none. */
extern "C" void emulate_fail(long call);

/* Returns the bytes of device memory that are allocated, on all devices. */
extern "C" size_t emulate_allocated();

/* Appends work to a stream; NULL is the stream that everything on it is done at once. */
extern void emulate_append(cudaStream_t stream, std::function<void()> work);

/* Runs a kernel's blocks, one after the other, each with so many bytes of dynamic shared memory. */
extern void emulate_blocks(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel);

extern void *emulate_dynamic_shared();

/* Ends the program if a kernel's limit is below what it is started with, or not the same each time. */
extern void emulate_shared_limit(const void *kernel, size_t shared_bytes, size_t most_bytes);

#define GPUSORT_DYNAMIC_SHARED(type, name) type *name = (type *) emulate_dynamic_shared()

template <typename Kernel, typename... Arguments>
static inline void
emulate_launch(Kernel kernel, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
			   Arguments... arguments)
{
	emulate_append(stream, [=]()
				   { emulate_blocks(grid, block, shared_bytes, [=]()
									{ kernel(arguments...); }); });
}

#define GPUSORT_START_KERNEL(kernel, grid, block, stream, ...) \
	emulate_launch(kernel, grid, block, 0, stream, __VA_ARGS__)
#define GPUSORT_START_KERNEL_SHARED_OF(kernel, grid, block, shared_bytes, most_bytes, stream, ...) \
	do                                                                                             \
	{                                                                                              \
		emulate_shared_limit((const void *) (kernel), shared_bytes, most_bytes);                   \
		emulate_launch(kernel, grid, block, shared_bytes, stream, __VA_ARGS__);                    \
	} while (0)

#endif /* GPUSORT_EMULATED_CUDA_RUNTIME_H */
