/*-------------------------------------------------------------------------
 *
 * heap_pages.c
 *	  The pages of a new table that several processes make, each of ranges of the rows.
 *
 * Each process puts the rows of its ranges into whole pages, as heap_insert would fill them one after another, with the
 * transaction's id and the command's number; range_pages.c finds the pages' places, in the order of ranges, and writes
 * them, behind those that the table has.  A range ends on a page that is not full.  Nobody else may see the table, nor
 * insert into it, nor may the query read it: what is written never was in buffers.
 *
 * NULLs in NOT NULL columns are an error, PostgreSQL's own, if that is wanted.
 *
 * A table that is rewritten takes whole tuples, which keep their transactions.
 *
 * The transaction's id must have been assigned, and the command's number used, before workers start.
 *
 * Values that belong into the TOAST table go there by PostgreSQL's own functions, row by row: processes may insert into
 * one table at the same time.  PostgreSQL refuses to insert in a parallel worker, since it would not know the id of a
 * transaction that is assigned there; so a process does not seem to be one meanwhile, nor is it ended.  And the leader
 * does not lock a table that its transaction has made against others that make its file longer; so it does not seem to
 * be new meanwhile (share_toast).  Workers have no part in the leader's local buffers: a temporary table must have no
 * TOAST table.
 *
 * Legal order of calls.  The leader: init, before workers start.  Each process: open, and for each range that it claims
 * begin, put or put_tuple for each row, end; then close.  Errors are raised, and the abort of the transaction removes
 * the file.  When all are stopped, ranges that have not been written are dropped.
 *
 *-------------------------------------------------------------------------
 */
#include "pages/heap_pages.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/table.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/bufpage.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* A process keeps so many bytes of pages at least, which is twice what is wanted of a range; and at most. */
#define BYTES_IN_MEMORY_MIN ((Size) 4 << 20)
#define BYTES_IN_MEMORY_MAX ((Size) 1 << 30)

/* A relation that several processes insert into, and what this one's transaction knows of it: in the leader all. */
typedef struct SharedRelation
{
	Relation relation;
	SubTransactionId created;
	SubTransactionId first_locator;
} SharedRelation;

struct GpuSortHeapPages
{
	GpuSortNewTableShared *shared;
	const volatile bool *stop;
	Relation table;
	ResultRelInfo *checked; /* NULL: rows are not checked */
	EState *estate;
	GpuSortRangePages *pages;
	MemoryContext row_context;
	Size reserve;    /* bytes of a page to be left free */
	uint16 infomask; /* of each row, as far as it tells of transactions */
	List *toast;     /* SharedRelations: the TOAST table and its indexes, if a value has gone there */

	Page page; /* the current range's last; NULL: it has none */
	BlockNumber count;
};

/* Makes what is shared. */
void
gpusort_new_table_init(GpuSortNewTableShared *shared, const GpuSortNewTable *table)
{
	shared->table = *table;
	shared->toasted = false;
	gpusort_range_places_init(&shared->places, table->pages, table->pages);
}

/* Returns true if anything may have been written, when all processes have ended. */
bool
gpusort_new_table_is_begun(const GpuSortNewTableShared *shared)
{
	return shared->toasted || shared->places.end > shared->table.pages;
}

/* Completes pages of known places, as a GpuSortPagesPlaced: each tuple names itself as its newest version. */
static void
complete_pages(Page *pages, int count, BlockNumber first, bool last)
{
	for (int i = 0; i < count; i++)
	{
		const OffsetNumber tuples = PageGetMaxOffsetNumber(pages[i]);

		for (OffsetNumber offset = FirstOffsetNumber; offset <= tuples; offset++)
		{
			HeapTupleHeader tuple = (HeapTupleHeader) PageGetItem(pages[i], PageGetItemId(pages[i], offset));

			ItemPointerSet(&tuple->t_ctid, first + i, offset);
		}
	}
}

/* Begins, in a process, to fill the table, until stop; estate: of the query whose rows are checked, or NULL. */
GpuSortHeapPages *
gpusort_heap_pages_open(GpuSortNewTableShared *shared, const volatile bool *stop, EState *estate)
{
	const Size memory = shared->table.memory > 0 ? shared->table.memory : (Size) work_mem * 1024;
	const Size bytes = Min(Max(memory, BYTES_IN_MEMORY_MIN), BYTES_IN_MEMORY_MAX);
	GpuSortHeapPages *own = palloc0(sizeof(GpuSortHeapPages));

	own->shared = shared;
	own->stop = stop;
	own->table = table_open(shared->table.table, RowExclusiveLock);
	if (OidIsValid(shared->table.toast_ids))
		own->table->rd_toastoid = shared->table.toast_ids; /* which no worker learns from the leader's entry */
	if (shared->table.checked > 0)
	{
		own->checked = makeNode(ResultRelInfo);
		InitResultRelInfo(own->checked, own->table, shared->table.checked, NULL, 0);
		own->estate = estate;
	}
	own->pages = gpusort_range_pages_create(own->table, &shared->places, bytes / BLCKSZ, stop, complete_pages);
	own->row_context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort row of a new table", ALLOCSET_DEFAULT_SIZES);
	own->reserve = RelationGetTargetPageFreeSpace(own->table, HEAP_DEFAULT_FILLFACTOR);
	own->infomask = HEAP_XMAX_INVALID;
	if (shared->table.options & HEAP_INSERT_FROZEN)
		own->infomask |= HEAP_XMIN_FROZEN;
	return own;
}

/* Begins a range that this process has claimed. */
void
gpusort_heap_pages_begin(GpuSortHeapPages *own, uint32 range)
{
	own->page = NULL;
	gpusort_range_pages_begin(own->pages, range);
}

static void
add_page(GpuSortHeapPages *own)
{
	own->page = gpusort_range_pages_add(own->pages);
	own->count++;
	PageInit(own->page, BLCKSZ, 0);
	if (!own->shared->table.rewritten && !(own->infomask & HEAP_XMIN_COMMITTED))
		PAGE_SET_PRUNABLE(own->page, own->shared->table.xid);
}

/* Finds room for a tuple of so many bytes, and returns its place. */
static HeapTupleHeader
find_room(GpuSortHeapPages *own, Size length)
{
	const Size bytes = MAXALIGN(length);

	if (unlikely(bytes > MaxHeapTupleSize))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("row is too big: size %zu, maximum size %zu", bytes, MaxHeapTupleSize)));
	if (own->page == NULL || PageGetHeapFreeSpace(own->page) < bytes + own->reserve)
		add_page(own);
	return (HeapTupleHeader) (own->page + ((PageHeader) own->page)->pd_upper - bytes);
}

/* Adds to the page the tuple that is in the room that was found for it. */
static void
add_line(GpuSortHeapPages *own, Size length)
{
	PageHeader page = (PageHeader) own->page;
	const OffsetNumber offset = PageGetMaxOffsetNumber(own->page) + 1;

	page->pd_lower += sizeof(ItemIdData);
	page->pd_upper -= MAXALIGN(length);
	ItemIdSetNormal(PageGetItemId(own->page, offset), page->pd_upper, length);
}

/* The same for a row that this transaction inserts, whose header has all else. */
static void
add_tuple(GpuSortHeapPages *own, HeapTupleHeader tuple, Size length)
{
	tuple->t_infomask = (tuple->t_infomask & ~HEAP_XACT_MASK) | own->infomask;
	tuple->t_infomask2 &= ~HEAP2_XACT_MASK;
	HeapTupleHeaderSetXmin(tuple, own->shared->table.xid);
	HeapTupleHeaderSetCmin(tuple, own->shared->table.cid);
	HeapTupleHeaderSetXmax(tuple, InvalidTransactionId);
	add_line(own, length);
}

static void
add_shared(GpuSortHeapPages *own, Relation relation)
{
	SharedRelation *shared = palloc(sizeof(SharedRelation));

	shared->relation = relation;
	shared->created = relation->rd_createSubid;
	shared->first_locator = FIRST_LOCATOR_SUBID(relation);
	own->toast = lappend(own->toast, shared);
}

/*
 * Opens what large values go to.  A worker learns only when it opens a relation as a worker whether that has to be
 * logged: it is not where the transaction has made it and wal_level is minimal.
 */
static void
open_toast(GpuSortHeapPages *own)
{
	const Oid id = own->table->rd_rel->reltoastrelid;
	MemoryContext caller;
	Relation table;
	ListCell *cell;

	if (!OidIsValid(id) || own->toast != NIL)
		return;
	caller = MemoryContextSwitchTo(GetMemoryChunkContext(own));
	table = table_open(id, RowExclusiveLock);
	add_shared(own, table);
	foreach(cell, RelationGetIndexList(table))
		add_shared(own, index_open(lfirst_oid(cell), RowExclusiveLock));
	MemoryContextSwitchTo(caller);
}

static void
close_toast(GpuSortHeapPages *own)
{
	ListCell *cell;

	foreach(cell, own->toast)
		relation_close(((SharedRelation *) lfirst(cell))->relation, NoLock);
}

/*
 * Makes what large values go to seem to be older than its transaction, to be locked when its file is made longer, or
 * shows again that it is not.  Its file is new in either case: what of that has not to be logged is not.
 */
static void
share_toast(GpuSortHeapPages *own, bool share)
{
	ListCell *cell;

	foreach(cell, own->toast)
	{
		const SharedRelation *shared = lfirst(cell);
		const bool created = shared->created != InvalidSubTransactionId;

		shared->relation->rd_createSubid = share ? InvalidSubTransactionId : shared->created;
		FIRST_LOCATOR_SUBID(shared->relation) = share && created ? shared->created : shared->first_locator;
	}
}

/* Makes this process ready to insert into the TOAST table, no parallel worker; or ends that. */
static void
prepare(GpuSortHeapPages *own, bool begin, int worker)
{
	ParallelWorkerNumber = begin ? -1 : worker;
	share_toast(own, begin);
}

/* Moves a tuple's large values into the TOAST table, or compresses them. */
static HeapTuple
toast(GpuSortHeapPages *own, HeapTuple tuple)
{
	const int worker = ParallelWorkerNumber;
	volatile HeapTuple toasted = NULL;

	own->shared->toasted = true;
	open_toast(own);
	HOLD_INTERRUPTS();
	prepare(own, true, worker);
	PG_TRY();
	{
		toasted = heap_toast_insert_or_update(own->table, tuple, NULL, own->shared->table.options);
	}
	PG_CATCH();
	{
		prepare(own, false, worker);
		PG_RE_THROW(); /* which has ended what holds interrupts */
	}
	PG_END_TRY();
	prepare(own, false, worker);
	RESUME_INTERRUPTS();
	return toasted;
}

/* Puts a row with values that may have to be toasted; out of line. */
static pg_noinline void
put_long(GpuSortHeapPages *own, TupleTableSlot *slot)
{
	MemoryContext caller = MemoryContextSwitchTo(own->row_context);
	HeapTuple tuple = ExecCopySlotHeapTuple(slot);
	HeapTupleHeader placed;

	tuple->t_tableOid = RelationGetRelid(own->table);
	if (HeapTupleHasExternal(tuple) || tuple->t_len > TOAST_TUPLE_THRESHOLD)
		tuple = toast(own, tuple);
	placed = find_room(own, tuple->t_len);
	memcpy(placed, tuple->t_data, tuple->t_len);
	add_tuple(own, placed, tuple->t_len);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(own->row_context);
}

/* Returns the MinimalTuple that a slot shows, with all columns; NULL: it shows none. */
static MinimalTuple
minimal_tuple(TupleTableSlot *slot)
{
	MinimalTuple tuple;

	if (!TTS_IS_MINIMALTUPLE(slot))
		return NULL;
	tuple = ((MinimalTupleTableSlot *) slot)->mintuple;
	if (tuple == NULL || HeapTupleHeaderGetNatts(tuple) != slot->tts_tupleDescriptor->natts)
		return NULL;
	return tuple;
}

/* Puts a row that is a MinimalTuple, which is a tuple without what tells of transactions; false if it is long. */
static bool
put_minimal(GpuSortHeapPages *own, MinimalTuple tuple)
{
	const Size length = tuple->t_len + MINIMAL_TUPLE_OFFSET;
	const Size before = offsetof(MinimalTupleData, t_infomask2);
	HeapTupleHeader placed;

	if (length > TOAST_TUPLE_THRESHOLD || (tuple->t_infomask & HEAP_HASEXTERNAL) != 0)
		return false;
	placed = find_room(own, length);
	memcpy((char *) placed + before + MINIMAL_TUPLE_OFFSET, (const char *) tuple + before, tuple->t_len - before);
	add_tuple(own, placed, length);
	return true;
}

/* Forms a row's tuple on the page; false if it is long. */
static bool
put_values(GpuSortHeapPages *own, TupleTableSlot *slot)
{
	const TupleDesc desc = slot->tts_tupleDescriptor;
	Size header = SizeofHeapTupleHeader;
	Size data;
	HeapTupleHeader placed;
	bool nulls = false;

	slot_getallattrs(slot);
	for (int i = 0; i < desc->natts; i++)
		nulls |= slot->tts_isnull[i];
	if (nulls)
		header += BITMAPLEN(desc->natts);
	header = MAXALIGN(header);
	data = heap_compute_data_size(desc, slot->tts_values, slot->tts_isnull);
	if (header + data > TOAST_TUPLE_THRESHOLD)
		return false;
	placed = find_room(own, header + data);
	placed->t_infomask2 = 0;
	placed->t_infomask = 0;
	placed->t_hoff = header;
	HeapTupleHeaderSetNatts(placed, desc->natts);
	heap_fill_tuple(desc, slot->tts_values, slot->tts_isnull, (char *) placed + header, data, &placed->t_infomask,
					nulls ? placed->t_bits : NULL);
	if ((placed->t_infomask & HEAP_HASEXTERNAL) != 0)
	{
		memset(placed, 0, header + data); /* what is free on a page is zero */
		return false;
	}
	add_tuple(own, placed, header + data);
	return true;
}

/* Puts the next row of the range. */
void
gpusort_heap_pages_put(GpuSortHeapPages *own, TupleTableSlot *slot)
{
	const MinimalTuple tuple = minimal_tuple(slot);

	if (own->checked != NULL && (tuple == NULL || (tuple->t_infomask & HEAP_HASNULL) != 0))
		ExecConstraints(own->checked, slot, own->estate);
	if (unlikely(tuple != NULL ? !put_minimal(own, tuple) : !put_values(own, slot)))
		put_long(own, slot);
}

/* Puts a whole tuple some of whose values are, or are to be, in the TOAST table; out of line. */
static pg_noinline void
put_long_tuple(GpuSortHeapPages *own, HeapTupleHeader tuple, Size length)
{
	MemoryContext caller = MemoryContextSwitchTo(own->row_context);
	HeapTupleData old = {.t_len = length, .t_tableOid = RelationGetRelid(own->table), .t_data = tuple};
	HeapTuple toasted;

	ItemPointerSetInvalid(&old.t_self);
	toasted = toast(own, &old);
	memcpy(find_room(own, toasted->t_len), toasted->t_data, toasted->t_len);
	add_line(own, toasted->t_len);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(own->row_context);
}

/* Puts the next row of the range of a table that is rewritten, as a tuple, which is copied. */
void
gpusort_heap_pages_put_tuple(GpuSortHeapPages *own, HeapTupleHeader tuple, Size length)
{
	if (unlikely(length > TOAST_TUPLE_THRESHOLD || (tuple->t_infomask & HEAP_HASEXTERNAL) != 0))
		put_long_tuple(own, tuple, length);
	else
	{
		memcpy(find_room(own, length), tuple, length);
		add_line(own, length);
	}
}

/* Ends the current range, all of whose rows have come. */
void
gpusort_heap_pages_end(GpuSortHeapPages *own)
{
	gpusort_range_pages_end(own->pages, false);
}

/* Ends this process's work: writes what is not written; returns how many pages it was. */
uint64
gpusort_heap_pages_close(GpuSortHeapPages *own)
{
	gpusort_range_pages_finish(own->pages);
	close_toast(own);
	table_close(own->table, NoLock);
	return own->count;
}
