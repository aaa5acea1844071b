/*-------------------------------------------------------------------------
 *
 * rowform.c
 *	  Forms rows from values, in place, and takes them apart again.
 *
 * A row is a MinimalTuple of its visible attributes.  The resjunk ones behind
 * them, if any, which are for sorting only, are a second MinimalTuple behind it:
 *
 *	  | t_len | flags | visible_length | rest of the visible tuple | resjunk tuple |
 *
 * where t_len, which the service reads as the row's length,
 * counts both, and visible_length, in padding of the first,
 * is what t_len is set to when the row is emitted.
 *
 * What heap_form_minimal_tuple does in two passes over the values, into memory
 * that it allocates, this does in one pass into memory that is there, with what
 * it needs of the tuple descriptor laid out beforehand.  The result is the same,
 * byte for byte, but for the memory it lies in.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/rowform.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"

/* What a tuple is to have room for beyond its end: aligning writes up to 8 bytes, and a value by value is as long. */
#define SLACK (2 * sizeof(uint64))

/* How the values of an attribute are stored. */
typedef enum AttributeKind
{
	ATTRIBUTE_1, /* by value, of so many bytes, aligned to as many */
	ATTRIBUTE_2,
	ATTRIBUTE_4,
	ATTRIBUTE_8,
	ATTRIBUTE_FIXED,         /* by reference, of fixed length */
	ATTRIBUTE_VARLENA,       /* shortens its header where it can */
	ATTRIBUTE_PLAIN_VARLENA, /* always has a long header */
	ATTRIBUTE_OTHER,         /* left to heap_fill_tuple */
} AttributeKind;

typedef struct Attribute
{
	uint8 kind;   /* AttributeKind */
	uint8 align;  /* bytes */
	int16 length; /* bytes; of a varlena -1 */
	int32 offset; /* bytes from the start of a fixed part */
} Attribute;

/* One tuple of a row. */
typedef struct RowPart
{
	TupleDesc desc;
	int natts;
	uint16 header; /* bytes before the data, without and with a NULL bitmap */
	uint16 header_with_nulls;
	bool simple; /* no ATTRIBUTE_OTHER */
	bool fixed;  /* all attributes are of fixed length: without NULLs, all tuples are laid out alike */
	int32 fixed_length;
	char plain_header[MAXALIGN(SizeofMinimalTupleHeader)]; /* of tuples without NULLs; the length is that of fixed ones */
	Attribute *attributes;
} RowPart;

struct GpuSortRowForm
{
	RowPart visible;
	RowPart resjunk;
	bool has_resjunk;
};

/* Returns the bytes that an attribute's values are aligned to, as pg_type has it by a letter. */
uint8
gpusort_alignment_bytes(char align)
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
	uint8 align = gpusort_alignment_bytes(attribute->attalign);

	if (attribute->attlen == -1)
		return attribute->attstorage == TYPSTORAGE_PLAIN ? ATTRIBUTE_PLAIN_VARLENA : ATTRIBUTE_VARLENA;
	if (attribute->attlen <= 0)
		return ATTRIBUTE_OTHER;
	if (!attribute->attbyval)
		return ATTRIBUTE_FIXED;
	if (attribute->attlen != align)
		return ATTRIBUTE_OTHER;
	return attribute->attlen == 1 ? ATTRIBUTE_1 : attribute->attlen == 2 ? ATTRIBUTE_2
		: attribute->attlen == 4                                         ? ATTRIBUTE_4
																		 : ATTRIBUTE_8;
}

/* Lays out the tuples without NULLs of a part: their header, and the rest if they all are laid out alike. */
static void
lay_out_fixed(RowPart *part)
{
	union
	{
		MinimalTupleData tuple;
		char bytes[sizeof(part->plain_header)];
	} header = {{0}};
	int32 offset = part->header;

	part->fixed = true;
	for (int i = 0; i < part->natts; i++)
	{
		Attribute *attribute = &part->attributes[i];

		part->fixed &= attribute->kind <= ATTRIBUTE_FIXED;
		if (attribute->length == -1)
			header.tuple.t_infomask |= HEAP_HASVARWIDTH;
		attribute->offset = offset = TYPEALIGN(attribute->align, offset);
		offset += attribute->length;
	}
	part->fixed_length = offset;
	header.tuple.t_len = offset;
	header.tuple.t_infomask2 = part->natts;
	header.tuple.t_hoff = part->header + MINIMAL_TUPLE_OFFSET;
	memcpy(part->plain_header, header.bytes, sizeof(part->plain_header));
}

/* Lays out a tuple of natts columns of desc from first (0-based) on. */
static void
init_part(RowPart *part, TupleDesc desc, int first, int natts)
{
	part->desc = CreateTemplateTupleDesc(natts);
	part->natts = natts;
	part->header = MAXALIGN(SizeofMinimalTupleHeader);
	part->header_with_nulls = MAXALIGN(SizeofMinimalTupleHeader + BITMAPLEN(natts));
	part->simple = true;
	part->attributes = palloc(natts * sizeof(Attribute));
	for (int i = 0; i < natts; i++)
	{
		const Form_pg_attribute attribute = TupleDescAttr(desc, first + i);

		TupleDescCopyEntry(part->desc, i + 1, desc, first + i + 1);
		part->attributes[i].kind = attribute_kind(attribute);
		part->attributes[i].align = gpusort_alignment_bytes(attribute->attalign);
		part->attributes[i].length = attribute->attlen;
		part->simple &= part->attributes[i].kind != ATTRIBUTE_OTHER;
	}
	lay_out_fixed(part);
	TupleDescFinalize(part->desc);
}

/*
 * Returns the form of rows with the attributes of desc, of which so many leading
 * ones are visible.  Belongs to the current memory context.
 */
GpuSortRowForm *
gpusort_rowform_create(TupleDesc desc, int visible)
{
	GpuSortRowForm *form = palloc0(sizeof(GpuSortRowForm));

	init_part(&form->visible, desc, 0, visible);
	form->has_resjunk = visible < desc->natts;
	if (form->has_resjunk)
		init_part(&form->resjunk, desc, visible, desc->natts - visible);
	return form;
}

/* Returns true if rows of this form have resjunk attributes. */
bool
gpusort_rowform_has_resjunk(const GpuSortRowForm *form)
{
	return form->has_resjunk;
}

/* By PostgreSQL's own functions, in two passes. */
static Size
fill_any(const RowPart *part, const Datum *values, const bool *isnull, bool has_nulls, char *row, char *limit)
{
	MinimalTuple tuple = (MinimalTuple) row;
	Size header = has_nulls ? part->header_with_nulls : part->header;
	Size data = heap_compute_data_size(part->desc, (Datum *) values, (bool *) isnull);

	if (row + header + data > limit)
		return 0;
	memset(row, 0, header + data);
	tuple->t_len = header + data;
	HeapTupleHeaderSetNatts(tuple, part->natts);
	tuple->t_hoff = header + MINIMAL_TUPLE_OFFSET;
	heap_fill_tuple(part->desc, (Datum *) values, (bool *) isnull, row + header, data,
					&tuple->t_infomask, has_nulls ? tuple->t_bits : NULL);
	return header + data;
}

/* Returns true if one of the first natts columns is NULL.  A call of memchr costs more than a short loop. */
static inline bool
any_null(const bool *isnull, int natts)
{
	bool any = false;

	if (natts > 16)
		return memchr(isnull, true, natts) != NULL;
	for (int i = 0; i < natts; i++)
		any |= isnull[i];
	return any;
}

/* Advances to a multiple of align, zeroing what is stepped over; 8 bytes must be there. */
static inline char *
align_data(char *data, uintptr_t align)
{
	memset(data, 0, sizeof(uint64));
	return (char *) (((uintptr_t) data + align - 1) & ~(align - 1));
}

/* What fill_part does, of values none of which is NULL, where the part is fixed. */
static pg_attribute_always_inline Size
fill_fixed(const RowPart *part, const Datum *values, char *row, char *limit)
{
	const Size slack = SLACK;

	if (unlikely(row + part->fixed_length + slack > limit))
		return 0;
	memcpy(row, part->plain_header, sizeof(part->plain_header));
	for (int i = 0; i < part->natts; i++)
	{
		const Attribute *attribute = &part->attributes[i];
		char *data = row + attribute->offset;

		switch ((AttributeKind) attribute->kind)
		{
			case ATTRIBUTE_1:
				*data = DatumGetChar(values[i]);
				break;
			case ATTRIBUTE_2:
				*(int16 *) data = DatumGetInt16(values[i]);
				break;
			case ATTRIBUTE_4:
				*(int32 *) data = DatumGetInt32(values[i]);
				break;
			case ATTRIBUTE_8:
				*(Datum *) data = values[i];
				break;
			default:
				gpusort_copy(data, DatumGetPointer(values[i]), attribute->length);
				break;
		}
		/* What the next one is aligned by is zero. */
		memset(data + attribute->length, 0, sizeof(uint64));
	}
	return part->fixed_length;
}

/* Writes the header of a tuple with NULLs, but for its length. */
static inline void
put_header_with_nulls(const RowPart *part, const bool *isnull, MinimalTuple tuple)
{
	bool varying = false;

	memset(tuple, 0, part->header_with_nulls);
	for (int i = 0; i < part->natts; i++)
	{
		if (isnull[i])
			continue;
		tuple->t_bits[i / 8] |= 1 << (i % 8);
		varying |= part->attributes[i].length == -1;
	}
	HeapTupleHeaderSetNatts(tuple, part->natts);
	tuple->t_infomask = HEAP_HASNULL | (varying ? HEAP_HASVARWIDTH : 0);
	tuple->t_hoff = part->header_with_nulls + MINIMAL_TUPLE_OFFSET;
}

/* What fill_part does where tuples differ in their layout. */
static pg_attribute_always_inline Size
fill_varying(const RowPart *part, const Datum *values, const bool *isnull, const bool has_nulls, char *row,
			 char *limit)
{
	const Size slack = SLACK;
	char *data = row + (has_nulls ? part->header_with_nulls : part->header);

	if (unlikely(!part->simple))
		return fill_any(part, values, isnull, has_nulls, row, limit);
	if (unlikely(data + slack > limit))
		return 0;
	if (has_nulls)
		put_header_with_nulls(part, isnull, (MinimalTuple) row);
	else
		memcpy(row, part->plain_header, sizeof(part->plain_header));

	for (int i = 0; i < part->natts; i++)
	{
		const Attribute *attribute = &part->attributes[i];
		const struct varlena *value;
		Size length;

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
				if (VARATT_IS_1B(value) && !VARATT_IS_1B_E(value))
				{
					length = VARSIZE_1B(value);
					if (unlikely(data + length + slack > limit))
						return 0;
					gpusort_copy(data, (const char *) value, length);
				}
				else if (VARATT_IS_1B_E(value))
					return fill_any(part, values, isnull, has_nulls, row, limit);
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
	((MinimalTuple) row)->t_len = data - row;
	return data - row;
}

static pg_noinline Size
fill_without_nulls(const RowPart *part, const Datum *values, const bool *isnull, char *row, char *limit)
{
	return fill_varying(part, values, isnull, false, row, limit);
}

static pg_noinline Size
fill_with_nulls(const RowPart *part, const Datum *values, const bool *isnull, char *row, char *limit)
{
	return fill_varying(part, values, isnull, true, row, limit);
}

/*
 * Forms one tuple at row, which is 8-aligned.  Returns its length in bytes, or 0
 * when it does not fit below limit with some bytes to spare.
 */
static pg_attribute_always_inline Size
fill_part(const RowPart *part, const Datum *values, const bool *isnull, char *row, char *limit)
{
	if (unlikely(any_null(isnull, part->natts)))
		return fill_with_nulls(part, values, isnull, row, limit);
	if (part->fixed)
		return fill_fixed(part, values, row, limit);
	return fill_without_nulls(part, values, isnull, row, limit);
}

/* Returns true if a stored tuple of desc, as it is, is a tuple of the visible attributes. */
bool
gpusort_rowform_is_visible(const GpuSortRowForm *form, TupleDesc desc)
{
	if (desc->natts != form->visible.natts)
		return false;
	for (int i = 0; i < desc->natts; i++)
	{
		const Form_pg_attribute stored = TupleDescAttr(desc, i);

		/* A tuple older than the column lacks it. */
		if (stored->attisdropped || stored->atthasmissing ||
			stored->atttypid != TupleDescAttr(form->visible.desc, i)->atttypid)
			return false;
	}
	return true;
}

/*
 * Forms a row at row, which is 8-aligned, of the values, all of which must be there; its tuple, if it has one, is
 * that of the visible attributes, to be copied.  Returns the row's length in bytes, or 0 when it does not fit below
 * limit with some bytes to spare.
 */
Size
gpusort_rowform_fill(const GpuSortRowForm *form, const GpuSortRow *values, char *row, char *limit)
{
	Size length;

	if (values->tuple != NULL)
		length = gpusort_copy_tuple(values->tuple, values->length, row, limit);
	else
		length = fill_part(&form->visible, values->values, values->nulls, row, limit);

	if (form->has_resjunk && likely(length > 0))
	{
		const int first = form->visible.natts;
		char *resjunk = row + MAXALIGN(length);
		uint32 visible_length = length;
		Size resjunk_length;

		resjunk_length = fill_part(&form->resjunk, values->values + first, values->nulls + first, resjunk, limit);
		if (unlikely(resjunk_length == 0))
			return 0;
		length = MAXALIGN(length) + resjunk_length;
		((MinimalTuple) row)->t_len = length;
		memcpy(row + GPUSORT_VISIBLE_LENGTH_OFFSET, &visible_length, sizeof(visible_length));
	}
	return length;
}

/* Returns the bytes that one tuple of a row takes at most. */
static Size
part_room(const RowPart *part, const Datum *values, const bool *isnull)
{
	return part->header_with_nulls + heap_compute_data_size(part->desc, (Datum *) values, (bool *) isnull) + SLACK;
}

/* Returns how many bytes of room are enough for gpusort_rowform_fill. */
Size
gpusort_rowform_room(const GpuSortRowForm *form, const GpuSortRow *values)
{
	const int first = form->visible.natts;
	Size room = values->tuple != NULL ? values->length : part_room(&form->visible, values->values, values->nulls);

	if (form->has_resjunk)
		room = MAXALIGN(room) + part_room(&form->resjunk, values->values + first, values->nulls + first);
	return room;
}

static HeapTupleData
as_heap_tuple(MinimalTuple tuple)
{
	return (HeapTupleData){
		.t_len = tuple->t_len + MINIMAL_TUPLE_OFFSET,
		.t_data = (HeapTupleHeader) ((char *) tuple - MINIMAL_TUPLE_OFFSET)};
}

/* Returns the tuple of the resjunk attributes of a row that was formed with some.  Errors: it was not. */
static MinimalTuple
resjunk_tuple(const char *row)
{
	uint32 length = ((MinimalTuple) row)->t_len;
	uint32 visible_length = gpusort_row_visible_length(row);

	if (unlikely(visible_length < GPUSORT_ROW_BYTES_MIN || visible_length > length ||
				 length - visible_length < GPUSORT_ROW_BYTES_MIN))
		gpusort_row_report_damaged();
	return (MinimalTuple) (row + MAXALIGN(visible_length));
}

/* Returns the value of an attribute (1-based) of a row formed like this; it points into the row. */
Datum
gpusort_rowform_value(const GpuSortRowForm *form, const char *row, AttrNumber attno, bool *isnull)
{
	const int visible = form->visible.natts;
	HeapTupleData tuple;

	if (attno <= visible)
	{
		tuple = as_heap_tuple((MinimalTuple) row);
		return heap_getattr(&tuple, attno, form->visible.desc, isnull);
	}
	tuple = as_heap_tuple(resjunk_tuple(row));
	return heap_getattr(&tuple, attno - visible, form->resjunk.desc, isnull);
}

/* Stores all attributes of a row that was formed with resjunk ones in a virtual slot; they point into the row. */
void
gpusort_rowform_join(const GpuSortRowForm *form, const char *row, TupleTableSlot *slot)
{
	const int visible = form->visible.natts;
	HeapTupleData tuple;

	ExecClearTuple(slot);
	tuple = as_heap_tuple((MinimalTuple) row);
	heap_deform_tuple(&tuple, form->visible.desc, slot->tts_values, slot->tts_isnull);
	tuple = as_heap_tuple(resjunk_tuple(row));
	heap_deform_tuple(&tuple, form->resjunk.desc, slot->tts_values + visible, slot->tts_isnull + visible);
	ExecStoreVirtualTuple(slot);
}
