/*-------------------------------------------------------------------------
 *
 * packing.h
 *	  Packed keys of the host engine: only the bits that vary, next to each other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_PACKING_H
#define GPUSORT_HOST_PACKING_H

#include "service/host/sort_state.h"

extern void gpusort_packing_plan(GpuSortPacking *packing, const uint64_t *any, const uint64_t *all,
								 uint32_t key_words);
extern uint64_t gpusort_packing_word(const GpuSortPacking *packing, const uint64_t *key, uint32_t word);
extern void gpusort_host_extract(GpuSort *sort, GpuSortElement *elements, bool backwards);

#endif /* GPUSORT_HOST_PACKING_H */
