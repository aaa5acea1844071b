/*-------------------------------------------------------------------------
 *
 * few_values.h
 *	  Which columns of strings have ranks in a sort's keys, and of which values.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FEW_VALUES_H
#define GPUSORT_FEW_VALUES_H

#include "compat.h"

#include "keys/keys.h"
#include "sort/input.h"

/* Number of rows whose values are counted if there are no statistics. */
#define GPUSORT_FEW_VALUES_ROWS 4096

extern int gpusort_few_values_rows(const GpuSortKeys *keys);
extern void gpusort_few_values_choose(const GpuSortKeys *keys, int i, const GpuSortInput *input, bool first,
									  bool statistics, GpuSortPrefix *prefix);
extern void gpusort_few_values_add(const GpuSortKeys *keys, const GpuSortInput *input, GpuSortPrefix *prefixes);

#endif /* GPUSORT_FEW_VALUES_H */
