/*-------------------------------------------------------------------------
 *
 * input.h
 *	  Reads a GpuSort's child to its end, and has the rows sorted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_H
#define GPUSORT_INPUT_H

#include "exec/scan_state.h"

extern void gpusort_sort_input(GpuSortScanState *state);

#endif /* GPUSORT_INPUT_H */
