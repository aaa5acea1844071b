/*-------------------------------------------------------------------------
 *
 * onesweep.cu
 *	  The radix core with the parameters that were measured best; see radix_sort.h
 *	  and onesweep.cuh.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/radix/radix_sort.h"

#include "sort/radix/onesweep.cuh"

/* Measured best on an H200, whose blocks may have 227 KiB of shared memory. */
typedef GpuSortOnesweep<256, 40, 2, 4, 2> GpuSortCore;

/* For devices whose blocks have less than that takes: 48 KiB do.  Not measured. */
typedef GpuSortOnesweep<256, 16, 2, 4, 2, GPUSORT_TALLY_MAX / (256 * 16), 8> GpuSortSmallCore;

/* Which of the two the current device takes; the same at every call. */
static cudaError_t
find_core(bool *small)
{
	int device;
	int shared = 0;
	cudaError_t status = cudaGetDevice(&device);

	if (status == cudaSuccess)
		status = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
	*small = (size_t) shared < GpuSortCore::SHARED;
	return status;
}

/* Checks arguments too. */
static cudaError_t
find_core_for(uint32_t rows, int bits, bool *small)
{
	if (rows > GPUSORT_RADIX_MAX_ROWS || bits < 0 || bits > 32)
		return cudaErrorInvalidValue;
	return find_core(small);
}

cudaError_t
gpusort_radix_temp_bytes(uint32_t rows, int bits, size_t *temp_bytes)
{
	bool small;
	cudaError_t status = find_core_for(rows, bits, &small);

	if (status == cudaSuccess)
		*temp_bytes = small ? GpuSortSmallCore::temp_bytes(rows, bits) : GpuSortCore::temp_bytes(rows, bits);
	return status;
}

cudaError_t
gpusort_radix_sort(void *temp, size_t temp_bytes, const uint32_t *keys_in, const uint32_t *ids_in, uint32_t rows,
				   int bits, uint32_t *keys_out, uint32_t *ids_out, cudaStream_t stream)
{
	bool small;
	cudaError_t status = find_core_for(rows, bits, &small);

	if (status != cudaSuccess || rows == 0)
		return status;
	return small ? GpuSortSmallCore::sort(temp, temp_bytes, keys_in, ids_in, rows, bits, keys_out, ids_out, stream) : GpuSortCore::sort(temp, temp_bytes, keys_in, ids_in, rows, bits, keys_out, ids_out, stream);
}

cudaError_t
gpusort_radix_begin(void *temp, size_t temp_bytes, uint32_t rows, int bits, uint32_t **counts, cudaStream_t stream)
{
	bool small;
	cudaError_t status = find_core_for(rows, bits, &small);

	/* counting takes the shared memory that the small core is for want of */
	*counts = NULL;
	if (status != cudaSuccess || small)
		return status;
	return GpuSortCore::begin(temp, temp_bytes, rows, bits, counts, stream);
}

cudaError_t
gpusort_radix_sort_counted(void *temp, size_t temp_bytes, const uint32_t *keys_in, const uint32_t *ids_in,
						   uint32_t rows, int bits, uint32_t *keys_out, uint32_t *ids_out, cudaStream_t stream)
{
	if (rows > GPUSORT_RADIX_MAX_ROWS || bits < 0 || bits > 32)
		return cudaErrorInvalidValue;
	if (rows == 0)
		return cudaSuccess;
	return GpuSortCore::sort(temp, temp_bytes, keys_in, ids_in, rows, bits, keys_out, ids_out, stream, true);
}

cudaError_t
gpusort_radix_room_bytes(uint32_t rows, size_t *temp_bytes)
{
	bool small;
	cudaError_t status = find_core_for(rows, 0, &small);

	if (status == cudaSuccess)
		*temp_bytes = small ? GpuSortSmallCore::room_bytes(rows) : GpuSortCore::room_bytes(rows);
	return status;
}

cudaError_t
gpusort_radix_room(void *temp, uint32_t rows, int bits, GpuSortRadixRoom *room)
{
	bool small;
	cudaError_t status = find_core_for(rows, bits, &small);

	if (status == cudaSuccess)
		*room = small ? GpuSortSmallCore::find_room((char *) temp, rows, bits) : GpuSortCore::find_room((char *) temp, rows, bits);
	return status;
}
