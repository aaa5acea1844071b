/*-------------------------------------------------------------------------
 *
 * radix_sort.cu
 *	  Chooses the core that sorts; see radix_sort.h.
 *
 * The choice is by the device and the caller's wish alone, never by rows, bits or keys: of
 * (32-bit key, 32-bit id) CUB was not the faster one at any number of rows that was
 * measured (doc/device-sort.md), and keys are not known here.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/radix/radix_sort.h"

#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "sort/radix/radix_backend.h"

static std::atomic<int> radix_choice{GPUSORT_RADIX_AUTO};

void
gpusort_radix_choose(GpuSortRadixChoice choice)
{
	radix_choice = choice;
}

/* The choice that AUTO stands for; -1 if GPUSORT_RADIX in the environment names no core. */
static int
default_choice(void)
{
	static const int choice = []
	{
		const char *name = getenv("GPUSORT_RADIX");

		if (name == NULL || *name == '\0')
			return (int) GPUSORT_RADIX_AUTO;
		if (strcmp(name, gpusort_onesweep_backend.name) == 0)
			return (int) GPUSORT_RADIX_ONESWEEP;
		if (strcmp(name, gpusort_cub_backend.name) == 0)
			return (int) GPUSORT_RADIX_CUB;
		return -1;
	}();

	return choice;
}

/* The core for the current device; the same at every call unless the choice changes. */
static cudaError_t
find_backend(const GpuSortRadixBackend **backend)
{
	int choice = radix_choice;
	int device;
	int shared = 0;
	cudaError_t status;

	*backend = &gpusort_onesweep_backend;
	if (choice == GPUSORT_RADIX_AUTO)
		choice = default_choice();
	if (choice < 0)
		return cudaErrorInvalidValue;
	if (choice == GPUSORT_RADIX_ONESWEEP)
		return cudaSuccess;
	if (choice == GPUSORT_RADIX_CUB)
	{
		*backend = &gpusort_cub_backend;
		return cudaSuccess;
	}
	status = cudaGetDevice(&device);
	if (status == cudaSuccess)
		status = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
	if ((size_t) shared < gpusort_onesweep_backend.shared_bytes)
		*backend = &gpusort_cub_backend;
	return status;
}

/* The same; checks arguments too. */
static cudaError_t
find_backend_for(uint32_t rows, int bits, const GpuSortRadixBackend **backend)
{
	if (rows > GPUSORT_RADIX_MAX_ROWS || bits < 0 || bits > 32)
		return cudaErrorInvalidValue;
	return find_backend(backend);
}

cudaError_t
gpusort_radix_chosen(const char **name)
{
	const GpuSortRadixBackend *backend;
	cudaError_t status = find_backend(&backend);

	*name = backend->name;
	return status;
}

cudaError_t
gpusort_radix_temp_bytes(uint32_t rows, int bits, size_t *temp_bytes)
{
	const GpuSortRadixBackend *backend;
	cudaError_t status = find_backend_for(rows, bits, &backend);

	return status == cudaSuccess ? backend->temp_bytes(rows, bits, temp_bytes) : status;
}

cudaError_t
gpusort_radix_sort(const GpuSortRadixSort *sort, cudaStream_t stream)
{
	const GpuSortRadixBackend *backend;
	cudaError_t status = find_backend_for(sort->rows, sort->bits, &backend);

	if (status != cudaSuccess || sort->rows == 0)
		return status;
	return backend->sort(sort, stream);
}

cudaError_t
gpusort_radix_begin(void *temp, size_t temp_bytes, uint32_t rows, int bits, uint32_t **histogram, cudaStream_t stream)
{
	const GpuSortRadixBackend *backend;
	cudaError_t status = find_backend_for(rows, bits, &backend);

	*histogram = NULL;
	return status == cudaSuccess ? backend->begin(temp, temp_bytes, rows, bits, histogram, stream) : status;
}

cudaError_t
gpusort_radix_room_bytes(uint32_t rows, size_t *temp_bytes)
{
	const GpuSortRadixBackend *backend;
	cudaError_t status = find_backend_for(rows, 0, &backend);

	return status == cudaSuccess ? backend->room_bytes(rows, temp_bytes) : status;
}

cudaError_t
gpusort_radix_room(void *temp, uint32_t rows, int bits, GpuSortRadixRoom *room)
{
	const GpuSortRadixBackend *backend;
	cudaError_t status = find_backend_for(rows, bits, &backend);

	return status == cudaSuccess ? backend->room(temp, rows, bits, room) : status;
}
