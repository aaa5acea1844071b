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

#include "facts/table_column.h"
#include "keys/types.h"

/* Called with a value, and how many times the sample has it. */
typedef void (*GpuSortValueCallback)(Datum value, int count, void *arg);

/* So many different values of a column are few. */
#define GPUSORT_FEW_VALUES 800

/* Values that so many of a column's rows have are nearly all of them. */
#define GPUSORT_KNOWN_SHARE 0.9

extern double gpusort_column_known_values(const GpuSortTableColumn *column, Oid type, GpuSortValueCallback callback,
										  void *arg, double *different);
extern double gpusort_column_ends_keys(const GpuSortTableColumn *column, Oid type, GpuSortEncoding encoding);
extern bool gpusort_column_values(const GpuSortTableColumn *column, Oid type, GpuSortValueCallback callback,
								  void *arg);

#endif /* GPUSORT_COLUMN_STATS_H */
