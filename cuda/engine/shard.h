/*-------------------------------------------------------------------------
 *
 * part.h
 *	  A sort's parts: what it has on each of its devices, from begin to end.
 *
 * A sort begins on the device with the most memory left.  It has several parts
 * from the start if it is expected to be large (GpuSortDeviceSet), or to be larger
 * than what any device has left, and gets more when its devices are full; all of
 * that only where every device can read and write the memory of every other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PART_H
#define GPUSORT_PART_H

#include "engine/sort_state.h"

/*
 * Gives a new sort the parts it begins with.  MEMORY_LIMIT when the estimate does
 * not fit.  Whatever it returns, gpusort_parts_end is due.
 */
extern int gpusort_parts_begin(GpuSort *sort, uint64_t estimated_rows, uint64_t estimated_bytes,
							   GpuSortError *error);

/* One more part, on a device that has none; fails, and nothing changed, when there is no such device. */
extern int gpusort_part_add(GpuSort *sort, GpuSortError *error);

/* Waits for what is under way on all devices, then gives back what the sort has there. */
extern void gpusort_parts_end(GpuSort *sort);

#endif /* GPUSORT_PART_H */
