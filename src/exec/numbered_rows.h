/*-------------------------------------------------------------------------
 *
 * numbered_rows.h
 *	  Rows of a GpuSort that are read by their numbers, from 0.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NUMBERED_ROWS_H
#define GPUSORT_NUMBERED_ROWS_H

#include "compat.h"

#include "exec/scan_state.h"

typedef struct GpuSortNumberedRows
{
	GpuSortScanState *scan; /* its rows are in the service */
	uint64 next;            /* number of the next row to read */
	uint64 read;            /* number of rows read */
} GpuSortNumberedRows;

extern bool gpusort_numbered_go_to(GpuSortNumberedRows *rows, uint64 number);
extern TupleTableSlot *gpusort_numbered_next(GpuSortNumberedRows *rows);
extern TupleTableSlot *gpusort_numbered_row(GpuSortNumberedRows *rows, uint64 number);

/* Returns the number of rows. */
static inline uint64
gpusort_numbered_count(const GpuSortNumberedRows *rows)
{
	return rows->scan->sort->figures.outcome.rows;
}

#endif /* GPUSORT_NUMBERED_ROWS_H */
