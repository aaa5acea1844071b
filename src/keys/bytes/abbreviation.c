/*-------------------------------------------------------------------------
 *
 * abbreviation.c
 *	  Values as their operator class abbreviates them for a sort.
 *
 * A btree operator class may have a function that makes a word of a value, such that words compare as the values do or
 * not at all (PostgreSQL's utils/sortsupport.h).  Nothing else about such a type is known or needed: the word
 * is in the key, as eight bytes, and the class's own comparator decides between rows of equal words.
 *
 * In what order words are is their comparator's to say.  If that is one of PostgreSQL's own, it is known.  If it is the
 * class's, it is asked of some numbers, which is all that it is defined for, and has to order them as numbers are
 * ordered, with a sign or without, upwards or downwards; it may leave open which of two comes first.
 *
 * The contract is for words that one process makes for one sort, and what a comparator says of some numbers need not
 * hold for all.  So neither is relied on: the order of the rows is verified by the class's comparator
 * (sort/collation_check.c).
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_opfamily.h"
#include "keys/bytes/parts.h"
#include "keys/keys.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/syscache.h"

/* How words are ordered. */
typedef enum WordOrder
{
	ORDER_UNKNOWN = 0,
	ORDER_UNSIGNED,
	ORDER_SIGNED,
	ORDER_UNSIGNED_DOWN,
	ORDER_SIGNED_DOWN,
	ORDER_INT32,
} WordOrder;

/* What encodes a column's values. */
typedef struct Abbreviation
{
	WordOrder order; /* UNKNOWN: there are no words after all */
	int words;       /* that have been made */
	SortSupportData support;
} Abbreviation;

/* A class that has been asked for; belongs to the backend. */
typedef struct KnownClass
{
	Oid function;
	Oid collation;
	bool exists;
} KnownClass;

#define KNOWN_CLASSES 32

/* Words that comparators are asked of: about zero and the greatest of 32, 63 and 64 bits, and some of any bits. */
static const uint64 asked[] = {
	0,
	1,
	2,
	UINT64CONST(0x7FFFFFFF),
	UINT64CONST(0x80000000),
	UINT64CONST(0xFFFFFFFF),
	UINT64CONST(0x100000000),
	UINT64CONST(0x0123456789ABCDEF),
	UINT64CONST(0x3FF0000000000001),
	UINT64CONST(0x7FFFFFFFFFFFFFFE),
	UINT64CONST(0x7FFFFFFFFFFFFFFF),
	UINT64CONST(0x8000000000000000),
	UINT64CONST(0x8000000000000001),
	UINT64CONST(0xBFF0000000000001),
	UINT64CONST(0xFEDCBA9876543210),
	UINT64CONST(0xFFFFFFFF00000000),
	UINT64CONST(0xFFFFFFFFFFFFFFFE),
	UINT64CONST(0xFFFFFFFFFFFFFFFF),
};

/* Turns a word so that it is ordered without a sign, upwards. */
static inline uint64
turn(WordOrder order, Datum datum)
{
	uint64 word = (uint64) datum;

	switch (order)
	{
		case ORDER_SIGNED:
			return word ^ PG_INT64_MIN;
		case ORDER_UNSIGNED_DOWN:
			return ~word;
		case ORDER_SIGNED_DOWN:
			return ~(word ^ PG_INT64_MIN);
		case ORDER_INT32:
			return (word ^ 0x80000000) << 32;
		default:
			return word;
	}
}

/* Returns true if a comparator has no two of the words that are asked in another order; it may leave some open. */
static bool
agrees(SortSupport support, WordOrder order)
{
	for (int i = 0; i < lengthof(asked); i++)
	{
		for (int j = 0; j < lengthof(asked); j++)
		{
			uint64 left = turn(order, (Datum) asked[i]);
			uint64 right = turn(order, (Datum) asked[j]);
			int said = support->comparator((Datum) asked[i], (Datum) asked[j], support);

			if (left < right ? said > 0 : left > right ? said < 0
													   : said != 0)
				return false;
		}
	}
	return true;
}

/* Returns in what order a class's words are; UNKNOWN if its comparator agrees with none, or with several. */
static WordOrder
find_order(SortSupport support)
{
	WordOrder found = ORDER_UNKNOWN;

	if (support->comparator == ssup_datum_unsigned_cmp)
		return ORDER_UNSIGNED;
	if (support->comparator == ssup_datum_int32_cmp)
		return ORDER_INT32;
#if SIZEOF_DATUM >= 8
	if (support->comparator == ssup_datum_signed_cmp)
		return ORDER_SIGNED;
#endif
	for (WordOrder order = ORDER_UNSIGNED; order <= ORDER_SIGNED_DOWN; order++)
	{
		if (!agrees(support, order))
			continue;
		if (found != ORDER_UNKNOWN)
			return ORDER_UNKNOWN;
		found = order;
	}
	return found;
}

/* Returns the function that says how a class's values are sorted; InvalidOid: it has none, or is not of btree. */
static Oid
support_function(const GpuSortOrder *order)
{
	HeapTuple family = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(order->opfamily));
	bool is_btree;

	if (!HeapTupleIsValid(family))
		return InvalidOid;
	is_btree = ((Form_pg_opfamily) GETSTRUCT(family))->opfmethod == BTREE_AM_OID;
	ReleaseSysCache(family);
	return is_btree ? get_opfamily_proc(order->opfamily, order->input_type, order->input_type, BTSORTSUPPORT_PROC)
					: InvalidOid;
}

/* Asks a class how its values are sorted, and finds out in what order its words are. */
static void
ask_class(Oid function, Oid collation, Abbreviation *abbreviation)
{
	SortSupport support = &abbreviation->support;

	memset(abbreviation, 0, sizeof(*abbreviation));
	support->ssup_cxt = CurrentMemoryContext;
	support->ssup_collation = collation;
	support->ssup_attno = 1;
	support->abbreviate = true;
	OidFunctionCall1(function, PointerGetDatum(support));
	if (support->abbrev_converter != NULL && support->abbrev_full_comparator != NULL && support->comparator != NULL)
		abbreviation->order = find_order(support);
}

/*
 * Returns true if values of this order are abbreviated by their operator class, to words in an order that is known.
 * Those of a fixed length are not asked for.  Errors: those of the class.
 */
bool
gpusort_abbreviation_exists(const GpuSortOrder *order)
{
	static KnownClass known[KNOWN_CLASSES];
	static int next = 0;
	Oid function;
	MemoryContext context;
	MemoryContext caller;
	Abbreviation abbreviation;

	if (sizeof(Datum) < sizeof(uint64) || get_typlen(order->input_type) != -1)
		return false;
	function = support_function(order);
	if (!OidIsValid(function) || (type_is_collatable(order->input_type) && !OidIsValid(order->collation)))
		return false;
	for (int i = 0; i < KNOWN_CLASSES; i++)
	{
		if (known[i].function == function && known[i].collation == order->collation)
			return known[i].exists;
	}
	context = AllocSetContextCreate(CurrentMemoryContext, "gpusort abbreviation", ALLOCSET_SMALL_SIZES);
	caller = MemoryContextSwitchTo(context);
	ask_class(function, order->collation, &abbreviation);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	known[next] = (KnownClass){
		.function = function,
		.collation = order->collation,
		.exists = abbreviation.order != ORDER_UNKNOWN,
	};
	next = (next + 1) % KNOWN_CLASSES;
	return abbreviation.order != ORDER_UNKNOWN;
}

/* Makes what encodes values of an order, in the current memory context.  Errors: those of the class. */
void *
gpusort_abbreviation_create(const GpuSortOrder *order)
{
	Abbreviation *abbreviation = palloc0(sizeof(Abbreviation));
	Oid function = support_function(order);

	/* A class that has lost its function since then has no words: all rows tie. */
	if (OidIsValid(function))
		ask_class(function, order->collation, abbreviation);
	return abbreviation;
}

/* A GpuSortBytesEncoder: never whole.  Errors: those of the class. */
int
gpusort_abbreviation_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole)
{
	Abbreviation *abbreviation = state;
	GpuSortByteWriter to = {.next = bytes, .end = bytes + room};
	Datum word;

	*whole = false;
	if (abbreviation->order == ORDER_UNKNOWN)
		return 0;
	word = abbreviation->support.abbrev_converter(value, &abbreviation->support);
	abbreviation->words++;
	(void) gpusort_put_number(&to, turn(abbreviation->order, word), GPUSORT_WORD_BYTES);
	return to.next - bytes;
}

/* Returns true if values are in the key as their operator class abbreviates them. */
bool
gpusort_keys_are_abbreviated(const GpuSortKeys *keys)
{
	for (int i = 0; i < keys->encoded; i++)
	{
		if (OidIsValid(keys->columns[i].abbreviated_by))
			return true;
	}
	return false;
}

/*
 * Returns true if the class of a column's values, of which some have been encoded, says that its words are not worth
 * it; false of other columns.
 */
bool
gpusort_keys_abbreviation_aborts(const GpuSortColumn *column)
{
	Abbreviation *abbreviation = column->state;
	SortSupport support;

	if (column->type->source != GPUSORT_SOURCE_ABBREVIATION || abbreviation->order == ORDER_UNKNOWN)
		return false;
	support = &abbreviation->support;
	return abbreviation->words > 0 && support->abbrev_abort != NULL && support->abbrev_abort(abbreviation->words, support);
}
