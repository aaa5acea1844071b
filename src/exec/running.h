/*-------------------------------------------------------------------------
 *
 * running.h
 *	  Windows over rows that GpuSort emits, whose functions follow from what the rows before come to.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUNNING_H
#define GPUSORT_RUNNING_H

#include "compat.h"

#include "exec/scan_state.h"
#include "nodes/execnodes.h"

typedef struct GpuSortRunning GpuSortRunning;

extern void gpusort_running_begin(WindowAggState *window, GpuSortScanState *scan);
extern void gpusort_running_end(GpuSortRunning *running);

/* By ranges of the rows: see window_ranges.c */
extern bool gpusort_running_needs_totals(const GpuSortRunning *running);
extern char *gpusort_running_total(GpuSortRunning *running, Size *bytes);
extern void gpusort_running_reset(GpuSortRunning *running, int64 rows);
extern void gpusort_running_add(GpuSortRunning *running, const char *total);
extern void gpusort_running_go_on(GpuSortRunning *running, int64 all_rows);
extern void gpusort_running_alone(GpuSortRunning *running);

#endif /* GPUSORT_RUNNING_H */
