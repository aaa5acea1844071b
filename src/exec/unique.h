/*-------------------------------------------------------------------------
 *
 * unique.h
 *	  A Unique over rows that GpuSort emits, which compares values as they are stored.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UNIQUE_H
#define GPUSORT_UNIQUE_H

#include "compat.h"

#include "exec/scan_state.h"
#include "nodes/execnodes.h"

extern void gpusort_unique_begin(UniqueState *unique, GpuSortScanState *scan);

#endif /* GPUSORT_UNIQUE_H */
