/*-------------------------------------------------------------------------
 *
 * duplicates.c
 *	  Finds index tuples of equal keys among those that come in order.
 *
 * PostgreSQL's comparators compare each with the one before it.  Rows that are to be nobody's duplicates, those that
 * are dead to all but old snapshots, are not shown here; those on both sides are then compared with one another.
 *
 *-------------------------------------------------------------------------
 */
#include "index/duplicates.h"

#include "access/genam.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"

struct GpuSortDuplicates
{
	Relation heap;
	Relation index;
	bool nulls_not_distinct;
	int columns;
	SortSupport supports;
	MemoryContext scratch; /* what comparators leave behind */

	char *before; /* the tuple before, copied; its length in bytes is 0 before the first */
	Size before_bytes;
	Size capacity;
};

/* Makes what compares neighbours among an index's tuples; it belongs to the current memory context. */
GpuSortDuplicates *
gpusort_duplicates_create(Relation heap, Relation index, BTScanInsert key, bool nulls_not_distinct)
{
	GpuSortDuplicates *own = palloc0(sizeof(GpuSortDuplicates));

	own->heap = heap;
	own->index = index;
	own->nulls_not_distinct = nulls_not_distinct;
	own->columns = IndexRelationGetNumberOfKeyAttributes(index);
	own->supports = palloc0(own->columns * sizeof(SortSupportData));
	own->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpusort duplicates", ALLOCSET_SMALL_SIZES);
	own->capacity = 256;
	own->before = palloc(own->capacity);
	for (int i = 0; i < own->columns; i++)
	{
		const ScanKey column = &key->scankeys[i];
		SortSupport support = &own->supports[i];

		support->ssup_cxt = CurrentMemoryContext;
		support->ssup_collation = column->sk_collation;
		support->ssup_nulls_first = (column->sk_flags & SK_BT_NULLS_FIRST) != 0;
		support->ssup_attno = column->sk_attno;
		PREPARE_INDEX_SORT_SUPPORT(index, (column->sk_flags & SK_BT_DESC) != 0, support);
	}
	return own;
}

/* Returns true if two tuples have the same key: NULLs are equal, or a tuple with one has nobody's key. */
static bool
are_equal(const GpuSortDuplicates *own, IndexTuple a, IndexTuple b)
{
	const TupleDesc desc = RelationGetDescr(own->index);

	for (int i = 0; i < own->columns; i++)
	{
		bool a_null;
		bool b_null;
		Datum a_value = index_getattr(a, i + 1, desc, &a_null);
		Datum b_value = index_getattr(b, i + 1, desc, &b_null);

		if (a_null != b_null || (a_null && !own->nulls_not_distinct))
			return false;
		if (!a_null && ApplySortComparator(a_value, false, b_value, false, &own->supports[i]) != 0)
			return false;
	}
	return true;
}

/*
 * Ends the build as PostgreSQL's would.  Which of two equal keys that look different it names depends on how its sort
 * goes; of few rows it is the one that comes first.
 */
static void
report_duplicate(const GpuSortDuplicates *own, IndexTuple tuple)
{
	Datum values[INDEX_MAX_KEYS];
	bool nulls[INDEX_MAX_KEYS];
	const char *key;

	index_deform_tuple(tuple, RelationGetDescr(own->index), values, nulls);
	key = BuildIndexValueDescription(own->index, values, nulls);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"", RelationGetRelationName(own->index)),
			 key ? errdetail("Key %s is duplicated.", key) : errdetail("Duplicate keys exist."),
			 errtableconstraint(own->heap, RelationGetRelationName(own->index))));
}

/* Looks at the next tuple in order; it is an error if it has the key of the one before. */
void
gpusort_duplicates_check(GpuSortDuplicates *own, IndexTuple tuple)
{
	const Size bytes = IndexTupleSize(tuple);

	if (own->before_bytes > 0)
	{
		MemoryContext caller = MemoryContextSwitchTo(own->scratch);

		if (are_equal(own, (IndexTuple) own->before, tuple))
		{
			MemoryContextSwitchTo(caller);
			report_duplicate(own, (IndexTuple) own->before);
		}
		MemoryContextSwitchTo(caller);
		MemoryContextReset(own->scratch);
	}
	if (bytes > own->capacity)
	{
		own->before = repalloc(own->before, bytes);
		own->capacity = bytes;
	}
	memcpy(own->before, tuple, bytes);
	own->before_bytes = bytes;
}

/* Forgets the last tuple: the next one has none before it. */
void
gpusort_duplicates_forget(GpuSortDuplicates *own)
{
	own->before_bytes = 0;
}
