/*-------------------------------------------------------------------------
 *
 * record.c
 *	  Values of composite types as bytes that order as record_cmp does.
 *
 * record_cmp compares column by column, each by the default operator class of its type
 * and under its collation, NULL above all others; columns that were dropped are passed over.
 * A column is a byte, COLUMN, and the delimited part that it is, or NULL_COLUMN.
 *
 * What the columns are is the type's, so anonymous records have no encoding.  Where a value is of
 * another type with the same columns, as record_cmp allows, it is read as that type has it.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#include "access/htup_details.h"
#include "keys/bytes/parts.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

enum
{
	COLUMN = 0,
	NULL_COLUMN = 1,
};

typedef struct RecordState
{
	Oid type;
	TupleDesc desc;     /* a copy */
	int count;          /* of columns that were not dropped */
	Oid *types;         /* of these */
	GpuSortPart *parts; /* likewise */
	Datum *values;      /* a record's, by attribute */
	bool *nulls;
} RecordState;

/*
 * A GpuSortKeyType's parts: the columns; none if there is one
 * that cannot be compared, which is an error to record_cmp.
 */
List *
gpusort_record_parts(Oid type, Oid collation)
{
	List *parts = NIL;
	TupleDesc desc;

	if (get_typtype(type) != TYPTYPE_COMPOSITE)
		return NIL;
	desc = lookup_rowtype_tupdesc(type, -1);
	for (int i = 0; i < desc->natts; i++)
	{
		const FormData_pg_attribute *attribute = TupleDescAttr(desc, i);
		GpuSortOrder *order;

		if (attribute->attisdropped)
			continue;
		order = gpusort_default_order(attribute->atttypid, attribute->attcollation);
		if (!OidIsValid(order->opfamily))
		{
			parts = NIL;
			break;
		}
		parts = lappend(parts, order);
	}
	ReleaseTupleDesc(desc);
	return parts;
}

/* Makes what encodes values of an order, in the current memory context. */
void *
gpusort_record_create(const GpuSortOrder *order)
{
	RecordState *state = palloc0(sizeof(RecordState));
	List *orders = gpusort_record_parts(order->type, order->collation);
	int n = 0;

	state->type = order->type;
	state->desc = lookup_rowtype_tupdesc_copy(order->type, -1);
	state->count = list_length(orders);
	state->types = palloc(state->count * sizeof(Oid));
	state->parts = palloc0(state->count * sizeof(GpuSortPart));
	state->values = palloc(state->desc->natts * sizeof(Datum));
	state->nulls = palloc(state->desc->natts * sizeof(bool));
	for (int i = 0; i < state->desc->natts; i++)
	{
		const FormData_pg_attribute *attribute = TupleDescAttr(state->desc, i);

		if (attribute->attisdropped)
			continue;
		state->types[n] = attribute->atttypid;
		gpusort_part_init(&state->parts[n], list_nth(orders, n));
		n++;
	}
	return state;
}

/* Adds a record as a descriptor has it, whose attributes go into values and nulls.  Errors: its columns are others. */
static bool
put_record(GpuSortByteWriter *to, const RecordState *state, HeapTupleHeader record, TupleDesc desc, Datum *values,
		   bool *nulls)
{
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(record), .t_data = record};
	bool goes_on = true;
	int n = 0;

	heap_deform_tuple(&tuple, desc, values, nulls);
	for (int i = 0; i < desc->natts; i++)
	{
		const FormData_pg_attribute *attribute = TupleDescAttr(desc, i);

		if (attribute->attisdropped)
			continue;
		if (n == state->count || attribute->atttypid != state->types[n])
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("cannot compare dissimilar column types at record column %d", n + 1)));
		if (goes_on)
			goes_on = gpusort_put_number(to, nulls[i] ? NULL_COLUMN : COLUMN, 1) &&
				(nulls[i] || gpusort_part_put(to, &state->parts[n], values[i]));
		n++;
	}
	if (n < state->count)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("cannot compare record types with different numbers of columns")));
	return goes_on;
}

/* The same of a record of another type. */
static pg_noinline bool
put_other(GpuSortByteWriter *to, const RecordState *state, HeapTupleHeader record)
{
	TupleDesc desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(record), HeapTupleHeaderGetTypMod(record));
	Datum *values = palloc(desc->natts * sizeof(Datum));
	bool *nulls = palloc(desc->natts * sizeof(bool));
	bool whole = put_record(to, state, record, desc, values, nulls);

	ReleaseTupleDesc(desc);
	return whole;
}

/* A GpuSortBytesEncoder. */
int
gpusort_record_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole)
{
	RecordState *columns = state;
	GpuSortByteWriter to = {.next = bytes, .end = bytes + room};
	GpuSortShortVarlena copy;
	HeapTupleHeader record = (HeapTupleHeader) gpusort_flatten(value, &copy);

	if (likely(HeapTupleHeaderGetTypeId(record) == columns->type))
		*whole = put_record(&to, columns, record, columns->desc, columns->values, columns->nulls);
	else
		*whole = put_other(&to, columns, record);
	return to.next - bytes;
}
