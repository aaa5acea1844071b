/*-------------------------------------------------------------------------
 *
 * upload.h
 *	  Ingest of chunks: room for them, their H2D copy, and what is learned of the keys
 *	  on the way.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UPLOAD_H
#define GPUSORT_UPLOAD_H

#include "engine/sort_state.h"

/* As GpuSortEngineOps says (service/engine.h). */
extern int gpusort_cuda_reserve(GpuSort *sort, uint32_t rows_max, GpuSortError *error);
extern int gpusort_cuda_put(GpuSort *sort, const void *chunk, uint32_t rows, uint32_t bytes, uint32_t rows_max,
							GpuSortError *error);

/*
 * No chunk will be put any more, and sorting takes so many bytes of work memory on the shard's
 * device: reserves that, and gives back what was reserved beyond it.  MEMORY_LIMIT or
 * MEMORY_BUSY if it was less and the device has no more.
 */
extern int gpusort_reserve_work(GpuSortShard *shard, uint64_t work_bytes, GpuSortError *error);

#endif /* GPUSORT_UPLOAD_H */
