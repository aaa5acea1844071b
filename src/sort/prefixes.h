/*-------------------------------------------------------------------------
 *
 * prefixes.h
 *	  What of its strings goes into a sort's keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PREFIXES_H
#define GPUSORT_PREFIXES_H

#include "compat.h"

#include "client/failure.h"
#include "keys/keys.h"
#include "sort/input.h"

/* Number of rows that are enough for a choice. */
#define GPUSORT_SAMPLE_ROWS 256

extern bool gpusort_prefixes_choose(const GpuSortKeys *keys, const GpuSortInput *input, bool first, double rows,
									GpuSortPrefix *prefixes);
extern bool gpusort_prefixes_too_many_ties(const GpuSortKeys *keys, const GpuSortPrefix *prefixes,
										   GpuSortFailure *failure);

#endif /* GPUSORT_PREFIXES_H */
