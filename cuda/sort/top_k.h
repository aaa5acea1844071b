/*-------------------------------------------------------------------------
 *
 * top_k.h
 *	  The rows that can be among the first k.  Steps of the device sort
 *	  (device_sort.h); not for others.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TOP_K_H
#define GPUSORT_TOP_K_H

#include <cuda_runtime.h>

#include "sort/device_sort.h"

/* Is a radix select worth it, or is everything to be sorted? */
extern bool gpusort_select_pays(const GpuSortDeviceSort *sort);

/* The most rows that a select keeps: at least twice the limit, at most half of the rows. */
extern uint32_t gpusort_select_capacity(const GpuSortDeviceSort *sort);

/* Bytes of temp for gpusort_select. */
extern size_t gpusort_select_bytes(const GpuSortDeviceSort *sort);

/*
 * Finds *kept rows, at least sort->limit, among which are the first sort->limit and, with
 * limit_ties, every row that ties with the last of these; their numbers go to kept_ids,
 * in no order.  *kept is 0 if more rows tie than there is capacity for.
 *
 * prefixes are those of all rows.  kept_ids has room for gpusort_select_capacity, list
 * and spare for all rows; spare may be prefixes, which then are gone.  Only if
 * gpusort_select_pays.  Waits.
 */
extern int gpusort_select(const GpuSortDeviceSort *sort, const uint32_t *prefixes, uint32_t *spare,
						  uint32_t *kept_ids, uint32_t *list, uint32_t *kept, void *temp, size_t temp_bytes,
						  cudaStream_t stream);

/*
 * *end = one past the last of `rows` rows, whose numbers in the order of their keys are
 * ids, that ties with the one before place `limit`, which is 1 to rows.  temp has at
 * least 4 bytes.  Waits.
 */
extern int gpusort_tie_end(const GpuSortDeviceSort *sort, const uint32_t *ids, uint32_t rows, uint32_t limit,
						   uint32_t *end, void *temp, cudaStream_t stream);

#endif /* GPUSORT_TOP_K_H */
