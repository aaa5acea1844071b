/*-------------------------------------------------------------------------
 *
 * reservation.h
 *	  How much device memory a sort takes: for its work, and what is reserved for it
 *	  before its rows are known.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RESERVATION_H
#define GPUSORT_RESERVATION_H

#include "engine/device.h"

/* Bytes of device memory for a shard's staging buffers. */
#define GPUSORT_STAGING_BYTES (2 * GPUSORT_CHUNK_BYTES)

/* Sets device->work_per_row.  The device is the calling thread's. */
extern int gpusort_find_work_per_row(GpuSortCudaDevice *device, GpuSortError *error);

/*
 * Returns the bytes of device memory that a shard takes, on any device of the set, to sort so many
 * rows of a sort with so many chunks.
 */
extern uint64_t gpusort_work_bytes(const GpuSortDeviceSet *set, uint64_t rows, uint64_t chunks);

/* Returns the reservation for a shard that has put nothing yet, from what is estimated for it. */
extern GpuSortDeviceReservation gpusort_first_reservation(const GpuSortDeviceSet *set, uint64_t estimated_rows,
														  uint64_t estimated_bytes);

#endif /* GPUSORT_RESERVATION_H */
