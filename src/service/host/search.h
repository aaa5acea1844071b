/*-------------------------------------------------------------------------
 *
 * search.h
 *	  Keys of the host engine's sorted rows, and places of keys among them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_SEARCH_H
#define GPUSORT_HOST_SEARCH_H

#include "service/host/sort_state.h"

extern void gpusort_host_keys_at(const GpuSort *sort, const uint64_t *rows, uint32_t count, uint64_t *keys);
extern void gpusort_host_rows_below(const GpuSort *sort, uint32_t bits, const uint64_t *keys, uint32_t count,
									uint64_t *rows);

#endif /* GPUSORT_HOST_SEARCH_H */
