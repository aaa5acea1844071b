/*-------------------------------------------------------------------------
 *
 * fallback.h
 *	  The ways of a GpuSort to PostgreSQL's own sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FALLBACK_H
#define GPUSORT_FALLBACK_H

#include "exec/scan_state.h"

extern void gpusort_fallback_few(GpuSortScanState *state);
extern void gpusort_fallback_refused(GpuSortScanState *state, const GpuSortFailure *failure);
extern void gpusort_fallback_full(GpuSortScanState *state, TupleTableSlot *row, const GpuSortFailure *full);
extern void gpusort_fallback_disordered(GpuSortScanState *state, const GpuSortFailure *disordered);
extern void gpusort_fallback_lost(GpuSortScanState *state, const GpuSortFailure *failure);
pg_noreturn extern void gpusort_report_lost(GpuSortScanState *state, const GpuSortFailure *failure);

#endif /* GPUSORT_FALLBACK_H */
