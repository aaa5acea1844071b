/*-------------------------------------------------------------------------
 *
 * radix_backend.h
 *	  What a radix core does for radix_sort.h, which chooses one; not for others.
 *
 * Arguments have been checked, rows are at least 1 where something is sorted, and the
 * device is current.  What is returned for rows and bits is never less for more of them:
 * temp for many rows serves fewer.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RADIX_BACKEND_H
#define GPUSORT_RADIX_BACKEND_H

#include "sort/radix/radix_sort.h"

typedef struct GpuSortRadixBackend
{
	const char *name;
	size_t shared_bytes; /* the most shared memory that a block of it takes; 0: any device has enough */
	cudaError_t (*temp_bytes)(uint32_t rows, int bits, size_t *temp_bytes);
	cudaError_t (*begin)(void *temp, size_t temp_bytes, uint32_t rows, int bits, uint32_t **histogram,
						 cudaStream_t stream);
	cudaError_t (*sort)(const GpuSortRadixSort *sort, cudaStream_t stream);
	cudaError_t (*room_bytes)(uint32_t rows, size_t *temp_bytes);
	cudaError_t (*room)(void *temp, uint32_t rows, int bits, GpuSortRadixRoom *room);
} GpuSortRadixBackend;

extern const GpuSortRadixBackend gpusort_onesweep_backend;
extern const GpuSortRadixBackend gpusort_cub_backend;

#endif /* GPUSORT_RADIX_BACKEND_H */
