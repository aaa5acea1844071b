/*-------------------------------------------------------------------------
 *
 * host_memory.h
 *	  Memory of the host engine: extents of mapped memory, recycled from sort
 *	  to sort, and the account of what the sorts may still take.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_MEMORY_H
#define GPUSORT_HOST_MEMORY_H

#include "service/engine.h"

typedef struct GpuSortMemory GpuSortMemory;

extern GpuSortMemory *gpusort_memory_create(uint64_t limit);
extern void gpusort_memory_destroy(GpuSortMemory *memory);

extern int gpusort_memory_charge(GpuSortMemory *memory, uint64_t bytes, GpuSortError *error);
extern void gpusort_memory_discharge(GpuSortMemory *memory, uint64_t bytes);
extern int gpusort_memory_would_fit(GpuSortMemory *memory, uint64_t bytes, GpuSortError *error);
extern uint64_t gpusort_memory_limit(GpuSortMemory *memory);
extern uint64_t gpusort_memory_used(GpuSortMemory *memory);

extern void *gpusort_memory_get(GpuSortMemory *memory, size_t bytes, GpuSortError *error);
extern void gpusort_memory_put(GpuSortMemory *memory, void *start, size_t bytes);
extern void gpusort_memory_age(GpuSortMemory *memory);
extern uint64_t gpusort_memory_cached(GpuSortMemory *memory);

#endif /* GPUSORT_HOST_MEMORY_H */
