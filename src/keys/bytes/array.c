/*-------------------------------------------------------------------------
 *
 * array.c
 *	  Arrays as bytes that order as array_cmp does.
 *
 * array_cmp compares elements in turn, NULL above all others; then their number; then the number of dimensions,
 * the dimensions' lengths, and their lower bounds.  Each element is a byte, ELEMENT, and the delimited part that it
 * is, or NULL_ELEMENT.  Behind the last is a byte below these, which has the number of dimensions; of one dimension,
 * whose length the elements have told, also whether it begins at 1, as nearly all do:
 *
 *	  0			there are no dimensions, and no elements
 *	  1, 2, 3	one dimension, from below 1, from 1, from above 1
 *	  2 + n		n dimensions
 *
 * With several dimensions follow their lengths, and with them and with 1 and 3 the lower bounds, four bytes each.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#include "access/tupmacs.h"
#include "keys/bytes/parts.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

#define ELEMENT      16
#define NULL_ELEMENT 32

StaticAssertDecl(2 + MAXDIM < ELEMENT, "an array's end is below its elements");

typedef struct ArrayState
{
	GpuSortPart element;
	int16 length; /* of an element, as its type has it */
	bool by_value;
	char align;
} ArrayState;

/* A GpuSortKeyType's parts: the elements. */
List *
gpusort_array_parts(Oid type, Oid collation)
{
	Oid element = get_element_type(type);

	return OidIsValid(element) ? list_make1(gpusort_default_order(element, collation)) : NIL;
}

/* Makes what encodes arrays of an order, in the current memory context. */
void *
gpusort_array_create(const GpuSortOrder *order)
{
	ArrayState *state = palloc0(sizeof(ArrayState));

	gpusort_part_init(&state->element, linitial(gpusort_array_parts(order->type, order->collation)));
	get_typlenbyvalalign(get_element_type(order->type), &state->length, &state->by_value, &state->align);
	return state;
}

/* Adds a signed number. */
static inline bool
put_int(GpuSortByteWriter *to, int32 value)
{
	return gpusort_put_number(to, (uint32) value ^ 0x80000000, 4);
}

/* Adds what follows the elements. */
static bool
put_end(GpuSortByteWriter *to, const ArrayType *array)
{
	const int ndims = ARR_NDIM(array);
	const int *first = ARR_LBOUND(array);
	bool room;

	if (ndims == 0)
		return gpusort_put_number(to, 0, 1);
	if (ndims == 1)
		return gpusort_put_number(to, first[0] < 1 ? 1 : first[0] == 1 ? 2
																	   : 3,
								  1) &&
			(first[0] == 1 || put_int(to, first[0]));
	room = gpusort_put_number(to, 2 + ndims, 1);
	for (int i = 0; i < ndims && room; i++)
		room = put_int(to, ARR_DIMS(array)[i]);
	for (int i = 0; i < ndims && room; i++)
		room = put_int(to, first[i]);
	return room;
}

static bool
put_array(GpuSortByteWriter *to, const ArrayState *state, const ArrayType *array)
{
	const int count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const uint8 *not_null = ARR_NULLBITMAP(array);
	const char *data = ARR_DATA_PTR(array);

	for (int i = 0; i < count; i++)
	{
		Datum value;

		if (not_null != NULL && (not_null[i / 8] & 1 << i % 8) == 0)
		{
			if (!gpusort_put_number(to, NULL_ELEMENT, 1))
				return false;
			continue;
		}
		value = fetch_att(data, state->by_value, state->length);
		if (!gpusort_put_number(to, ELEMENT, 1) || !gpusort_part_put(to, &state->element, value))
			return false;
		data = att_addlength_pointer(data, state->length, data);
		data = (const char *) att_align_nominal(data, state->align);
	}
	return put_end(to, array);
}

/* A GpuSortBytesEncoder. */
int
gpusort_array_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole)
{
	GpuSortByteWriter to = {.next = bytes, .end = bytes + room};
	GpuSortShortVarlena copy;

	*whole = put_array(&to, state, (const ArrayType *) gpusort_flatten(value, &copy));
	return to.next - bytes;
}
