/*-------------------------------------------------------------------------
 *
 * sort.h
 *	  Radix sort of the host engine's elements by their 64-bit keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_SORT_H
#define GPUSORT_HOST_SORT_H

#include "service/host/sort_state.h"

extern size_t gpusort_host_histogram_bytes(const GpuSort *sort, uint64_t rows);
extern void gpusort_host_sort_small(GpuSortElement *in, GpuSortElement *out, size_t n, bool swap);
extern int gpusort_host_sort_parallel(GpuSort *sort, GpuSortElement *elements, GpuSortElement *other,
									  size_t n, bool in_other, GpuSortError *error);

#endif /* GPUSORT_HOST_SORT_H */
