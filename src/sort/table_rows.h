/*-------------------------------------------------------------------------
 *
 * table_rows.h
 *	  Whole tuples of a table: the kind of row that a table is rewritten of.
 *
 * A row is a header of GPUSORT_TABLE_ROW_HEADER bytes, with its length and flags, and the tuple as it is stored, with
 * what tells of transactions.  Attributes are the table's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TABLE_ROWS_H
#define GPUSORT_TABLE_ROWS_H

#include "compat.h"

#include "access/htup_details.h"
#include "sort/row_kind.h"
#include "utils/relcache.h"

extern const GpuSortRowKind gpusort_table_rows;

typedef struct GpuSortTableRows
{
	GpuSortRows rows; /* must be first field */
	Relation index;   /* a btree, whose order PostgreSQL's sort knows */
	TupleDesc desc;   /* the table's */

	/* of the row that was opened last, desc->natts of them */
	Datum *values;
	bool *nulls;

	char *sorted; /* out of PostgreSQL's sort: a row, in memory; NULL: there was none */
	Size sorted_capacity;
} GpuSortTableRows;

#define GPUSORT_TABLE_ROW_HEADER sizeof(uint64)

extern GpuSortTableRows *gpusort_table_rows_create(Relation table, Relation index);

/* Begins a row at to, of a tuple of so many bytes; returns where the tuple goes. */
static inline HeapTupleHeader
gpusort_table_row_begin(char *to, uint32 bytes)
{
	memset(to, 0, GPUSORT_TABLE_ROW_HEADER);
	gpusort_row_set_length(to, GPUSORT_TABLE_ROW_HEADER + bytes);
	return (HeapTupleHeader) (to + GPUSORT_TABLE_ROW_HEADER);
}

/* Returns the tuple of a row in memory, and its bytes; it lies in that.  Errors: it is no such row. */
static inline HeapTupleHeader
gpusort_table_row_tuple(char *row, uint32 *bytes)
{
	HeapTupleHeader tuple = (HeapTupleHeader) (row + GPUSORT_TABLE_ROW_HEADER);

	*bytes = gpusort_row_length(row) - GPUSORT_TABLE_ROW_HEADER;
	if (unlikely(*bytes < tuple->t_hoff || tuple->t_hoff < SizeofHeapTupleHeader))
		gpusort_row_report_damaged();
	return tuple;
}

#endif /* GPUSORT_TABLE_ROWS_H */
