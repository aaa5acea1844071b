/*-------------------------------------------------------------------------
 *
 * jsonb.c
 *	  jsonb as bytes that order as compareJsonbContainers does.
 *
 * It compares values from the outside in, as they are stored: their kinds, then of arrays the number of elements, and
 * of objects that of pairs, then these in turn, of objects by their stored order: a pair's key and then its value.
 * Strings and keys are compared under the database's default collation.  A scalar at the top is an array of one
 * element, marked as such, and compared with arrays first by the number of elements; so it is behind an empty array,
 * which within others is among the arrays.  Thus a value is a byte, in this order, and
 *
 *	  EMPTY		nothing: an empty array at the top
 *	  NULL_		nothing
 *	  STRING	the delimited string
 *	  NUMERIC	the number, as numeric_parts.c has it
 *	  FALSE_, TRUE_  nothing
 *	  ARRAY		the number of elements; then these
 *	  OBJECT	the number of pairs; then of each the key as a delimited string, and the value
 *
 * A number of elements or pairs is one byte up to MANY - 1, else MANY and four bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#include "catalog/pg_collation_d.h"
#include "catalog/pg_type_d.h"
#include "keys/bytes/parts.h"
#include "miscadmin.h"
#include "utils/jsonb.h"
#include "utils/typcache.h"

enum
{
	EMPTY,
	NULL_,
	STRING,
	NUMERIC,
	FALSE_,
	TRUE_,
	ARRAY,
	OBJECT,
};

#define MANY 255

/* A GpuSortKeyType's parts: strings. */
List *
gpusort_jsonb_parts(Oid type, Oid collation)
{
	return list_make1(gpusort_default_order(TEXTOID, DEFAULT_COLLATION_OID));
}

/* Makes what encodes jsonb, in the current memory context: the part that its strings are. */
void *
gpusort_jsonb_create(const GpuSortOrder *order)
{
	GpuSortPart *string = palloc0(sizeof(GpuSortPart));

	gpusort_part_init(string, linitial(gpusort_jsonb_parts(order->type, order->collation)));
	return string;
}

static bool
put_count(GpuSortByteWriter *to, uint32 count)
{
	return count < MANY ? gpusort_put_number(to, count, 1) : gpusort_put_number(to, (uint64) MANY << 32 | count, 5);
}

static bool put_container(GpuSortByteWriter *to, const GpuSortPart *string, const JsonbContainer *container);

/* Adds entry i of a container, whose bytes begin at offset of its data. */
static bool
put_entry(GpuSortByteWriter *to, const GpuSortPart *string, const JsonbContainer *container, int i, const char *data,
		  uint32 offset)
{
	JEntry entry = container->children[i];

	if (JBE_ISNULL(entry))
		return gpusort_put_number(to, NULL_, 1);
	if (JBE_ISBOOL(entry))
		return gpusort_put_number(to, JBE_ISBOOL_TRUE(entry) ? TRUE_ : FALSE_, 1);
	if (JBE_ISSTRING(entry))
		return gpusort_put_number(to, STRING, 1) &&
			gpusort_part_put_string(to, string, data + offset, getJsonbLength(container, i));
	if (JBE_ISNUMERIC(entry))
		return gpusort_put_number(to, NUMERIC, 1) &&
			gpusort_numeric_put(to, (const struct varlena *) (data + INTALIGN(offset)));
	return put_container(to, string, (const JsonbContainer *) (data + INTALIGN(offset)));
}

/* Adds an array's elements. */
static bool
put_elements(GpuSortByteWriter *to, const GpuSortPart *string, const JsonbContainer *array)
{
	const int count = JsonContainerSize(array);
	const char *data = (const char *) (array->children + count);
	uint32 offset = 0;

	for (int i = 0; i < count; i++)
	{
		if (!put_entry(to, string, array, i, data, offset))
			return false;
		JBE_ADVANCE_OFFSET(offset, array->children[i]);
	}
	return true;
}

/* Adds an object's pairs. */
static bool
put_pairs(GpuSortByteWriter *to, const GpuSortPart *string, const JsonbContainer *object)
{
	const int count = JsonContainerSize(object);
	const char *data = (const char *) (object->children + 2 * count);
	uint32 key = 0;
	uint32 value = getJsonbOffset(object, count);

	for (int i = 0; i < count; i++)
	{
		if (!gpusort_part_put_string(to, string, data + key, getJsonbLength(object, i)) ||
			!put_entry(to, string, object, count + i, data, value))
			return false;
		JBE_ADVANCE_OFFSET(key, object->children[i]);
		JBE_ADVANCE_OFFSET(value, object->children[count + i]);
	}
	return true;
}

/* Adds an array or an object. */
static bool
put_container(GpuSortByteWriter *to, const GpuSortPart *string, const JsonbContainer *container)
{
	check_stack_depth();
	if (JsonContainerIsObject(container))
		return gpusort_put_number(to, OBJECT, 1) && put_count(to, JsonContainerSize(container)) &&
			put_pairs(to, string, container);
	return gpusort_put_number(to, ARRAY, 1) && put_count(to, JsonContainerSize(container)) &&
		put_elements(to, string, container);
}

/* A GpuSortBytesEncoder. */
int
gpusort_jsonb_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole)
{
	GpuSortByteWriter to = {.next = bytes, .end = bytes + room};
	GpuSortShortVarlena copy;
	const JsonbContainer *root = &((const Jsonb *) gpusort_flatten(value, &copy))->root;

	if (JsonContainerIsScalar(root))
		*whole = put_elements(&to, state, root);
	else if (JsonContainerIsArray(root) && JsonContainerSize(root) == 0)
		*whole = gpusort_put_number(&to, EMPTY, 1);
	else
		*whole = put_container(&to, state, root);
	return to.next - bytes;
}
