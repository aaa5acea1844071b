/*-------------------------------------------------------------------------
 *
 * index_rows.c
 *	  Index tuples: the kind of row that a btree is built of.
 *
 * Rows of a source are formed already, by gpusort_index_row_form, so that they are copied into chunks.  They are shown
 * as they lie in a chunk.
 *
 * PostgreSQL's sort of index tuples orders them by all columns of the index and then by TID, whatever the columns asked
 * for, which is an order of these.  It knows nothing of dead rows: a row's offset number in its page takes that along,
 * as twice the number and one if it is dead, which changes no order.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/index_rows.h"

#include "miscadmin.h"
#include "sort/input.h"
#include "sort/put_rows.h"
#include "utils/rel.h"

StaticAssertDecl(2 * MaxOffsetNumber + 1 <= PG_UINT16_MAX, "an offset number has room for a bit more");

/* Makes rows that are tuples of index, on heap.  They belong to the current memory context. */
GpuSortIndexRows *
gpusort_index_rows_create(Relation heap, Relation index)
{
	GpuSortIndexRows *own = palloc0(sizeof(GpuSortIndexRows));

	own->rows.kind = &gpusort_index_rows;
	own->rows.context = CurrentMemoryContext;
	own->heap = heap;
	own->index = index;
	own->desc = RelationGetDescr(index);
	own->values = palloc((own->desc->natts + 1) * sizeof(Datum));
	own->nulls = palloc((own->desc->natts + 1) * sizeof(bool));
	return own;
}

/* Makes a row of a tuple, of so many bytes. */
static void
set_row(char *row, const IndexTupleData *tuple, Size bytes, bool dead)
{
	memset(row, 0, GPUSORT_INDEX_ROW_HEADER);
	gpusort_row_set_length(row, GPUSORT_INDEX_ROW_HEADER + bytes);
	row[GPUSORT_INDEX_ROW_DEAD] = dead;
	memcpy(row + GPUSORT_INDEX_ROW_HEADER, tuple, bytes);
}

/*
 * Makes a row for a source of the values of an index's attributes; it is allocated in context.  Errors: those of
 * detoasting, and the tuple is too long for any page.
 */
char *
gpusort_index_row_form(const GpuSortIndexRows *index, const Datum *values, const bool *nulls,
					   const ItemPointerData *tid, bool dead, MemoryContext context)
{
	IndexTuple tuple = index_form_tuple(index->desc, (Datum *) values, (bool *) nulls);
	Size bytes = IndexTupleSize(tuple);
	char *row = MemoryContextAlloc(context, GPUSORT_INDEX_ROW_HEADER + bytes);

	tuple->t_tid = *tid;
	set_row(row, tuple, bytes, dead);
	pfree(tuple);
	return row;
}

/* Fills in the values of a row in memory, of the index's attributes and its TID; they point into the row. */
void
gpusort_index_row_open(const GpuSortIndexRows *index, char *row, Datum *values, bool *nulls)
{
	IndexTuple tuple = gpusort_index_row_tuple(row);
	const int natts = index->desc->natts;

	index_deform_tuple(tuple, index->desc, values, nulls);
	values[natts] = PointerGetDatum(&tuple->t_tid);
	nulls[natts] = false;
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

static void
open_copy(GpuSortRows *rows, char *copy, int attributes, GpuSortRow *row)
{
	const GpuSortIndexRows *index = (const GpuSortIndexRows *) rows;

	gpusort_index_row_open(index, copy, index->values, index->nulls);
	*row = (GpuSortRow){
		.values = index->values,
		.nulls = index->nulls,
		.tuple = copy,
		.length = gpusort_row_length(copy)};
}

static Datum
value(const GpuSortRows *rows, const char *row, AttrNumber attno, bool *isnull)
{
	const TupleDesc desc = ((const GpuSortIndexRows *) rows)->desc;
	IndexTuple tuple = gpusort_index_row_tuple(unconstify(char *, row));

	if (attno <= desc->natts)
		return index_getattr(tuple, attno, desc, isnull);
	*isnull = false;
	return PointerGetDatum(&tuple->t_tid);
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
	const GpuSortIndexRows *index = (const GpuSortIndexRows *) rows;

	return tuplesort_begin_index_btree(index->heap, index->index, false, false, maintenance_work_mem, NULL, options);
}

/* Hands a row in memory to PostgreSQL's sort. */
static void
tuplesort_put_row(GpuSortRows *rows, Tuplesortstate *sort, char *row)
{
	const GpuSortIndexRows *index = (const GpuSortIndexRows *) rows;
	ItemPointerData tid = gpusort_index_row_tuple(row)->t_tid;
	const OffsetNumber offset = ItemPointerGetOffsetNumber(&tid);

	gpusort_index_row_open(index, row, index->values, index->nulls);
	ItemPointerSetOffsetNumber(&tid, 2 * offset + gpusort_index_row_is_dead(row));
	tuplesort_putindextuplevalues(sort, index->index, &tid, index->values, index->nulls);
}

static void
tuplesort_put(GpuSortRows *rows, Tuplesortstate *sort, const GpuSortRow *row)
{
	tuplesort_put_row(rows, sort, unconstify(char *, row->tuple));
}

static void
tuplesort_put_back(GpuSortRows *rows, Tuplesortstate *sort, char *row, bool numbered, int64 number)
{
	tuplesort_put_row(rows, sort, gpusort_rows_fetch(rows, row));
}

static void *
tuplesort_get(GpuSortRows *rows, Tuplesortstate *sort, bool numbered, bool forward)
{
	GpuSortIndexRows *index = (GpuSortIndexRows *) rows;
	IndexTuple tuple = tuplesort_getindextuple(sort, forward);
	ItemPointer tid;
	OffsetNumber offset;
	Size bytes;

	if (tuple == NULL)
		return NULL;
	bytes = IndexTupleSize(tuple);
	if (index->sorted_capacity < GPUSORT_INDEX_ROW_HEADER + bytes)
	{
		if (index->sorted != NULL)
			pfree(index->sorted);
		index->sorted_capacity = GPUSORT_INDEX_ROW_HEADER + Max(bytes, 1024);
		index->sorted = MemoryContextAlloc(rows->context, index->sorted_capacity);
	}
	offset = ItemPointerGetOffsetNumber(&tuple->t_tid);
	set_row(index->sorted, tuple, bytes, offset % 2 != 0);
	tid = &gpusort_index_row_tuple(index->sorted)->t_tid;
	ItemPointerSetOffsetNumber(tid, offset / 2);
	return index->sorted;
}

const GpuSortRowKind gpusort_index_rows = {
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
