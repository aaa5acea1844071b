/*-------------------------------------------------------------------------
 *
 * column_stats.h
 *	  Values that statistics keep of a column of a plan's rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COLUMN_STATS_H
#define GPUSORT_COLUMN_STATS_H

#include "compat.h"

#include "nodes/execnodes.h"

/* Called with a value, and how many times it is to be taken. */
typedef void (*GpuSortValueCallback)(Datum value, int count, void *arg);

extern bool gpusort_column_values(PlanState *child, AttrNumber attno, Oid type, GpuSortValueCallback callback,
								  void *arg);

#endif /* GPUSORT_COLUMN_STATS_H */
