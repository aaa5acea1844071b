/*-------------------------------------------------------------------------
 *
 * mapped_pool.h
 *	  A backend's mapping of the staging pool.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MAPPED_POOL_H
#define GPUSORT_MAPPED_POOL_H

#include "compat.h"

#include "client/failure.h"

/* Shared by the connections of this backend to one service. */
typedef struct GpuSortMappedPool GpuSortMappedPool;

extern bool gpusort_mapped_pool_exists(void);
extern bool gpusort_mapped_pool_is_used_up(uint32 generation);
extern GpuSortMappedPool *gpusort_mapped_pool_take(void);
extern GpuSortMappedPool *gpusort_mapped_pool_map(uint64 id, uint32 generation, uint64 bytes, uint32 chunks, int fd,
												  GpuSortFailure *failure);
extern void gpusort_mapped_pool_release(GpuSortMappedPool *pool);

extern uint64 gpusort_mapped_pool_id(const GpuSortMappedPool *pool);
extern bool gpusort_mapped_pool_has_chunk(const GpuSortMappedPool *pool, uint32 chunk);
extern char *gpusort_mapped_pool_chunk(GpuSortMappedPool *pool, uint32 chunk);

#endif /* GPUSORT_MAPPED_POOL_H */
