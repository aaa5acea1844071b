/*-------------------------------------------------------------------------
 *
 * known_values.h
 *	  Ranks of a column's strings among values that are known; for this folder alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KNOWN_VALUES_H
#define GPUSORT_KNOWN_VALUES_H

#include "compat.h"

#include "keys/keys.h"

typedef struct GpuSortKnownTable GpuSortKnownTable;

extern GpuSortKnownTable *gpusort_known_table_create(const GpuSortColumn *column, const GpuSortKnownValues *known);
extern uint32 gpusort_known_rank(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value);

#endif /* GPUSORT_KNOWN_VALUES_H */
