/*-------------------------------------------------------------------------
 *
 * heap_rows.c
 *	  Heap rows: the kind of row that the executor has.
 *
 * A row is a MinimalTuple, or where some attributes are resjunk two (rowform.c).  A row of a source has as its tuple
 * what a heap tuple, or a MinimalTuple, ends with (gpusort_tuple_end), of all attributes or where some are resjunk of
 * the visible ones; in the latter case the values of all are there, too.
 *
 * Rows are shown where they lie.  Out of PostgreSQL's sort, which knows rows of all attributes only, they
 * come into all; projected shows the visible ones.
 *
 * The slots belong to the context that was current at create.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/heap_rows.h"

#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "sort/input.h"
#include "sort/put_rows.h"

/*
 * Makes rows with the attributes of all, of which the leading ones
 * of visible are shown.  They belong to the current memory context.
 */
GpuSortHeapRows *
gpusort_heap_rows_create(TupleDesc all, TupleDesc visible)
{
	GpuSortHeapRows *heap = palloc0(sizeof(GpuSortHeapRows));

	gpusort_heap_rows_init(heap, all, visible);
	return heap;
}

/* Makes them in place. */
void
gpusort_heap_rows_init(GpuSortHeapRows *heap, TupleDesc all, TupleDesc visible)
{
	heap->rows.kind = &gpusort_heap_rows;
	heap->rows.context = CurrentMemoryContext;
	heap->form = gpusort_rowform_create(all, visible->natts);
	all = CreateTupleDescCopy(all);
	heap->visible = MakeSingleTupleTableSlot(CreateTupleDescCopy(visible), &TTSOpsMinimalTuple);
	heap->all = heap->visible;
	heap->stored = MakeSingleTupleTableSlot(all, &TTSOpsHeapTuple);
	heap->values = MakeSingleTupleTableSlot(all, &TTSOpsVirtual);
	heap->opened = MakeSingleTupleTableSlot(all, visible->natts < all->natts ? &TTSOpsVirtual : &TTSOpsMinimalTuple);
	if (gpusort_rowform_has_resjunk(heap->form))
	{
		heap->all = MakeSingleTupleTableSlot(all, &TTSOpsMinimalTuple);
		heap->joined = MakeSingleTupleTableSlot(all, &TTSOpsVirtual);
		heap->projected = MakeSingleTupleTableSlot(heap->visible->tts_tupleDescriptor, &TTSOpsVirtual);
	}
}

/* Makes slot, a virtual one, show so many values, which stay where they are. */
static void
show_values(TupleTableSlot *slot, const Datum *values, const bool *nulls, int natts)
{
	ExecClearTuple(slot);
	memcpy(slot->tts_values, values, natts * sizeof(Datum));
	memcpy(slot->tts_isnull, nulls, natts * sizeof(bool));
	ExecStoreVirtualTuple(slot);
}

/* Returns a slot with all attributes of a row of a source, valid until that goes and until the next call. */
TupleTableSlot *
gpusort_heap_rows_slot(GpuSortHeapRows *heap, const GpuSortRow *row)
{
	HeapTupleTableSlot *stored = (HeapTupleTableSlot *) heap->stored;

	if (row->tuple == NULL || heap->joined != NULL)
	{
		show_values(heap->values, row->values, row->nulls, heap->values->tts_tupleDescriptor->natts);
		return heap->values;
	}
	stored->tupdata = (HeapTupleData){
		.t_len = row->length + MINIMAL_TUPLE_OFFSET,
		.t_data = (HeapTupleHeader) (row->tuple - MINIMAL_TUPLE_OFFSET)};
	return ExecStoreHeapTuple(&stored->tupdata, heap->stored, false);
}

/* Writes a row of a source at to, below limit; returns its length in bytes, or 0 when it does not fit. */
static pg_attribute_always_inline Size
write_row(GpuSortRows *rows, const GpuSortRow *row, char *to, char *limit)
{
	const GpuSortHeapRows *heap = (const GpuSortHeapRows *) rows;

	if (likely(row->tuple != NULL && heap->joined == NULL))
		return gpusort_copy_tuple(row->tuple, row->length, to, limit);
	return gpusort_rowform_fill(heap->form, row, to, limit);
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
	Size room = gpusort_rowform_room(((GpuSortHeapRows *) rows)->form, row);
	char *to = palloc(room);

	if (write_row(rows, row, to, to + room) == 0)
		elog(ERROR, "a row needs more room than its values do");
	return to;
}

static void
open_copy(GpuSortRows *rows, char *copy, int attributes, GpuSortRow *row)
{
	GpuSortHeapRows *heap = (GpuSortHeapRows *) rows;
	TupleTableSlot *slot = heap->opened;

	if (heap->joined != NULL)
	{
		gpusort_rowform_join(heap->form, copy, slot);
		row->tuple = NULL;
	}
	else
	{
		ExecStoreMinimalTuple((MinimalTuple) copy, slot, false);
		slot_getsomeattrs(slot, attributes);
		row->tuple = copy;
		row->length = gpusort_row_length(copy);
	}
	row->values = slot->tts_values;
	row->nulls = slot->tts_isnull;
}

static Datum
value(const GpuSortRows *rows, const char *row, AttrNumber attno, bool *isnull)
{
	return gpusort_rowform_value(((const GpuSortHeapRows *) rows)->form, row, attno, isnull);
}

static void *
show(GpuSortRows *rows, char *row)
{
	return gpusort_heap_rows_show((GpuSortHeapRows *) rows, row);
}

static void
clear(GpuSortRows *rows)
{
	GpuSortHeapRows *heap = (GpuSortHeapRows *) rows;

	ExecClearTuple(heap->visible);
	ExecClearTuple(heap->all);
	ExecClearTuple(heap->stored);
	ExecClearTuple(heap->values);
	ExecClearTuple(heap->opened);
	if (heap->joined != NULL)
	{
		ExecClearTuple(heap->joined);
		ExecClearTuple(heap->projected);
	}
}

/* Makes the slots for rows with numbers. */
static void
create_numbered_slots(GpuSortHeapRows *heap)
{
	MemoryContext caller = MemoryContextSwitchTo(heap->rows.context);
	TupleDesc all = heap->all->tts_tupleDescriptor;
	const AttrNumber number = all->natts + 1;
	TupleDesc desc = CreateTemplateTupleDesc(number);

	for (int i = 1; i < number; i++)
		TupleDescCopyEntry(desc, i, all, i);
	TupleDescInitEntry(desc, number, "number", INT8OID, -1, 0);
	TupleDescFinalize(desc);
	heap->numbered = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	heap->sorted = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	heap->plain = MakeSingleTupleTableSlot(all, &TTSOpsVirtual);
	MemoryContextSwitchTo(caller);
}

/* Only where rows have as many attributes as there can be they have no numbers. */
static bool
can_have_numbers(const GpuSortHeapRows *heap)
{
	return heap->all->tts_tupleDescriptor->natts < MaxTupleAttributeNumber;
}

/* Columns to sort by, as tuplesort takes them; palloc'd. */
typedef struct TuplesortColumns
{
	int count;
	AttrNumber *attnos;
	Oid *operators;
	Oid *collations;
	bool *nulls_first;
} TuplesortColumns;

/* Adds a column without a collation, NULLs last; there is room for one. */
static void
add_column(TuplesortColumns *by, AttrNumber attno, Oid operator)
{
	by->attnos[by->count] = attno;
	by->operators[by->count] = operator;
	by->collations[by->count] = InvalidOid;
	by->nulls_first[by->count++] = false;
}

static void
set_columns(TuplesortColumns *by, const GpuSortColumn *columns, int count)
{
	by->count = 0;
	by->attnos = palloc((count + 1) * sizeof(AttrNumber));
	by->operators = palloc((count + 1) * sizeof(Oid));
	by->collations = palloc((count + 1) * sizeof(Oid));
	by->nulls_first = palloc((count + 1) * sizeof(bool));
	for (int i = 0; i < count; i++)
	{
		add_column(by, columns[i].attno, columns[i].sort_operator);
		by->collations[i] = columns[i].collation;
		by->nulls_first[i] = columns[i].nulls_first;
	}
}

static void
free_columns(TuplesortColumns *by)
{
	pfree(by->attnos);
	pfree(by->operators);
	pfree(by->collations);
	pfree(by->nulls_first);
}

static Tuplesortstate *
tuplesort_begin(GpuSortRows *rows, const GpuSortColumn *columns, int count, bool numbered, int options)
{
	GpuSortHeapRows *heap = (GpuSortHeapRows *) rows;
	TupleDesc desc = heap->all->tts_tupleDescriptor;
	TuplesortColumns by;
	Tuplesortstate *sort;

	set_columns(&by, columns, count);
	if (numbered && can_have_numbers(heap))
	{
		if (heap->numbered == NULL)
			create_numbered_slots(heap);
		add_column(&by, desc->natts + 1, Int8LessOperator);
		desc = heap->numbered->tts_tupleDescriptor;
	}
	sort = tuplesort_begin_heap(desc, by.count, by.attnos, by.operators, by.collations, by.nulls_first, work_mem,
								NULL, options);
	free_columns(&by);
	return sort;
}

static void
tuplesort_put(GpuSortRows *rows, Tuplesortstate *sort, const GpuSortRow *row)
{
	tuplesort_puttupleslot(sort, gpusort_heap_rows_slot((GpuSortHeapRows *) rows, row));
}

/* Returns a slot with all attributes of a row in memory, valid as long as that and until the next call. */
static TupleTableSlot *
load(GpuSortHeapRows *heap, char *row)
{
	if (heap->joined == NULL)
		return ExecStoreMinimalTuple((MinimalTuple) row, heap->all, false);
	gpusort_rowform_join(heap->form, row, heap->joined);
	return heap->joined;
}

/* Puts a slot with all attributes of a row into PostgreSQL's sort, with its number if that is numbered. */
void
gpusort_heap_rows_put_slot(GpuSortHeapRows *heap, Tuplesortstate *sort, TupleTableSlot *slot, bool numbered,
						   int64 number)
{
	if (numbered && can_have_numbers(heap))
	{
		const int natts = slot->tts_tupleDescriptor->natts;

		slot_getallattrs(slot);
		show_values(heap->numbered, slot->tts_values, slot->tts_isnull, natts);
		heap->numbered->tts_values[natts] = Int64GetDatum(number);
		heap->numbered->tts_isnull[natts] = false;
		tuplesort_puttupleslot(sort, heap->numbered);
	}
	else
		tuplesort_puttupleslot(sort, slot);
	ExecClearTuple(slot);
}

static void
tuplesort_put_back(GpuSortRows *rows, Tuplesortstate *sort, char *row, bool numbered, int64 number)
{
	GpuSortHeapRows *heap = (GpuSortHeapRows *) rows;

	gpusort_heap_rows_put_slot(heap, sort, load(heap, gpusort_rows_fetch(rows, row)), numbered, number);
}

/* Puts the next row out of the sort into all, without its number; false after the last. */
static bool
get(GpuSortHeapRows *heap, Tuplesortstate *sort, bool numbered, bool forward)
{
	const int natts = heap->all->tts_tupleDescriptor->natts;

	if (!numbered || !can_have_numbers(heap))
		return tuplesort_gettupleslot(sort, forward, false, heap->all, NULL);
	if (!tuplesort_gettupleslot(sort, forward, false, heap->sorted, NULL))
		return false;
	slot_getsomeattrs(heap->sorted, natts);
	show_values(heap->plain, heap->sorted->tts_values, heap->sorted->tts_isnull, natts);
	ExecCopySlot(heap->all, heap->plain);
	return true;
}

static void *
tuplesort_get(GpuSortRows *rows, Tuplesortstate *sort, bool numbered, bool forward)
{
	GpuSortHeapRows *heap = (GpuSortHeapRows *) rows;
	int visible;

	if (!get(heap, sort, numbered, forward))
		return NULL;
	if (heap->projected == NULL)
		return heap->all;
	visible = heap->projected->tts_tupleDescriptor->natts;
	slot_getsomeattrs(heap->all, visible);
	show_values(heap->projected, heap->all->tts_values, heap->all->tts_isnull, visible);
	return heap->projected;
}

const GpuSortRowKind gpusort_heap_rows = {
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
