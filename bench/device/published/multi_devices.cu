/*-------------------------------------------------------------------------
 *
 * multi_devices.cu
 *	  What the references over several GPUs share, see multi_devices.h.
 *
 * The local sort is CUB's radix sort of keys alone, which RMG sort uses and its
 * rivals were measured with.  Where CUDA is emulated a sort on the host takes its
 * place; it leaves nothing of use in what CUB may overwrite.
 *
 *-------------------------------------------------------------------------
 */
#include <cuda_runtime.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __CUDACC__
#include <cub/device/device_radix_sort.cuh>
#else
#include <algorithm>
#endif

#include "published/multi_devices.h"
#include "sort/launch.h"

const GpuSortMultiReference *const gpusort_multi_references[] = {
	&gpusort_rmg_sort,
	&gpusort_p2p_merge_sort,
	&gpusort_het_merge_sort,
	NULL};

double
gpusort_reference_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

/* ---- the local sort ---- */

#ifdef __CUDACC__

/* With temp = NULL only sets *temp_bytes.  A 64-bit count is the faster one for keys without ids. */
template <typename Key>
static cudaError_t
sort_keys(void *temp, size_t *temp_bytes, char *const *keys, uint64_t first, uint64_t count, int bits, int *result,
		  cudaStream_t stream)
{
	Key *range = (Key *) keys[0] + first;
	cub::DoubleBuffer<Key> buffers(range, (Key *) keys[1] + first);
	cudaError_t status = cub::DeviceRadixSort::SortKeys(temp, *temp_bytes, buffers, (int64_t) count, 0, bits, stream);

	*result = buffers.Current() != range;
	return status;
}

#else

template <typename Key>
static void
sort_on_host(Key *keys, Key *other, uint64_t count, int bits, void *temp, size_t temp_bytes)
{
	const Key mask = bits == 8 * (int) sizeof(Key) ? ~(Key) 0 : ((Key) 1 << bits) - 1;

	memset(temp, 0xEE, temp_bytes);
	std::sort(keys, keys + count, [mask](Key a, Key b)
			  { return (a & mask) < (b & mask); });
	memcpy(other, keys, count * sizeof(Key));
	memset(keys, 0xEE, count * sizeof(Key));
}

template <typename Key>
static cudaError_t
sort_keys(void *temp, size_t *temp_bytes, char *const *keys, uint64_t first, uint64_t count, int bits, int *result,
		  cudaStream_t stream)
{
	*result = 1;
	if (temp == NULL)
		*temp_bytes = 1000;
	else
		GPUSORT_START_KERNEL(sort_on_host<Key>, 1, 1, stream, (Key *) keys[0] + first, (Key *) keys[1] + first,
							 count, bits, temp, *temp_bytes);
	return cudaGetLastError();
}

#endif

/* Bytes of temporary memory for a sort of so many keys, by any number of bits. */
static cudaError_t
sort_temp_bytes(uint64_t count, int key_bytes, size_t *bytes)
{
	char *none[2] = {NULL, NULL};
	int result;

	if (key_bytes == 4)
		return sort_keys<uint32_t>(NULL, bytes, none, 0, count, 32, &result, 0);
	return sort_keys<uint64_t>(NULL, bytes, none, 0, count, 64, &result, 0);
}

cudaError_t
gpusort_reference_sort_range(const GpuSortReferenceDevices *devices, GpuSortReferenceDevice *device, int stream,
							 uint64_t first, uint64_t count, int bits, int *result)
{
	size_t temp_bytes = devices->temp_bytes;

	*result = 0;
	if (count < 2 || bits == 0)
		return cudaSuccess;
	if (devices->key_bytes == 4)
		return sort_keys<uint32_t>(device->temp[stream], &temp_bytes, device->keys, first, count, bits, result,
								   device->streams[stream]);
	return sort_keys<uint64_t>(device->temp[stream], &temp_bytes, device->keys, first, count, bits, result,
							   device->streams[stream]);
}

cudaError_t
gpusort_reference_sort_chunks(GpuSortReferenceDevices *devices, uint64_t rows)
{
	uint64_t chunk = gpusort_reference_chunk(rows, devices->count);
	int result;

	for (int d = 0; d < devices->count; d++)
	{
		GpuSortReferenceDevice *device = &devices->device[d];
		uint64_t first = gpusort_reference_min(chunk * (uint64_t) d, rows);

		GPUSORT_TRY(cudaSetDevice(device->ordinal));
		GPUSORT_TRY(gpusort_reference_sort_range(devices, device, 0, 0, gpusort_reference_min(chunk, rows - first),
												 8 * devices->key_bytes, &result));
		if (result == 1)
			gpusort_reference_swap_buffers(device);
	}
	return gpusort_reference_wait(devices);
}

/* ---- devices ---- */

/* What cannot be reached goes through the host: cudaMemcpyPeerAsync() sees to that by itself. */
static cudaError_t
reach_peers(GpuSortReferenceDevices *devices, const GpuSortReferenceDevice *device)
{
	/* for good, and asked for once: the compute sanitizer reports a second call as an error */
	static bool reached[GPUSORT_MULTI_REFERENCE_DEVICES][GPUSORT_MULTI_REFERENCE_DEVICES];

	for (int peer = 0; peer < devices->count; peer++)
	{
		const int ordinal = devices->device[peer].ordinal;
		int can = 0;
		cudaError_t status;

		if (ordinal == device->ordinal || reached[device->ordinal][ordinal])
			continue;
		GPUSORT_TRY(cudaDeviceCanAccessPeer(&can, device->ordinal, ordinal));
		if (!can)
			continue;
		status = cudaDeviceEnablePeerAccess(ordinal, 0);
		if (status == cudaErrorPeerAccessAlreadyEnabled)
			(void) cudaGetLastError(); /* not an error for the next to find */
		else
			GPUSORT_TRY(status);
		reached[device->ordinal][ordinal] = true;
	}
	return cudaSuccess;
}

cudaError_t
gpusort_reference_open_devices(GpuSortReferenceDevices *devices, const int *ordinals, int count, uint64_t rows,
							   int key_bytes, uint64_t capacity)
{
	memset(devices, 0, sizeof(*devices));
	if (count < 1 || count > GPUSORT_MULTI_REFERENCE_DEVICES || (key_bytes != 4 && key_bytes != 8))
		return cudaErrorInvalidValue;
	devices->key_bytes = key_bytes;
	devices->rows = rows;
	devices->capacity = capacity + (capacity == 0);
	GPUSORT_TRY(cudaSetDevice(ordinals[0]));
	GPUSORT_TRY(sort_temp_bytes(devices->capacity, key_bytes, &devices->temp_bytes));
	devices->temp_bytes += devices->temp_bytes == 0;
	for (int d = 0; d < count; d++)
	{
		if (ordinals[d] < 0 || ordinals[d] >= GPUSORT_MULTI_REFERENCE_DEVICES)
			return cudaErrorInvalidValue;
		devices->device[d].ordinal = ordinals[d];
	}
	devices->count = count;
	for (int d = 0; d < count; d++)
	{
		GpuSortReferenceDevice *device = &devices->device[d];

		GPUSORT_TRY(cudaSetDevice(device->ordinal));
		GPUSORT_TRY(reach_peers(devices, device));
		for (int i = 0; i < 2; i++)
			GPUSORT_TRY(cudaMalloc((void **) &device->keys[i], devices->capacity * (size_t) key_bytes));
		for (int i = 0; i < GPUSORT_REFERENCE_STREAMS; i++)
		{
			GPUSORT_TRY(cudaMalloc(&device->temp[i], devices->temp_bytes));
			GPUSORT_TRY(cudaStreamCreateWithFlags(&device->streams[i], cudaStreamNonBlocking));
		}
	}
	return cudaSuccess;
}

void
gpusort_reference_close_devices(GpuSortReferenceDevices *devices)
{
	(void) gpusort_reference_wait(devices);
	for (int d = 0; d < devices->count; d++)
	{
		GpuSortReferenceDevice *device = &devices->device[d];

		(void) cudaSetDevice(device->ordinal);
		for (int i = 0; i < 2; i++)
		{
			if (device->keys[i] != NULL)
				(void) cudaFree(device->keys[i]);
		}
		for (int i = 0; i < GPUSORT_REFERENCE_STREAMS; i++)
		{
			if (device->temp[i] != NULL)
				(void) cudaFree(device->temp[i]);
			if (device->streams[i] != NULL)
				(void) cudaStreamDestroy(device->streams[i]);
		}
	}
	devices->count = 0;
}

cudaError_t
gpusort_reference_wait(GpuSortReferenceDevices *devices)
{
	for (int d = 0; d < devices->count; d++)
	{
		GPUSORT_TRY(cudaSetDevice(devices->device[d].ordinal));
		for (int i = 0; i < GPUSORT_REFERENCE_STREAMS; i++)
		{
			if (devices->device[d].streams[i] != NULL)
				GPUSORT_TRY(cudaStreamSynchronize(devices->device[d].streams[i]));
		}
	}
	return cudaSuccess;
}

/* Each device's chunk between keys[0] and its place on the host. */
static cudaError_t
copy_chunks(GpuSortReferenceDevices *devices, char *host_keys, uint64_t rows, cudaMemcpyKind kind)
{
	uint64_t chunk = gpusort_reference_chunk(rows, devices->count);
	size_t key_bytes = (size_t) devices->key_bytes;

	for (int d = 0; d < devices->count; d++)
	{
		GpuSortReferenceDevice *device = &devices->device[d];
		uint64_t first = gpusort_reference_min(chunk * (uint64_t) d, rows);
		uint64_t count = gpusort_reference_min(chunk, rows - first);
		char *on_host = host_keys + first * key_bytes;
		bool up = kind == cudaMemcpyHostToDevice;

		if (count == 0)
			break;
		GPUSORT_TRY(cudaSetDevice(device->ordinal));
		GPUSORT_TRY(cudaMemcpyAsync(up ? device->keys[0] : on_host, up ? on_host : device->keys[0],
									count * key_bytes, kind, device->streams[0]));
	}
	return gpusort_reference_wait(devices);
}

cudaError_t
gpusort_reference_upload(GpuSortReferenceDevices *devices, const void *host_keys, uint64_t rows)
{
	return copy_chunks(devices, (char *) host_keys, rows, cudaMemcpyHostToDevice);
}

cudaError_t
gpusort_reference_download(GpuSortReferenceDevices *devices, void *host_keys, uint64_t rows)
{
	return copy_chunks(devices, (char *) host_keys, rows, cudaMemcpyDeviceToHost);
}
