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

/* Returns true if a radix select is worth it, false if everything is to be sorted. */
extern bool gpusort_select_pays(const GpuSortDeviceSort *sort);

/* The most rows that a select keeps: at least twice the limit, at most half of the rows. */
extern uint32_t gpusort_select_capacity(const GpuSortDeviceSort *sort);

/* Bytes of temp for gpusort_select. */
extern size_t gpusort_select_bytes(const GpuSortDeviceSort *sort);

/*
 * Finds *kept rows, at least sort->limit, among which are the first sort->limit and, with
 * limit_ties, every row that ties with the last of these; their numbers go to memory->kept_ids,
 * in no order.  *kept is 0 if more rows tie than there is capacity for.
 *
 * partial_keys are those of all rows.  Only if gpusort_select_pays.  Waits.
 */
typedef struct GpuSortSelectMemory
{
	uint32_t *kept_ids; /* room for gpusort_select_capacity */
	uint32_t *list;     /* for all rows */
	uint32_t *spare;    /* for all rows; may be the partial keys, which then are gone */
	void *temp;
	size_t temp_bytes;
} GpuSortSelectMemory;

extern int gpusort_select(const GpuSortDeviceSort *sort, const uint32_t *partial_keys,
						  const GpuSortSelectMemory *memory, uint32_t *kept, cudaStream_t stream);

/*
 * *end = one past the last of `rows` rows, whose numbers in the order
 * of their keys are ids, that ties with the one before place `limit`,
 * which is 1 to rows.  temp has at least 4 bytes.  Waits.
 */
extern int gpusort_tie_end(const GpuSortDeviceSort *sort, const uint32_t *ids, uint32_t rows, uint32_t limit,
						   uint32_t *end, void *temp, cudaStream_t stream);

#endif /* GPUSORT_TOP_K_H */
