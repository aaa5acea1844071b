/*-------------------------------------------------------------------------
 *
 * upload.h
 *	  Taking chunks in: room for them, their way to the device, and what is
 *	  learned of the keys on the way.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UPLOAD_H
#define GPUSORT_UPLOAD_H

#include "engine/sort_state.h"

/* Bytes of device memory for staging, and those for sorting so many rows in so many chunks. */
#define GPUSORT_STAGING_BYTES (2 * GPUSORT_CHUNK_BYTES)

extern uint64_t gpusort_work_bytes(const struct GpuSortDeviceSet *set, uint64_t rows, uint64_t chunks);

/* The share of a sort that has put nothing yet, for its estimates. */
extern GpuSortShare gpusort_first_share(const struct GpuSortDeviceSet *set, uint64_t estimated_rows,
										uint64_t estimated_bytes);

/* As GpuSortEngineOps says. */
extern int gpusort_cuda_reserve(GpuSort *sort, GpuSortError *error);
extern int gpusort_cuda_put(GpuSort *sort, const void *chunk, uint32_t rows, uint32_t bytes,
							GpuSortError *error);

/*
 * No chunk will be put any more, and sorting takes so much work memory on the part's
 * device: gives back what was promised beyond that.
 */
extern int gpusort_promise_work(GpuSortPart *part, uint64_t work_bytes, GpuSortError *error);

/* Has this library code for the calling thread's device? */
extern bool gpusort_kernels_present(void);

#endif /* GPUSORT_UPLOAD_H */
