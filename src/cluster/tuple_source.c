/*-------------------------------------------------------------------------
 *
 * tuple_source.c
 *	  The tuples of a table that is to be rewritten, as the source of a sort.
 *
 * Nobody else reads or changes the table.  Its tuples are read by the page, by processes that claim some pages at a
 * time.  Dead ones are counted and left out.  Those that are alive become the rows, in the form in which PostgreSQL
 * copies them: columns that were dropped are NULL, columns that a tuple is too old to have are there, what tells of
 * transactions is kept, and frozen as far as the new table's horizon asks.
 *
 * A tuple that is neither, since somebody may still see it, or since this transaction has made or removed it, belongs
 * to a chain of versions, which have to be kept together: that is PostgreSQL's business (unfit).
 *
 *-------------------------------------------------------------------------
 */
#include "cluster/tuple_source.h"

#include "access/heapam.h"
#include "access/parallel.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "sort/table_rows.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Blocks that a process claims at a time. */
#define CLAIM_BLOCKS 32

/* Values of a batch at most, but for those of one row. */
#define BATCH_VALUES 4096

/* Bytes of a page's rows at most that are copied as they are. */
#define COPIED_BYTES (BLCKSZ + MaxHeapTuplesPerPage * (GPUSORT_TABLE_ROW_HEADER + MAXIMUM_ALIGNOF))

/* Sets up the sharing of a table: no process has claimed a part yet. */
void
gpusort_tuple_share_init(GpuSortTupleShare *share, Relation table)
{
	gpusort_heap_share_init(&share->heap, table);
	pg_atomic_init_u64(&share->tuples, 0);
	pg_atomic_init_u64(&share->dead, 0);
}

/* Claims the next pages; false if there are none.  The leader reports how far the table has been claimed. */
static bool
claim_blocks(GpuSortTupleSource *scan)
{
	const BlockNumber blocks = scan->share->heap.blocks;
	const uint64 first = pg_atomic_fetch_add_u64(&scan->share->heap.next, CLAIM_BLOCKS);

	if (!IsParallelWorker())
	{
		pgstat_progress_update_param(PROGRESS_CLUSTER_HEAP_BLKS_SCANNED, Min(first, blocks));
		pgstat_progress_update_param(PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED,
									 pg_atomic_read_u64(&scan->share->tuples));
	}
	if (first >= blocks)
		return false;
	scan->next_block = first;
	scan->end_block = Min(first + CLAIM_BLOCKS, blocks);
	return true;
}

/*
 * Returns true if a tuple that is alive belongs to no chain: nobody has, or is about to have, a newer version.  One
 * that several transactions lock, this one among them, does not count as such: freezing it might need a new multixact,
 * which no worker may make.
 */
static bool
is_alone(HeapTupleHeader tuple)
{
	return (tuple->t_infomask & HEAP_XMAX_INVALID) != 0 ||
		((tuple->t_infomask & HEAP_XMAX_IS_MULTI) == 0 && HeapTupleHeaderIsOnlyLocked(tuple));
}

/*
 * Finds the tuples on a page, in a locked buffer, that are alive; returns how many, or -1 if there is one that is
 * neither alive nor dead.
 */
static int
find_alive(GpuSortTupleSource *scan, Buffer buffer, OffsetNumber *lines)
{
	const Page page = BufferGetPage(buffer);
	const OffsetNumber last = PageGetMaxOffsetNumber(page);
	HeapTupleData tuple = {.t_tableOid = RelationGetRelid(scan->task.table)};
	int count = 0;
	int dead = 0;

	for (OffsetNumber line = FirstOffsetNumber; line <= last; line++)
	{
		const ItemId id = PageGetItemId(page, line);

		if (!ItemIdIsNormal(id))
			continue;
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, id);
		tuple.t_len = ItemIdGetLength(id);
		ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), line);
		switch (HeapTupleSatisfiesVacuum(&tuple, scan->task.oldest_xmin, buffer))
		{
			case HEAPTUPLE_DEAD:
				dead++;
				break;
			case HEAPTUPLE_LIVE:
				if (!is_alone(tuple.t_data))
					return -1;
				lines[count++] = line;
				break;
			default:
				return -1;
		}
	}
	pgstat_count_index_tuples(scan->task.table, count + dead); /* the same as those of a scan */
	pg_atomic_fetch_add_u64(&scan->share->dead, dead);
	return count;
}

/* Makes what a new row's tuple tells of transactions that of the old one, frozen as far as is asked. */
static void
take_transactions(const GpuSortTupleSource *scan, HeapTupleHeader to, const HeapTupleHeaderData *from)
{
	const FormData_pg_class *table = scan->task.table->rd_rel;

	to->t_choice.t_heap = from->t_choice.t_heap;
	to->t_infomask = (to->t_infomask & ~HEAP_XACT_MASK) | (from->t_infomask & HEAP_XACT_MASK);
	to->t_infomask2 &= ~HEAP2_XACT_MASK;
	ItemPointerSetInvalid(&to->t_ctid);
	heap_freeze_tuple(to, table->relfrozenxid, table->relminmxid, scan->task.freeze_limit, scan->task.multi_cutoff);
}

/* Forms a row of a tuple anew, with all columns of the new table. */
static char *
form_row(GpuSortTupleSource *scan, HeapTuple tuple)
{
	const TupleDesc desc = RelationGetDescr(scan->task.copy);
	MemoryContext caller = MemoryContextSwitchTo(scan->context);
	HeapTuple formed;
	char *row;

	heap_deform_tuple(tuple, RelationGetDescr(scan->task.table), scan->all_values, scan->all_nulls);
	for (int i = 0; i < desc->natts; i++)
		scan->all_nulls[i] |= TupleDescAttr(desc, i)->attisdropped;
	formed = heap_form_tuple(desc, scan->all_values, scan->all_nulls);
	row = palloc(GPUSORT_TABLE_ROW_HEADER + formed->t_len);
	memcpy(gpusort_table_row_begin(row, formed->t_len), formed->t_data, formed->t_len);
	pfree(formed);
	MemoryContextSwitchTo(caller);
	return row;
}

/* Makes rows of the tuples on a page. */
static void
make_rows(GpuSortTupleSource *scan, Page page, const OffsetNumber *lines, int count)
{
	char *to = scan->copied;

	for (int i = 0; i < count; i++)
	{
		const ItemId id = PageGetItemId(page, lines[i]);
		HeapTupleData tuple = {
			.t_len = ItemIdGetLength(id),
			.t_tableOid = RelationGetRelid(scan->task.table),
			.t_data = (HeapTupleHeader) PageGetItem(page, id)};
		char *row = to;

		if (scan->may_copy && HeapTupleHeaderGetNatts(tuple.t_data) == RelationGetDescr(scan->task.copy)->natts)
		{
			memcpy(gpusort_table_row_begin(row, tuple.t_len), tuple.t_data, tuple.t_len);
			to += GPUSORT_TABLE_ROW_HEADER + MAXALIGN(tuple.t_len);
		}
		else
			row = form_row(scan, &tuple);
		take_transactions(scan, (HeapTupleHeader) (row + GPUSORT_TABLE_ROW_HEADER), tuple.t_data);
		scan->rows[i] = row;
	}
	scan->count = count;
}

/* Reads the next page; false if there is none, or it is to be left to PostgreSQL. */
static bool
read_page(GpuSortTupleSource *scan)
{
	OffsetNumber lines[MaxHeapTuplesPerPage];
	Buffer buffer;
	int count;

	CHECK_FOR_INTERRUPTS();
	scan->count = scan->next = 0;
	MemoryContextReset(scan->context);
	if (scan->next_block == scan->end_block && !claim_blocks(scan))
		return false;
	buffer = ReadBufferExtended(scan->task.table, MAIN_FORKNUM, scan->next_block++, RBM_NORMAL, scan->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	count = find_alive(scan, buffer, lines);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (count >= 0)
		make_rows(scan, BufferGetPage(buffer), lines, count);
	ReleaseBuffer(buffer);
	if (count < 0)
	{
		scan->next_block = scan->end_block = 0;
		scan->unfit(scan->arg);
		return false;
	}
	pg_atomic_fetch_add_u64(&scan->share->tuples, count);
	return true;
}

/* Sets the values of the columns to sort by, of a row. */
static void
show_values(const GpuSortTupleSource *scan, char *row, Datum *values, bool *nulls)
{
	HeapTupleData tuple;

	tuple.t_data = gpusort_table_row_tuple(row, &tuple.t_len);
	for (int i = 0; i < scan->nattnos; i++)
	{
		const AttrNumber attno = scan->attnos[i];

		values[attno - 1] = fastgetattr(&tuple, attno, RelationGetDescr(scan->task.table), &nulls[attno - 1]);
	}
}

/* The method next_batch. */
static int
next_batch(GpuSortSource *source, GpuSortRow *rows, int n)
{
	GpuSortTupleSource *scan = (GpuSortTupleSource *) source;
	int count;

	while (scan->next == scan->count)
	{
		if (!read_page(scan))
			return 0;
	}
	count = Min(Min(n, scan->room), scan->count - scan->next);
	for (int i = 0; i < count; i++)
	{
		char *row = scan->rows[scan->next++];
		Datum *values = scan->values + i * scan->nvalues;
		bool *nulls = scan->nulls + i * scan->nvalues;

		show_values(scan, row, values, nulls);
		rows[i] = (GpuSortRow){.values = values, .nulls = nulls, .tuple = row, .length = gpusort_row_length(row)};
	}
	return count;
}

/* The method table_column. */
static bool
table_column(GpuSortSource *source, AttrNumber attno, GpuSortTableColumn *column, Oid *type)
{
	const GpuSortTupleSource *scan = (const GpuSortTupleSource *) source;

	*type = TupleDescAttr(RelationGetDescr(scan->task.table), attno - 1)->atttypid;
	*column = (GpuSortTableColumn){.table = RelationGetRelid(scan->task.table), .attno = attno};
	return true;
}

static const GpuSortSourceMethods methods = {
	.next_batch = next_batch,
	.table_column = table_column,
};

/* Returns true if no column of a table was dropped. */
static bool
has_all_columns(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped)
			return false;
	}
	return true;
}

/*
 * Begins at the first page of share's table that nobody has claimed, for a sort by these columns; the caller sets unfit
 * and arg.  Everything belongs to the current memory context.  The source does not give its rows a second time.
 */
void
gpusort_tuple_source_init(GpuSortTupleSource *scan, const GpuSortClusterTask *task, GpuSortTupleShare *share,
						  const GpuSortColumn *columns, int count)
{
	const int natts = RelationGetDescr(task->table)->natts;

	*scan = (GpuSortTupleSource){
		.source.methods = &methods,
		.task = *task,
		.share = share,
		.strategy = GetAccessStrategy(BAS_BULKREAD),
		.may_copy = has_all_columns(RelationGetDescr(task->copy)),
		.attnos = palloc(count * sizeof(AttrNumber)),
		.nattnos = count,
		.copied = palloc(COPIED_BYTES),
		.rows = palloc(MaxHeapTuplesPerPage * sizeof(char *)),
		.all_values = palloc(natts * sizeof(Datum)),
		.all_nulls = palloc(natts * sizeof(bool))};
	scan->context = AllocSetContextCreate(CurrentMemoryContext, "gpusort tuples of a page", ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < count; i++)
	{
		scan->attnos[i] = columns[i].attno;
		scan->nvalues = Max(scan->nvalues, columns[i].attno);
	}
	scan->room = Max(BATCH_VALUES / scan->nvalues, 1);
	scan->values = palloc(scan->room * scan->nvalues * sizeof(Datum));
	scan->nulls = palloc(scan->room * scan->nvalues * sizeof(bool));
}
