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

/* Bytes of device memory for a shard's staging buffers. */
#define GPUSORT_STAGING_BYTES (2 * GPUSORT_CHUNK_BYTES)

/* Sets device->work_per_row.  The device is the calling thread's. */
extern int gpusort_find_work_per_row(struct GpuSortCudaDevice *device, GpuSortError *error);

/*
 * Returns the bytes of device memory that a shard takes, on any device of the set, to sort so many
 * rows of a sort with so many chunks.
 */
extern uint64_t gpusort_work_bytes(const struct GpuSortDeviceSet *set, uint64_t rows, uint64_t chunks);

/* Returns the reservation for a shard that has put nothing yet, from what is estimated for it. */
extern GpuSortDeviceReservation gpusort_first_reservation(const struct GpuSortDeviceSet *set, uint64_t estimated_rows,
														  uint64_t estimated_bytes);

/* As GpuSortEngineOps says (service/engine.h). */
extern int gpusort_cuda_reserve(GpuSort *sort, GpuSortError *error);
extern int gpusort_cuda_put(GpuSort *sort, const void *chunk, uint32_t rows, uint32_t bytes,
							GpuSortError *error);

/*
 * No chunk will be put any more, and sorting takes so many bytes of work memory on the shard's
 * device: reserves that, and gives back what was reserved beyond it.  MEMORY_LIMIT if it was
 * less and the device has no more.
 */
extern int gpusort_reserve_work(GpuSortShard *shard, uint64_t work_bytes, GpuSortError *error);

/* Returns true if this library has code for the calling thread's device. */
extern bool gpusort_kernels_present(void);

#endif /* GPUSORT_UPLOAD_H */
