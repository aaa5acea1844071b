/*-------------------------------------------------------------------------
 *
 * onesweep.cu
 *	  Our own radix core, with the parameters that were measured best; see
 *	  radix_backend.h and onesweep.cuh.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/radix/onesweep.cuh"

#include "sort/radix/radix_backend.h"

/* Measured best on an H200, whose blocks may have 227 KiB of shared memory. */
typedef GpuSortOnesweep<256, 40, 2, 4, 2> GpuSortCore;

static cudaError_t
onesweep_temp_bytes(uint32_t rows, int bits, size_t *temp_bytes)
{
	*temp_bytes = GpuSortCore::temp_bytes(rows, bits);
	return cudaSuccess;
}

static cudaError_t
onesweep_room_bytes(uint32_t rows, size_t *temp_bytes)
{
	*temp_bytes = GpuSortCore::room_bytes(rows);
	return cudaSuccess;
}

static cudaError_t
onesweep_room(void *temp, uint32_t rows, int bits, GpuSortRadixRoom *room)
{
	*room = GpuSortCore::find_room((char *) temp, rows, bits);
	return cudaSuccess;
}

const GpuSortRadixBackend gpusort_onesweep_backend = {
	"onesweep",
	GpuSortCore::SHARED,
	onesweep_temp_bytes,
	GpuSortCore::begin,
	GpuSortCore::sort,
	onesweep_room_bytes,
	onesweep_room,
};
