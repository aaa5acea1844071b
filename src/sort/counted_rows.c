/*-------------------------------------------------------------------------
 *
 * counted_rows.c
 *	  Counted rows: heap rows that stand for a number of equal ones.
 *
 * The service gives one row for all that have the same key, and tells of how many.  A row in a chunk is
 *
 *	  | length | flags | number, uint64 | MinimalTuple from its ninth byte on |
 *
 * so that the number lies where the first 8 bytes of the tuple would be, which are its length and padding.  A row of a
 * source stands for itself alone.  Rows are shown with columns of their number behind those of the source.
 *
 * Several rows with the same values may come: those who read them add their numbers up.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/counted_rows.h"

#include "miscadmin.h"
#include "sort/input.h"
#include "sort/put_rows.h"

typedef struct CountedRows
{
	GpuSortHeapRows heap;  /* must be first field; its form is that of the source's rows, all is what is shown */
	TupleTableSlot *tuple; /* MinimalTuples of the source's columns */
	TupleTableSlot *shown; /* virtual */
	AttrNumber *counted;   /* for each of its columns behind the source's: of whose values it is the number; 0: of rows */
} CountedRows;

/*
 * Makes rows with the attributes of source, which are shown as those of shown: these, and behind them an int8 for each
 * entry of counted.  That is the number of rows (0), or of values that are not NULL, of a column of the source
 * (1-based) in which all rows that one stands for are equal.  What is made belongs to the current memory context.
 */
GpuSortHeapRows *
gpusort_counted_rows_create(TupleDesc source, TupleDesc shown, List *counted)
{
	CountedRows *own = palloc0(sizeof(CountedRows));
	ListCell *cell;

	Assert(shown->natts == source->natts + list_length(counted));
	own->counted = palloc(list_length(counted) * sizeof(AttrNumber));
	foreach(cell, counted)
		own->counted[foreach_current_index(cell)] = lfirst_int(cell);
	gpusort_heap_rows_init(&own->heap, source, source);
	shown = CreateTupleDescCopy(shown);
	own->tuple = own->heap.visible;
	own->shown = MakeSingleTupleTableSlot(shown, &TTSOpsVirtual);
	own->heap.visible = own->heap.all = MakeSingleTupleTableSlot(shown, &TTSOpsMinimalTuple);
	own->heap.rows.kind = &gpusort_counted_rows;
	own->heap.rows.counted = true;
	return &own->heap;
}

/* Returns the tuple of a row in memory, whose length is not there. */
static inline char *
row_tuple(char *row)
{
	return row + GPUSORT_ROW_COUNT_OFFSET;
}

/* Returns a slot with the source's columns of a row and this number, valid while the row is, until the next call. */
static TupleTableSlot *
show_counted(CountedRows *own, TupleTableSlot *row, uint64 count)
{
	TupleTableSlot *shown = own->shown;
	const int columns = row->tts_tupleDescriptor->natts;

	slot_getallattrs(row);
	ExecClearTuple(shown);
	memcpy(shown->tts_values, row->tts_values, columns * sizeof(Datum));
	memcpy(shown->tts_isnull, row->tts_isnull, columns * sizeof(bool));
	for (int i = columns; i < shown->tts_tupleDescriptor->natts; i++)
	{
		const AttrNumber counted = own->counted[i - columns];
		const bool none = counted > 0 && row->tts_isnull[counted - 1];

		shown->tts_values[i] = Int64GetDatum(none ? 0 : (int64) count);
		shown->tts_isnull[i] = false;
	}
	return ExecStoreVirtualTuple(shown);
}

/* The same of a row in memory. */
static TupleTableSlot *
show_row(CountedRows *own, char *row)
{
	const uint64 count = gpusort_row_count(row);
	char *tuple = row_tuple(row);

	/* Nothing reads the length of a tuple that is taken apart. */
	return show_counted(own, gpusort_slot_show(own->tuple, (MinimalTuple) tuple), count);
}

/* Writes a row of a source at to, below limit; returns its length in bytes, or 0 when it does not fit. */
static pg_attribute_always_inline Size
write_row(GpuSortRows *rows, const GpuSortRow *row, char *to, char *limit)
{
	char *tuple = row_tuple(to);
	Size length;

	if (unlikely(tuple >= limit))
		return 0;
	length = row->tuple != NULL
		? gpusort_copy_tuple(row->tuple, row->length, tuple, limit)
		: gpusort_rowform_fill(((const GpuSortHeapRows *) rows)->form, row, tuple, limit);
	if (unlikely(length == 0))
		return 0;
	length += GPUSORT_ROW_COUNT_OFFSET;
	*(uint64 *) to = 0;
	gpusort_row_set_length(to, length);
	gpusort_row_set_count(to, 1);
	return length;
}

static pg_noinline bool
put_wanted_row(GpuSortRows *rows, GpuSortWriter *writer, const GpuSortRow *row, GpuSortFailure *failure)
{
	return gpusort_put_wanted_row(rows, writer, row, write_row, failure);
}

static bool
put_rows(GpuSortRows *rows, GpuSortWriter *writer, GpuSortInput *input, const volatile bool *stop,
		 GpuSortFailure *failure)
{
	return gpusort_put_rows(rows, writer, input, stop, write_row, put_wanted_row, failure);
}

static char *
copy(GpuSortRows *rows, const GpuSortRow *row)
{
	Size room = GPUSORT_ROW_COUNT_OFFSET + gpusort_rowform_room(((GpuSortHeapRows *) rows)->form, row);
	char *to = palloc(room);

	if (write_row(rows, row, to, to + room) == 0)
		elog(ERROR, "a row needs more room than its values do");
	return to;
}

static void
open_copy(GpuSortRows *rows, char *copy, int attributes, GpuSortRow *row)
{
	TupleTableSlot *slot = ((GpuSortHeapRows *) rows)->opened;
	char *tuple = row_tuple(copy);

	ExecStoreMinimalTuple((MinimalTuple) tuple, slot, false);
	slot_getsomeattrs(slot, attributes);
	*row = (GpuSortRow){
		.values = slot->tts_values,
		.nulls = slot->tts_isnull,
		.tuple = tuple,
		.length = gpusort_row_length(copy) - GPUSORT_ROW_COUNT_OFFSET};
}

static Datum
value(const GpuSortRows *rows, const char *row, AttrNumber attno, bool *isnull)
{
	return gpusort_rowform_value(((const GpuSortHeapRows *) rows)->form, row_tuple(unconstify(char *, row)), attno,
								 isnull);
}

static void *
show(GpuSortRows *rows, char *row)
{
	return show_row((CountedRows *) rows, row);
}

static void
clear(GpuSortRows *rows)
{
	CountedRows *own = (CountedRows *) rows;

	ExecClearTuple(own->shown);
	ExecClearTuple(own->tuple);
	gpusort_heap_rows.clear(rows);
}

static Tuplesortstate *
tuplesort_begin(GpuSortRows *rows, const GpuSortColumn *columns, int count, bool numbered, int options)
{
	return gpusort_heap_rows.tuplesort_begin(rows, columns, count, numbered, options);
}

static void
tuplesort_put(GpuSortRows *rows, Tuplesortstate *sort, const GpuSortRow *row)
{
	CountedRows *own = (CountedRows *) rows;

	tuplesort_puttupleslot(sort, show_counted(own, gpusort_heap_rows_slot(&own->heap, row), 1));
}

static void
tuplesort_put_back(GpuSortRows *rows, Tuplesortstate *sort, char *row, bool numbered, int64 number)
{
	CountedRows *own = (CountedRows *) rows;

	gpusort_heap_rows_put_slot(&own->heap, sort, show_row(own, gpusort_rows_fetch(rows, row)), numbered, number);
}

static void *
tuplesort_get(GpuSortRows *rows, Tuplesortstate *sort, bool numbered, bool forward)
{
	return gpusort_heap_rows.tuplesort_get(rows, sort, numbered, forward);
}

const GpuSortRowKind gpusort_counted_rows = {
	.put_rows = put_rows,
	.copy = copy,
	.open = open_copy,
	.value = value,
	.show = show,
	.clear = clear,
	.tuplesort_begin = tuplesort_begin,
	.tuplesort_put = tuplesort_put,
	.tuplesort_put_back = tuplesort_put_back,
	.tuplesort_get = tuplesort_get,
};
