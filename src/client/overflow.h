/*-------------------------------------------------------------------------
 *
 * overflow.h
 *	  Rows longer than a quarter of a chunk, in a temporary file of the backend.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_OVERFLOW_H
#define GPUSORT_OVERFLOW_H

#include "compat.h"

#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "storage/buffile.h"

/* The length of what travels in the place of a long row. */
#define GPUSORT_OVERFLOW_ROW_BYTES 24

/* The long rows of one sort. */
typedef struct GpuSortOverflow
{
	BufFile *file; /* NULL until there is a row */
} GpuSortOverflow;

extern Size gpusort_overflow_store(GpuSortOverflow *overflow, TupleTableSlot *slot, char *row);
extern MinimalTuple gpusort_overflow_fetch(GpuSortOverflow *overflow, const char *row);
extern void gpusort_overflow_close(GpuSortOverflow *overflow);

#endif /* GPUSORT_OVERFLOW_H */
