/*-------------------------------------------------------------------------
 *
 * partial_keys.h
 *	  Partial keys of rows by a plan: the packed keys' top 32 bits, or as many as there are.
 *	  A step of the device sort (device_sort.h); not for others.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARTIAL_KEYS_H
#define GPUSORT_PARTIAL_KEYS_H

#include <cuda_runtime.h>

#include "sort/device_sort.h"

/* partial_keys[i] = partial key of row ids[i], or of row i where ids is NULL, for `rows` rows.  Does not wait. */
extern cudaError_t gpusort_make_partial_keys(const GpuSortKeySource *source, const GpuSortPackPlan *plan,
											 const uint32_t *ids, uint32_t rows, uint32_t *partial_keys,
											 cudaStream_t stream);

/* The same for rows 0 to rows - 1; adds their digits to histogram as radix_sort.h wants them. */
extern cudaError_t gpusort_make_counted_partial_keys(const GpuSortKeySource *source, const GpuSortPackPlan *plan,
													 uint32_t rows, uint32_t *partial_keys, uint32_t *histogram,
													 cudaStream_t stream);

#endif /* GPUSORT_PARTIAL_KEYS_H */
