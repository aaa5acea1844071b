/*-------------------------------------------------------------------------
 *
 * layout.c
 *	  Which columns a sort's keys have, and how many bits of each.
 *
 * keys.h has the legal order of calls; encode.c says what the bits are.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/keys.h"

#include "keys/bit_writer.h"
#include "keys/known_values.h"
#include "port/pg_bitutils.h"
#include "service/protocol.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#define DIFFERENCE_BITS_MAX 11 /* for common prefixes of any length */
#define UNKNOWN_BYTES       6  /* of strings without a rank, where there are few: with the rest they fill a word */
#define MAX_BITS            ((uint32) GPUSORT_MAX_KEY_WORDS * 64)

/* Bits of a number up to max. */
static inline int
bits_for(uint32 max)
{
	return pg_leftmost_one_pos32(max) + 1;
}

/* Bits that say where a string of a column differs from its common prefix. */
static int
difference_bits(const GpuSortColumn *column, const GpuSortPrefix *prefix, bool common_later)
{
	if (column->type->string == GPUSORT_STRING_BITS)
		return 0;
	if (common_later)
		return DIFFERENCE_BITS_MAX;
	return prefix->common_length > 0 ? bits_for(2 * prefix->common_length) : 0;
}

/* Bits of a string in the key. */
static inline uint32
string_bits(const GpuSortColumn *column)
{
	return column->difference_bits + 8 * column->prefix_length + column->size_bits;
}

/*
 * Bits of a column in the key, its NULL bit included;
 * those of strings without a rank of their own overlap with later columns'.
 */
static uint32
column_bits(const GpuSortColumn *column)
{
	if (column->encoding == GPUSORT_ENCODE_NUMERIC)
		return 1 + GPUSORT_NUMERIC_BITS(column->prefix_length);
	if (!gpusort_column_is_string(column))
		return 1 + column->type->bits;
	return 1 + (column->rank_bits > 0 ? column->rank_bits : string_bits(column));
}

/* The same with those that strings without a rank have. */
static inline uint32
whole_bits(const GpuSortColumn *column)
{
	return column->bits + (column->rank_bits > 0 ? string_bits(column) : 0);
}

/*
 * Makes keys of these columns, up to the first that has no encoding: the planner sees
 * to it that there is one before that.  They have no layout yet.  The result and what
 * it points to belong to the current memory context; columns belongs to the caller
 * and must live as long.  Errors: those of ICU and of operator classes, and collations that are not there.
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
		const GpuSortKeyType *type;
		const char *why_not;
		GpuSortOrder order;

		column->encoding = GPUSORT_ENCODE_NONE;
		if (gpusort_operator_order(column->sort_operator, column->value_type, column->collation, &order, &column->descending))
			column->encoding = gpusort_key_encoding(order.opfamily, order.input_type, order.type, order.collation, &why_not);
		if (column->encoding == GPUSORT_ENCODE_NONE)
			break;
		if (OidIsValid(column->key_type))
			column->encoding = gpusort_encoding_as(column->encoding, column->key_type);
		type = column->type = &gpusort_key_types[column->encoding];
		column->fixed_bits = type->encode == NULL && type->bits <= 64 ? type->bits : 0;
		column->flip = column->descending && column->fixed_bits > 0 ? gpusort_low_mask(column->fixed_bits) : 0;
		if (type->parts != NULL)
			order.type = getBaseType(order.type);
		column->state = type->create != NULL ? type->create(&order) : NULL;
		column->abbreviated_by = type->source == GPUSORT_SOURCE_ABBREVIATION ? order.opfamily : InvalidOid;
		column->libc_collations = gpusort_key_libc_collations(column->encoding, column->value_type, column->collation);
		column->partial = gpusort_key_is_partial(column->encoding, column->value_type, column->collation);
		Assert(type->encode != NULL || column->fixed_bits > 0 || gpusort_column_is_string(column));
		keys->sized += gpusort_column_is_sized(column);
		keys->encodable = i + 1;
	}
	return keys;
}

/* Decides how many bytes of a column's strings are in the key. */
static void
set_length(GpuSortColumn *column, int length)
{
	column->prefix_length = length;
	column->size_bits = bits_for((column->type->string == GPUSORT_STRING_BITS ? 8 * length : length) + 1);
	column->bits = column_bits(column);
}

/* A string that begins at bit start takes what is left of so many bits. */
static void
fill(GpuSortColumn *column, uint32 start, uint32 bits)
{
	for (int length = column->prefix_length + 1; length <= GPUSORT_PREFIX_MAX; length++)
	{
		int before = column->prefix_length;

		if (length % 8 == 7)
			continue; /* with its length, the end of the string would exceed a word */
		set_length(column, length);
		if (start + whole_bits(column) > bits)
		{
			set_length(column, before);
			break;
		}
	}
}

/* The last string's prefix takes what is left of the last word: it travels in any case. */
static uint32
fill_last_word(GpuSortColumn *column, uint32 bits)
{
	uint32 rest = bits - column->bits;

	fill(column, rest, TYPEALIGN(64, bits));
	return rest + column->bits;
}

/*
 * Strings without a rank of their own take what is left of the key, in place of later columns, and make it longer if
 * need be. Returns the bits of the key.
 */
static uint32
lay_out_unknown(GpuSortKeys *keys, uint32 bits)
{
	for (int i = 0; i < keys->encoded; i++)
	{
		GpuSortColumn *column = &keys->columns[i];
		uint32 start = gpusort_keys_range_bits(keys, i);

		while (column->rank_bits > 0 && start + whole_bits(column) > MAX_BITS)
			set_length(column, Max(column->prefix_length - 8, 0));
		bits = Max(bits, start + whole_bits(column));
	}
	for (int i = 0; i < keys->encoded; i++)
	{
		if (keys->columns[i].rank_bits > 0)
			fill(&keys->columns[i], gpusort_keys_range_bits(keys, i), TYPEALIGN(64, bits));
	}
	return bits;
}

/* Begins the layout of a column of strings with this prefix. */
static void
lay_out_string(GpuSortColumn *column, const GpuSortPrefix *prefix, bool common_later)
{
	const GpuSortKnownValues *known = &prefix->known;

	column->difference_bits = difference_bits(column, prefix, common_later && !prefix->settled);
	column->rank_bits = known->ranked ? GPUSORT_RANK_BITS : 0;
	set_length(column, known->ranked && known->complete ? Min(prefix->length, UNKNOWN_BYTES) : prefix->length);
}

/*
 * Lays out keys whose strings have these prefixes: an entry for each sized
 * column.  Their lengths may come out greater, or smaller if the key would be too long.
 * common_later leaves room for other common prefixes than these, by
 * gpusort_keys_set_common_prefixes.  What is laid out follows from the arguments alone.
 */
void
gpusort_keys_lay_out(GpuSortKeys *keys, const GpuSortPrefix *prefixes, bool common_later)
{
	GpuSortColumn *last_string = NULL;
	const GpuSortPrefix *prefix = prefixes;
	uint32 bits = 0;
	int fixed = 0; /* columns of fixed width in the key */

	/* not before: many sorts turn out to be of few rows, and have no use for it */
	if (keys->prefixes == NULL)
		keys->prefixes = MemoryContextAlloc(GetMemoryChunkContext(keys), keys->sized * sizeof(GpuSortPrefix));
	StaticAssertStmt((1 << DIFFERENCE_BITS_MAX) > 2 * GPUSORT_COMMON_PREFIX_MAX,
					 "differences from a long common prefix need more bits");
	StaticAssertStmt(GPUSORT_PREFIX_MAX % 8 != 7 && (1 << 16) > 8 * GPUSORT_PREFIX_MAX + 1,
					 "the end of a string fits a word, with its length");
	for (int i = 0; i < keys->encodable; i++)
	{
		GpuSortColumn *column = &keys->columns[i];

		if (gpusort_column_is_string(column))
			lay_out_string(column, prefix++, common_later);
		else
		{
			if (gpusort_column_is_sized(column))
				column->prefix_length = prefix++->length;
			column->bits = column_bits(column);
		}
		bits += column->bits;
	}
	while (bits > MAX_BITS)
	{
		GpuSortColumn *longest = NULL;

		for (int i = 0; i < keys->encodable; i++)
		{
			GpuSortColumn *column = &keys->columns[i];

			if (gpusort_column_is_string(column) && column->rank_bits == 0 &&
				(longest == NULL || column->prefix_length > longest->prefix_length))
				longest = column;
		}
		if (longest == NULL || longest->prefix_length <= 8)
			break;
		bits -= longest->bits;
		set_length(longest, longest->prefix_length - 8);
		bits += longest->bits;
	}

	bits = 0;
	keys->encoded = 0;
	keys->exact_columns = 0;
	keys->last_attno = 0;
	keys->may_tie = false;
	for (int i = 0; i < keys->encodable; i++)
	{
		GpuSortColumn *column = &keys->columns[i];

		if (bits + column->bits + (column->rank_bits > 0 ? column->difference_bits + 1 : 0) > MAX_BITS)
			break;
		bits += column->bits;
		keys->encoded = i + 1;
		keys->last_attno = Max(keys->last_attno, column->attno);
		if (gpusort_column_is_string(column))
			last_string = column->rank_bits == 0 ? column : NULL; /* those before ranks leave room to what has none */
		fixed += column->fixed_bits > 0;
		if (column->type->truncates)
			keys->may_tie = true;
		else if (keys->exact_columns == i)
			keys->exact_columns = i + 1;
	}
	if (last_string != NULL)
		bits = fill_last_word(last_string, bits);
	bits = lay_out_unknown(keys, bits);
	if (keys->encoded < keys->count)
		keys->may_tie = true;
	keys->exact_columns = Min(keys->exact_columns, keys->count - 1);
	keys->words = Max((bits + 63) / 64, 1);
	keys->one_fixed = keys->count == 1 && keys->columns[0].fixed_bits > 0;
	keys->all_fixed = fixed == keys->count;
	keys->one_numeric = keys->count == 1 && keys->columns[0].encoding == GPUSORT_ENCODE_NUMERIC &&
		keys->columns[0].prefix_length == GPUSORT_NUMERIC_DIGITS;
	gpusort_keys_set_common_prefixes(keys, prefixes);
}

/* Makes what finds the ranks of a column's strings; NULL: none are known. */
static struct GpuSortKnownTable *
create_table(GpuSortKeys *keys, const GpuSortColumn *column, const GpuSortKnownValues *known)
{
	struct GpuSortKnownTable *table;
	MemoryContext caller;

	if (column->rank_bits == 0 || known->count == 0)
		return NULL;
	if (keys->tables == NULL)
		keys->tables = AllocSetContextCreate(GetMemoryChunkContext(keys), "gpusort known values", ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(keys->tables);
	table = gpusort_known_table_create(column, known);
	MemoryContextSwitchTo(caller);
	return table;
}

/*
* Lets keys leave out these common prefixes of their strings,
 * and rank these known values; the layout has room for that.
 */
void
gpusort_keys_set_common_prefixes(GpuSortKeys *keys, const GpuSortPrefix *prefixes)
{
	GpuSortPrefix *prefix = keys->prefixes;

	if (keys->sized > 0 && prefixes != prefix)
		memcpy(prefix, prefixes, keys->sized * sizeof(GpuSortPrefix));
	if (keys->tables != NULL)
		MemoryContextReset(keys->tables);
	for (int i = 0; i < keys->encodable; i++)
	{
		GpuSortColumn *column = &keys->columns[i];

		if (!gpusort_column_is_sized(column))
			continue;
		Assert(column->type->string != GPUSORT_STRING_BITS || prefix->common_length == 0);
		column->common_length = prefix->common_length;
		column->common_prefix = prefix->common;
		column->known = create_table(keys, column, &prefix->known);
		prefix++;
	}
}

/*
 * Returns how many leading bits of a key are those of the first columns; of columns that are not in the key none are.
 */
uint32
gpusort_keys_range_bits(const GpuSortKeys *keys, int columns)
{
	uint32 bits = 0;

	for (int i = 0; i < Min(columns, keys->encoded); i++)
		bits += keys->columns[i].bits;
	return bits;
}
