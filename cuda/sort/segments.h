/*-------------------------------------------------------------------------
 *
 * segments.h
 *	  Rows that tie on the prefix of their keys, put in order by the bits after it.
 *	  Steps of the device sort (device_sort.h); not for others.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SEGMENTS_H
#define GPUSORT_SEGMENTS_H

#include <cuda_runtime.h>

#include "sort/device_sort.h"

/* Regions of temp begin at multiples of this. */
#define GPUSORT_TEMP_ALIGN 256

/* Where a region of so many bytes begins, after those laid out before it. */
static inline size_t
gpusort_lay_temp(size_t *end, size_t bytes)
{
	size_t start = *end;

	*end += (bytes + GPUSORT_TEMP_ALIGN - 1) / GPUSORT_TEMP_ALIGN * GPUSORT_TEMP_ALIGN;
	return start;
}

/* Waits for the stream as the caller wants it; 0, or the sort's status. */
extern int gpusort_device_wait(const GpuSortDeviceWait *wait, cudaStream_t stream);

/* Bytes of temp for gpusort_order_ties; 0 if keys of so many bits are decided by their prefixes. */
extern cudaError_t gpusort_order_ties_bytes(uint32_t rows, uint32_t packed_bits, size_t *temp_bytes);

/* Prefixes from first on, so many, that rows share only if their whole keys are equal. */
typedef struct GpuSortDecided
{
	uint32_t first;
	uint32_t count;
} GpuSortDecided;

/*
 * ids[0] to ids[rows - 1] are row numbers in the order of their prefixes, which are in
 * keys; puts those of each run of equal prefixes in the order of their whole keys, and of
 * ids as it is among rows with equal keys.  Rows with equal prefixes are known to have the
 * first `from` bits of the packed key in common.  Rows with decided prefixes are not looked at.
 */
extern int gpusort_order_ties(const GpuSortDeviceSort *sort, uint32_t from, GpuSortDecided decided, uint32_t rows,
							  const uint32_t *keys, uint32_t *ids, void *temp, size_t temp_bytes,
							  cudaStream_t stream);

#endif /* GPUSORT_SEGMENTS_H */
