/*-------------------------------------------------------------------------
 *
 * first_keys.c
 *	  The first so many of the leading keys of rows: which rows can be among the first ones.
 *
 * A heap of keys, the last of them on top, as PostgreSQL's comparator orders them.  It is exact from the first key that
 * is one too many, unlike the cutoff of a sort in the service (sort/cutoff.h), which learns by the thousand.
 *
 * A row is not wanted if so many others come before it.  With one column to sort by those that are equal to the last
 * of them are as good as it, and not wanted either; with more columns they are.
 *
 * Legal order of calls: create; then for each reading of the rows reset, and for each row take.  may_hold is legal at
 * any time, and hold for a row that was taken: others that came since can be before it.
 *
 * Memory: in a context below the one current at create; keys are copies.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/first_keys.h"

#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

typedef struct FirstKey
{
	Datum value;
	bool null;
} FirstKey;

struct GpuSortFirstKeys
{
	MemoryContext context; /* of the keys */
	SortSupportData order;
	int16 length; /* of a value */
	bool by_value;
	bool ties; /* further columns tell rows apart whose keys are equal */
	int wanted;
	int count;
	FirstKey *heap; /* no key comes before those below it */
};

/* Makes the keys of the first of these columns. */
GpuSortFirstKeys *
gpusort_first_keys_create(const GpuSortColumn *columns, int ncolumns)
{
	GpuSortFirstKeys *first = palloc0(sizeof(GpuSortFirstKeys));

	first->context = AllocSetContextCreate(CurrentMemoryContext, "gpusort first keys", ALLOCSET_DEFAULT_SIZES);
	first->order.ssup_cxt = CurrentMemoryContext;
	first->order.ssup_collation = columns[0].collation;
	first->order.ssup_nulls_first = columns[0].nulls_first;
	PrepareSortSupportFromOrderingOp(columns[0].sort_operator, &first->order);
	get_typlenbyval(columns[0].value_type, &first->length, &first->by_value);
	first->ties = ncolumns > 1;
	return first;
}

/* Returns what compares the keys. */
SortSupport
gpusort_first_keys_order(GpuSortFirstKeys *first)
{
	return &first->order;
}

/* Forgets all keys; so many are wanted. */
void
gpusort_first_keys_reset(GpuSortFirstKeys *first, uint64 wanted)
{
	MemoryContextReset(first->context);
	first->heap = MemoryContextAlloc(first->context, wanted * sizeof(FirstKey));
	first->wanted = wanted;
	first->count = 0;
}

static inline int
compare(GpuSortFirstKeys *first, const FirstKey *a, const FirstKey *b)
{
	return ApplySortComparator(a->value, a->null, b->value, b->null, &first->order);
}

/* Returns true if a row of this key that is still to come can be among the first. */
bool
gpusort_first_keys_may_hold(GpuSortFirstKeys *first, Datum key, bool null)
{
	const FirstKey other = {.value = key, .null = null};

	return first->count < first->wanted || compare(first, &other, &first->heap[0]) < (first->ties ? 1 : 0);
}

/* Returns true if a row of this key that was taken can still be among the first. */
bool
gpusort_first_keys_hold(GpuSortFirstKeys *first, Datum key, bool null)
{
	const FirstKey other = {.value = key, .null = null};

	return compare(first, &other, &first->heap[0]) <= 0;
}

/* Puts a key into the heap, from place i upwards, where there is room. */
static void
sift_up(GpuSortFirstKeys *first, int i, FirstKey key)
{
	FirstKey *heap = first->heap;

	while (i > 0 && compare(first, &key, &heap[(i - 1) / 2]) > 0)
	{
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = key;
}

/* Puts a key into the heap in the place of the last. */
static void
replace_last(GpuSortFirstKeys *first, FirstKey key)
{
	FirstKey *heap = first->heap;
	int i = 0;

	for (int child = 1; child < first->count; child = 2 * i + 1)
	{
		if (child + 1 < first->count && compare(first, &heap[child + 1], &heap[child]) > 0)
			child++;
		if (compare(first, &key, &heap[child]) >= 0)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = key;
}

static FirstKey
copy_key(GpuSortFirstKeys *first, Datum value, bool null)
{
	FirstKey key = {.value = value, .null = null};

	if (!null && !first->by_value)
	{
		MemoryContext caller = MemoryContextSwitchTo(first->context);

		key.value = datumCopy(value, false, first->length);
		MemoryContextSwitchTo(caller);
	}
	return key;
}

/* A row of this key comes: returns true if it can be among the first. */
bool
gpusort_first_keys_take(GpuSortFirstKeys *first, Datum key, bool null)
{
	const FirstKey other = {.value = key, .null = null};
	FirstKey last;
	int order;

	if (first->count < first->wanted)
	{
		sift_up(first, first->count, copy_key(first, key, null));
		first->count++;
		return true;
	}
	last = first->heap[0];
	order = compare(first, &other, &last);
	if (order >= 0)
		return first->ties && order == 0;
	replace_last(first, copy_key(first, key, null));
	if (!last.null && !first->by_value)
		pfree(DatumGetPointer(last.value));
	return true;
}
