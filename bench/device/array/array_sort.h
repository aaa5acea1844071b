/*-------------------------------------------------------------------------
 *
 * array_sort.h
 *	  The device sort (device_sort.h, whose rules hold) of keys in an array: of which
 *	  nothing is known, or whose plan is there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ARRAY_SORT_H
#define GPUSORT_ARRAY_SORT_H

#include "sort/device_sort.h"

/*
 * Of which nothing is known: statistics of the keys in one pass, plan, sort; without statistics
 * where there are few rows of 4 bytes, to which they cost more than they save.  source.kind is
 * not REFS.  ids is device memory for `rows` uint32_t; with a limit the first so many are the
 * result.  Waits.
 */
extern int gpusort_array_sort_bytes(const GpuSortKeySource *source, uint32_t rows, uint32_t limit, size_t *temp_bytes);
extern int gpusort_array_sort(const GpuSortKeySource *source, uint32_t rows, uint32_t limit,
							  const GpuSortDeviceWait *wait, void *temp, size_t temp_bytes, uint32_t *ids,
							  GpuSortStream stream);

/*
 * gpusort_device_sort of an array; an array of uint32_t that loses no bits is its own partial
 * keys, and is sorted without making any.
 */
extern int gpusort_array_sort_planned(const GpuSortDeviceSort *sort, void *temp, size_t temp_bytes, uint32_t *ids,
									  GpuSortStream stream);

#endif /* GPUSORT_ARRAY_SORT_H */
