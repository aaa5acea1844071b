/*-------------------------------------------------------------------------
 *
 * keys_choice.c
 *	  Which encoding the values of a sort key have.
 *
 * What decides is the operator family and input type of the sort operator, never
 * the name of a type: domains and user-defined operators come out right, and the
 * types of others, and orders of their own for known types, have no encoding.
 * doc/types.md says it type by type.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/keys.h"

#include <gnu/libc-version.h>

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "catalog/pg_opfamily_d.h"
#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

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

/* PostgreSQL's own collations, since 17: all of them compare bytes. */
#ifndef COLLPROVIDER_BUILTIN
#define COLLPROVIDER_BUILTIN 'b'
#endif

static const struct
{
	Oid opfamily;
	Oid type; /* input type of the sort operator */
	GpuSortEncoding encoding;
} encodings[] =
	{
		{INTEGER_BTREE_FAM_OID, INT4OID, GPUSORT_ENCODE_INT4},
		{INTEGER_BTREE_FAM_OID, INT8OID, GPUSORT_ENCODE_INT8},
		{INTEGER_BTREE_FAM_OID, INT2OID, GPUSORT_ENCODE_INT2},
		{TEXT_BTREE_FAM_OID, TEXTOID, GPUSORT_ENCODE_TEXT},
		{TEXT_BTREE_FAM_OID, NAMEOID, GPUSORT_ENCODE_NAME},
		{BPCHAR_BTREE_FAM_OID, BPCHAROID, GPUSORT_ENCODE_BPCHAR},
		{TEXT_PATTERN_BTREE_FAM_OID, TEXTOID, GPUSORT_ENCODE_TEXT}, /* by bytes, under any collation */
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

/*
 * Does this libc locale compare strings by their bytes?  glibc's C.UTF-8 does so
 * since 2.35; distributions' own ones before that are not to be relied on.
 */
static bool
libc_locale_is_bytewise(const char *name)
{
	int major = 0;
	int minor = 0;

	if (strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0)
		return true;
	if (pg_strcasecmp(name, "C.UTF-8") != 0 && pg_strcasecmp(name, "C.UTF8") != 0)
		return false;
	if (GetDatabaseEncoding() != PG_UTF8)
		return false;
	sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor);
	return major > 2 || (major == 2 && minor >= 35);
}

/* How a collation orders strings. */
typedef enum CollationOrder
{
	ORDER_UNKNOWN,
	ORDER_BY_BYTES,
	ORDER_BY_ICU,
} CollationOrder;

/* What a catalogue's tuple says of a collation: the provider, and in attribute attno its libc locale. */
static CollationOrder
tuple_order(Oid collation, char provider, int cache, HeapTuple tuple, AttrNumber attno)
{
	Datum locale;
	bool isnull;

	switch (provider)
	{
		case COLLPROVIDER_BUILTIN:
			return ORDER_BY_BYTES;
		case COLLPROVIDER_ICU:
			return gpusort_icu_has_keys(collation) ? ORDER_BY_ICU : ORDER_UNKNOWN;
		case COLLPROVIDER_LIBC:
			locale = SysCacheGetAttr(cache, tuple, attno, &isnull);
			return !isnull && libc_locale_is_bytewise(TextDatumGetCString(locale)) ? ORDER_BY_BYTES : ORDER_UNKNOWN;
		default:
			return ORDER_UNKNOWN;
	}
}

/* The default collation's answer is the database's. */
static CollationOrder
default_collation_order(void)
{
	HeapTuple tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
	CollationOrder order;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	order = tuple_order(DEFAULT_COLLATION_OID, ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider, DATABASEOID, tuple,
						Anum_pg_database_datcollate);
	ReleaseSysCache(tuple);
	return order;
}

static CollationOrder
collation_order(Oid collation)
{
	HeapTuple tuple;
	CollationOrder order;

	if (!OidIsValid(collation))
		return ORDER_UNKNOWN;
	if (collation == C_COLLATION_OID)
		return ORDER_BY_BYTES;
	if (collation == DEFAULT_COLLATION_OID)
		return default_collation_order();

	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	order = tuple_order(collation, ((Form_pg_collation) GETSTRUCT(tuple))->collprovider, COLLOID, tuple,
						Anum_pg_collation_collcollate);
	ReleaseSysCache(tuple);
	return order;
}

/* The encoding under an ICU collation of what has this one under a collation of bytes. */
static GpuSortEncoding
icu_encoding(GpuSortEncoding encoding)
{
	switch (encoding)
	{
		case GPUSORT_ENCODE_TEXT:
			return GPUSORT_ENCODE_ICU_TEXT;
		case GPUSORT_ENCODE_BPCHAR:
			return GPUSORT_ENCODE_ICU_BPCHAR;
		default:
			Assert(encoding == GPUSORT_ENCODE_NAME);
			return GPUSORT_ENCODE_ICU_NAME;
	}
}

/*
 * How values that opfamily compares as type under collation are encoded.
 * GPUSORT_ENCODE_NONE when they are not: *why_not then says why, as the rest of
 * a sentence that begins with the sort key.
 */
GpuSortEncoding
gpusort_key_encoding(Oid opfamily, Oid type, Oid collation, const char **why_not)
{
	for (int i = 0; i < lengthof(encodings); i++)
	{
		if (encodings[i].opfamily != opfamily || encodings[i].type != type)
			continue;
		if (opfamily != TEXT_BTREE_FAM_OID && opfamily != BPCHAR_BTREE_FAM_OID)
			return encodings[i].encoding;
		switch (collation_order(collation))
		{
			case ORDER_BY_BYTES:
				return encodings[i].encoding;
			case ORDER_BY_ICU:
				return icu_encoding(encodings[i].encoding);
			case ORDER_UNKNOWN:
				*why_not = "has a collation without a key encoding";
				return GPUSORT_ENCODE_NONE;
		}
	}
	*why_not = "has a type or an order without a key encoding";
	return GPUSORT_ENCODE_NONE;
}

/* Strings of bytes or bits: those that have a prefix. */
bool
gpusort_key_encoding_is_string(GpuSortEncoding encoding)
{
	return encoding == GPUSORT_ENCODE_TEXT || encoding == GPUSORT_ENCODE_BPCHAR ||
		encoding == GPUSORT_ENCODE_BYTEA || encoding == GPUSORT_ENCODE_NAME ||
		encoding == GPUSORT_ENCODE_BIT || gpusort_key_encoding_is_icu(encoding);
}

/* Strings under ICU collations */
bool
gpusort_key_encoding_is_icu(GpuSortEncoding encoding)
{
	return encoding == GPUSORT_ENCODE_ICU_TEXT || encoding == GPUSORT_ENCODE_ICU_BPCHAR ||
		encoding == GPUSORT_ENCODE_ICU_NAME;
}

/* The same for a finished plan's sort operator; also tells whether it sorts down. */
GpuSortEncoding
gpusort_operator_encoding(Oid sort_operator, Oid collation, bool *descending)
{
	Oid opfamily;
	Oid type;
	CompareType order;
	const char *ignored;

	if (!get_ordering_op_properties(sort_operator, &opfamily, &type, &order))
		return GPUSORT_ENCODE_NONE;
	*descending = order == COMPARE_GT;
	return gpusort_key_encoding(opfamily, type, collation, &ignored);
}
