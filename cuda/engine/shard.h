/*-------------------------------------------------------------------------
 *
 * shard.h
 *	  A sort's shards: what it has on each of its devices, from begin to end.
 *
 * A sort begins on the device with the most memory left.  It has several shards
 * from the start if it is expected to be large (GpuSortDeviceSet), or to be larger
 * than what any device has left, and gets more when its devices are full; all of
 * that only where every device can read and write the memory of every other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARD_H
#define GPUSORT_SHARD_H

#include "engine/sort_state.h"

/*
 * Makes the shards that a new sort begins with.  estimated_bytes is that of records, as they lie
 * in chunks.  MEMORY_LIMIT or MEMORY_BUSY when the estimate does not fit, or, of a sort that may
 * spill, not even what it needs to begin.  Whatever it returns, gpusort_shards_end is due.
 */
extern int gpusort_shards_begin(GpuSort *sort, uint64_t estimated_rows, uint64_t estimated_bytes,
								GpuSortError *error);

/*
 * Adds a shard, on a device that has none of the sort; MEMORY_LIMIT, and nothing changed, when
 * there is no such device.
 */
extern int gpusort_shard_add(GpuSort *sort, GpuSortError *error);

/* Waits for what is running on all devices, then gives back what the sort has there. */
extern void gpusort_shards_end(GpuSort *sort);

/* Returns -1, and fills *error, if the sort was cancelled. */
extern int gpusort_check_cancel(const GpuSort *sort, GpuSortError *error);

#endif /* GPUSORT_SHARD_H */
