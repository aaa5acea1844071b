/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  Sort keys as fixed-width words that compare like the rows do.
 *
 * A key is a string of bits, the most significant first, laid out column by
 * column and padded to whole 64-bit words.  A column has one bit that says
 * whether the value is NULL, on the side that NULLS FIRST or LAST asks for, and
 * then the bits of its encoding, inverted for DESC:
 *
 *	  bool 1 · "char" 8 · int2 16 · int4, date, float4, oid 32 · macaddr, tid 48
 *	  int8, float8, time, timestamps, money, macaddr8, pg_lsn, xid8 64 · uuid 128
 *					  exact: signs and exponents turned so that unsigned
 *					  comparison orders them; -0 is 0, every NaN the same and
 *					  above Infinity, as PostgreSQL has it
 *	  interval 74	  exact: the microseconds that its comparator counts, with
 *					  days of 24 hours and months of 30 days
 *	  timetz 96		  exact: the time in UTC, then the zone
 *	  inet, cidr 137  exact: see keys_network.c
 *	  strings		  their place beside the head of the column, if it has one:
 *					  see below; then depth bytes, zero-padded, from where they
 *					  part from the head; then the length from there up to
 *					  depth + 1: a shorter string sorts before one that goes on
 *					  with zero bytes.  Bit strings, whose last byte is padded
 *					  with zeros, have no head, and their length in bits.  Of
 *					  strings under ICU collations the bytes are those that
 *					  keys_icu.c makes of them
 *	  numeric 90	  see keys_numeric.c
 *	  enum 32		  see keys_enum.c
 *
 * Strings often begin alike, as URLs do.  What most of them begin with is the
 * column's head, of h bytes, which is not in the key.  A string parts from the
 * head at p, the first byte that differs or that either of them does not have.
 * Its place is p if it sorts before the head, h if it begins with it (p = h), and
 * 2h - p if it sorts behind.  That is exact for any strings and any head:
 *
 *	  - those of place h sort between the others, by definition;
 *	  - of two that sort before the head, with p < q: both have the head's first p
 *		bytes, and then the first has a smaller byte than the head's, or none, and
 *		the second has the head's; so the first is smaller.  Behind the head it is
 *		the other way round, and so are the places;
 *	  - those of one place have their first p bytes in common and are told apart
 *		by what follows, which is in the key from there.
 *
 * So a head that is too long, because the rows that it was taken from have more in
 * common than the others, costs some bits for the place and nothing else: strings
 * that part from it early are in the key from where they do.
 *
 * A value that its prefix does not hold whole makes the row inexact, and the
 * rest of the key stays zero.  So rows with equal keys are either all exact and
 * equal, or all inexact in the same column and need the comparator; what later
 * columns hold cannot come between them.  Columns beyond GPUSORT_MAX_KEY_WORDS,
 * and those from the first that has no encoding (keys_choice.c), are left to the
 * comparator in the same way.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/keys.h"

#include <math.h>

#include "access/detoast.h"
#include "access/htup_details.h"
#include "port/pg_bswap.h"
#include "storage/itemptr.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/varbit.h"

#ifndef HAVE_INT128
#error "gpusort needs a compiler with 128-bit integers"
#endif

#define BIT_HEADER_BYTES ((int) VARBITHDRSZ) /* the length of a bit string, before its bytes */

/*
 * A key being written, bit by bit, the most significant first.  It stays in
 * registers as long as every function that takes one is inlined.
 */
typedef struct BitWriter
{
	uint64 *next; /* where the word goes */
	uint64 word;  /* its bits so far, at the top; zeros below */
	int room;     /* bits left in it, 1 to 64 */
} BitWriter;

/* Adds nbits (1 to 64) bits; value has no others. */
static pg_attribute_always_inline void
put_bits(BitWriter *key, int nbits, uint64 value)
{
	if (nbits < key->room)
	{
		key->room -= nbits;
		key->word |= value << key->room;
	}
	else
	{
		int rest = nbits - key->room; /* 0 to 63 */

		*key->next++ = key->word | value >> rest;
		key->word = value << 1 << (63 - rest);
		key->room = 64 - rest;
	}
}

static pg_attribute_always_inline void
put_zeros(BitWriter *key, uint32 nbits)
{
	for (; nbits > 64; nbits -= 64)
		put_bits(key, 64, 0);
	put_bits(key, nbits, 0);
}

/* Fills the rest of a key with zeros, up to end. */
static pg_attribute_always_inline void
finish_key(BitWriter *key, uint64 *end)
{
	while (key->next < end)
	{
		*key->next++ = key->word;
		key->word = 0;
	}
}

/* The bits of a float, turned so that they order as PostgreSQL orders floats. */
static inline uint32
float4_bits(float4 value)
{
	uint32 bits;

	if (unlikely(isnan(value)))
		return PG_UINT32_MAX;
	value += 0.0f; /* -0 becomes 0 */
	memcpy(&bits, &value, sizeof(bits));
	return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

static inline uint64
float8_bits(float8 value)
{
	uint64 bits;

	if (unlikely(isnan(value)))
		return PG_UINT64_MAX;
	value += 0.0;
	memcpy(&bits, &value, sizeof(bits));
	return bits & UINT64CONST(0x8000000000000000) ? ~bits : bits | UINT64CONST(0x8000000000000000);
}

/* The first 8 of left bytes as a big-endian number, zero-padded behind the string's end. */
static inline uint64
load_bytes(const char *data, int left)
{
	uint64 value = 0;

	if (likely(left >= 8))
	{
		memcpy(&value, data, 8);
		return pg_ntoh64(value);
	}
	if (left >= 4)
	{
		uint32 head;
		uint32 tail;

		memcpy(&head, data, 4);
		memcpy(&tail, data + left - 4, 4);
		return (uint64) pg_ntoh32(head) << 32 | (uint64) pg_ntoh32(tail) << (64 - 8 * left);
	}
	for (int i = 0; i < left; i++)
		value |= (uint64) (unsigned char) data[i] << (56 - 8 * i);
	return value;
}

/* The fixed_bits bits of a value, as they are for ASC. */
static inline uint64
fixed_value(GpuSortEncoding encoding, Datum value)
{
	switch (encoding)
	{
		case GPUSORT_ENCODE_BOOL:
			return DatumGetBool(value);
		case GPUSORT_ENCODE_CHAR:
			return (uint8) DatumGetChar(value);
		case GPUSORT_ENCODE_INT2:
			return (uint16) DatumGetInt16(value) ^ 0x8000;
		case GPUSORT_ENCODE_INT4:
			return (uint32) DatumGetInt32(value) ^ 0x80000000;
		case GPUSORT_ENCODE_INT8:
			return (uint64) DatumGetInt64(value) ^ UINT64CONST(0x8000000000000000);
		case GPUSORT_ENCODE_UINT8:
			return (uint64) DatumGetInt64(value);
		case GPUSORT_ENCODE_OID:
			return DatumGetObjectId(value);
		case GPUSORT_ENCODE_FLOAT4:
			return float4_bits(DatumGetFloat4(value));
		case GPUSORT_ENCODE_FLOAT8:
			return float8_bits(DatumGetFloat8(value));
		case GPUSORT_ENCODE_MACADDR:
			return load_bytes((const char *) DatumGetMacaddrP(value), sizeof(macaddr)) >> 16;
		case GPUSORT_ENCODE_MACADDR8:
			return load_bytes((const char *) DatumGetMacaddr8P(value), sizeof(macaddr8));
		case GPUSORT_ENCODE_TID:
			{
				const ItemPointerData *tid = (const ItemPointerData *) DatumGetPointer(value);

				return (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 | ItemPointerGetOffsetNumberNoCheck(tid);
			}
		default:
			pg_unreachable();
	}
}

/* Adds the low nbits (65 to 128) bits of two words, inverted for DESC; there are no others. */
static pg_attribute_always_inline void
put_wide(BitWriter *key, const GpuSortColumn *column, int nbits, uint64 high, uint64 low)
{
	uint64 flip = column->descending ? PG_UINT64_MAX : 0;

	put_bits(key, nbits - 64, (high ^ flip) & gpusort_low_mask(nbits - 64));
	put_bits(key, 64, low ^ flip);
}

/* Do the first count bytes agree? */
static inline bool
same_bytes(const char *a, const char *b, int count)
{
	uint64 left;
	uint64 right;
	int i = 0;

	if (count < 8)
		return memcmp(a, b, count) == 0;
	for (; i < count - 8; i += 8)
	{
		memcpy(&left, a + i, 8);
		memcpy(&right, b + i, 8);
		if (left != right)
			return false;
	}
	memcpy(&left, a + count - 8, 8);
	memcpy(&right, b + count - 8, 8);
	return left == right;
}

/* The place of a string that does not begin with the column's head, and where it parts from it. */
static pg_noinline int
find_place(const GpuSortColumn *column, const char *data, int length, int *parts_at)
{
	int common = Min(length, column->head_length);
	int at = 0;

	while (at < common && data[at] == column->head[at])
		at++;
	*parts_at = at;
	if (at < length && (unsigned char) data[at] > (unsigned char) column->head[at])
		return 2 * column->head_length - at;
	return at;
}

/* Adds the first bytes of a string, as many as the column's depth, and then size: see the file's header. */
static pg_attribute_always_inline void
put_prefix(BitWriter *key, const GpuSortColumn *column, const char *data, int length, uint64 size)
{
	uint64 flip = column->descending ? PG_UINT64_MAX : 0;
	int tail_bytes = column->depth % 8;
	int tail_bits = 8 * tail_bytes + column->size_bits;
	uint64 tail = 0;

	for (int i = column->depth / 8; i > 0; i--)
	{
		put_bits(key, 64, load_bytes(data, length) ^ flip);
		data += 8;
		length -= 8;
	}
	if (tail_bytes > 0)
		tail = load_bytes(data, length) >> (64 - 8 * tail_bytes);
	tail = tail << column->size_bits | size;
	put_bits(key, tail_bits, (tail ^ flip) & gpusort_low_mask(tail_bits));
}

/*
 * Adds a string, of which data has length bytes: all if it is whole, else as many
 * as head and depth need and one more, or those that come before zeros only.
 * Returns false when the key does not hold it whole.
 */
static pg_attribute_always_inline bool
put_string(BitWriter *key, const GpuSortColumn *column, const char *data, int length, bool whole)
{
	int depth = column->depth;

	if (column->place_bits > 0)
	{
		int place = column->head_length;
		int parts_at = place;

		if (unlikely(length < place || !same_bytes(data, column->head, place)))
			place = find_place(column, data, length, &parts_at);
		put_bits(key, column->place_bits, column->descending ? place ^ gpusort_low_mask(column->place_bits) : place);
		data += parts_at;
		length -= parts_at;
	}
	put_prefix(key, column, data, length, whole ? Min(length, depth + 1) : depth + 1);
	return whole && length <= depth;
}

/* Is this datum neither compressed nor kept elsewhere? */
static inline bool
is_plain(const struct varlena *value)
{
	return VARATT_IS_4B_U(value) || (VARATT_IS_1B(value) && !VARATT_IS_1B_E(value));
}

/* The first bytes of a toasted value, wanted of them if it has so many, in keys->scratch. */
static pg_noinline struct varlena *
fetch_first(const GpuSortKeys *keys, struct varlena *value, int wanted)
{
	MemoryContext caller = MemoryContextSwitchTo(keys->scratch);
	int length = toast_raw_datum_size(PointerGetDatum(value)) - VARHDRSZ;
	struct varlena *first = detoast_attr_slice(value, 0, Min(length, wanted));

	MemoryContextSwitchTo(caller);
	return first;
}

/* A toasted value, whole, in keys->scratch. */
static pg_noinline struct varlena *
fetch_whole(const GpuSortKeys *keys, struct varlena *value)
{
	MemoryContext caller = MemoryContextSwitchTo(keys->scratch);
	struct varlena *plain = detoast_attr(value);

	MemoryContextSwitchTo(caller);
	return plain;
}

/* What of a string is enough for its key: when there are as many bytes, others do not matter. */
static inline int
wanted_bytes(const GpuSortColumn *column)
{
	return column->head_length + column->depth + 1;
}

/* Text and bytea: of a toasted value only the first bytes are fetched. */
static pg_attribute_always_inline bool
put_varlena(const GpuSortKeys *keys, BitWriter *key, const GpuSortColumn *column, struct varlena *value)
{
	bool exact;

	if (likely(is_plain(value)))
		return put_string(key, column, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), true);
	value = fetch_first(keys, value, wanted_bytes(column));
	exact = put_string(key, column, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), true);
	MemoryContextReset(keys->scratch);
	return exact;
}

/* Bit strings: likewise.  Their length stands before the bytes. */
static pg_attribute_always_inline bool
put_bit_string(const GpuSortKeys *keys, BitWriter *key, const GpuSortColumn *column, struct varlena *value)
{
	struct varlena *first = is_plain(value) ? value : fetch_first(keys, value, wanted_bytes(column) + BIT_HEADER_BYTES);
	int limit = 8 * column->depth;
	int32 bit_length;

	StaticAssertStmt(BIT_HEADER_BYTES == sizeof(bit_length), "a bit string begins with its length");
	memcpy(&bit_length, VARDATA_ANY(first), sizeof(bit_length));
	put_prefix(key, column, VARDATA_ANY(first) + BIT_HEADER_BYTES, VARSIZE_ANY_EXHDR(first) - BIT_HEADER_BYTES,
			   Min(bit_length, limit + 1));
	if (unlikely(first != value))
		MemoryContextReset(keys->scratch);
	return bit_length <= limit;
}

/*
 * The first bytes of a string under an ICU collation, as gpusort_icu_bytes has
 * them.  How much of it its sort key needs is not known, so it is fetched whole.
 */
static pg_noinline int
icu_bytes(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value, char *bytes, int room, bool *whole)
{
	struct varlena *stored = NULL;
	struct varlena *plain = NULL;
	const char *data;
	int length;

	if (column->encoding == GPUSORT_ENCODE_ICU_NAME)
	{
		data = NameStr(*DatumGetName(value));
		length = strnlen(data, NAMEDATALEN);
	}
	else
	{
		stored = (struct varlena *) DatumGetPointer(value);
		plain = is_plain(stored) ? stored : fetch_whole(keys, stored);
		data = VARDATA_ANY(plain);
		length = VARSIZE_ANY_EXHDR(plain);
		if (column->encoding == GPUSORT_ENCODE_ICU_BPCHAR)
			length = bpchartruelen(unconstify(char *, data), length);
	}
	length = gpusort_icu_bytes(column->icu, data, length, bytes, room, whole);
	if (plain != stored)
		MemoryContextReset(keys->scratch);
	return length;
}

static pg_noinline bool
put_icu(const GpuSortKeys *keys, BitWriter *key, const GpuSortColumn *column, Datum value)
{
	char bytes[GPUSORT_HEAD_MAX + GPUSORT_DEPTH_MAX + 1 + GPUSORT_ICU_SLACK];
	bool whole;
	int length = icu_bytes(keys, column, value, bytes, wanted_bytes(column), &whole);

	return put_string(key, column, bytes, length, whole);
}

/*
 * The first room bytes of a string of this column, of what its key is made of, at
 * bytes, which has room for GPUSORT_STRING_SLACK more.  Returns how many there are.
 */
int
gpusort_keys_string(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value, char *bytes, int room)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(value);
	struct varlena *plain;
	const char *data;
	int length;
	bool whole;

	switch (column->encoding)
	{
		case GPUSORT_ENCODE_NAME:
			data = NameStr(*DatumGetName(value));
			length = strnlen(data, NAMEDATALEN);
			memcpy(bytes, data, Min(length, room));
			return Min(length, room);
		case GPUSORT_ENCODE_ICU_TEXT:
		case GPUSORT_ENCODE_ICU_BPCHAR:
		case GPUSORT_ENCODE_ICU_NAME:
			return icu_bytes(keys, column, value, bytes, room, &whole);
		case GPUSORT_ENCODE_BPCHAR:
			plain = is_plain(stored) ? stored : fetch_whole(keys, stored);
			data = VARDATA_ANY(plain);
			length = bpchartruelen(unconstify(char *, data), VARSIZE_ANY_EXHDR(plain));
			break;
		default:
			plain = is_plain(stored) ? stored : fetch_first(keys, stored, room + BIT_HEADER_BYTES);
			data = VARDATA_ANY(plain);
			length = VARSIZE_ANY_EXHDR(plain);
			if (column->encoding == GPUSORT_ENCODE_BIT)
			{
				data += BIT_HEADER_BYTES;
				length -= BIT_HEADER_BYTES;
			}
			break;
	}
	length = Min(length, room);
	memcpy(bytes, data, length);
	if (plain != stored)
		MemoryContextReset(keys->scratch);
	return length;
}

/* Types that must be detoasted whole: blanks at the end of bpchar do not count. */
static pg_attribute_always_inline bool
put_detoasted(const GpuSortKeys *keys, BitWriter *key, const GpuSortColumn *column, struct varlena *value)
{
	struct varlena *plain = is_plain(value) ? value : fetch_whole(keys, value);
	bool exact = true;
	uint64 first;
	uint64 high;
	uint64 low;

	if (column->encoding == GPUSORT_ENCODE_BPCHAR)
		exact = put_string(key, column, VARDATA_ANY(plain),
						   bpchartruelen(VARDATA_ANY(plain), VARSIZE_ANY_EXHDR(plain)), true);
	else if (column->encoding == GPUSORT_ENCODE_INET)
	{
		const int first_bits = GPUSORT_INET_BITS - 128;

		first = gpusort_inet_encode(PointerGetDatum(plain), &high, &low);
		put_bits(key, first_bits, column->descending ? first ^ gpusort_low_mask(first_bits) : first);
		put_wide(key, column, 128, high, low);
	}
	else
	{
		exact = gpusort_numeric_encode(PointerGetDatum(plain), &high, &low);
		put_wide(key, column, GPUSORT_NUMERIC_BITS, high, low);
	}
	if (plain != value)
		MemoryContextReset(keys->scratch);
	return exact;
}

/* As interval_cmp_value has it, made unsigned. */
static pg_attribute_always_inline void
put_interval(BitWriter *key, const GpuSortColumn *column, const Interval *value)
{
	int64 days = value->month * INT64CONST(30) + value->day;
	uint128 bits = (uint128) ((int128) days * USECS_PER_DAY + value->time) + ((uint128) 1 << (GPUSORT_INTERVAL_BITS - 1));

	put_wide(key, column, GPUSORT_INTERVAL_BITS, (uint64) (bits >> 64), (uint64) bits);
}

/* As timetz_cmp_internal has it; a zone can be of any size. */
static pg_attribute_always_inline void
put_timetz(BitWriter *key, const GpuSortColumn *column, const TimeTzADT *value)
{
	uint64 utc = (uint64) (value->time + value->zone * USECS_PER_SEC) ^ UINT64CONST(0x8000000000000000);
	uint32 zone = (uint32) value->zone ^ 0x80000000;

	put_wide(key, column, GPUSORT_TIMETZ_BITS, utc >> 32, utc << 32 | zone);
}

/* The key of a single column of fixed width. */
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
	bits = fixed_value(column->encoding, value) ^ column->flip;
	if (column->fixed_bits == 64)
	{
		words[0] = not_null << 63 | bits >> 1;
		words[1] = bits << 63;
	}
	else
		words[0] = not_null << 63 | bits << (63 - column->fixed_bits);
}

/*
 * Writes the key of the row in slot to words (keys->words of them).  Returns
 * false when the row is inexact: an equal key does not mean an equal row.
 * Errors: those of detoasting.
 */
bool
gpusort_keys_encode(const GpuSortKeys *keys, TupleTableSlot *slot, uint64 *words)
{
	BitWriter key = {.next = words, .room = 64};

	slot_getsomeattrs(slot, keys->last_attno);
	if (keys->one_fixed)
	{
		int i = keys->last_attno - 1;

		encode_one_fixed(keys, slot->tts_values[i], slot->tts_isnull[i], words);
		return true;
	}

	for (int i = 0; i < keys->encoded; i++)
	{
		const GpuSortColumn *column = &keys->columns[i];
		Datum value = slot->tts_values[column->attno - 1];
		bool isnull = slot->tts_isnull[column->attno - 1];
		bool exact = true;

		put_bits(&key, 1, isnull != column->nulls_first);
		if (unlikely(isnull))
		{
			put_zeros(&key, column->bits - 1);
			continue;
		}
		switch (column->encoding)
		{
			case GPUSORT_ENCODE_UUID:
				{
					const char *data = (const char *) DatumGetUUIDP(value)->data;

					put_wide(&key, column, 128, load_bytes(data, 8), load_bytes(data + 8, 8));
					break;
				}
			case GPUSORT_ENCODE_TEXT:
			case GPUSORT_ENCODE_BYTEA:
				exact = put_varlena(keys, &key, column, (struct varlena *) DatumGetPointer(value));
				break;
			case GPUSORT_ENCODE_BIT:
				exact = put_bit_string(keys, &key, column, (struct varlena *) DatumGetPointer(value));
				break;
			case GPUSORT_ENCODE_INTERVAL:
				put_interval(&key, column, DatumGetIntervalP(value));
				break;
			case GPUSORT_ENCODE_TIMETZ:
				put_timetz(&key, column, DatumGetTimeTzADTP(value));
				break;
			case GPUSORT_ENCODE_ENUM:
				{
					uint32 position;

					exact = gpusort_enum_encode(column->enum_values, DatumGetObjectId(value), &position);
					put_bits(&key, GPUSORT_ENUM_BITS, column->descending ? ~position : position);
					break;
				}
			case GPUSORT_ENCODE_BPCHAR:
			case GPUSORT_ENCODE_NUMERIC:
			case GPUSORT_ENCODE_INET:
				exact = put_detoasted(keys, &key, column, (struct varlena *) DatumGetPointer(value));
				break;
			case GPUSORT_ENCODE_ICU_TEXT:
			case GPUSORT_ENCODE_ICU_BPCHAR:
			case GPUSORT_ENCODE_ICU_NAME:
				exact = put_icu(keys, &key, column, value);
				break;
			case GPUSORT_ENCODE_NAME:
				exact = put_string(&key, column, NameStr(*DatumGetName(value)),
								   strnlen(NameStr(*DatumGetName(value)), NAMEDATALEN), true);
				break;
			default:
				put_bits(&key, column->fixed_bits, fixed_value(column->encoding, value) ^ column->flip);
				break;
		}
		if (!exact)
		{
			finish_key(&key, words + keys->words);
			return false;
		}
	}
	finish_key(&key, words + keys->words);
	return keys->encoded == keys->count;
}
