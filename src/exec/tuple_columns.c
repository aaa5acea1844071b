/*-------------------------------------------------------------------------
 *
 * tuple_columns.c
 *	  The values of some columns of a table's tuples, read where the tuples lie.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/tuple_columns.h"

#include "sort/rowform.h"

/*
 * Lays out the first natts columns of desc.  A varlena has an offset where the column before it ends aligned: only then
 * does it begin there with a short header as with a long one.  Columns behind it have none.
 */
static void
lay_out(GpuSortTupleColumns *columns, int natts)
{
	int offset = 0;

	columns->stored = palloc(natts * sizeof(GpuSortStoredColumn));
	columns->fixed_stored = 0;
	for (int i = 0; i < natts; i++)
	{
		const Form_pg_attribute attribute = TupleDescAttr(columns->desc, i);
		GpuSortStoredColumn *stored = &columns->stored[i];

		stored->length = attribute->attlen;
		stored->align = gpusort_alignment_bytes(attribute->attalign);
		stored->by_value = attribute->attbyval;
		stored->offset = -1;
		if (offset < 0)
			continue;
		if (stored->length >= 0)
			offset = TYPEALIGN(stored->align, offset);
		if (offset == TYPEALIGN(stored->align, offset))
		{
			stored->offset = offset;
			columns->fixed_stored++;
		}
		offset = stored->length >= 0 ? offset + stored->length : -1;
	}
}

static int
compare_attributes(const void *a, const void *b)
{
	return ((const GpuSortWantedColumn *) a)->attribute - ((const GpuSortWantedColumn *) b)->attribute;
}

/*
 * Returns what reads these columns, count of them, of tuples of desc: column attnos[i] becomes value i, and an attno of
 * 0 is not read.  It belongs to the current memory context; desc must stay.
 */
GpuSortTupleColumns *
gpusort_tuple_columns_create(TupleDesc desc, const AttrNumber *attnos, int count)
{
	GpuSortTupleColumns *columns = palloc0(sizeof(GpuSortTupleColumns));
	int natts = 0;

	columns->desc = desc;
	columns->wanted = palloc(count * sizeof(GpuSortWantedColumn));
	for (int i = 0; i < count; i++)
	{
		if (attnos[i] == 0)
			continue;
		columns->wanted[columns->count].attribute = attnos[i] - 1;
		columns->wanted[columns->count++].to = i;
		natts = Max(natts, attnos[i]);
	}
	qsort(columns->wanted, columns->count, sizeof(GpuSortWantedColumn), compare_attributes);
	lay_out(columns, natts);
	for (int i = 0; i < columns->count; i++)
	{
		GpuSortWantedColumn *wanted = &columns->wanted[i];

		wanted->stored = columns->stored[wanted->attribute];
		if (wanted->stored.offset >= 0)
		{
			columns->fixed = i + 1;
			columns->fixed_natts = wanted->attribute + 1;
		}
	}
	columns->walk = columns->fixed < columns->count ? natts - columns->fixed_stored : 0;
	return columns;
}

/* Returns where a column begins that follows offset, in bytes; a byte there that is not 0 is no padding. */
static pg_attribute_always_inline uint32
begin_column(const char *data, uint32 offset, const GpuSortStoredColumn *stored)
{
	if (stored->length == -1 && data[offset] != 0)
		return offset;
	return TYPEALIGN(stored->align, offset);
}

/* Returns where the column that begins at offset ends. */
static pg_attribute_always_inline uint32
end_column(const char *data, uint32 offset, const GpuSortStoredColumn *stored)
{
	if (stored->length >= 0)
		return offset + stored->length;
	if (stored->length == -1)
		return offset + VARSIZE_ANY(data + offset);
	return offset + strlen(data + offset) + 1;
}

/* Reads the wanted columns of a tuple from number from on, and walks over those before them. */
void
gpusort_tuple_columns_walk(const GpuSortTupleColumns *columns, HeapTupleHeader tuple, int from, Datum *values,
						   bool *nulls)
{
	const int natts = HeapTupleHeaderGetNatts(tuple);
	const bool has_nulls = (tuple->t_infomask & HEAP_HASNULL) != 0;
	const char *data = (const char *) tuple + tuple->t_hoff;
	int at = 0; /* the column that begins at offset, or behind padding there */
	uint32 offset = 0;

	if (!has_nulls && columns->fixed_stored > 0 && columns->fixed_stored <= columns->wanted[from].attribute + 1)
	{
		at = columns->fixed_stored - 1;
		offset = columns->stored[at].offset;
	}
	for (int i = from; i < columns->count; i++)
	{
		const GpuSortWantedColumn *wanted = &columns->wanted[i];
		Datum *value = &values[wanted->to];
		bool *null = &nulls[wanted->to];

		if (wanted->attribute >= natts)
		{
			*value = getmissingattr(columns->desc, wanted->attribute + 1, null);
			continue;
		}
		for (; at < wanted->attribute; at++)
		{
			if (has_nulls && att_isnull(at, tuple->t_bits))
				continue;
			offset = begin_column(data, offset, &columns->stored[at]);
			offset = end_column(data, offset, &columns->stored[at]);
		}
		*null = has_nulls && att_isnull(at, tuple->t_bits);
		*value = (Datum) 0;
		if (*null)
			continue;
		offset = begin_column(data, offset, &wanted->stored);
		*value = gpusort_fetch_stored(data + offset, &wanted->stored);
	}
}
