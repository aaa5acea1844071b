/*-------------------------------------------------------------------------
 *
 * keys_layout.c
 *	  Which columns a sort's keys have, and how many bits of each.
 *
 * Legal order: create once; then for each sort lay_out, when the prefixes of the
 * strings are known, and set_heads where only the heads come later.  keys.c says what
 * the bits are.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/keys.h"

#include "port/pg_bitutils.h"
#include "service/protocol.h"
#include "utils/memutils.h"

/* Bits of a number up to max. */
static inline int
bits_for(uint32 max)
{
	return pg_leftmost_one_pos32(max) + 1;
}

/* Bits of an encoding that takes no more than 64, else 0. */
static int
fixed_bits(GpuSortEncoding encoding)
{
	switch (encoding)
	{
		case GPUSORT_ENCODE_BOOL:
			return 1;
		case GPUSORT_ENCODE_CHAR:
			return 8;
		case GPUSORT_ENCODE_INT2:
			return 16;
		case GPUSORT_ENCODE_INT4:
		case GPUSORT_ENCODE_OID:
		case GPUSORT_ENCODE_FLOAT4:
			return 32;
		case GPUSORT_ENCODE_MACADDR:
		case GPUSORT_ENCODE_TID:
			return 48;
		case GPUSORT_ENCODE_INT8:
		case GPUSORT_ENCODE_UINT8:
		case GPUSORT_ENCODE_FLOAT8:
		case GPUSORT_ENCODE_MACADDR8:
			return 64;
		default:
			return 0;
	}
}

/* Bits of a column in the key, its NULL bit included. */
static uint32
column_bits(const GpuSortColumn *column)
{
	if (column->fixed_bits > 0)
		return 1 + column->fixed_bits;
	switch (column->encoding)
	{
		case GPUSORT_ENCODE_UUID:
			return 1 + 128;
		case GPUSORT_ENCODE_INTERVAL:
			return 1 + GPUSORT_INTERVAL_BITS;
		case GPUSORT_ENCODE_TIMETZ:
			return 1 + GPUSORT_TIMETZ_BITS;
		case GPUSORT_ENCODE_INET:
			return 1 + GPUSORT_INET_BITS;
		case GPUSORT_ENCODE_ENUM:
			return 1 + GPUSORT_ENUM_BITS;
		case GPUSORT_ENCODE_NUMERIC:
			return 1 + GPUSORT_NUMERIC_BITS;
		default:
			Assert(column->is_string);
			return 1 + column->place_bits + 8 * column->depth + column->size_bits;
	}
}

/*
 * Keys of these columns, up to the first that has no encoding: the planner sees to
 * it that there is one before that.  They have no layout yet.  The result and what
 * it points to belong to the current memory context; columns belongs to the caller
 * and must live as long.
 */
GpuSortKeys *
gpusort_keys_create(GpuSortColumn *columns, int count)
{
	GpuSortKeys *keys = palloc0(sizeof(GpuSortKeys));

	keys->count = count;
	keys->columns = columns;
	keys->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpusort keys", ALLOCSET_SMALL_SIZES);
	for (int i = 0; i < count; i++)
	{
		GpuSortColumn *column = &columns[i];

		column->encoding = gpusort_operator_encoding(column->sort_operator, column->collation,
													 &column->descending);
		if (column->encoding == GPUSORT_ENCODE_NONE)
			break;
		column->is_string = gpusort_key_encoding_is_string(column->encoding);
		column->fixed_bits = fixed_bits(column->encoding);
		column->flip = column->descending && column->fixed_bits > 0 ? gpusort_low_mask(column->fixed_bits) : 0;
		if (column->encoding == GPUSORT_ENCODE_ENUM)
			column->enum_values = gpusort_enum_create();
		else if (gpusort_key_encoding_is_icu(column->encoding))
			column->icu = gpusort_icu_create(column->collation);
		keys->strings += column->is_string;
		keys->encodable = i + 1;
	}
	keys->prefixes = palloc0(keys->strings * sizeof(GpuSortPrefix));
	return keys;
}

/* Decides how many bytes of a column's strings are in the key. */
static void
set_depth(GpuSortColumn *column, int depth)
{
	column->depth = depth;
	column->size_bits = bits_for((column->encoding == GPUSORT_ENCODE_BIT ? 8 * depth : depth) + 1);
	column->bits = column_bits(column);
}

/* The last string's depth takes what is left of the last word: it travels in any case. */
static uint32
fill_last_word(GpuSortColumn *column, uint32 bits)
{
	uint32 rest = column->bits;
	uint32 words = (bits + 63) / 64;

	for (int depth = column->depth + 1; depth <= GPUSORT_DEPTH_MAX; depth++)
	{
		int before = column->depth;

		if (depth % 8 == 7)
			continue; /* with its length, the end of the string would exceed a word */
		set_depth(column, depth);
		if (bits - rest + column->bits > words * 64)
		{
			set_depth(column, before);
			break;
		}
	}
	return bits - rest + column->bits;
}

/*
 * Lays out keys whose strings have these prefixes: an entry for each column of
 * strings.  A depth may come out greater, or smaller if the key would be too long.
 * heads_later leaves room for other heads than these, by gpusort_keys_set_heads.
 * What is laid out follows from the arguments alone.
 */
void
gpusort_keys_lay_out(GpuSortKeys *keys, const GpuSortPrefix *prefixes, bool heads_later)
{
	const uint32 max_bits = GPUSORT_MAX_KEY_WORDS * 64;
	GpuSortColumn *last_string = NULL;
	const GpuSortPrefix *prefix = prefixes;
	uint32 bits = 0;

	StaticAssertStmt((1 << GPUSORT_PLACE_BITS_MAX) > 2 * GPUSORT_HEAD_MAX, "places of a long head need more bits");
	StaticAssertStmt(GPUSORT_DEPTH_MAX % 8 != 7 && (1 << 16) > 8 * GPUSORT_DEPTH_MAX + 1,
					 "the end of a string fits a word, with its length");
	for (int i = 0; i < keys->encodable; i++)
	{
		GpuSortColumn *column = &keys->columns[i];

		if (column->is_string)
		{
			column->place_bits = column->encoding == GPUSORT_ENCODE_BIT ? 0 : heads_later ? GPUSORT_PLACE_BITS_MAX
				: prefix->head_length > 0                                                 ? bits_for(2 * prefix->head_length)
																						  : 0;
			set_depth(column, prefix->depth);
			prefix++;
		}
		else
			column->bits = column_bits(column);
		bits += column->bits;
	}
	while (bits > max_bits)
	{
		GpuSortColumn *deepest = NULL;

		for (int i = 0; i < keys->encodable; i++)
		{
			if (keys->columns[i].is_string && (deepest == NULL || keys->columns[i].depth > deepest->depth))
				deepest = &keys->columns[i];
		}
		if (deepest == NULL || deepest->depth <= 8)
			break;
		bits -= deepest->bits;
		set_depth(deepest, deepest->depth - 8);
		bits += deepest->bits;
	}

	bits = 0;
	keys->encoded = 0;
	keys->decided = 0;
	keys->last_attno = 0;
	keys->may_tie = false;
	for (int i = 0; i < keys->encodable; i++)
	{
		GpuSortColumn *column = &keys->columns[i];

		if (bits + column->bits > max_bits)
			break;
		bits += column->bits;
		keys->encoded = i + 1;
		keys->last_attno = Max(keys->last_attno, column->attno);
		if (column->is_string)
			last_string = column;
		if (column->is_string || column->encoding == GPUSORT_ENCODE_NUMERIC ||
			column->encoding == GPUSORT_ENCODE_ENUM)
			keys->may_tie = true;
		else if (keys->decided == i)
			keys->decided = i + 1;
	}
	if (last_string != NULL)
		bits = fill_last_word(last_string, bits);
	if (keys->encoded < keys->count)
		keys->may_tie = true;
	keys->decided = Min(keys->decided, keys->count - 1);
	keys->words = Max((bits + 63) / 64, 1);
	keys->one_fixed = keys->count == 1 && keys->columns[0].fixed_bits > 0;
	gpusort_keys_set_heads(keys, prefixes);
}

/* Has strings lose these heads; the layout has room for them. */
void
gpusort_keys_set_heads(GpuSortKeys *keys, const GpuSortPrefix *prefixes)
{
	GpuSortPrefix *prefix = keys->prefixes;

	if (keys->strings > 0 && prefixes != prefix)
		memcpy(prefix, prefixes, keys->strings * sizeof(GpuSortPrefix));
	for (int i = 0; i < keys->encodable; i++)
	{
		GpuSortColumn *column = &keys->columns[i];

		if (!column->is_string)
			continue;
		Assert(column->encoding != GPUSORT_ENCODE_BIT || prefix->head_length == 0);
		column->head_length = prefix->head_length;
		column->head = prefix->head;
		prefix++;
	}
}
