/*-------------------------------------------------------------------------
 *
 * order.h
 *	  Check of the order, further words of the keys, ties.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_ORDER_H
#define GPUSORT_HOST_ORDER_H

#include "service/host/sort_state.h"

extern size_t gpusort_host_block_starts(uint64_t rows);
extern size_t gpusort_host_long_runs(const GpuSort *sort, uint64_t rows);
extern int gpusort_host_finish(GpuSort *sort, GpuSortError *error);

#endif /* GPUSORT_HOST_ORDER_H */
