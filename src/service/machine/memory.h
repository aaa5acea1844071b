/*-------------------------------------------------------------------------
 *
 * memory.h
 *	  Memory of the host engine: extents of mapped memory, recycled from sort
 *	  to sort, and the account of what the sorts may still take.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_MEMORY_H
#define GPUSORT_HOST_MEMORY_H

#include "service/engine.h"

/* Extents are whole pages. */
#define GPUSORT_HOST_PAGE_BYTES ((size_t) 4096)

typedef struct GpuSortHostMemory GpuSortHostMemory;

extern GpuSortHostMemory *gpusort_host_memory_create(uint64_t limit);
extern void gpusort_host_memory_destroy(GpuSortHostMemory *memory);

extern void gpusort_host_memory_begin(GpuSortHostMemory *memory);
extern void gpusort_host_memory_end(GpuSortHostMemory *memory);
extern int gpusort_host_memory_charge(GpuSortHostMemory *memory, uint64_t bytes, uint64_t own,
									  GpuSortError *error);
extern void gpusort_host_memory_discharge(GpuSortHostMemory *memory, uint64_t bytes, uint64_t own);
extern int gpusort_host_memory_would_fit(GpuSortHostMemory *memory, uint64_t bytes, uint64_t own,
										 GpuSortError *error);
extern uint64_t gpusort_host_memory_limit(GpuSortHostMemory *memory);
extern uint64_t gpusort_host_memory_used(GpuSortHostMemory *memory);

extern void *gpusort_host_memory_get(GpuSortHostMemory *memory, size_t bytes, GpuSortError *error);
extern void gpusort_host_memory_put(GpuSortHostMemory *memory, void *start, size_t bytes);
extern void gpusort_host_memory_age(GpuSortHostMemory *memory);
extern uint64_t gpusort_host_memory_cached(GpuSortHostMemory *memory);

#endif /* GPUSORT_HOST_MEMORY_H */
