/*-------------------------------------------------------------------------
 *
 * encode.c
 *	  Sort keys as fixed-width words that compare like the rows do.
 *
 * A key is a string of bits, the most significant first, laid out column by
 * column and padded to whole 64-bit words.  A column has one bit that says
 * whether the value is NULL, on the side that NULLS FIRST or LAST asks for, and
 * then the bits of its encoding (types.c), inverted for DESC:
 *
 *	  bool 1 · "char" 8 · int2 16 · int4, date, float4, oid 32 · macaddr, tid 48
 *	  int8, float8, time, timestamps, money, macaddr8, pg_lsn, xid8 64 · uuid 128
 *					  exact: signs and exponents turned so that unsigned
 *					  comparison orders them; -0 is 0, every NaN the same and
 *					  above Infinity, as PostgreSQL has it.  Where two sorts must have
 *					  the same keys, integers and floats can be those of a wider type
 *	  interval 74, timetz 96
 *					  exact: see inline_encoders.h
 *	  inet, cidr 137  exact: see network.c
 *	  strings		  where they differ from the column's common prefix, if it has
 *					  one: see below; then prefix_length bytes, zero-padded, from
 *					  there; then the length from there up to prefix_length + 1: a
 *					  shorter string sorts before one that goes on with zero bytes.
 *					  Bit strings, whose last byte is padded with zeros, have no
 *					  common prefix, and their length in bits.  Of strings under
 *					  collations that do not order by bytes, these are those that
 *					  icu_strings.c or libc.c make of them
 *	  numeric 90 to 258  see numeric.h
 *	  enum 32		  see enum.c
 *	  arrays, ranges, multiranges, composite types, jsonb, tsvector, tsquery
 *					  as strings, of the bytes that bytes/parts.h tells of
 *	  values that their operator class abbreviates
 *					  as strings, of the eight bytes of a word: see bytes/abbreviation.c
 *
 * Strings often begin alike, as URLs do.  What most of them begin
 * with is the column's common prefix, of c bytes, which is not in the key.
 * A string differs from it first at byte d, the first that is another
 * one or that either of them does not have.  Its difference, a number,
 * is d if it sorts before the common prefix, c if it begins with it (d = c),
 * and 2c - d if it sorts behind.  That is exact for any strings and any common prefix:
 *
 *	  - those of difference c sort between the others, by definition;
 *	  - of two that sort before the common prefix, with d < e: both have its first d
 *		bytes, and then the first has a smaller byte than it has, or none, and the
 *		second has the same; so the first is smaller.  Behind the common prefix it is
 *		the other way round, and so are the differences;
 *	  - those of one difference have their first d bytes in common and are told apart
 *		by what follows, which is in the key from there.
 *
 * So a common prefix that is too long, because the rows that it was taken from have
 * more in common than the others, costs some bits for the difference and nothing else:
 * strings that differ from it early are in the key from where they do.
 *
 * Of a column with few different values, most are known before rows are encoded: n of them, in
 * order.  Then a string has a rank in the key (GPUSORT_RANK_BITS): 2i + 1 if it is known value i, and 2i if it
 * sorts behind i of them and before the others, which comparing it with them tells (known_values.c).  So
 * rows with a known value are exact, whatever the collation, and later columns follow.  A row with another one
 * is truncated, and has as much of the string as there is room for in place of the later columns:
 * rows with an odd rank and rows with an even one differ in that, so the two do not meet.
 *
 * A value that the key does not hold whole truncates it, and the rest of the key stays
 * zero.  So rows with equal keys are either all exact and equal, or all truncated in
 * the same column and need a tie-break by the comparator; what later columns hold
 * cannot come between them.  Columns beyond GPUSORT_MAX_KEY_WORDS, and those from the
 * first that has no encoding, are left to the comparator in the same way.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/keys.h"

#include "keys/bit_writer.h"
#include "keys/encoders.h"
#include "keys/fixed/inline_encoders.h"
#include "keys/fixed/numbers.h"
#include "keys/fixed/numeric.h"
#include "keys/known_values.h"
#include "keys/bytes/string_keys.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#ifndef HAVE_INT128
#error "gpusort needs a compiler with 128-bit integers"
#endif

/* Adds the low nbits (1 to 192) bits, inverted for DESC. */
static pg_attribute_always_inline void
put_wide(GpuSortBitWriter *key, const GpuSortColumn *column, int nbits, const GpuSortBits *bits)
{
	uint64 flip = column->descending ? PG_UINT64_MAX : 0;

	if (nbits > 64)
	{
		if (nbits > 128)
		{
			gpusort_put_bits(key, nbits - 128, (bits->top ^ flip) & gpusort_low_mask(nbits - 128));
			nbits = 128;
		}
		gpusort_put_bits(key, nbits - 64, (bits->high ^ flip) & gpusort_low_mask(nbits - 64));
		nbits = 64;
	}
	gpusort_put_bits(key, nbits, (bits->low ^ flip) & gpusort_low_mask(nbits));
}

/*
 * Adds what an encoder makes of a value, in nbits bits; detoast is as in GpuSortKeyType.
 * Where the caller names the encoder it may be inlined.
 */
static pg_attribute_always_inline bool
put_encoded(const GpuSortKeys *keys, GpuSortBitWriter *key, const GpuSortColumn *column, Datum value,
			GpuSortEncoder encode, int nbits, bool detoast)
{
	struct varlena *fetched = NULL;
	GpuSortBits bits;
	bool exact;

	if (detoast && unlikely(!gpusort_is_plain((struct varlena *) DatumGetPointer(value))))
	{
		fetched = gpusort_fetch_whole(keys->scratch, (struct varlena *) DatumGetPointer(value));
		value = PointerGetDatum(fetched);
	}
	exact = encode(column->state, value, &bits);
	put_wide(key, column, nbits, &bits);
	if (unlikely(fetched != NULL))
		MemoryContextReset(keys->scratch);
	return exact;
}

/* Text and bytea: of a toasted value only the first bytes are fetched. */
static pg_attribute_always_inline bool
put_varlena(const GpuSortKeys *keys, GpuSortBitWriter *key, const GpuSortColumn *column, struct varlena *value)
{
	bool exact;

	if (likely(gpusort_is_plain(value)))
		return gpusort_put_string(key, column, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), true);
	value = gpusort_fetch_first(keys->scratch, value, gpusort_wanted_bytes(column));
	exact = gpusort_put_string(key, column, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), true);
	MemoryContextReset(keys->scratch);
	return exact;
}

/* Bit strings: likewise.  Their length stands before the bytes. */
static pg_attribute_always_inline bool
put_bit_string(const GpuSortKeys *keys, GpuSortBitWriter *key, const GpuSortColumn *column, struct varlena *value)
{
	struct varlena *first = value;
	int limit = 8 * column->prefix_length;
	const char *data;
	int32 bit_length;

	StaticAssertStmt(GPUSORT_BIT_HEADER_BYTES == sizeof(bit_length), "a bit string begins with its length");
	if (unlikely(!gpusort_is_plain(value)))
		first = gpusort_fetch_first(keys->scratch, value, gpusort_wanted_bytes(column) + GPUSORT_BIT_HEADER_BYTES);
	data = VARDATA_ANY(first);
	memcpy(&bit_length, data, sizeof(bit_length));
	gpusort_put_prefix(key, column, data + GPUSORT_BIT_HEADER_BYTES,
					   VARSIZE_ANY_EXHDR(first) - GPUSORT_BIT_HEADER_BYTES, Min(bit_length, limit + 1));
	if (unlikely(first != value))
		MemoryContextReset(keys->scratch);
	return bit_length <= limit;
}

/* bpchar: detoasted whole, as blanks at the end do not count. */
static pg_attribute_always_inline bool
put_bpchar(const GpuSortKeys *keys, GpuSortBitWriter *key, const GpuSortColumn *column, struct varlena *value)
{
	struct varlena *plain = gpusort_is_plain(value) ? value : gpusort_fetch_whole(keys->scratch, value);
	const char *data = VARDATA_ANY(plain);
	int length = bpchartruelen(unconstify(char *, data), VARSIZE_ANY_EXHDR(plain));
	bool exact = gpusort_put_string(key, column, data, length, true);

	if (unlikely(plain != value))
		MemoryContextReset(keys->scratch);
	return exact;
}

/* A numeric, of which more than GPUSORT_NUMERIC_DIGITS digits are in the key: see numeric.h. */
static pg_attribute_always_inline bool
put_numeric(const GpuSortKeys *keys, GpuSortBitWriter *key, const GpuSortColumn *column, struct varlena *value)
{
	struct varlena *plain = gpusort_is_plain(value) ? value : gpusort_fetch_whole(keys->scratch, value);
	GpuSortNumericDigits read = gpusort_numeric_read(plain);
	const bool finite = read.class == GPUSORT_NUMERIC_NEGATIVE || read.class == GPUSORT_NUMERIC_POSITIVE;
	const int digits = column->prefix_length;
	uint64 flip = column->descending ? PG_UINT64_MAX : 0;

	gpusort_put_bits(key, 3, (read.class ^ flip) & gpusort_low_mask(3));
	if (!finite)
		gpusort_put_zeros(key, GPUSORT_NUMERIC_BITS(digits) - 3);
	else
	{
		flip ^= read.class == GPUSORT_NUMERIC_NEGATIVE ? PG_UINT64_MAX : 0;
		gpusort_put_bits(key, 16, ((read.weight + 32768) ^ flip) & gpusort_low_mask(16));
		for (int i = 0; i < digits; i++)
		{
			uint64 digit = i < read.count ? gpusort_numeric_digit(&read, i) : 0;

			gpusort_put_bits(key, 14, (digit ^ flip) & gpusort_low_mask(14));
		}
		gpusort_put_bits(key, 1, ((read.count > digits) ^ flip) & 1);
	}
	if (unlikely(plain != value))
		MemoryContextReset(keys->scratch);
	return !finite || read.count <= digits;
}

static pg_attribute_always_inline bool
put_name(GpuSortBitWriter *key, const GpuSortColumn *column, const char *data)
{
	return gpusort_put_string(key, column, data, strnlen(data, NAMEDATALEN), true);
}

/* What is made of a value by an encoder of bytes. */
static pg_noinline bool
put_bytes(const GpuSortKeys *keys, GpuSortBitWriter *key, const GpuSortColumn *column, Datum value)
{
	char bytes[GPUSORT_COMMON_PREFIX_MAX + GPUSORT_PREFIX_MAX + 1 + GPUSORT_STRING_SLACK];
	bool whole;
	int length = gpusort_keys_string(keys, column, value, bytes, gpusort_wanted_bytes(column), &whole);

	return gpusort_put_string(key, column, bytes, length, whole);
}

/* The key of a single column of fixed width, which takes a tenth less of a row's way in than the loop below. */
static inline void
encode_one_fixed(const GpuSortKeys *keys, Datum value, bool isnull, uint64 *words)
{
	const GpuSortColumn *column = &keys->columns[0];
	uint64 not_null = column->nulls_first ? 1 : 0;
	uint64 bits;

	if (unlikely(isnull))
	{
		words[0] = (not_null ^ 1) << 63;
		if (column->fixed_bits == 64)
			words[1] = 0;
		return;
	}
	bits = gpusort_fixed_value(column->encoding, value) ^ column->flip;
	if (column->fixed_bits == 64)
	{
		words[0] = not_null << 63 | bits >> 1;
		words[1] = bits << 63;
	}
	else
		words[0] = not_null << 63 | bits << (63 - column->fixed_bits);
}

/* The key of columns of fixed width alone, each with its NULL bit in one go where a word has room for both. */
static pg_noinline void
encode_fixed_columns(const GpuSortKeys *keys, const Datum *values, const bool *nulls, uint64 *words)
{
	GpuSortBitWriter key = {.next = words, .room = 64};

	for (int i = 0; i < keys->count; i++)
	{
		const GpuSortColumn *column = &keys->columns[i];
		const int nbits = column->fixed_bits;
		const bool isnull = nulls[column->attno - 1];
		const uint64 null_bit = isnull != column->nulls_first;
		uint64 bits = 0;

		if (likely(!isnull))
			bits = gpusort_fixed_value(column->encoding, values[column->attno - 1]) ^ column->flip;
		if (nbits < 64)
			gpusort_put_bits(&key, 1 + nbits, null_bit << nbits | bits);
		else
		{
			gpusort_put_bits(&key, 1, null_bit);
			gpusort_put_bits(&key, 64, bits);
		}
	}
	gpusort_finish_key(&key, words + keys->words);
}

/* The key of a single numeric that is not toasted, of GPUSORT_NUMERIC_DIGITS digits. */
static pg_noinline bool
encode_one_numeric(const GpuSortKeys *keys, Datum value, uint64 *words)
{
	const GpuSortColumn *column = &keys->columns[0];
	const int high_bits = GPUSORT_NUMERIC_BITS(GPUSORT_NUMERIC_DIGITS) - 64;
	const uint64 flip = column->descending ? PG_UINT64_MAX : 0;
	GpuSortBits bits;
	bool exact = gpusort_numeric_encode(NULL, value, &bits);

	bits.high = (bits.high ^ flip) & gpusort_low_mask(high_bits);
	bits.low ^= flip;
	words[0] = (uint64) column->nulls_first << 63 | bits.high << (63 - high_bits) | bits.low >> (1 + high_bits);
	words[1] = bits.low << (63 - high_bits);
	return exact;
}

/* Does gpusort_keys_encode's work, but for what is shorter. */
static pg_noinline bool
encode_columns(const GpuSortKeys *keys, const Datum *values, const bool *nulls, uint64 *words)
{
	GpuSortBitWriter key = {.next = words, .room = 64};

	for (int i = 0; i < keys->encoded; i++)
	{
		const GpuSortColumn *column = &keys->columns[i];
		Datum value = values[column->attno - 1];
		bool isnull = nulls[column->attno - 1];
		bool exact = true;

		gpusort_put_bits(&key, 1, isnull != column->nulls_first);
		if (unlikely(isnull))
		{
			gpusort_put_zeros(&key, column->bits - 1);
			continue;
		}

		if (column->rank_bits > 0)
		{
			uint32 rank = column->known != NULL ? gpusort_known_rank(keys, column, value) : 0;

			gpusort_put_bits(&key, column->rank_bits, column->descending ? rank ^ gpusort_low_mask(column->rank_bits) : rank);
			if (rank & 1)
				continue;
		}

		/* Only what is worth it has a case: the rest goes by the table. */
		switch (column->encoding)
		{
			case GPUSORT_ENCODE_TEXT:
			case GPUSORT_ENCODE_BYTEA:
				exact = put_varlena(keys, &key, column, (struct varlena *) DatumGetPointer(value));
				break;
			case GPUSORT_ENCODE_BPCHAR:
				exact = put_bpchar(keys, &key, column, (struct varlena *) DatumGetPointer(value));
				break;
			case GPUSORT_ENCODE_NAME:
				exact = put_name(&key, column, NameStr(*DatumGetName(value)));
				break;
			case GPUSORT_ENCODE_BIT:
				exact = put_bit_string(keys, &key, column, (struct varlena *) DatumGetPointer(value));
				break;
			case GPUSORT_ENCODE_ICU_TEXT ... GPUSORT_ENCODE_ABBREVIATION:
				exact = put_bytes(keys, &key, column, value);
				break;
			case GPUSORT_ENCODE_NUMERIC:
				if (likely(column->prefix_length == GPUSORT_NUMERIC_DIGITS))
					exact = put_encoded(keys, &key, column, value, gpusort_numeric_encode,
										GPUSORT_NUMERIC_BITS(GPUSORT_NUMERIC_DIGITS), true);
				else
					exact = put_numeric(keys, &key, column, (struct varlena *) DatumGetPointer(value));
				break;
			case GPUSORT_ENCODE_UUID:
				(void) put_encoded(keys, &key, column, value, gpusort_uuid_encode, GPUSORT_UUID_BITS, false);
				break;
			case GPUSORT_ENCODE_INTERVAL:
				(void) put_encoded(keys, &key, column, value, gpusort_interval_encode, GPUSORT_INTERVAL_BITS, false);
				break;
			case GPUSORT_ENCODE_TIMETZ:
				(void) put_encoded(keys, &key, column, value, gpusort_timetz_encode, GPUSORT_TIMETZ_BITS, false);
				break;
			case GPUSORT_ENCODE_BOOL ... GPUSORT_ENCODE_TID:
				gpusort_put_bits(&key, column->fixed_bits, gpusort_fixed_value(column->encoding, value) ^ column->flip);
				break;
			default:
				exact = put_encoded(keys, &key, column, value, column->type->encode, column->type->bits,
									column->type->detoast);
				break;
		}
		if (!exact || column->rank_bits > 0)
		{
			gpusort_finish_key(&key, words + keys->words);
			return false;
		}
	}
	gpusort_finish_key(&key, words + keys->words);
	return keys->encoded == keys->count;
}

/*
 * Writes the key of a row to words (keys->words of them), of whose attributes the
 * values and nulls up to keys->last_attno are here.  Returns false if it is truncated:
 * an equal key does not mean an equal row.  Errors: those of detoasting, and of the encoders.
 */
bool
gpusort_keys_encode(const GpuSortKeys *keys, const Datum *values, const bool *nulls, uint64 *words)
{
	const int i = keys->last_attno - 1;

	if (keys->one_fixed)
	{
		encode_one_fixed(keys, values[i], nulls[i], words);
		return true;
	}
	if (keys->all_fixed)
	{
		encode_fixed_columns(keys, values, nulls, words);
		return true;
	}
	if (keys->one_numeric && !nulls[i] && gpusort_is_plain((struct varlena *) DatumGetPointer(values[i])))
		return encode_one_numeric(keys, values[i], words);
	return encode_columns(keys, values, nulls, words);
}
