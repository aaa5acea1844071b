/*-------------------------------------------------------------------------
 *
 * rowform.c
 *	  Forms rows from values, in place.
 *
 * What heap_form_minimal_tuple does in two passes over the values, into memory
 * that it allocates, this does in one pass into memory that is there, with what
 * it needs of the tuple descriptor laid out beforehand.  The result is the same,
 * byte for byte, but for the memory it lies in.
 *
 *-------------------------------------------------------------------------
 */
#include "rowform.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"

/* How the values of an attribute are stored. */
typedef enum AttributeKind
{
	ATTRIBUTE_1,				/* by value, of so many bytes, aligned to as many */
	ATTRIBUTE_2,
	ATTRIBUTE_4,
	ATTRIBUTE_8,
	ATTRIBUTE_FIXED,			/* by reference, of fixed length */
	ATTRIBUTE_VARLENA,			/* shortens its header where it can */
	ATTRIBUTE_PLAIN_VARLENA,	/* always has a long header */
	ATTRIBUTE_OTHER,			/* left to heap_fill_tuple */
} AttributeKind;

typedef struct Attribute
{
	uint8		kind;			/* AttributeKind */
	uint8		align;			/* bytes */
	int16		length;			/* of ATTRIBUTE_FIXED */
} Attribute;

struct GpuSortRowForm
{
	TupleDesc	desc;
	int			natts;
	uint16		header;			/* bytes before the data, without and with a NULL bitmap */
	uint16		header_with_nulls;
	bool		simple;			/* no ATTRIBUTE_OTHER */
	Attribute	attributes[FLEXIBLE_ARRAY_MEMBER];
};

static uint8
alignment_bytes(char align)
{
	switch (align)
	{
		case TYPALIGN_SHORT:
			return ALIGNOF_SHORT;
		case TYPALIGN_INT:
			return ALIGNOF_INT;
		case TYPALIGN_DOUBLE:
			return ALIGNOF_DOUBLE;
		default:
			return 1;
	}
}

static AttributeKind
attribute_kind(const Form_pg_attribute attribute)
{
	uint8		align = alignment_bytes(attribute->attalign);

	if (attribute->attlen == -1)
		return attribute->attstorage == TYPSTORAGE_PLAIN ? ATTRIBUTE_PLAIN_VARLENA : ATTRIBUTE_VARLENA;
	if (attribute->attlen <= 0)
		return ATTRIBUTE_OTHER;
	if (!attribute->attbyval)
		return ATTRIBUTE_FIXED;
	if (attribute->attlen != align)
		return ATTRIBUTE_OTHER;
	return attribute->attlen == 1 ? ATTRIBUTE_1 :
		attribute->attlen == 2 ? ATTRIBUTE_2 :
		attribute->attlen == 4 ? ATTRIBUTE_4 : ATTRIBUTE_8;
}

/* The form of rows of this descriptor, which must live as long. */
GpuSortRowForm *
gpusort_rowform_create(TupleDesc desc)
{
	GpuSortRowForm *form = palloc(offsetof(GpuSortRowForm, attributes) + desc->natts * sizeof(Attribute));

	form->desc = desc;
	form->natts = desc->natts;
	form->header = MAXALIGN(SizeofMinimalTupleHeader);
	form->header_with_nulls = MAXALIGN(SizeofMinimalTupleHeader + BITMAPLEN(desc->natts));
	form->simple = true;
	for (int i = 0; i < desc->natts; i++)
	{
		const Form_pg_attribute attribute = TupleDescAttr(desc, i);

		form->attributes[i].kind = attribute_kind(attribute);
		form->attributes[i].align = alignment_bytes(attribute->attalign);
		form->attributes[i].length = attribute->attlen;
		form->simple &= form->attributes[i].kind != ATTRIBUTE_OTHER;
	}
	return form;
}

/* By PostgreSQL's own functions, in two passes. */
static Size
fill_any(const GpuSortRowForm *form, TupleTableSlot *slot, bool has_nulls, char *row, char *limit)
{
	MinimalTuple tuple = (MinimalTuple) row;
	Size		header = has_nulls ? form->header_with_nulls : form->header;
	Size		data = heap_compute_data_size(form->desc, slot->tts_values, slot->tts_isnull);

	if (row + header + data > limit)
		return 0;
	memset(row, 0, header + data);
	tuple->t_len = header + data;
	HeapTupleHeaderSetNatts(tuple, form->natts);
	tuple->t_hoff = header + MINIMAL_TUPLE_OFFSET;
	heap_fill_tuple(form->desc, slot->tts_values, slot->tts_isnull, row + header, data,
					&tuple->t_infomask, has_nulls ? tuple->t_bits : NULL);
	return header + data;
}

/* Advances to a multiple of align, zeroing what is stepped over; 8 bytes must be there. */
static inline char *
align_data(char *data, uintptr_t align)
{
	memset(data, 0, sizeof(uint64));
	return (char *) (((uintptr_t) data + align - 1) & ~(align - 1));
}

/*
 * Forms the row of the values in slot, all of which must be there, at row, which
 * is 8-aligned.  Returns its length in bytes, or 0 when it does not fit below
 * limit with some bytes to spare.
 */
Size
gpusort_rowform_fill(const GpuSortRowForm *form, TupleTableSlot *slot, char *row, char *limit)
{
	/* Aligning writes up to 8 bytes, and a value by value is as long. */
	const Size	slack = 2 * sizeof(uint64);
	const Datum *values = slot->tts_values;
	const bool *isnull = slot->tts_isnull;
	MinimalTuple tuple = (MinimalTuple) row;
	bool		has_nulls = memchr(isnull, true, form->natts) != NULL;
	Size		header = has_nulls ? form->header_with_nulls : form->header;
	uint16		infomask = has_nulls ? HEAP_HASNULL : 0;
	char	   *data = row + header;

	if (unlikely(!form->simple))
		return fill_any(form, slot, has_nulls, row, limit);
	if (unlikely(data + slack > limit))
		return 0;
	memset(row, 0, header);
	if (has_nulls)
	{
		for (int i = 0; i < form->natts; i++)
		{
			if (!isnull[i])
				tuple->t_bits[i / 8] |= 1 << (i % 8);
		}
	}

	for (int i = 0; i < form->natts; i++)
	{
		const Attribute *attribute = &form->attributes[i];
		const struct varlena *value;
		Size		length;

		if (unlikely(data + slack > limit))
			return 0;
		if (has_nulls && isnull[i])
			continue;
		switch ((AttributeKind) attribute->kind)
		{
			case ATTRIBUTE_1:
				*data++ = DatumGetChar(values[i]);
				break;
			case ATTRIBUTE_2:
				data = align_data(data, sizeof(int16));
				*(int16 *) data = DatumGetInt16(values[i]);
				data += sizeof(int16);
				break;
			case ATTRIBUTE_4:
				data = align_data(data, sizeof(int32));
				*(int32 *) data = DatumGetInt32(values[i]);
				data += sizeof(int32);
				break;
			case ATTRIBUTE_8:
				data = align_data(data, sizeof(Datum));
				*(Datum *) data = values[i];
				data += sizeof(Datum);
				break;
			case ATTRIBUTE_FIXED:
				data = align_data(data, attribute->align);
				if (unlikely(data + attribute->length + slack > limit))
					return 0;
				gpusort_copy(data, DatumGetPointer(values[i]), attribute->length);
				data += attribute->length;
				break;
			case ATTRIBUTE_VARLENA:
			case ATTRIBUTE_PLAIN_VARLENA:
				value = (const struct varlena *) DatumGetPointer(values[i]);
				infomask |= HEAP_HASVARWIDTH;
				if (VARATT_IS_1B(value) && !VARATT_IS_1B_E(value))
				{
					length = VARSIZE_1B(value);
					if (unlikely(data + length + slack > limit))
						return 0;
					gpusort_copy(data, (const char *) value, length);
				}
				else if (VARATT_IS_1B_E(value))
					return fill_any(form, slot, has_nulls, row, limit);
				else if (attribute->kind == ATTRIBUTE_VARLENA && VARATT_CAN_MAKE_SHORT(value))
				{
					length = VARATT_CONVERTED_SHORT_SIZE(value);
					if (unlikely(data + length + slack > limit))
						return 0;
					SET_VARSIZE_SHORT(data, length);
					gpusort_copy(data + 1, VARDATA(value), length - 1);
				}
				else
				{
					data = align_data(data, attribute->align);
					length = VARSIZE(value);
					if (unlikely(data + length + slack > limit))
						return 0;
					gpusort_copy(data, (const char *) value, length);
				}
				data += length;
				break;
			case ATTRIBUTE_OTHER:
				pg_unreachable();
		}
	}
	tuple->t_len = data - row;
	HeapTupleHeaderSetNatts(tuple, form->natts);
	tuple->t_infomask = infomask;
	tuple->t_hoff = header + MINIMAL_TUPLE_OFFSET;
	return data - row;
}
