/*-------------------------------------------------------------------------
 *
 * orders.c
 *	  Which encoding the values of a sort key have.
 *
 * What decides is the operator family and input type of the sort operator, never
 * the name of a type: domains and user-defined operators come out right, and the
 * types of others, and orders of their own for known types, have no encoding but what
 * their operator class abbreviates them to.
 * doc/types.md says it type by type.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/types.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation_d.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type_d.h"
#include "keys/bytes/collations.h"
#include "keys/encoders.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* Families of PostgreSQL's own that its headers give no name. */
#define BIT_BTREE_FAM        423
#define CHAR_BTREE_FAM       429
#define DATETIME_BTREE_FAM   434
#define FLOAT_BTREE_FAM      1970
#define MACADDR_BTREE_FAM    1984
#define NUMERIC_BTREE_FAM    1988
#define TIME_BTREE_FAM       1996
#define TIMETZ_BTREE_FAM     2000
#define VARBIT_BTREE_FAM     2002
#define MONEY_BTREE_FAM      2099
#define TID_BTREE_FAM        2789
#define UUID_BTREE_FAM       2968
#define PG_LSN_BTREE_FAM     3253
#define MACADDR8_BTREE_FAM   3371
#define ENUM_BTREE_FAM       3522
#define XID8_BTREE_FAM       5067
#define ARRAY_BTREE_FAM      397
#define RECORD_BTREE_FAM     2994
#define RANGE_BTREE_FAM      3901
#define JSONB_BTREE_FAM      4033
#define MULTIRANGE_BTREE_FAM 4199
#define TSVECTOR_BTREE_FAM   3626
#define TSQUERY_BTREE_FAM    3683
#define OID8_BTREE_FAM       6460

/* A type that PostgreSQL has from 19 on. */
#define OID8_TYPE 6437

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
		{OID8_BTREE_FAM, OID8_TYPE, GPUSORT_ENCODE_UINT8},
		{TID_BTREE_FAM, TIDOID, GPUSORT_ENCODE_TID},
		{ARRAY_BTREE_FAM, ANYARRAYOID, GPUSORT_ENCODE_ARRAY},
		{RANGE_BTREE_FAM, ANYRANGEOID, GPUSORT_ENCODE_RANGE},
		{MULTIRANGE_BTREE_FAM, ANYMULTIRANGEOID, GPUSORT_ENCODE_MULTIRANGE},
		{RECORD_BTREE_FAM, RECORDOID, GPUSORT_ENCODE_RECORD},
		{JSONB_BTREE_FAM, JSONBOID, GPUSORT_ENCODE_JSONB},
		{TSVECTOR_BTREE_FAM, TSVECTOROID, GPUSORT_ENCODE_TSVECTOR},
		{TSQUERY_BTREE_FAM, TSQUERYOID, GPUSORT_ENCODE_TSQUERY},
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

/* Returns an operator family's name, with its schema where that is needed; by its number if it is gone. */
static const char *
family_name(Oid opfamily)
{
	HeapTuple tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(opfamily));
	Form_pg_opfamily family;
	const char *name;

	if (!HeapTupleIsValid(tuple))
		return psprintf("%u", opfamily);
	family = (Form_pg_opfamily) GETSTRUCT(tuple);
	name = quote_qualified_identifier(OpfamilyIsVisible(opfamily) ? NULL : get_namespace_name(family->opfnamespace),
									  NameStr(family->opfname));
	ReleaseSysCache(tuple);
	return name;
}

/* Why values have no encoding, and what has; the rest of a sentence that begins with the sort key. */
static const char *
no_encoding(const GpuSortOrder *order)
{
	const Oid type = order->input_type;
	char category;
	bool preferred;

	if (knows_type(type))
		return psprintf("is of type %s in the order of operator family %s, which has no key encoding",
						format_type_be(type), family_name(order->opfamily));
	get_type_category_preferred(type, &category, &preferred);
	return psprintf(category == TYPCATEGORY_STRING
						? "is of type %s, which has no key encoding; text made of it has one, for example lower(x::text) of citext"
						: "is of type %s, which has no key encoding",
					format_type_be(type));
}

/*
 * Returns an encoding if it is one of values of a type, as it is unless
 * there is none of their first part; else as gpusort_key_encoding.
 */
static GpuSortEncoding
encoding_of_parts(GpuSortEncoding encoding, Oid type, Oid collation, const char **why_not)
{
	List *parts = gpusort_key_types[encoding].parts(getBaseType(type), collation);
	const char *why;

	if (parts == NIL)
	{
		*why_not = psprintf("is of type %s, whose parts are not known when the query is planned", format_type_be(type));
		return GPUSORT_ENCODE_NONE;
	}
	if (gpusort_part_encoding(linitial(parts), &why) != GPUSORT_ENCODE_NONE)
		return encoding;
	*why_not = psprintf("is of type %s, whose first part %s", format_type_be(type), why);
	return GPUSORT_ENCODE_NONE;
}

/* Returns the encoding of strings, which order by a collation, if those under collations of bytes have this one. */
static GpuSortEncoding
encoding_of_strings(GpuSortEncoding encoding, Oid collation, const char **why_not)
{
	*why_not = no_collation;
	switch (collation_order(collation, why_not))
	{
		case ORDER_BY_BYTES:
			return encoding;
		case ORDER_BY_ICU:
			Assert(gpusort_key_types[encoding].under_icu != GPUSORT_ENCODE_NONE);
			return gpusort_key_types[encoding].under_icu;
		case ORDER_BY_LIBC:
			Assert(gpusort_key_types[encoding].under_libc != GPUSORT_ENCODE_NONE);
			return gpusort_key_types[encoding].under_libc;
		case ORDER_UNKNOWN:
			break;
	}
	return GPUSORT_ENCODE_NONE;
}

/* Finds the row of orders that values have; false if there is none. */
static bool
find_order(const GpuSortOrder *order, int *row)
{
	for (int i = 0; i < lengthof(orders); i++)
	{
		if (orders[i].opfamily == order->opfamily && orders[i].type == order->input_type)
		{
			*row = i;
			return true;
		}
	}
	return false;
}

/*
 * Returns how values that are parts of others are encoded, as gpusort_key_encoding does: not by abbreviations, which
 * are verified by comparing whole values.
 */
GpuSortEncoding
gpusort_part_encoding(const GpuSortOrder *order, const char **why_not)
{
	int row;

	if (!find_order(order, &row))
	{
		*why_not = no_encoding(order);
		return GPUSORT_ENCODE_NONE;
	}
	if (gpusort_key_types[orders[row].encoding].parts != NULL)
		return encoding_of_parts(orders[row].encoding, order->type, order->collation, why_not);
	if (orders[row].collated)
		return encoding_of_strings(orders[row].encoding, order->collation, why_not);
	return orders[row].encoding;
}

/*
 * Returns how values of a type that opfamily compares as input_type, that type or a pseudotype, under collation are
 * encoded; GPUSORT_ENCODE_NONE if they are not, and *why_not then says why, as the rest of a sentence that begins
 * with the sort key.  Errors: a collation that is not there, and those of an operator class that abbreviates.
 */
GpuSortEncoding
gpusort_key_encoding(Oid opfamily, Oid input_type, Oid type, Oid collation, const char **why_not)
{
	const GpuSortOrder order = {.opfamily = opfamily, .input_type = input_type, .type = type, .collation = collation};
	int row;

	if (!find_order(&order, &row) && gpusort_abbreviation_exists(&order))
		return GPUSORT_ENCODE_ABBREVIATION;
	return gpusort_part_encoding(&order, why_not);
}

/* Returns the collations of the C library, each once, that the keys of values of a type rest on; NIL: none. */
List *
gpusort_key_libc_collations(GpuSortEncoding encoding, Oid type, Oid collation)
{
	const GpuSortKeyType *row = &gpusort_key_types[encoding];
	List *collations = NIL;
	ListCell *cell;

	if (row->source == GPUSORT_SOURCE_LIBC)
		return list_make1_oid(collation);
	if (row->parts == NULL)
		return NIL;
	foreach(cell, row->parts(getBaseType(type), collation))
	{
		const GpuSortOrder *part = lfirst(cell);
		const char *why_not;

		encoding = gpusort_part_encoding(part, &why_not);
		collations = list_union_oid(collations, gpusort_key_libc_collations(encoding, part->type, part->collation));
	}
	return collations;
}

/*
 * Returns true if keys of values of a type may not tell different ones apart, however long they are: of strings under
 * a collation of the C library, of values that are abbreviated, and of those that have such strings, or others without
 * an encoding, among their parts.
 */
bool
gpusort_key_is_partial(GpuSortEncoding encoding, Oid type, Oid collation)
{
	const GpuSortKeyType *row = &gpusort_key_types[encoding];
	ListCell *cell;

	if (encoding == GPUSORT_ENCODE_NONE || encoding == GPUSORT_ENCODE_ABBREVIATION ||
		row->source == GPUSORT_SOURCE_LIBC)
		return true;
	if (row->parts == NULL)
		return false;
	foreach(cell, row->parts(getBaseType(type), collation))
	{
		const GpuSortOrder *part = lfirst(cell);
		const char *why_not;

		encoding = gpusort_part_encoding(part, &why_not);
		if (gpusort_key_is_partial(encoding, part->type, part->collation))
			return true;
	}
	return false;
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

/*
 * Finds how a sort operator orders values of a type under a collation, and whether it sorts down; false if it belongs
 * to no operator family.
 */
bool
gpusort_operator_order(Oid sort_operator, Oid type, Oid collation, GpuSortOrder *order, bool *descending)
{
	CompareType direction;

	*order = (GpuSortOrder){.type = type, .collation = collation};
	if (!get_ordering_op_properties(sort_operator, &order->opfamily, &order->input_type, &direction))
		return false;
	*descending = direction == COMPARE_GT;
	return true;
}

/* Like gpusort_key_encoding, for a finished plan's sort operator; *descending says whether it sorts down. */
GpuSortEncoding
gpusort_operator_encoding(Oid sort_operator, Oid type, Oid collation, bool *descending, const char **why_not)
{
	GpuSortOrder order;

	if (!gpusort_operator_order(sort_operator, type, collation, &order, descending))
	{
		*why_not = "has an order without a key encoding";
		return GPUSORT_ENCODE_NONE;
	}
	return gpusort_key_encoding(order.opfamily, order.input_type, type, collation, why_not);
}
