/*-------------------------------------------------------------------------
 *
 * percentiles.h
 *	  percentile_disc() and percentile_cont() of all rows of a GpuSort, read by their numbers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PERCENTILES_H
#define GPUSORT_PERCENTILES_H

#include "compat.h"

#include "exec/scan_state.h"

typedef struct GpuSortPercentiles GpuSortPercentiles;

extern void gpusort_percentiles_begin(AggState *agg, GpuSortScanState *scan);
extern void gpusort_percentiles_explain(const GpuSortPercentiles *percentiles, struct ExplainState *es);

#endif /* GPUSORT_PERCENTILES_H */
