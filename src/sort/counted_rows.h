/*-------------------------------------------------------------------------
 *
 * counted_rows.h
 *	  Counted rows: heap rows that stand for a number of equal ones.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COUNTED_ROWS_H
#define GPUSORT_COUNTED_ROWS_H

#include "compat.h"

#include "sort/heap_rows.h"

extern const GpuSortRowKind gpusort_counted_rows;

extern GpuSortHeapRows *gpusort_counted_rows_create(TupleDesc source, TupleDesc shown, List *counted);

#endif /* GPUSORT_COUNTED_ROWS_H */
