/*-------------------------------------------------------------------------
 *
 * load_ranges.h
 *	  Loads a btree in all processes that have sorted its rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LOAD_RANGES_H
#define GPUSORT_LOAD_RANGES_H

#include "compat.h"

#include "index/worker.h"

extern void gpusort_load_ranges(GpuSortBuild *build, int process);
extern void gpusort_load_above(const GpuSortBuild *build);

#endif /* GPUSORT_LOAD_RANGES_H */
