/*-------------------------------------------------------------------------
 *
 * onesweep.cu
 *	  The radix core with the parameters that were measured best; see radix_sort.h
 *	  and onesweep.cuh.
 *
 *-------------------------------------------------------------------------
 */
#include "radix_sort.h"

#include "onesweep.cuh"

typedef GpuSortOnesweep<256, 40, 2, 4, 2> GpuSortCore;

cudaError_t
gpusort_radix_temp_bytes(uint32_t rows, int bits, size_t *temp_bytes)
{
	if (rows > GPUSORT_RADIX_MAX_ROWS || bits < 0 || bits > 32)
		return cudaErrorInvalidValue;
	*temp_bytes = GpuSortCore::temp_bytes(rows, bits);
	return cudaSuccess;
}

cudaError_t
gpusort_radix_sort(void *temp, size_t temp_bytes, const uint32_t *keys_in, const uint32_t *ids_in, uint32_t rows,
				   int bits, uint32_t *keys_out, uint32_t *ids_out, cudaStream_t stream)
{
	if (rows > GPUSORT_RADIX_MAX_ROWS || bits < 0 || bits > 32)
		return cudaErrorInvalidValue;
	if (rows == 0)
		return cudaSuccess;
	return GpuSortCore::sort(temp, temp_bytes, keys_in, ids_in, rows, bits, keys_out, ids_out, stream);
}

cudaError_t
gpusort_radix_begin(void *temp, size_t temp_bytes, uint32_t rows, int bits, uint32_t **counts, cudaStream_t stream)
{
	if (rows > GPUSORT_RADIX_MAX_ROWS || bits < 0 || bits > 32)
		return cudaErrorInvalidValue;
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
	if (rows > GPUSORT_RADIX_MAX_ROWS)
		return cudaErrorInvalidValue;
	*temp_bytes = GpuSortCore::room_bytes(rows);
	return cudaSuccess;
}

cudaError_t
gpusort_radix_room(void *temp, uint32_t rows, int bits, GpuSortRadixRoom *room)
{
	if (rows > GPUSORT_RADIX_MAX_ROWS || bits < 0 || bits > 32)
		return cudaErrorInvalidValue;
	*room = GpuSortCore::find_room((char *) temp, rows, bits);
	return cudaSuccess;
}
