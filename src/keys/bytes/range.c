/*-------------------------------------------------------------------------
 *
 * range.c
 *	  Ranges and multiranges as bytes that order as range_cmp and multirange_cmp do.
 *
 * range_cmp has the empty range first, then compares lower bounds, and upper ones if these are equal.  A lower bound
 * is below all others if it is infinite; of two with the same value the inclusive one is lower; of upper bounds the
 * other way round. So a range is
 *
 *	  EMPTY, or INFINITE, or FINITE and the delimited lower bound: a byte
 *	  EXCLUSIVE of a lower bound that is, and FINITE or INFINITE of the upper one: a byte, their sum
 *	  the delimited upper bound, and whether it is inclusive: a byte
 *
 * the latter two unless it is empty, and the last unless it has no upper bound.  A multirange is its ranges, none of
 * which is empty, and then EMPTY: of two that begin alike, the shorter is first.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#include "access/htup_details.h"
#include "catalog/pg_range.h"
#include "keys/bytes/parts.h"
#include "utils/lsyscache.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

enum
{
	EMPTY = 0,
	LOWER_INFINITE = 1,
	LOWER_FINITE = 2,
	UPPER_FINITE = 1,
	UPPER_INFINITE = 2,
	EXCLUSIVE = 4,
};

typedef struct RangeState
{
	TypeCacheEntry *range; /* its type's */
	GpuSortPart bound;
} RangeState;

/* A GpuSortKeyType's parts: the bounds, in the order that the type was made with. */
List *
gpusort_range_parts(Oid type, Oid collation)
{
	GpuSortOrder *order;
	HeapTuple tuple = SearchSysCache1(RANGETYPE, ObjectIdGetDatum(type));
	Form_pg_range range;

	if (!HeapTupleIsValid(tuple))
		return NIL;
	range = (Form_pg_range) GETSTRUCT(tuple);
	order = palloc(sizeof(GpuSortOrder));
	*order = (GpuSortOrder){
		.opfamily = get_opclass_family(range->rngsubopc),
		.input_type = get_opclass_input_type(range->rngsubopc),
		.type = getBaseType(range->rngsubtype),
		.collation = range->rngcollation,
	};
	ReleaseSysCache(tuple);
	return list_make1(order);
}

/* The same of a multirange. */
List *
gpusort_multirange_parts(Oid type, Oid collation)
{
	return gpusort_range_parts(get_multirange_range(type), collation);
}

/* Makes what encodes ranges of a type, in the current memory context. */
static RangeState *
create_state(Oid range)
{
	RangeState *state = palloc0(sizeof(RangeState));

	state->range = lookup_type_cache(range, TYPECACHE_RANGE_INFO);
	gpusort_part_init(&state->bound, linitial(gpusort_range_parts(range, InvalidOid)));
	return state;
}

/* Makes what encodes ranges of an order, in the current memory context. */
void *
gpusort_range_create(const GpuSortOrder *order)
{
	return create_state(order->type);
}

/* The same of multiranges. */
void *
gpusort_multirange_create(const GpuSortOrder *order)
{
	return create_state(get_multirange_range(order->type));
}

/* Adds a range that is not empty. */
static bool
put_bounds(GpuSortByteWriter *to, const RangeState *state, const RangeBound *lower, const RangeBound *upper)
{
	int between = upper->infinite ? UPPER_INFINITE : UPPER_FINITE;

	if (lower->infinite)
	{
		if (!gpusort_put_number(to, LOWER_INFINITE, 1))
			return false;
	}
	else
	{
		if (!gpusort_put_number(to, LOWER_FINITE, 1) || !gpusort_part_put(to, &state->bound, lower->val))
			return false;
		between += lower->inclusive ? 0 : EXCLUSIVE;
	}
	if (!gpusort_put_number(to, between, 1))
		return false;
	return upper->infinite ||
		(gpusort_part_put(to, &state->bound, upper->val) && gpusort_put_number(to, upper->inclusive, 1));
}

/* A GpuSortBytesEncoder of ranges. */
int
gpusort_range_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole)
{
	GpuSortByteWriter to = {.next = bytes, .end = bytes + room};
	GpuSortShortVarlena copy;
	RangeBound lower;
	RangeBound upper;
	bool empty;

	range_deserialize(((RangeState *) state)->range, (const RangeType *) gpusort_flatten(value, &copy),
					  &lower, &upper, &empty);
	*whole = empty ? gpusort_put_number(&to, EMPTY, 1) : put_bounds(&to, state, &lower, &upper);
	return to.next - bytes;
}

/* A GpuSortBytesEncoder of multiranges. */
int
gpusort_multirange_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole)
{
	GpuSortByteWriter to = {.next = bytes, .end = bytes + room};
	GpuSortShortVarlena copy;
	const MultirangeType *multirange = (const MultirangeType *) gpusort_flatten(value, &copy);
	bool goes_on = true;

	for (uint32 i = 0; i < multirange->rangeCount && goes_on; i++)
	{
		RangeBound lower;
		RangeBound upper;

		multirange_get_bounds(((RangeState *) state)->range, multirange, i, &lower, &upper);
		goes_on = put_bounds(&to, state, &lower, &upper);
	}
	*whole = goes_on && gpusort_put_number(&to, EMPTY, 1);
	return to.next - bytes;
}
