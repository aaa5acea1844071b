/*-------------------------------------------------------------------------
 *
 * types.c
 *	  Which encoding the values of a sort key have, and what each encoding is.
 *
 * What decides is the operator family and input type of the sort operator, never
 * the name of a type: domains and user-defined operators come out right, and the
 * types of others, and orders of their own for known types, have no encoding.
 * doc/types.md says it type by type.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/types.h"

#include "catalog/pg_collation_d.h"
#include "catalog/pg_opfamily_d.h"
#include "catalog/pg_type_d.h"
#include "keys/bytes/collations.h"
#include "keys/encoders.h"
#include "keys/fixed/inline_encoders.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/* Families of PostgreSQL's own that its headers give no name. */
#define BIT_BTREE_FAM      423
#define CHAR_BTREE_FAM     429
#define DATETIME_BTREE_FAM 434
#define FLOAT_BTREE_FAM    1970
#define MACADDR_BTREE_FAM  1984
#define NUMERIC_BTREE_FAM  1988
#define TIME_BTREE_FAM     1996
#define TIMETZ_BTREE_FAM   2000
#define VARBIT_BTREE_FAM   2002
#define MONEY_BTREE_FAM    2099
#define TID_BTREE_FAM      2789
#define UUID_BTREE_FAM     2968
#define PG_LSN_BTREE_FAM   3253
#define MACADDR8_BTREE_FAM 3371
#define ENUM_BTREE_FAM     3522
#define XID8_BTREE_FAM     5067

/*
 * The encodings.  What a new type takes:
 *
 *	  - if its values are encoded as another type's are, a row in orders, below;
 *	  - else a name in GpuSortEncoding (types.h), a row here, one in orders, and an
 *		encoder: a function declared in encoders.h, in a file of its own, and named in the
 *		row.  If it must not cost a call, it is in inline_encoders.h and gets a case in
 *		gpusort_keys_encode, or, as a number of up to 64 bits, is a case of fixed_value
 *		alone (both encode.c).  What has no fixed number of bits has an encoder of the
 *		other form, bytes, and the case of its like in gpusort_keys_encode;
 *	  - its line in doc/types.md, and its values in test/sql/types.sql.
 *
 * All else, such as the layout of keys, what a tie needs, samples and costs, follows
 * from the row.
 */
const GpuSortKeyType gpusort_key_types[GPUSORT_ENCODE_Count] = {
	[GPUSORT_ENCODE_BOOL] = {.bits = 1},
	[GPUSORT_ENCODE_CHAR] = {.bits = 8},
	[GPUSORT_ENCODE_INT2] = {.bits = 16},
	[GPUSORT_ENCODE_INT4] = {.bits = 32},
	[GPUSORT_ENCODE_INT8] = {.bits = 64},
	[GPUSORT_ENCODE_UINT8] = {.bits = 64},
	[GPUSORT_ENCODE_OID] = {.bits = 32},
	[GPUSORT_ENCODE_FLOAT4] = {.bits = 32},
	[GPUSORT_ENCODE_FLOAT8] = {.bits = 64},
	[GPUSORT_ENCODE_INT2_AS_INT4] = {.bits = 32, .as = GPUSORT_ENCODE_INT4},
	[GPUSORT_ENCODE_INT2_AS_INT8] = {.bits = 64, .as = GPUSORT_ENCODE_INT8},
	[GPUSORT_ENCODE_INT4_AS_INT8] = {.bits = 64, .as = GPUSORT_ENCODE_INT8},
	[GPUSORT_ENCODE_FLOAT4_AS_FLOAT8] = {.bits = 64, .as = GPUSORT_ENCODE_FLOAT8},
	[GPUSORT_ENCODE_MACADDR] = {.bits = 48},
	[GPUSORT_ENCODE_MACADDR8] = {.bits = 64},
	[GPUSORT_ENCODE_TID] = {.bits = 48},
	[GPUSORT_ENCODE_UUID] = {.bits = GPUSORT_UUID_BITS, .encode = gpusort_uuid_encode},
	[GPUSORT_ENCODE_INTERVAL] = {.bits = GPUSORT_INTERVAL_BITS, .encode = gpusort_interval_encode},
	[GPUSORT_ENCODE_TIMETZ] = {.bits = GPUSORT_TIMETZ_BITS, .encode = gpusort_timetz_encode},
	[GPUSORT_ENCODE_INET] = {.bits = GPUSORT_INET_BITS, .encode = gpusort_inet_encode, .detoast = true},
	[GPUSORT_ENCODE_NUMERIC] = {
		.bits = GPUSORT_NUMERIC_BITS,
		.truncates = true,
		.encode = gpusort_numeric_encode,
		.detoast = true,
	},
	[GPUSORT_ENCODE_ENUM] = {
		.bits = GPUSORT_ENUM_BITS,
		.truncates = true, /* values that are newer than the query's snapshot */
		.encode = gpusort_enum_encode,
		.create = gpusort_enum_create,
	},
	[GPUSORT_ENCODE_TEXT] = {
		.truncates = true,
		.bytes = gpusort_own_bytes,
		.string = GPUSORT_STRING_BYTES,
		.under_icu = GPUSORT_ENCODE_ICU_TEXT,
		.under_libc = GPUSORT_ENCODE_LIBC_TEXT,
	},
	[GPUSORT_ENCODE_BPCHAR] = {
		.truncates = true,
		.bytes = gpusort_own_bytes,
		.string = GPUSORT_STRING_PADDED,
		.under_icu = GPUSORT_ENCODE_ICU_BPCHAR,
		.under_libc = GPUSORT_ENCODE_LIBC_BPCHAR,
	},
	[GPUSORT_ENCODE_BYTEA] = {.truncates = true, .bytes = gpusort_own_bytes, .string = GPUSORT_STRING_BYTES},
	[GPUSORT_ENCODE_NAME] = {
		.truncates = true,
		.bytes = gpusort_own_bytes,
		.string = GPUSORT_STRING_NAME,
		.under_icu = GPUSORT_ENCODE_ICU_NAME,
		.under_libc = GPUSORT_ENCODE_LIBC_NAME,
	},
	[GPUSORT_ENCODE_BIT] = {.truncates = true, .bytes = gpusort_own_bytes, .string = GPUSORT_STRING_BITS},
	[GPUSORT_ENCODE_ICU_TEXT] = {
		.truncates = true,
		.create = gpusort_icu_create,
		.bytes = gpusort_icu_string_bytes,
		.string = GPUSORT_STRING_BYTES,
		.source = GPUSORT_SOURCE_ICU,
	},
	[GPUSORT_ENCODE_ICU_BPCHAR] = {
		.truncates = true,
		.create = gpusort_icu_create,
		.bytes = gpusort_icu_string_bytes,
		.string = GPUSORT_STRING_PADDED,
		.source = GPUSORT_SOURCE_ICU,
	},
	[GPUSORT_ENCODE_ICU_NAME] = {
		.truncates = true,
		.create = gpusort_icu_create,
		.bytes = gpusort_icu_string_bytes,
		.string = GPUSORT_STRING_NAME,
		.source = GPUSORT_SOURCE_ICU,
	},
	[GPUSORT_ENCODE_LIBC_TEXT] = {
		.truncates = true,
		.create = gpusort_libc_create,
		.bytes = gpusort_libc_string_bytes,
		.string = GPUSORT_STRING_BYTES,
		.source = GPUSORT_SOURCE_LIBC,
	},
	[GPUSORT_ENCODE_LIBC_BPCHAR] = {
		.truncates = true,
		.create = gpusort_libc_create,
		.bytes = gpusort_libc_string_bytes,
		.string = GPUSORT_STRING_PADDED,
		.source = GPUSORT_SOURCE_LIBC,
	},
	[GPUSORT_ENCODE_LIBC_NAME] = {
		.truncates = true,
		.create = gpusort_libc_create,
		.bytes = gpusort_libc_string_bytes,
		.string = GPUSORT_STRING_NAME,
		.source = GPUSORT_SOURCE_LIBC,
	},
};

/* Which values have which encoding. */
static const struct
{
	Oid opfamily;
	Oid type; /* input type of the sort operator */
	GpuSortEncoding encoding;
	bool collated; /* the order is the collation's, and the encoding that of collations of bytes */
} orders[] =
	{
		{INTEGER_BTREE_FAM_OID, INT4OID, GPUSORT_ENCODE_INT4},
		{INTEGER_BTREE_FAM_OID, INT8OID, GPUSORT_ENCODE_INT8},
		{INTEGER_BTREE_FAM_OID, INT2OID, GPUSORT_ENCODE_INT2},
		{TEXT_BTREE_FAM_OID, TEXTOID, GPUSORT_ENCODE_TEXT, true},
		{TEXT_BTREE_FAM_OID, NAMEOID, GPUSORT_ENCODE_NAME, true},
		{BPCHAR_BTREE_FAM_OID, BPCHAROID, GPUSORT_ENCODE_BPCHAR, true},
		{TEXT_PATTERN_BTREE_FAM_OID, TEXTOID, GPUSORT_ENCODE_TEXT},
		{BPCHAR_PATTERN_BTREE_FAM_OID, BPCHAROID, GPUSORT_ENCODE_BPCHAR},
		{BYTEA_BTREE_FAM_OID, BYTEAOID, GPUSORT_ENCODE_BYTEA},
		{BIT_BTREE_FAM, BITOID, GPUSORT_ENCODE_BIT},
		{VARBIT_BTREE_FAM, VARBITOID, GPUSORT_ENCODE_BIT},
		{NUMERIC_BTREE_FAM, NUMERICOID, GPUSORT_ENCODE_NUMERIC},
		{FLOAT_BTREE_FAM, FLOAT4OID, GPUSORT_ENCODE_FLOAT4},
		{FLOAT_BTREE_FAM, FLOAT8OID, GPUSORT_ENCODE_FLOAT8},
		{MONEY_BTREE_FAM, MONEYOID, GPUSORT_ENCODE_INT8},
		{BOOL_BTREE_FAM_OID, BOOLOID, GPUSORT_ENCODE_BOOL},
		{CHAR_BTREE_FAM, CHAROID, GPUSORT_ENCODE_CHAR},
		{OID_BTREE_FAM_OID, OIDOID, GPUSORT_ENCODE_OID},
		{DATETIME_BTREE_FAM, DATEOID, GPUSORT_ENCODE_INT4},
		{DATETIME_BTREE_FAM, TIMESTAMPOID, GPUSORT_ENCODE_INT8},
		{DATETIME_BTREE_FAM, TIMESTAMPTZOID, GPUSORT_ENCODE_INT8},
		{TIME_BTREE_FAM, TIMEOID, GPUSORT_ENCODE_INT8},
		{TIMETZ_BTREE_FAM, TIMETZOID, GPUSORT_ENCODE_TIMETZ},
		{INTERVAL_BTREE_FAM_OID, INTERVALOID, GPUSORT_ENCODE_INTERVAL},
		{UUID_BTREE_FAM, UUIDOID, GPUSORT_ENCODE_UUID},
		{ENUM_BTREE_FAM, ANYENUMOID, GPUSORT_ENCODE_ENUM},
		{NETWORK_BTREE_FAM_OID, INETOID, GPUSORT_ENCODE_INET},
		{MACADDR_BTREE_FAM, MACADDROID, GPUSORT_ENCODE_MACADDR},
		{MACADDR8_BTREE_FAM, MACADDR8OID, GPUSORT_ENCODE_MACADDR8},
		{PG_LSN_BTREE_FAM, PG_LSNOID, GPUSORT_ENCODE_UINT8},
		{XID8_BTREE_FAM, XID8OID, GPUSORT_ENCODE_UINT8},
		{TID_BTREE_FAM, TIDOID, GPUSORT_ENCODE_TID},
};

/* How values are encoded as if they were of a wider type. */
static const struct
{
	GpuSortEncoding encoding;
	Oid type;
	GpuSortEncoding as;
} wider[] =
	{
		{GPUSORT_ENCODE_INT2, INT4OID, GPUSORT_ENCODE_INT2_AS_INT4},
		{GPUSORT_ENCODE_INT2, INT8OID, GPUSORT_ENCODE_INT2_AS_INT8},
		{GPUSORT_ENCODE_INT4, INT8OID, GPUSORT_ENCODE_INT4_AS_INT8},
		{GPUSORT_ENCODE_FLOAT4, FLOAT8OID, GPUSORT_ENCODE_FLOAT4_AS_FLOAT8},
};

/* Why others have none, as the rest of a sentence that begins with the sort key. */
static const char no_collation[] = "has a collation without a key encoding";

/* How a collation orders strings. */
typedef enum CollationOrder
{
	ORDER_UNKNOWN,
	ORDER_BY_BYTES,
	ORDER_BY_ICU,
	ORDER_BY_LIBC,
} CollationOrder;

/* Says how a collation orders strings; if that is unknown, *why_not may say why, as in gpusort_key_encoding. */
static CollationOrder
collation_order(Oid collation, const char **why_not)
{
	char *locale;
	CollationOrder order = ORDER_UNKNOWN;

	if (!OidIsValid(collation))
		return ORDER_UNKNOWN;
	if (collation == C_COLLATION_OID)
		return ORDER_BY_BYTES;
	switch (gpusort_collation_provider(collation, &locale))
	{
		case COLLPROVIDER_BUILTIN:
			return ORDER_BY_BYTES;
		case COLLPROVIDER_ICU:
			return gpusort_icu_has_keys(collation) ? ORDER_BY_ICU : ORDER_UNKNOWN;
		case COLLPROVIDER_LIBC:
			if (gpusort_libc_is_bytewise(locale))
				order = ORDER_BY_BYTES;
			else if (gpusort_libc_has_keys(locale, why_not))
				order = ORDER_BY_LIBC;
			pfree(locale);
			return order;
		default:
			return ORDER_UNKNOWN;
	}
}

/* Returns true if values of the type are encoded in some order. */
static bool
knows_type(Oid type)
{
	for (int i = 0; i < lengthof(orders); i++)
	{
		if (orders[i].type == type)
			return true;
	}
	return false;
}

/*
 * Returns how values that opfamily compares as type under collation are encoded;
 * GPUSORT_ENCODE_NONE if they are not, and *why_not then says why, as the rest of a
 * sentence that begins with the sort key.  Errors: a collation that is not there.
 */
GpuSortEncoding
gpusort_key_encoding(Oid opfamily, Oid type, Oid collation, const char **why_not)
{
	for (int i = 0; i < lengthof(orders); i++)
	{
		if (orders[i].opfamily != opfamily || orders[i].type != type)
			continue;
		if (!orders[i].collated)
			return orders[i].encoding;
		*why_not = no_collation;
		switch (collation_order(collation, why_not))
		{
			case ORDER_BY_BYTES:
				return orders[i].encoding;
			case ORDER_BY_ICU:
				Assert(gpusort_key_types[orders[i].encoding].under_icu != GPUSORT_ENCODE_NONE);
				return gpusort_key_types[orders[i].encoding].under_icu;
			case ORDER_BY_LIBC:
				Assert(gpusort_key_types[orders[i].encoding].under_libc != GPUSORT_ENCODE_NONE);
				return gpusort_key_types[orders[i].encoding].under_libc;
			case ORDER_UNKNOWN:
				return GPUSORT_ENCODE_NONE;
		}
	}
	*why_not = psprintf(knows_type(type) ? "is of type %s in an order without a key encoding"
										 : "is of type %s, which has no key encoding",
						format_type_be(type));
	return GPUSORT_ENCODE_NONE;
}

/*
 * Returns the type as which values of two types can be encoded so that those that opfamily takes for equal have
 * the same bits: that of both, or the wider one; InvalidOid if there is none.  A date, say, is equal to a timestamp
 * of other bits, and to which one of those with a zone depends on the session's.
 */
Oid
gpusort_common_key_type(Oid opfamily, Oid a, Oid b)
{
	if (a == b)
		return a;
	if (opfamily != INTEGER_BTREE_FAM_OID && opfamily != FLOAT_BTREE_FAM)
		return InvalidOid;
	return get_typlen(a) > get_typlen(b) ? a : b;
}

/* Returns how values of an encoding are encoded as if they were of this type, which gpusort_common_key_type gave. */
GpuSortEncoding
gpusort_encoding_as(GpuSortEncoding encoding, Oid type)
{
	for (int i = 0; i < lengthof(wider); i++)
	{
		if (wider[i].encoding == encoding && wider[i].type == type)
			return wider[i].as;
	}
	return encoding;
}

/* Like gpusort_key_encoding, for a finished plan's sort operator; *descending says whether it sorts down. */
GpuSortEncoding
gpusort_operator_encoding(Oid sort_operator, Oid collation, bool *descending, const char **why_not)
{
	Oid opfamily;
	Oid type;
	CompareType order;

	if (!get_ordering_op_properties(sort_operator, &opfamily, &type, &order))
	{
		*why_not = "has an order without a key encoding";
		return GPUSORT_ENCODE_NONE;
	}
	*descending = order == COMPARE_GT;
	return gpusort_key_encoding(opfamily, type, collation, why_not);
}
