/*-------------------------------------------------------------------------
 *
 * datum_rows.c
 *	  Single datums: the kind of row that is one value of a type.
 *
 * A value by reference is copied as it is, compressed or kept elsewhere if it is so, but one that is expanded in memory
 * is made flat.  PostgreSQL's sort of datums has no room for a number, so that values that are equal and not the same
 * come out of it in any order.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/datum_rows.h"

#include "miscadmin.h"
#include "sort/input.h"
#include "sort/put_rows.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/lsyscache.h"

#define HEADER_BYTES sizeof(uint64)
#define NULL_OFFSET  6

/* Makes rows that are values of a type.  They belong to the current memory context. */
GpuSortDatumRows *
gpusort_datum_rows_create(Oid type)
{
	GpuSortDatumRows *own = palloc0(sizeof(GpuSortDatumRows));

	own->rows.kind = &gpusort_datum_rows;
	own->rows.context = CurrentMemoryContext;
	own->type = type;
	get_typlenbyval(type, &own->length, &own->by_value);
	return own;
}

/* Returns true if a value is expanded in memory. */
static inline bool
is_expanded(const GpuSortDatumRows *own, Datum value)
{
	return own->length == -1 && VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value));
}

/* Returns the bytes of a value by reference. */
static Size
value_bytes(const GpuSortDatumRows *own, Datum value)
{
	if (is_expanded(own, value))
		return EOH_get_flat_size(DatumGetEOHP(value));
	return datumGetSize(value, false, own->length);
}

/* Returns the bytes of a row. */
static inline Size
row_bytes(const GpuSortDatumRows *own, const GpuSortRow *row)
{
	Size bytes = own->by_value || row->nulls[0] ? sizeof(Datum) : value_bytes(own, row->values[0]);

	return HEADER_BYTES + Max(bytes, sizeof(Datum));
}

/* Writes a row of a source at to, below limit; returns its length in bytes, or 0 when it does not fit. */
static pg_attribute_always_inline Size
write_row(GpuSortRows *rows, const GpuSortRow *row, char *to, char *limit)
{
	const GpuSortDatumRows *own = (const GpuSortDatumRows *) rows;
	const Size length = row_bytes(own, row);
	char *value = to + HEADER_BYTES;

	if (unlikely(to + length > limit))
		return 0;
	memset(to, 0, HEADER_BYTES + sizeof(Datum));
	gpusort_row_set_length(to, length);
	to[NULL_OFFSET] = row->nulls[0];
	if (row->nulls[0])
		return length;
	if (own->by_value)
		*(Datum *) value = row->values[0];
	else if (unlikely(is_expanded(own, row->values[0])))
		EOH_flatten_into(DatumGetEOHP(row->values[0]), value, value_bytes(own, row->values[0]));
	else
		gpusort_copy(value, DatumGetPointer(row->values[0]), value_bytes(own, row->values[0]));
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
	const Size length = row_bytes((const GpuSortDatumRows *) rows, row);
	char *to = palloc(length);

	(void) write_row(rows, row, to, to + length);
	return to;
}

/* Returns the value of a row in memory; by reference it points into that. */
static inline GpuSortDatum
row_value(const GpuSortDatumRows *own, const char *row)
{
	const char *value = row + HEADER_BYTES;

	return (GpuSortDatum){
		.isnull = row[NULL_OFFSET] != 0,
		.value = own->by_value ? *(const Datum *) value : PointerGetDatum(value)};
}

static void
open_copy(GpuSortRows *rows, char *copy, int attributes, GpuSortRow *row)
{
	GpuSortDatumRows *own = (GpuSortDatumRows *) rows;

	own->opened = row_value(own, copy);
	*row = (GpuSortRow){.values = &own->opened.value, .nulls = &own->opened.isnull};
}

static Datum
value(const GpuSortRows *rows, const char *row, AttrNumber attno, bool *isnull)
{
	GpuSortDatum datum = row_value((const GpuSortDatumRows *) rows, row);

	*isnull = datum.isnull;
	return datum.value;
}

static void *
show(GpuSortRows *rows, char *row)
{
	GpuSortDatumRows *own = (GpuSortDatumRows *) rows;

	own->shown = row_value(own, row);
	return &own->shown;
}

static void
clear(GpuSortRows *rows)
{
	GpuSortDatumRows *own = (GpuSortDatumRows *) rows;

	if (own->sorted != NULL)
		pfree(own->sorted);
	own->sorted = NULL;
}

static Tuplesortstate *
tuplesort_begin(GpuSortRows *rows, const GpuSortColumn *columns, int count, bool numbered, int options)
{
	const GpuSortDatumRows *own = (const GpuSortDatumRows *) rows;

	Assert(count == 1);
	return tuplesort_begin_datum(own->type, columns->sort_operator, columns->collation, columns->nulls_first, work_mem,
								 NULL, options);
}

static void
tuplesort_put(GpuSortRows *rows, Tuplesortstate *sort, const GpuSortRow *row)
{
	tuplesort_putdatum(sort, row->values[0], row->nulls[0]);
}

static void
tuplesort_put_back(GpuSortRows *rows, Tuplesortstate *sort, char *row, bool numbered, int64 number)
{
	GpuSortDatum datum = row_value((const GpuSortDatumRows *) rows, gpusort_rows_fetch(rows, row));

	tuplesort_putdatum(sort, datum.value, datum.isnull);
}

static void *
tuplesort_get(GpuSortRows *rows, Tuplesortstate *sort, bool numbered, bool forward)
{
	GpuSortDatumRows *own = (GpuSortDatumRows *) rows;
	MemoryContext caller;
	bool found;

	clear(rows);
	caller = MemoryContextSwitchTo(rows->context);
	found = TUPLESORT_GETDATUM(sort, forward, &own->shown.value, &own->shown.isnull);
	MemoryContextSwitchTo(caller);
	if (!found)
		return NULL;
	if (!own->by_value && !own->shown.isnull)
		own->sorted = DatumGetPointer(own->shown.value);
	return &own->shown;
}

const GpuSortRowKind gpusort_datum_rows = {
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
