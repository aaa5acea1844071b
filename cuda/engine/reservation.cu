/*-------------------------------------------------------------------------
 *
 * reservation.cu
 *	  How much device memory a sort takes; see reservation.h.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/reservation.h"

#include <string.h>

#include "engine/check.h"
#include "engine/redistribute.h"
#include "sort/radix/radix_sort.h"

/*
 * Work memory per row: ref 8, id 4, partial key 4, the device sort's
 * temporary storage 16.4 at most, or 24.6 with CUB as its core;
 * tie bits and sums of tiles are below 1.  The rest is for a sort of several shards,
 * whose devices do not sort exactly as many rows as were put on them.
 */
#define GPUSORT_WORK_PER_ROW     36
#define GPUSORT_WORK_PER_ROW_CUB 45
#define GPUSORT_WORK_FIXED       ((uint64_t) 1 << 20)

int
gpusort_find_work_per_row(GpuSortCudaDevice *device, GpuSortError *error)
{
	const char *core;

	GPUSORT_CUDA(device, error, gpusort_radix_chosen(&core));
	device->work_per_row = strcmp(core, "cub") == 0 ? GPUSORT_WORK_PER_ROW_CUB : GPUSORT_WORK_PER_ROW;
	return 0;
}

uint64_t
gpusort_work_bytes(const GpuSortDeviceSet *set, uint64_t rows, uint64_t chunks)
{
	uint32_t per_row = 0;
	uint64_t bytes;

	for (int i = 0; i < set->count; i++)
	{
		if (set->devices[i].work_per_row > per_row)
			per_row = set->devices[i].work_per_row;
	}
	bytes = gpusort_block_size(GPUSORT_WORK_FIXED + rows * per_row + chunks * sizeof(GpuSortDeviceChunk));

	/* any sort may become one of several shards */
	if (set->joined)
		bytes += gpusort_block_size(GPUSORT_REDISTRIBUTION_FIXED + chunks * GPUSORT_REDISTRIBUTION_PER_CHUNK);
	return bytes;
}

GpuSortDeviceReservation
gpusort_first_reservation(const GpuSortDeviceSet *set, uint64_t estimated_rows, uint64_t estimated_bytes)
{
	GpuSortDeviceReservation reservation;
	uint64_t chunks;

	/* An estimate that overflows is too large for any device. */
	if (estimated_rows > UINT64_MAX / 256)
		estimated_rows = UINT64_MAX / 256;
	if (estimated_bytes > UINT64_MAX / 4)
		estimated_bytes = UINT64_MAX / 4;

	/* records and their offsets, and one chunk for what the last ones leave unused */
	estimated_bytes += estimated_rows * sizeof(uint32_t);
	chunks = estimated_bytes / GPUSORT_CHUNK_BYTES + 1;
	reservation.need = GPUSORT_STAGING_BYTES + gpusort_work_bytes(set, 0, 0);
	reservation.estimate = GPUSORT_STAGING_BYTES + gpusort_work_bytes(set, estimated_rows, chunks) +
		chunks * GPUSORT_CHUNK_BYTES;
	return reservation;
}
