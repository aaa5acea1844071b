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
 *	  bool 1 · int2 16 · int4, date, float4, oid 32 · int8, float8, timestamps
 *	  64 · uuid 128	  exact: signs and exponents turned so that unsigned
 *					  comparison orders them; -0 is 0, every NaN the same and
 *					  above Infinity, as PostgreSQL has it
 *	  strings		  prefix_bytes bytes, zero-padded, then the length up to
 *					  prefix_bytes + 1: a shorter string sorts before one that
 *					  goes on with zero bytes
 *	  numeric		  see keys_numeric.c
 *
 * A value that its prefix does not hold whole makes the row inexact, and the
 * rest of the key stays zero.  So rows with equal keys are either all exact and
 * equal, or all inexact in the same column and need the comparator; what later
 * columns hold cannot come between them.  Columns beyond GPUSORT_MAX_KEY_WORDS
 * are left to the comparator in the same way.
 *
 * What decides on an encoding is the operator family and input type of the sort
 * operator, never the name of a type: domains and user-defined operators come
 * out right.
 *
 *-------------------------------------------------------------------------
 */
#include "keys.h"

#include <gnu/libc-version.h>
#include <math.h>

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "catalog/pg_opfamily_d.h"
#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "service/protocol.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/uuid.h"

/* Families of PostgreSQL's own that its headers give no name. */
#define DATETIME_BTREE_FAM	434
#define FLOAT_BTREE_FAM		1970
#define NUMERIC_BTREE_FAM	1988
#define UUID_BTREE_FAM		2968

/*
 * Does this libc locale compare strings by their bytes?  glibc's C.UTF-8 does so
 * since 2.35; distributions' own ones before that are not to be relied on.
 */
static bool
libc_locale_is_bytewise(const char *name)
{
	int			major = 0;
	int			minor = 0;

	if (strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0)
		return true;
	if (pg_strcasecmp(name, "C.UTF-8") != 0 && pg_strcasecmp(name, "C.UTF8") != 0)
		return false;
	if (GetDatabaseEncoding() != PG_UTF8)
		return false;
	sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor);
	return major > 2 || (major == 2 && minor >= 35);
}

/* The default collation's answer is the database's. */
static bool
default_collation_is_bytewise(void)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
	bool		bytewise = false;
	bool		isnull;
	Datum		locale;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	if (((Form_pg_database) GETSTRUCT(tuple))->datlocprovider == COLLPROVIDER_LIBC)
	{
		locale = SysCacheGetAttr(DATABASEOID, tuple, Anum_pg_database_datcollate, &isnull);
		bytewise = !isnull && libc_locale_is_bytewise(TextDatumGetCString(locale));
	}
	ReleaseSysCache(tuple);
	return bytewise;
}

/* Does this collation order strings by their bytes? */
static bool
collation_is_bytewise(Oid collation)
{
	HeapTuple	tuple;
	Datum		locale;
	bool		isnull;
	bool		bytewise = false;

	if (!OidIsValid(collation))
		return false;
	if (collation == C_COLLATION_OID || collation == POSIX_COLLATION_OID)
		return true;
	if (collation == DEFAULT_COLLATION_OID)
		return default_collation_is_bytewise();

	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	if (((Form_pg_collation) GETSTRUCT(tuple))->collprovider == COLLPROVIDER_LIBC)
	{
		locale = SysCacheGetAttr(COLLOID, tuple, Anum_pg_collation_collcollate, &isnull);
		bytewise = !isnull && libc_locale_is_bytewise(TextDatumGetCString(locale));
	}
	ReleaseSysCache(tuple);
	return bytewise;
}

/*
 * How values that opfamily compares as type under collation are encoded.
 * GPUSORT_ENCODE_NONE when they are not: *why_not then says why, as the rest of
 * a sentence that begins with the sort key.
 */
GpuSortEncoding
gpusort_key_encoding(Oid opfamily, Oid type, Oid collation, const char **why_not)
{
	GpuSortEncoding encoding = GPUSORT_ENCODE_NONE;

	switch (opfamily)
	{
		case BOOL_BTREE_FAM_OID:
			encoding = GPUSORT_ENCODE_BOOL;
			break;
		case INTEGER_BTREE_FAM_OID:
			encoding = type == INT2OID ? GPUSORT_ENCODE_INT2 :
				type == INT4OID ? GPUSORT_ENCODE_INT4 :
				type == INT8OID ? GPUSORT_ENCODE_INT8 : GPUSORT_ENCODE_NONE;
			break;
		case OID_BTREE_FAM_OID:
			encoding = type == OIDOID ? GPUSORT_ENCODE_OID : GPUSORT_ENCODE_NONE;
			break;
		case FLOAT_BTREE_FAM:
			encoding = type == FLOAT4OID ? GPUSORT_ENCODE_FLOAT4 :
				type == FLOAT8OID ? GPUSORT_ENCODE_FLOAT8 : GPUSORT_ENCODE_NONE;
			break;
		case DATETIME_BTREE_FAM:
			encoding = type == DATEOID ? GPUSORT_ENCODE_INT4 :
				type == TIMESTAMPOID || type == TIMESTAMPTZOID ? GPUSORT_ENCODE_INT8 : GPUSORT_ENCODE_NONE;
			break;
		case UUID_BTREE_FAM:
			encoding = type == UUIDOID ? GPUSORT_ENCODE_UUID : GPUSORT_ENCODE_NONE;
			break;
		case NUMERIC_BTREE_FAM:
			encoding = type == NUMERICOID ? GPUSORT_ENCODE_NUMERIC : GPUSORT_ENCODE_NONE;
			break;
		case BYTEA_BTREE_FAM_OID:
			encoding = type == BYTEAOID ? GPUSORT_ENCODE_BYTEA : GPUSORT_ENCODE_NONE;
			break;
		case TEXT_BTREE_FAM_OID:
			encoding = type == TEXTOID ? GPUSORT_ENCODE_TEXT :
				type == NAMEOID ? GPUSORT_ENCODE_NAME : GPUSORT_ENCODE_NONE;
			break;
		case BPCHAR_BTREE_FAM_OID:
			encoding = type == BPCHAROID ? GPUSORT_ENCODE_BPCHAR : GPUSORT_ENCODE_NONE;
			break;
		default:
			break;
	}
	if (encoding == GPUSORT_ENCODE_NONE)
		*why_not = "has a type without a key encoding";
	else if ((opfamily == TEXT_BTREE_FAM_OID || opfamily == BPCHAR_BTREE_FAM_OID) &&
			 !collation_is_bytewise(collation))
	{
		*why_not = "has a collation that does not order by bytes";
		encoding = GPUSORT_ENCODE_NONE;
	}
	return encoding;
}

bool
gpusort_key_encoding_is_string(GpuSortEncoding encoding)
{
	return encoding == GPUSORT_ENCODE_TEXT || encoding == GPUSORT_ENCODE_BPCHAR ||
		encoding == GPUSORT_ENCODE_BYTEA || encoding == GPUSORT_ENCODE_NAME;
}

/* The same for a finished plan's sort operator; also tells whether it sorts down. */
GpuSortEncoding
gpusort_operator_encoding(Oid sort_operator, Oid collation, bool *descending)
{
	Oid			opfamily;
	Oid			type;
	int16		strategy;
	const char *ignored;

	if (!get_ordering_op_properties(sort_operator, &opfamily, &type, &strategy))
		return GPUSORT_ENCODE_NONE;
	*descending = strategy == BTGreaterStrategyNumber;
	return gpusort_key_encoding(opfamily, type, collation, &ignored);
}

/* Bits of the length behind a string's prefix. */
static inline int
length_bits(int prefix_bytes)
{
	return prefix_bytes == GPUSORT_PREFIX_SHORT ? 4 : 5;
}

/* Bits of an encoding that takes no more than 64, else 0. */
static int
fixed_bits(GpuSortEncoding encoding)
{
	switch (encoding)
	{
		case GPUSORT_ENCODE_BOOL:
			return 1;
		case GPUSORT_ENCODE_INT2:
			return 16;
		case GPUSORT_ENCODE_INT4:
		case GPUSORT_ENCODE_OID:
		case GPUSORT_ENCODE_FLOAT4:
			return 32;
		case GPUSORT_ENCODE_INT8:
		case GPUSORT_ENCODE_FLOAT8:
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
	if (column->encoding == GPUSORT_ENCODE_UUID)
		return 1 + 128;
	if (column->encoding == GPUSORT_ENCODE_NUMERIC)
		return 1 + GPUSORT_NUMERIC_BITS;
	if (gpusort_key_encoding_is_string(column->encoding))
		return 1 + 8 * column->prefix_bytes + length_bits(column->prefix_bytes);
	elog(ERROR, "column has no key encoding");
}

static inline uint64
low_mask(int nbits)
{
	return ~UINT64CONST(0) >> (64 - nbits);
}

/*
 * Lays out the key of these columns, all of which the planner found encodable.
 * The result and what it points to belong to the current memory context;
 * columns belongs to the caller and must live as long.
 */
GpuSortKeys *
gpusort_keys_create(GpuSortColumn *columns, int count)
{
	GpuSortKeys *keys = palloc0(sizeof(GpuSortKeys));
	uint32		bits = 0;

	StaticAssertStmt((1 << 4) > GPUSORT_PREFIX_SHORT + 1, "length of a short prefix needs more bits");
	StaticAssertStmt((1 << 5) > GPUSORT_PREFIX_LONG + 1, "length of a long prefix needs more bits");

	keys->count = count;
	keys->columns = columns;
	keys->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpusort keys", ALLOCSET_SMALL_SIZES);
	for (int i = 0; i < count; i++)
	{
		GpuSortColumn *column = &columns[i];
		uint32		more;

		column->encoding = gpusort_operator_encoding(column->sort_operator, column->collation,
													 &column->descending);
		column->fixed_bits = fixed_bits(column->encoding);
		column->flip = column->descending && column->fixed_bits > 0 ? low_mask(column->fixed_bits) : 0;
		more = column_bits(column);
		if (bits + more > GPUSORT_MAX_KEY_WORDS * 64)
		{
			keys->may_tie = true;
			break;
		}
		column->bits = more;
		bits += more;
		keys->encoded = i + 1;
		keys->last_attno = Max(keys->last_attno, column->attno);
		if (column->prefix_bytes > 0 || column->encoding == GPUSORT_ENCODE_NUMERIC)
			keys->may_tie = true;
	}
	keys->words = (bits + 63) / 64;
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

/* The fixed_bits bits of a value, as they are for ASC. */
static inline uint64
fixed_value(GpuSortEncoding encoding, Datum value)
{
	switch (encoding)
	{
		case GPUSORT_ENCODE_BOOL:
			return DatumGetBool(value);
		case GPUSORT_ENCODE_INT2:
			return (uint16) DatumGetInt16(value) ^ 0x8000;
		case GPUSORT_ENCODE_INT4:
			return (uint32) DatumGetInt32(value) ^ 0x80000000;
		case GPUSORT_ENCODE_INT8:
			return (uint64) DatumGetInt64(value) ^ UINT64CONST(0x8000000000000000);
		case GPUSORT_ENCODE_OID:
			return DatumGetObjectId(value);
		case GPUSORT_ENCODE_FLOAT4:
			return float4_bits(DatumGetFloat4(value));
		case GPUSORT_ENCODE_FLOAT8:
			return float8_bits(DatumGetFloat8(value));
		default:
			pg_unreachable();
	}
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

/* Returns false when the string does not fit its prefix. */
static pg_attribute_always_inline bool
put_string(BitWriter *key, const GpuSortColumn *column, const char *data, int length)
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
	tail = load_bytes(data + done, length - done) >> (64 - 8 * tail_bytes) << length_bits(prefix) |
		(uint64) Min(length, prefix + 1);
	tail_bits = 8 * tail_bytes + length_bits(prefix);
	put_bits(key, tail_bits, (tail ^ flip) & low_mask(tail_bits));
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

/* Types that must be detoasted whole: blanks at the end of bpchar do not count. */
static pg_attribute_always_inline bool
put_detoasted(const GpuSortKeys *keys, BitWriter *key, const GpuSortColumn *column, struct varlena *value)
{
	struct varlena *plain = is_plain(value) ? value : fetch_whole(keys, value);
	bool		exact;

	if (column->encoding == GPUSORT_ENCODE_BPCHAR)
		exact = put_string(key, column, VARDATA_ANY(plain),
						   bpchartruelen(VARDATA_ANY(plain), VARSIZE_ANY_EXHDR(plain)));
	else
	{
		const int	high_bits = GPUSORT_NUMERIC_BITS - 64;
		uint64		flip = column->descending ? PG_UINT64_MAX : 0;
		uint64		high;
		uint64		low;

		exact = gpusort_numeric_encode(PointerGetDatum(plain), &high, &low);
		put_bits(key, high_bits, (high ^ flip) & low_mask(high_bits));
		put_bits(key, 64, low ^ flip);
	}
	if (plain != value)
		MemoryContextReset(keys->scratch);
	return exact;
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
					uint64		flip = column->descending ? PG_UINT64_MAX : 0;

					put_bits(&key, 64, load_bytes(data, 8) ^ flip);
					put_bits(&key, 64, load_bytes(data + 8, 8) ^ flip);
					break;
				}
			case GPUSORT_ENCODE_TEXT:
			case GPUSORT_ENCODE_BYTEA:
				exact = put_varlena(keys, &key, column, (struct varlena *) DatumGetPointer(value));
				break;
			case GPUSORT_ENCODE_BPCHAR:
			case GPUSORT_ENCODE_NUMERIC:
				exact = put_detoasted(keys, &key, column, (struct varlena *) DatumGetPointer(value));
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
