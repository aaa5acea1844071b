/*-------------------------------------------------------------------------
 *
 * set_keys.h
 *	  The keys of the sorts of a set, as far as ranges are cut by them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SET_KEYS_H
#define GPUSORT_SET_KEYS_H

#include "compat.h"

#include "parallel/sort_set.h"

extern void gpusort_set_keys_choose(const GpuSortSortSet *set, GpuSortPrefix **prefixes, bool *common_later);
extern uint32 gpusort_set_keys_range_bits(const GpuSortSortSet *set);

#endif /* GPUSORT_SET_KEYS_H */
