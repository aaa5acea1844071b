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
 *	  strings		  prefix_bytes bytes, zero-padded, then the length up to
 *					  prefix_bytes + 1: a shorter string sorts before one that
 *					  goes on with zero bytes.  Bit strings, whose last byte is
 *					  padded with zeros, have their length in bits there.  Of
 *					  strings under ICU collations these are the bytes that
 *					  keys_icu.c makes of them
 *	  numeric 90	  see keys_numeric.c
 *	  enum 32		  see keys_enum.c
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
#include "keys.h"

#include <math.h>

#include "access/detoast.h"
#include "access/htup_details.h"
#include "port/pg_bswap.h"
#include "service/protocol.h"
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

#define TIMETZ_BITS			96
#define ENUM_BITS			32
#define BIT_HEADER_BYTES	((int) VARBITHDRSZ)	/* the length of a bit string, before its bytes */

/*
 * The widest intervals, of INT32_MAX months and days and INT64_MAX microseconds,
 * count less than 2^73 microseconds, with either sign.
 */
#define INTERVAL_BITS		74

/* Bits of the length behind a string's prefix, counted in bytes. */
static inline int
length_bits(int prefix_bytes)
{
	return prefix_bytes == GPUSORT_PREFIX_SHORT ? 4 : 5;
}

/* The same of a bit string, counted in bits. */
static inline int
bit_length_bits(int prefix_bytes)
{
	return length_bits(prefix_bytes) + 3;
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
			return 1 + INTERVAL_BITS;
		case GPUSORT_ENCODE_TIMETZ:
			return 1 + TIMETZ_BITS;
		case GPUSORT_ENCODE_INET:
			return 1 + GPUSORT_INET_BITS;
		case GPUSORT_ENCODE_ENUM:
			return 1 + ENUM_BITS;
		case GPUSORT_ENCODE_NUMERIC:
			return 1 + GPUSORT_NUMERIC_BITS;
		case GPUSORT_ENCODE_BIT:
			return 1 + 8 * column->prefix_bytes + bit_length_bits(column->prefix_bytes);
		default:
			Assert(gpusort_key_encoding_is_string(column->encoding));
			return 1 + 8 * column->prefix_bytes + length_bits(column->prefix_bytes);
	}
}

static inline uint64
low_mask(int nbits)
{
	return ~UINT64CONST(0) >> (64 - nbits);
}

/*
 * Lays out the key of these columns, up to the first that has no encoding: the
 * planner sees to it that there is one before that.  The result and what it
 * points to belong to the current memory context; columns belongs to the caller
 * and must live as long.
 */
GpuSortKeys *
gpusort_keys_create(GpuSortColumn *columns, int count)
{
	GpuSortKeys *keys = palloc0(sizeof(GpuSortKeys));
	uint32		bits = 0;

	StaticAssertStmt((1 << 4) > GPUSORT_PREFIX_SHORT + 1, "length of a short prefix needs more bits");
	StaticAssertStmt((1 << 5) > GPUSORT_PREFIX_LONG + 1, "length of a long prefix needs more bits");
	StaticAssertStmt((1 << 7) > 8 * GPUSORT_PREFIX_SHORT + 1, "length of a short bit prefix needs more bits");
	StaticAssertStmt((1 << 8) > 8 * GPUSORT_PREFIX_LONG + 1, "length of a long bit prefix needs more bits");

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
		column->fixed_bits = fixed_bits(column->encoding);
		column->flip = column->descending && column->fixed_bits > 0 ? low_mask(column->fixed_bits) : 0;
		column->bits = column_bits(column);
		if (bits + column->bits > GPUSORT_MAX_KEY_WORDS * 64)
			break;
		bits += column->bits;
		keys->encoded = i + 1;
		keys->last_attno = Max(keys->last_attno, column->attno);
		if (column->encoding == GPUSORT_ENCODE_ENUM)
			column->enum_values = gpusort_enum_create();
		if (gpusort_key_encoding_is_icu(column->encoding))
			column->icu = gpusort_icu_create(column->collation);
		if (column->prefix_bytes > 0 || column->encoding == GPUSORT_ENCODE_NUMERIC ||
			column->encoding == GPUSORT_ENCODE_ENUM)
			keys->may_tie = true;
		else if (keys->decided == i)
			keys->decided = i + 1;
	}
	if (keys->encoded < count)
		keys->may_tie = true;
	keys->decided = Min(keys->decided, count - 1);
	keys->words = Max((bits + 63) / 64, 1);
	keys->one_fixed = count == 1 && columns[0].fixed_bits > 0;
	return keys;
}

/*
 * A key being written, bit by bit, the most significant first.  It stays in
 * registers as long as every function that takes one is inlined.
 */
typedef struct BitWriter
{
	uint64	   *next;			/* where the word goes */
	uint64		word;			/* its bits so far, at the top; zeros below */
	int			room;			/* bits left in it, 1 to 64 */
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
		int			rest = nbits - key->room;	/* 0 to 63 */

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
	uint32		bits;

	if (unlikely(isnan(value)))
		return PG_UINT32_MAX;
	value += 0.0f;				/* -0 becomes 0 */
	memcpy(&bits, &value, sizeof(bits));
	return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

static inline uint64
float8_bits(float8 value)
{
	uint64		bits;

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
	uint64		value = 0;

	if (likely(left >= 8))
	{
		memcpy(&value, data, 8);
		return pg_ntoh64(value);
	}
	if (left >= 4)
	{
		uint32		head;
		uint32		tail;

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
	uint64		flip = column->descending ? PG_UINT64_MAX : 0;

	put_bits(key, nbits - 64, (high ^ flip) & low_mask(nbits - 64));
	put_bits(key, 64, low ^ flip);
}

/*
 * Adds the prefix of a string of bytes, and then size, of size_bits: what decides
 * between strings of which one is the other's beginning.
 */
static pg_attribute_always_inline void
put_prefix(BitWriter *key, const GpuSortColumn *column, const char *data, int length, uint64 size, int size_bits)
{
	const int	tail_bytes = GPUSORT_PREFIX_SHORT % 8;
	int			prefix = column->prefix_bytes;
	uint64		flip = column->descending ? PG_UINT64_MAX : 0;
	int			done = 8;
	int			tail_bits;
	uint64		tail;

	StaticAssertStmt(GPUSORT_PREFIX_SHORT % 8 == GPUSORT_PREFIX_LONG % 8, "prefixes have the same tail");
	put_bits(key, 64, load_bytes(data, length) ^ flip);
	if (prefix == GPUSORT_PREFIX_LONG)
	{
		put_bits(key, 64, load_bytes(data + 8, length - 8) ^ flip);
		done = 16;
	}
	tail = load_bytes(data + done, length - done) >> (64 - 8 * tail_bytes) << size_bits | size;
	tail_bits = 8 * tail_bytes + size_bits;
	put_bits(key, tail_bits, (tail ^ flip) & low_mask(tail_bits));
}

/* Returns false when the string does not fit its prefix. */
static pg_attribute_always_inline bool
put_string(BitWriter *key, const GpuSortColumn *column, const char *data, int length)
{
	int			prefix = column->prefix_bytes;

	put_prefix(key, column, data, length, Min(length, prefix + 1), length_bits(prefix));
	return length <= prefix;
}

/* Is this datum neither compressed nor kept elsewhere? */
static inline bool
is_plain(const struct varlena *value)
{
	return VARATT_IS_4B_U(value) || (VARATT_IS_1B(value) && !VARATT_IS_1B_E(value));
}

/* The head of a toasted value, as far as its prefix goes, in keys->scratch; *length is what the whole has. */
static pg_noinline struct varlena *
fetch_head(const GpuSortKeys *keys, const GpuSortColumn *column, struct varlena *value, int *length)
{
	MemoryContext caller = MemoryContextSwitchTo(keys->scratch);
	struct varlena *head;

	*length = toast_raw_datum_size(PointerGetDatum(value)) - VARHDRSZ;
	head = detoast_attr_slice(value, 0, Min(*length, column->prefix_bytes + 8));
	*length = Min(*length, (int) VARSIZE_ANY_EXHDR(head));
	MemoryContextSwitchTo(caller);
	return head;
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

/* Text and bytea: of a toasted value only the head is fetched. */
static pg_attribute_always_inline bool
put_varlena(const GpuSortKeys *keys, BitWriter *key, const GpuSortColumn *column, struct varlena *value)
{
	struct varlena *head = value;
	int			length;
	bool		exact;

	if (likely(is_plain(value)))
		length = VARSIZE_ANY_EXHDR(value);
	else
		head = fetch_head(keys, column, value, &length);
	exact = put_string(key, column, VARDATA_ANY(head), length);
	if (unlikely(head != value))
		MemoryContextReset(keys->scratch);
	return exact;
}

/* Bit strings: likewise.  Their length stands before the bytes. */
static pg_attribute_always_inline bool
put_bit_string(const GpuSortKeys *keys, BitWriter *key, const GpuSortColumn *column, struct varlena *value)
{
	struct varlena *head = value;
	int			bytes;
	int32		bit_length;
	int			limit = 8 * column->prefix_bytes;

	StaticAssertStmt(BIT_HEADER_BYTES == sizeof(bit_length), "a bit string begins with its length");
	if (likely(is_plain(value)))
		bytes = VARSIZE_ANY_EXHDR(value);
	else
		head = fetch_head(keys, column, value, &bytes);
	memcpy(&bit_length, VARDATA_ANY(head), sizeof(bit_length));
	put_prefix(key, column, VARDATA_ANY(head) + BIT_HEADER_BYTES, bytes - BIT_HEADER_BYTES,
			   Min(bit_length, limit + 1), bit_length_bits(column->prefix_bytes));
	if (unlikely(head != value))
		MemoryContextReset(keys->scratch);
	return bit_length <= limit;
}

/* Strings under ICU collations: how much of one its sort key needs is not known, so it is fetched whole. */
static pg_noinline bool
put_icu(const GpuSortKeys *keys, BitWriter *key, const GpuSortColumn *column, Datum value)
{
	int			prefix = column->prefix_bytes;
	char		bytes[GPUSORT_PREFIX_LONG + GPUSORT_ICU_SLACK + 1];
	struct varlena *stored = NULL;
	struct varlena *plain = NULL;
	const char *data;
	int			length;
	bool		whole;

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
	length = gpusort_icu_bytes(column->icu, data, length, bytes, prefix, &whole);
	if (!whole)
	{
		memset(bytes + length, 0, prefix + 1 - length);
		length = prefix + 1;
	}
	if (plain != stored)
		MemoryContextReset(keys->scratch);
	return put_string(key, column, bytes, length);
}

/* Types that must be detoasted whole: blanks at the end of bpchar do not count. */
static pg_attribute_always_inline bool
put_detoasted(const GpuSortKeys *keys, BitWriter *key, const GpuSortColumn *column, struct varlena *value)
{
	struct varlena *plain = is_plain(value) ? value : fetch_whole(keys, value);
	bool		exact = true;
	uint64		first;
	uint64		high;
	uint64		low;

	if (column->encoding == GPUSORT_ENCODE_BPCHAR)
		exact = put_string(key, column, VARDATA_ANY(plain),
						   bpchartruelen(VARDATA_ANY(plain), VARSIZE_ANY_EXHDR(plain)));
	else if (column->encoding == GPUSORT_ENCODE_INET)
	{
		const int	first_bits = GPUSORT_INET_BITS - 128;

		first = gpusort_inet_encode(PointerGetDatum(plain), &high, &low);
		put_bits(key, first_bits, column->descending ? first ^ low_mask(first_bits) : first);
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
	int64		days = value->month * INT64CONST(30) + value->day;
	uint128		bits = (uint128) ((int128) days * USECS_PER_DAY + value->time) + ((uint128) 1 << (INTERVAL_BITS - 1));

	put_wide(key, column, INTERVAL_BITS, (uint64) (bits >> 64), (uint64) bits);
}

/* As timetz_cmp_internal has it; a zone can be of any size. */
static pg_attribute_always_inline void
put_timetz(BitWriter *key, const GpuSortColumn *column, const TimeTzADT *value)
{
	uint64		utc = (uint64) (value->time + value->zone * USECS_PER_SEC) ^ UINT64CONST(0x8000000000000000);
	uint32		zone = (uint32) value->zone ^ 0x80000000;

	put_wide(key, column, TIMETZ_BITS, utc >> 32, utc << 32 | zone);
}

/* The key of a single column of fixed width. */
static inline void
encode_one_fixed(const GpuSortKeys *keys, Datum value, bool isnull, uint64 *words)
{
	const GpuSortColumn *column = &keys->columns[0];
	uint64		not_null = column->nulls_first ? 1 : 0;
	uint64		bits;

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
	BitWriter	key = {.next = words, .room = 64};

	slot_getsomeattrs(slot, keys->last_attno);
	if (keys->one_fixed)
	{
		int			i = keys->last_attno - 1;

		encode_one_fixed(keys, slot->tts_values[i], slot->tts_isnull[i], words);
		return true;
	}

	for (int i = 0; i < keys->encoded; i++)
	{
		const GpuSortColumn *column = &keys->columns[i];
		Datum		value = slot->tts_values[column->attno - 1];
		bool		isnull = slot->tts_isnull[column->attno - 1];
		bool		exact = true;

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
					uint32		position;

					exact = gpusort_enum_encode(column->enum_values, DatumGetObjectId(value), &position);
					put_bits(&key, ENUM_BITS, column->descending ? ~position : position);
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
								   strnlen(NameStr(*DatumGetName(value)), NAMEDATALEN));
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
