/*-------------------------------------------------------------------------
 *
 * first_keys.h
 *	  The first so many of the leading keys of rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FIRST_KEYS_H
#define GPUSORT_FIRST_KEYS_H

#include "compat.h"

#include "keys/keys.h"
#include "utils/sortsupport.h"

typedef struct GpuSortFirstKeys GpuSortFirstKeys;

extern GpuSortFirstKeys *gpusort_first_keys_create(const GpuSortColumn *columns, int ncolumns);
extern SortSupport gpusort_first_keys_order(GpuSortFirstKeys *first);
extern void gpusort_first_keys_reset(GpuSortFirstKeys *first, uint64 wanted);
extern bool gpusort_first_keys_may_hold(GpuSortFirstKeys *first, Datum key, bool null);
extern bool gpusort_first_keys_take(GpuSortFirstKeys *first, Datum key, bool null);
extern bool gpusort_first_keys_hold(GpuSortFirstKeys *first, Datum key, bool null);

#endif /* GPUSORT_FIRST_KEYS_H */
