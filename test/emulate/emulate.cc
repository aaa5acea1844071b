/*-------------------------------------------------------------------------
 *
 * emulate.cc
 *	  CUDA on the CPU, as far as cuda/ needs it; see cuda_runtime.h.  Here are devices,
 *	  their memory, and calls that fail; emulate_threads.cc has kernels, emulate_streams.cc
 *	  what is done in order.
 *
 *	GPUSORT_EMULATE_FAIL=N in the environment makes the Nth call that can fail do
 *	so: allocations with "out of memory", others with a launch failure that every
 *	later call repeats, as CUDA does when a context is spoilt.
 *	GPUSORT_EMULATE_DEVICES=N: how many devices there are, 2 otherwise.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <mutex>

#include "emulate.h"

#define DEVICE_BYTES ((size_t) 3 << 30)

/*
 * Bytes of dynamic shared memory that a block may have: as on compute capability 9.0, or
 * GPUSORT_EMULATE_SHARED in the environment.
 */
size_t
emulate_shared_most()
{
	const char *bytes = getenv("GPUSORT_EMULATE_SHARED");

	return bytes != NULL ? (size_t) atol(bytes) : 227 << 10;
}

/* ---- calls that fail on request ---- */

static std::atomic<long> calls_left{getenv("GPUSORT_EMULATE_FAIL") ? atol(getenv("GPUSORT_EMULATE_FAIL")) : 0};
std::atomic<bool> emulate_spoilt{false};

/* Counts a call; true: it is the one to fail. */
bool
emulate_call_fails()
{
	return calls_left > 0 && --calls_left == 0;
}

cudaError_t
emulate_plain_call()
{
	if (emulate_call_fails())
		emulate_spoilt = true;
	return emulate_spoilt ? cudaErrorLaunchFailure : cudaSuccess;
}

void
emulate_fail(long call)
{
	emulate_spoilt = false;
	calls_left = call;
}

cudaError_t
cudaGetLastError()
{
	return emulate_spoilt ? cudaErrorLaunchFailure : cudaSuccess;
}

const char *
cudaGetErrorString(cudaError_t status)
{
	return status == cudaErrorMemoryAllocation ? "out of memory" : "unspecified launch failure";
}

/* ---- devices and memory ---- */

static std::mutex memory_lock;
static std::map<void *, size_t> allocated;
static size_t allocated_bytes;

static thread_local int current_device;

static int
device_count()
{
	const char *count = getenv("GPUSORT_EMULATE_DEVICES");

	return count != NULL ? atoi(count) : 2;
}

cudaError_t
cudaGetDeviceCount(int *count)
{
	*count = device_count();
	return emulate_plain_call();
}

cudaError_t
cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
	strcpy(properties->name, "emulated device");
	properties->major = 0;
	properties->minor = 0;
	properties->ECCEnabled = getenv("GPUSORT_EMULATE_NO_ECC") == NULL;
	return emulate_plain_call();
}

cudaError_t
cudaDriverGetVersion(int *version)
{
	*version = 13000;
	return emulate_plain_call();
}

cudaError_t
cudaInitDevice(int, unsigned int, unsigned int)
{
	return emulate_plain_call();
}

cudaError_t
cudaSetDevice(int device)
{
	if (device < 0 || device >= device_count())
		return cudaErrorInvalidValue;
	current_device = device;
	return emulate_plain_call();
}

cudaError_t
cudaGetDevice(int *device)
{
	*device = current_device;
	return emulate_plain_call();
}

cudaError_t
cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
	switch (attribute)
	{
		case cudaDevAttrMultiProcessorCount:
			*value = 2;
			break;
		case cudaDevAttrComputeCapabilityMajor:
			*value = 9;
			break;
		default:
			*value = (int) emulate_shared_most();
	}
	return emulate_plain_call();
}

/* GPUSORT_EMULATE_NO_PEERS in the environment: no device reaches another's memory. */
cudaError_t
cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	*can = device != peer && getenv("GPUSORT_EMULATE_NO_PEERS") == NULL;
	return emulate_plain_call();
}

cudaError_t
cudaDeviceEnablePeerAccess(int, unsigned int)
{
	return emulate_plain_call();
}

size_t
emulate_allocated()
{
	std::lock_guard<std::mutex> guard(memory_lock);

	return allocated_bytes;
}

cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	std::lock_guard<std::mutex> guard(memory_lock);

	*free_bytes = DEVICE_BYTES - allocated_bytes;
	*total_bytes = DEVICE_BYTES;
	return emulate_plain_call();
}

cudaError_t
cudaMalloc(void **memory, size_t bytes)
{
	std::lock_guard<std::mutex> guard(memory_lock);

	if (emulate_spoilt)
		return cudaErrorLaunchFailure;
	if (emulate_call_fails() || allocated_bytes + bytes > DEVICE_BYTES ||
		(*memory = aligned_alloc(256, (bytes + 255) / 256 * 256)) == NULL)
		return cudaErrorMemoryAllocation;
	memset(*memory, 0xCD, bytes);
	allocated[*memory] = bytes;
	allocated_bytes += bytes;
	return cudaSuccess;
}

cudaError_t
cudaFree(void *memory)
{
	std::lock_guard<std::mutex> guard(memory_lock);

	if (memory == NULL)
		return emulate_plain_call();
	if (allocated.count(memory) == 0)
	{
		fprintf(stderr, "freed what was not allocated\n");
		abort();
	}
	allocated_bytes -= allocated[memory];
	allocated.erase(memory);
	free(memory);
	return emulate_plain_call();
}

cudaError_t
cudaMallocHost(void **memory, size_t bytes)
{
	if (emulate_spoilt)
		return cudaErrorLaunchFailure;
	if (emulate_call_fails())
		return cudaErrorMemoryAllocation;
	*memory = malloc(bytes);
	memset(*memory, 0xCD, bytes);
	return cudaSuccess;
}

cudaError_t
cudaHostAlloc(void **memory, size_t bytes, unsigned int)
{
	return cudaMallocHost(memory, bytes);
}

cudaError_t
cudaFreeHost(void *memory)
{
	free(memory);
	return emulate_plain_call();
}

cudaError_t
cudaHostRegister(void *, size_t, unsigned int)
{
	return emulate_plain_call();
}

cudaError_t
cudaHostUnregister(void *)
{
	return emulate_plain_call();
}
