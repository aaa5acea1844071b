/*-------------------------------------------------------------------------
 *
 * pool.h
 *	  The staging pool: chunks of shared memory, and which side has each of them.
 *
 * admit comes before the first take, dismiss after the last; what was taken is
 * given back chunk by chunk, before or after dismiss.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_POOL_H
#define GPUSORT_POOL_H

#include <stdbool.h>

#include "service/protocol.h"

typedef struct GpuSortPool GpuSortPool;

/* One sort's part of the pool; belongs to the sort's session, zeroed at first. */
typedef struct GpuSortPoolShare
{
	uint32_t held;   /* chunks */
	bool guaranteed; /* admitted: it will get GPUSORT_JOB_CHUNKS_MIN when it asks */
} GpuSortPoolShare;

/* Who may touch a chunk now. */
typedef enum GpuSortChunkState
{
	GPUSORT_CHUNK_FREE,
	GPUSORT_CHUNK_GRANTED, /* the client, to fill it */
	GPUSORT_CHUNK_ENGINE,  /* an engine call, running or to come */
	GPUSORT_CHUNK_DATA,    /* the client, to read it */
} GpuSortChunkState;

#define GPUSORT_NO_CHUNK UINT32_MAX

extern GpuSortPool *gpusort_pool_create(uint64_t bytes, char *error, size_t error_size);
extern void gpusort_pool_destroy(GpuSortPool *pool);
extern uint64_t gpusort_pool_id(const GpuSortPool *pool);
extern uint32_t gpusort_pool_chunks(const GpuSortPool *pool);
extern int gpusort_pool_descriptor(const GpuSortPool *pool);
extern void *gpusort_pool_chunk(const GpuSortPool *pool, uint32_t chunk);
extern void *gpusort_pool_start(const GpuSortPool *pool);

extern bool gpusort_pool_admit(GpuSortPool *pool, GpuSortPoolShare *share, uint32_t spare);
extern void gpusort_pool_dismiss(GpuSortPool *pool, GpuSortPoolShare *share);
extern uint32_t gpusort_pool_share_chunks(const GpuSortPoolShare *share);
extern uint32_t gpusort_pool_take(GpuSortPool *pool, GpuSortPoolShare *share, GpuSortChunkState state);
extern void gpusort_pool_give_back(GpuSortPool *pool, uint32_t chunk);
extern void gpusort_pool_give_back_all(GpuSortPool *pool, GpuSortPoolShare *share, GpuSortChunkState state);
extern bool gpusort_pool_is(const GpuSortPool *pool, uint32_t chunk, const GpuSortPoolShare *share,
							GpuSortChunkState state);
extern void gpusort_pool_set(GpuSortPool *pool, uint32_t chunk, GpuSortChunkState state);
extern void gpusort_pool_grant(GpuSortPool *pool, uint32_t chunk, uint32_t rows_max);
extern uint32_t gpusort_pool_rows_max(const GpuSortPool *pool, uint32_t chunk);

#endif /* GPUSORT_POOL_H */
