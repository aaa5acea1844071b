/*-------------------------------------------------------------------------
 *
 * hypothetical.h
 *	  rank(), percent_rank() and cume_dist() WITHIN GROUP, of all rows of a GpuSort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HYPOTHETICAL_H
#define GPUSORT_HYPOTHETICAL_H

#include "compat.h"

#include "exec/numbered_rows.h"
#include "executor/nodeAgg.h"

typedef struct GpuSortHypothetical GpuSortHypothetical;

extern GpuSortHypothetical *gpusort_hypothetical_create(const AggStatePerAggData *aggregate,
														const GpuSortColumn *columns);
extern bool gpusort_hypothetical_value(GpuSortHypothetical *hypothetical, GpuSortNumberedRows *rows,
									   ExprContext *context, Datum *value);

#endif /* GPUSORT_HYPOTHETICAL_H */
