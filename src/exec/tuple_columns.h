/*-------------------------------------------------------------------------
 *
 * tuple_columns.h
 *	  The values of some columns of a table's tuples, read where the tuples lie.
 *
 * Only what is asked for is taken out of a tuple.  A column that has the same offset in all tuples without NULLs is
 * read there; the way to another is walked from the last of these, or where there are NULLs from the tuple's start.
 * Legal order of calls: create, once; then read for each tuple.  The values point into the tuple, or are the ones that
 * the table's descriptor has for tuples older than a column.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TUPLE_COLUMNS_H
#define GPUSORT_TUPLE_COLUMNS_H

#include "compat.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"

/* How a column of the table is stored. */
typedef struct GpuSortStoredColumn
{
	int32 offset; /* offset in a tuple's data if there are no NULLs; -1 if it varies */
	int16 length; /* bytes; -1: a varlena, -2: a C string */
	uint8 align;  /* bytes */
	bool by_value;
} GpuSortStoredColumn;

/* A column that is asked for. */
typedef struct GpuSortWantedColumn
{
	int attribute; /* of the table, from 0 */
	int to;        /* index of its value in a row */
	GpuSortStoredColumn stored;
} GpuSortWantedColumn;

typedef struct GpuSortTupleColumns
{
	int walk;       /* number of columns to walk over if there are no NULLs */
	TupleDesc desc; /* of the table; belongs to it */
	int count;
	int fixed;                   /* number of leading elements of wanted with an offset */
	int fixed_natts;             /* a tuple with this many attributes has all of them */
	GpuSortWantedColumn *wanted; /* in the table's order */

	/* for all columns up to the last wanted one */
	GpuSortStoredColumn *stored;
	int fixed_stored; /* number of leading columns with an offset */
} GpuSortTupleColumns;

extern GpuSortTupleColumns *gpusort_tuple_columns_create(TupleDesc desc, const AttrNumber *attnos, int count);
extern void gpusort_tuple_columns_walk(const GpuSortTupleColumns *columns, HeapTupleHeader tuple, int from,
									   Datum *values, bool *nulls);

/* Returns the value that is stored at data. */
static pg_attribute_always_inline Datum
gpusort_fetch_stored(const char *data, const GpuSortStoredColumn *stored)
{
	return fetch_att(data, stored->by_value, stored->length);
}

/* Reads the columns of a tuple; to are those of GpuSortWantedColumn. */
static pg_attribute_always_inline void
gpusort_tuple_columns_read(const GpuSortTupleColumns *columns, HeapTupleHeader tuple, Datum *values, bool *nulls)
{
	int from = 0;

	if (likely(!(tuple->t_infomask & HEAP_HASNULL) && HeapTupleHeaderGetNatts(tuple) >= columns->fixed_natts))
	{
		const char *data = (const char *) tuple + tuple->t_hoff;

		for (; from < columns->fixed; from++)
		{
			const GpuSortWantedColumn *wanted = &columns->wanted[from];

			values[wanted->to] = gpusort_fetch_stored(data + wanted->stored.offset, &wanted->stored);
			nulls[wanted->to] = false;
		}
	}
	if (from < columns->count)
		gpusort_tuple_columns_walk(columns, tuple, from, values, nulls);
}

#endif /* GPUSORT_TUPLE_COLUMNS_H */
