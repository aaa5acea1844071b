/*-------------------------------------------------------------------------
 *
 * parts.c
 *	  The parts of values, as parts.h has them.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/bytes/parts.h"

#include "keys/bytes/string_keys.h"
#include "keys/encoders.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* The bytes of a number of so many bits. */
#define BYTES(bits) (((bits) + 7) / 8)

/* Finds out how a part is encoded, and makes its encoder's state, in the current memory context. */
void
gpusort_part_init(GpuSortPart *part, const GpuSortOrder *order)
{
	const char *why_not;

	part->encoding = gpusort_part_encoding(order, &why_not);
	part->type = &gpusort_key_types[part->encoding];
	part->fixed_bytes = part->type->encode == NULL ? BYTES(part->type->bits) : 0;
	part->state = part->type->create != NULL ? part->type->create(order) : NULL;
}

/*
 * Returns a varlena that is neither compressed nor kept elsewhere and has a header of four bytes: itself, or in copy,
 * or in the current memory context.
 */
struct varlena *
gpusort_flatten(Datum value, GpuSortShortVarlena *copy)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(value);

	if (VARATT_IS_4B_U(stored))
		return stored;
	if (VARATT_IS_SHORT(stored) && !VARATT_IS_EXTERNAL(stored))
	{
		int length = VARSIZE_SHORT(stored) - VARHDRSZ_SHORT;

		SET_VARSIZE(copy->data, length + VARHDRSZ);
		memcpy(copy->data + VARHDRSZ, VARDATA_SHORT(stored), length);
		return (struct varlena *) copy->data;
	}
	return gpusort_fetch_whole(CurrentMemoryContext, stored);
}

/* Adds a number that has an encoder. */
static bool
put_bits(GpuSortByteWriter *to, const GpuSortPart *part, Datum value)
{
	int bits = part->type->bits;
	GpuSortBits number;
	bool exact;
	bool room;

	if (part->type->detoast && !gpusort_is_plain((struct varlena *) DatumGetPointer(value)))
		value = PointerGetDatum(gpusort_fetch_whole(CurrentMemoryContext, (struct varlena *) DatumGetPointer(value)));
	exact = part->type->encode(part->state, value, &number);
	if (bits > 128)
	{
		room = gpusort_put_number(to, number.top & gpusort_low_mask(bits - 128), BYTES(bits - 128));
		bits = 128;
	}
	if (bits > 64)
	{
		room = gpusort_put_number(to, number.high & gpusort_low_mask(bits - 64), BYTES(bits - 64));
		bits = 64;
	}
	room = gpusort_put_number(to, number.low & gpusort_low_mask(bits), BYTES(bits));
	return exact && room;
}

/* Adds bytes of which some may be zero. */
static bool
put_escaped(GpuSortByteWriter *to, const char *data, int length)
{
	while (length > 0)
	{
		const char *zero = memchr(data, 0, length);
		int count = zero != NULL ? zero - data : length;

		if (!gpusort_put_data(to, data, count) || (zero != NULL && !gpusort_put_number(to, 1, 2)))
			return false;
		count += zero != NULL;
		data += count;
		length -= count;
	}
	return gpusort_put_number(to, 0, 2);
}

/* Adds a bit string: its bytes, and how many bits the last of them has. */
static bool
put_bit_string(GpuSortByteWriter *to, const char *data, int length)
{
	int32 bits;

	memcpy(&bits, data - GPUSORT_BIT_HEADER_BYTES, sizeof(bits));
	return put_escaped(to, data, length) && gpusort_put_number(to, length == 0 ? 0 : bits - 8 * (length - 1), 1);
}

/* Adds a string without zero bytes under the collation of a part, as gpusort_part_put does. */
bool
gpusort_part_put_string(GpuSortByteWriter *to, const GpuSortPart *part, const char *data, int length)
{
	int room = to->end - to->next;
	bool whole = false;

	if (part->encoding == GPUSORT_ENCODE_NONE || room == 0)
		return false;
	switch (part->type->source)
	{
		case GPUSORT_SOURCE_ICU:
			to->next += gpusort_icu_bytes(part->state, data, length, to->next, room, &whole);
			break;
		case GPUSORT_SOURCE_LIBC:
			to->next += gpusort_libc_bytes(part->state, data, length, false, to->next, room);
			break;
		default:
			whole = gpusort_put_data(to, data, length);
			break;
	}
	/* The end, so that a string sorts before one that goes on, whatever follows it. */
	return gpusort_put_number(to, 0, 1) && whole;
}

/* gpusort_part_put for all but short numbers.  Errors: those of detoasting and of encoders. */
pg_noinline bool
gpusort_part_put_other(GpuSortByteWriter *to, const GpuSortPart *part, Datum value)
{
	const GpuSortKeyType *type = part->type;
	int room = to->end - to->next;
	GpuSortStringBytes string;
	GpuSortShortVarlena copy;
	bool whole;

	if (part->encoding == GPUSORT_ENCODE_NONE || room == 0)
		return false;
	if (part->encoding == GPUSORT_ENCODE_NUMERIC)
		return gpusort_numeric_put(to, gpusort_flatten(value, &copy));
	if (type->encode != NULL)
		return put_bits(to, part, value);
	if (type->source == GPUSORT_SOURCE_PARTS)
	{
		check_stack_depth();
		to->next += type->bytes(type, part->state, value, to->next, room, &whole);
		return whole;
	}
	whole = type->source != GPUSORT_SOURCE_STRING || type->string == GPUSORT_STRING_BITS;
	string = gpusort_find_bytes(CurrentMemoryContext, type->string, value, room + 1, whole);
	if (part->encoding == GPUSORT_ENCODE_BYTEA)
		return put_escaped(to, string.data, string.length);
	if (type->string == GPUSORT_STRING_BITS)
		return put_bit_string(to, string.data, string.length);
	return gpusort_part_put_string(to, part, string.data, string.length);
}

/* Returns the order of a type's values by its default operator class; without an operator family if it has none. */
GpuSortOrder *
gpusort_default_order(Oid type, Oid collation)
{
	const TypeCacheEntry *cache = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY | TYPECACHE_CMP_PROC);
	GpuSortOrder *order = palloc0(sizeof(GpuSortOrder));

	*order = (GpuSortOrder){
		.opfamily = OidIsValid(cache->cmp_proc) ? cache->btree_opf : InvalidOid,
		.input_type = cache->btree_opintype,
		.type = getBaseType(type),
		.collation = collation,
	};
	return order;
}
