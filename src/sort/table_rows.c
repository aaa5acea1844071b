/*-------------------------------------------------------------------------
 *
 * table_rows.c
 *	  Whole tuples of a table: the kind of row that a table is rewritten of.
 *
 * Rows of a source are formed already, so that they are copied into chunks.  They are shown as they lie in a chunk.
 *
 * PostgreSQL's sort of such tuples orders them by all columns of the index, whatever the columns asked for, which is an
 * order of these.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/table_rows.h"

#include "miscadmin.h"
#include "sort/input.h"
#include "sort/put_rows.h"
#include "utils/rel.h"

/* Makes rows that are tuples of a table, to be sorted as its index is.  They belong to the current memory context. */
GpuSortTableRows *
gpusort_table_rows_create(Relation table, Relation index)
{
	GpuSortTableRows *own = palloc0(sizeof(GpuSortTableRows));

	own->rows.kind = &gpusort_table_rows;
	own->rows.context = CurrentMemoryContext;
	own->index = index;
	own->desc = RelationGetDescr(table);
	own->values = palloc(own->desc->natts * sizeof(Datum));
	own->nulls = palloc(own->desc->natts * sizeof(bool));
	return own;
}

static pg_noinline bool
put_wanted_row(GpuSortRows *rows, GpuSortWriter *writer, const GpuSortRow *row, GpuSortFailure *failure)
{
	return gpusort_put_wanted_row(rows, writer, row, gpusort_write_formed_row, failure);
}

static bool
put_rows(GpuSortRows *rows, GpuSortWriter *writer, GpuSortInput *input, const volatile bool *stop,
		 GpuSortFailure *failure)
{
	return gpusort_put_rows(rows, writer, input, stop, gpusort_write_formed_row, put_wanted_row, failure);
}

/* Makes a heap tuple show that of a row in memory. */
static void
set_tuple(HeapTuple tuple, char *row)
{
	ItemPointerSetInvalid(&tuple->t_self);
	tuple->t_tableOid = InvalidOid;
	tuple->t_data = gpusort_table_row_tuple(row, &tuple->t_len);
}

static void
open_copy(GpuSortRows *rows, char *copy, int attributes, GpuSortRow *row)
{
	const GpuSortTableRows *table = (const GpuSortTableRows *) rows;
	HeapTupleData tuple;

	set_tuple(&tuple, copy);
	heap_deform_tuple(&tuple, table->desc, table->values, table->nulls);
	*row = (GpuSortRow){
		.values = table->values,
		.nulls = table->nulls,
		.tuple = copy,
		.length = gpusort_row_length(copy)};
}

static Datum
value(const GpuSortRows *rows, const char *row, AttrNumber attno, bool *isnull)
{
	HeapTupleData tuple;

	set_tuple(&tuple, unconstify(char *, row));
	return heap_getattr(&tuple, attno, ((const GpuSortTableRows *) rows)->desc, isnull);
}

static void *
show(GpuSortRows *rows, char *row)
{
	return row;
}

static void
clear(GpuSortRows *rows)
{
}

static Tuplesortstate *
tuplesort_begin(GpuSortRows *rows, const GpuSortColumn *columns, int count, bool numbered, int options)
{
	const GpuSortTableRows *table = (const GpuSortTableRows *) rows;

	return tuplesort_begin_cluster(table->desc, table->index, maintenance_work_mem, NULL, options);
}

/* Hands a row in memory to PostgreSQL's sort. */
static void
tuplesort_put_row(Tuplesortstate *sort, char *row)
{
	HeapTupleData tuple;

	set_tuple(&tuple, row);
	tuplesort_putheaptuple(sort, &tuple);
}

static void
tuplesort_put(GpuSortRows *rows, Tuplesortstate *sort, const GpuSortRow *row)
{
	tuplesort_put_row(sort, unconstify(char *, row->tuple));
}

static void
tuplesort_put_back(GpuSortRows *rows, Tuplesortstate *sort, char *row, bool numbered, int64 number)
{
	tuplesort_put_row(sort, gpusort_rows_fetch(rows, row));
}

static void *
tuplesort_get(GpuSortRows *rows, Tuplesortstate *sort, bool numbered, bool forward)
{
	GpuSortTableRows *table = (GpuSortTableRows *) rows;
	HeapTuple tuple = tuplesort_getheaptuple(sort, forward);

	if (tuple == NULL)
		return NULL;
	if (table->sorted_capacity < GPUSORT_TABLE_ROW_HEADER + tuple->t_len)
	{
		if (table->sorted != NULL)
			pfree(table->sorted);
		table->sorted_capacity = GPUSORT_TABLE_ROW_HEADER + Max(tuple->t_len, 1024);
		table->sorted = MemoryContextAlloc(rows->context, table->sorted_capacity);
	}
	memcpy(gpusort_table_row_begin(table->sorted, tuple->t_len), tuple->t_data, tuple->t_len);
	return table->sorted;
}

const GpuSortRowKind gpusort_table_rows = {
	.put_rows = put_rows,
	.copy = gpusort_copy_formed_row,
	.open = open_copy,
	.value = value,
	.show = show,
	.clear = clear,
	.tuplesort_begin = tuplesort_begin,
	.tuplesort_put = tuplesort_put,
	.tuplesort_put_back = tuplesort_put_back,
	.tuplesort_get = tuplesort_get,
};
