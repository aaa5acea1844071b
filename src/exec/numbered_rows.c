/*-------------------------------------------------------------------------
 *
 * numbered_rows.c
 *	  Rows of a GpuSort that are read by their numbers, from 0.
 *
 * The service gives rows from any number on, as it does behind an OFFSET.  Where it cannot, since keys may tie that do
 * not hold their values whole, or rows are verified, those before the one that is asked for are read and passed over.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/numbered_rows.h"

/* Up to so many rows are read rather than asked for anew behind them. */
#define NEAR_ROWS 2000

/* Goes to the row of this number, or to one before it, to be read next; false if the rows are lost. */
bool
gpusort_numbered_go_to(GpuSortNumberedRows *rows, uint64 number)
{
	GpuSortState *sort = rows->scan->sort;
	GpuSortFailure failure;

	sort->offset = number;
	if (!gpusort_sort_rewind(sort, &failure))
	{
		if (!rows->scan->info.rescannable)
			gpusort_sort_report_lost(false, &failure);
		return false;
	}
	rows->next = sort->figures.skipped;
	return true;
}

/* Reads the next row, which must be there; NULL if the rows are lost. */
TupleTableSlot *
gpusort_numbered_next(GpuSortNumberedRows *rows)
{
	GpuSortState *sort = rows->scan->sort;
	TupleTableSlot *row = gpusort_sort_next(sort, true);

	if (sort->stage != GPUSORT_STAGE_SERVICE)
		return NULL;
	if (row == NULL)
		elog(ERROR, "a row has come to be missing from a sort");
	rows->next++;
	rows->read++;
	return row;
}

/* Reads the row of that number, which must be there; NULL if the rows are lost. */
TupleTableSlot *
gpusort_numbered_row(GpuSortNumberedRows *rows, uint64 number)
{
	TupleTableSlot *row = NULL;

	if ((number < rows->next || number > rows->next + NEAR_ROWS) && !gpusort_numbered_go_to(rows, number))
		return NULL;
	do
	{
		row = gpusort_numbered_next(rows);
	} while (row != NULL && rows->next <= number);
	return row;
}
