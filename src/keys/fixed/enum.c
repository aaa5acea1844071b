/*-------------------------------------------------------------------------
 *
 * enum.c
 *	  The positions of enum values among those of their type.
 *
 * The Oids of enum values order like the values only until ALTER TYPE ... ADD
 * VALUE BEFORE; the numbers in pg_enum that do order them are assigned anew when
 * there is no room left for one.  What never changes is which of two values
 * comes first.  So the positions are taken from the list of values once for a sort,
 * in each process that ingests rows, and always as the query's snapshot shows
 * it: parallel workers have the leader's snapshot, and with it the same list.
 *
 * The value number i of that list, from 0, has position 2i + 2.  A value that is not
 * in it has been added since, by a transaction that the snapshot does not see;
 * a volatile function or a cast can return it nonetheless.  It gets the position
 * after the last of the list that comes before it, 2i + 3, or 1 before all; it
 * shares that position with others, and needs a tie-break: the comparator, which knows
 * of the newest values, decides among them.  An odd position is never of a value in
 * the list, so exact rows and those do not mix.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_enum.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

typedef struct EnumValue
{
	Oid oid;
	uint32 position;
} EnumValue;

typedef struct EnumList
{
	MemoryContext context; /* of values */
	EnumValue *values;     /* by Oid; NULL until the first is asked for */
	int count;
	int capacity;
} EnumList;

/* Makes the list of a column's values, which the first of them fills; in the current memory context. */
void *
gpusort_enum_create(const GpuSortOrder *order)
{
	EnumList *list = palloc0(sizeof(EnumList));

	list->context = CurrentMemoryContext;
	return list;
}

static inline const EnumValue *
find_value(const EnumList *list, int count, Oid oid)
{
	const EnumValue *first = list->values;

	/* the last value whose Oid is not above oid, without a branch on data */
	while (count > 1)
	{
		int half = count / 2;

		first = first[half].oid <= oid ? first + half : first;
		count -= half;
	}
	return count > 0 && first->oid == oid ? first : NULL;
}

static int
compare_oids(const void *a, const void *b)
{
	Oid left = ((const EnumValue *) a)->oid;
	Oid right = ((const EnumValue *) b)->oid;

	return left < right ? -1 : left > right;
}

/*
 * Reads the values of type that snapshot shows, the newest for NULL.
 * The first time they make up the list; later,
 * those that are not there are added with the positions between.
 */
static void
read_values(EnumList *list, Oid type, Snapshot snapshot)
{
	bool first_time = list->values == NULL;
	int known = list->count;
	uint32 position = 0;
	Relation catalog;
	Relation index;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple tuple;

	if (first_time)
	{
		list->capacity = 64;
		list->values = MemoryContextAlloc(list->context, list->capacity * sizeof(EnumValue));
	}
	ScanKeyInit(&key, Anum_pg_enum_enumtypid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(type));
	catalog = table_open(EnumRelationId, AccessShareLock);
	index = index_open(EnumTypIdSortOrderIndexId, AccessShareLock);
	scan = systable_beginscan_ordered(catalog, index, snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext_ordered(scan, ForwardScanDirection)))
	{
		Oid oid = ((Form_pg_enum) GETSTRUCT(tuple))->oid;
		const EnumValue *value = find_value(list, known, oid);

		if (first_time)
			position += 2;
		else if (value != NULL)
		{
			if (value->position % 2 == 0)
				position = value->position;
			continue;
		}
		if (list->count == list->capacity)
		{
			list->capacity *= 2;
			list->values = repalloc_huge(list->values, list->capacity * sizeof(EnumValue));
		}
		list->values[list->count].oid = oid;
		list->values[list->count].position = first_time ? position : position + 1;
		list->count++;
	}
	systable_endscan_ordered(scan);
	index_close(index, AccessShareLock);
	table_close(catalog, AccessShareLock);
	qsort(list->values, list->count, sizeof(EnumValue), compare_oids);
}

/* A value that is not in the list yet; an error where PostgreSQL's comparator has one. */
static pg_noinline const EnumValue *
read_value(EnumList *list, Oid oid)
{
	HeapTuple tuple = SearchSysCache1(ENUMOID, ObjectIdGetDatum(oid));
	const EnumValue *value;
	Oid type;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid internal value for enum: %u", oid)));
	type = ((Form_pg_enum) GETSTRUCT(tuple))->enumtypid;
	ReleaseSysCache(tuple);

	if (list->values == NULL)
		read_values(list, type, ActiveSnapshotSet() ? GetActiveSnapshot() : NULL);
	value = find_value(list, list->count, oid);
	if (value == NULL)
	{
		read_values(list, type, NULL);
		value = find_value(list, list->count, oid);
	}
	if (value == NULL)
		elog(ERROR, "enum value %u is not in the list of its type", oid);
	return value;
}

/*
 * Encodes the Oid of an enum value as its position, of GPUSORT_ENUM_BITS bits.  Returns
 * false if it shares that with others.  Errors: those of reading the catalogue.
 */
bool
gpusort_enum_encode(void *state, Datum value, GpuSortBits *bits)
{
	EnumList *list = state;
	Oid oid = DatumGetObjectId(value);
	const EnumValue *found = find_value(list, list->count, oid);

	if (unlikely(found == NULL))
		found = read_value(list, oid);
	bits->low = found->position;
	return found->position % 2 == 0;
}
