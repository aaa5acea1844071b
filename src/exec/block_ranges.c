/*-------------------------------------------------------------------------
 *
 * block_ranges.c
 *	  The ranges of blocks of a table, ordered by what a BRIN index says of the values in each.
 *
 * An index of the kind minmax or minmax-multi has, for each range of blocks, the least and the greatest value, and
 * whether there are NULLs.  The one that comes first in the order of a sort is the range's best value.  Ranges are
 * listed by their best value.  Before them come ranges of which the index says nothing: those that are not summarised
 * yet, those that are being summarised, and those behind the last one.
 *
 * What is said of a range holds for a snapshot that was taken before it is read.  A row that the snapshot sees was
 * inserted by a transaction that had widened the summary before it committed, and a range that is summarised in the
 * meantime is so by all rows that are there.  The exceptions are told in compat.h (SUMMARIES_LACK_OLD_ROWS)
 * and in range_scan.c.
 *
 * A minmax-multi summary is one value: a header, and as bytes one behind the other so many pairs of values, each an
 * interval, and so many single values.  They have no exported reader.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/block_ranges.h"

#include "access/brin_internal.h"
#include "access/brin_revmap.h"
#include "access/brin_tuple.h"
#include "access/genam.h"
#include "access/tupmacs.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* The header of a minmax-multi summary. */
typedef struct MultiSummary
{
	int32 varlena;
	Oid type;
	int pairs;
	int values; /* behind the pairs */
	int most_values;
	char data[FLEXIBLE_ARRAY_MEMBER];
} MultiSummary;

/* What reads the summaries of a column. */
typedef struct Summaries
{
	BrinDesc *index;
	BrinRevmap *map;
	AttrNumber column;
	SortSupport order;
	bool multi;
	int16 length; /* of a value */
	bool by_value;

	Buffer buffer; /* the last that a summary was in, pinned */
	BrinTuple *copy;
	Size copy_bytes;
	BrinMemTuple *tuple;
	MemoryContext context; /* of what is made of one summary */
} Summaries;

/* Returns the value at *data, which goes to the next. */
static Datum
next_value(const Summaries *summaries, const char **data)
{
	Datum value = 0;
	Size bytes;
	char *copy;

	if (summaries->by_value)
	{
		memcpy(&value, *data, summaries->length);
		*data += summaries->length;
		return fetch_att(&value, true, summaries->length);
	}
	bytes = att_addlength_pointer(0, summaries->length, *data);
	copy = palloc(bytes);
	memcpy(copy, *data, bytes);
	*data += bytes;
	return PointerGetDatum(copy);
}

/* Returns the value of a minmax-multi summary that comes first. */
static Datum
best_of_multi(const Summaries *summaries, Datum summary)
{
	const MultiSummary *multi = (const MultiSummary *) PG_DETOAST_DATUM(summary);
	const int values = 2 * multi->pairs + multi->values;
	const char *data = multi->data;
	Datum best = next_value(summaries, &data);

	for (int i = 1; i < values; i++)
	{
		Datum value = next_value(summaries, &data);

		if (ApplySortComparator(value, false, best, false, summaries->order) < 0)
			best = value;
	}
	return best;
}

/* Fills in what the index says of a range, whose blocks are set. */
static void
read_summary(Summaries *summaries, GpuSortBlockRange *range)
{
	OffsetNumber line;
	Size bytes;
	BrinTuple *found = BRIN_GET_TUPLE(summaries->map, range->start, &summaries->buffer, &line, &bytes);
	const BrinValues *values;

	range->summarised = false;
	if (found == NULL)
		return;
	summaries->copy = brin_copy_tuple(found, bytes, summaries->copy, &summaries->copy_bytes);
	LockBuffer(summaries->buffer, BUFFER_LOCK_UNLOCK);
	summaries->tuple = brin_deform_tuple(summaries->index, summaries->copy, summaries->tuple);
	values = &summaries->tuple->bt_columns[summaries->column - 1];
	if (summaries->tuple->bt_placeholder)
		return;
	range->summarised = true;
	range->null = values->bv_allnulls || (values->bv_hasnulls && summaries->order->ssup_nulls_first);
	if (!range->null)
	{
		MemoryContext caller = MemoryContextSwitchTo(summaries->context);
		const bool greatest = summaries->order->ssup_reverse;
		Datum best = summaries->multi ? best_of_multi(summaries, values->bv_values[0]) : values->bv_values[greatest ? 1 : 0];

		MemoryContextSwitchTo(caller);
		range->best = datumCopy(best, summaries->by_value, summaries->length);
		MemoryContextReset(summaries->context);
	}
}

/* Orders ranges as a scan reads them: a comparator for qsort_arg. */
static int
compare_ranges(const void *one, const void *other, void *arg)
{
	const GpuSortBlockRange *a = one;
	const GpuSortBlockRange *b = other;
	int order = 0;

	if (a->summarised != b->summarised)
		return a->summarised ? 1 : -1;
	if (a->summarised)
		order = ApplySortComparator(a->best, a->null, b->best, b->null, (SortSupport) arg);
	if (order != 0)
		return order;
	return a->start < b->start ? -1 : 1;
}

static Summaries
open_summaries(Relation index, AttrNumber column, SortSupport order, BlockNumber *blocks)
{
	const FormData_pg_attribute *attribute = TupleDescAttr(RelationGetDescr(index), column - 1);
	Summaries summaries = {
		.index = brin_build_desc(index),
		.map = BRIN_REVMAP_INITIALIZE(index, blocks),
		.column = column,
		.order = order,
		.multi = index_getprocid(index, column, BRIN_PROCNUM_OPCINFO) == F_BRIN_MINMAX_MULTI_OPCINFO,
		.context = AllocSetContextCreate(CurrentMemoryContext, "gpusort summary", ALLOCSET_DEFAULT_SIZES),
	};

	get_typlenbyval(attribute->atttypid, &summaries.length, &summaries.by_value);
	summaries.tuple = brin_new_memtuple(summaries.index);
	return summaries;
}

static void
close_summaries(Summaries *summaries)
{
	if (BufferIsValid(summaries->buffer))
		ReleaseBuffer(summaries->buffer);
	brinRevmapTerminate(summaries->map);
	brin_free_desc(summaries->index);
	MemoryContextDelete(summaries->context);
}

/*
 * Reads what a BRIN index says of the values of its column (1-based) in all blocks that the table has now; snapshot is
 * that of the rows, which has been taken.  All belongs to the current memory context.
 */
GpuSortBlockRanges
gpusort_block_ranges_read(Relation table, Oid index, AttrNumber column, SortSupport order, Snapshot snapshot)
{
	Relation relation = index_open(index, AccessShareLock);
	GpuSortBlockRanges result = {0};
	BlockNumber table_blocks;
	BlockNumber blocks;
	Summaries summaries;

	/*
	 * As for a scan of the index: whoever inserts into it after this learns that a serializable transaction has read it,
	 * and what was inserted before is in a range or block that is seen here.
	 */
	PredicateLockRelation(relation, snapshot);
	table_blocks = RelationGetNumberOfBlocks(table);
	summaries = open_summaries(relation, column, order, &blocks);
	pgstat_count_index_scan(relation);
	result.ranges = MemoryContextAllocHuge(CurrentMemoryContext,
										   ((Size) table_blocks / blocks + 1) * sizeof(GpuSortBlockRange));
	for (uint64 start = 0; start < table_blocks; start += blocks)
	{
		GpuSortBlockRange *range = &result.ranges[result.count++];

		CHECK_FOR_INTERRUPTS();
		range->start = start;
		range->blocks = Min(blocks, table_blocks - start);
		read_summary(&summaries, range);
	}
	close_summaries(&summaries);
	index_close(relation, NoLock);
	qsort_arg(result.ranges, result.count, sizeof(GpuSortBlockRange), compare_ranges, order);
	return result;
}
