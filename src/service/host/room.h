/*-------------------------------------------------------------------------
 *
 * room.h
 *	  The memory of a sort in the host engine: all of it is there when a reserve
 *	  is, so that neither put nor sort can run out of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_ROOM_H
#define GPUSORT_HOST_ROOM_H

#include "service/host/sort_state.h"

extern uint64_t gpusort_host_least_bytes(const GpuSort *sort);
extern uint64_t gpusort_host_bytes_per_row(const GpuSort *sort);

extern int gpusort_host_room_reserve(GpuSort *sort, uint32_t rows_max, GpuSortError *error);
extern bool gpusort_host_room_take(GpuSort *sort, uint32_t rows_max, uint32_t rows, uint32_t bytes,
								   GpuSortHostChunk *chunk);
extern void gpusort_host_room_close(GpuSort *sort);
extern void gpusort_host_room_sorted(GpuSort *sort);
extern void gpusort_host_room_free(GpuSort *sort);

#endif /* GPUSORT_HOST_ROOM_H */
