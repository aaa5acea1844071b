/*-------------------------------------------------------------------------
 *
 * column_stats.h
 *	  Values that statistics keep of a table's column.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COLUMN_STATS_H
#define GPUSORT_COLUMN_STATS_H

#include "compat.h"

#include "table_column.h"

/* Called with a value, and how many times it is to be taken. */
typedef void (*GpuSortValueCallback)(Datum value, int count, void *arg);

extern bool gpusort_column_values(const GpuSortTableColumn *column, Oid type, GpuSortValueCallback callback,
								  void *arg);

#endif /* GPUSORT_COLUMN_STATS_H */
