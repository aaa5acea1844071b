/*-------------------------------------------------------------------------
 *
 * load.c
 *	  Loads a btree with index rows in order.
 *
 * Equal tuples become one with a posting list, as PostgreSQL's build deduplicates them: where the index allows it and
 * is not unique.  In a unique one duplicates are errors.
 *
 * Legal order of calls: create, row for each row in order, finish.  Or, for ranges of the rows: create_leaves, and for
 * each range row for each row in order, end_range.  Rows of equal keys are in one range, so duplicates are, too.
 * Errors of operator classes, comparators and the disk are raised.  All belongs to the memory context that was current
 * at create.
 *
 *-------------------------------------------------------------------------
 */
#include "index/load.h"

#include "access/nbtree.h"
#include "index/duplicates.h"
#include "index/levels.h"
#include "sort/index_rows.h"
#include "utils/rel.h"

/* A posting list takes so much of a page at most, in percent. */
#define POSTING_PERCENT 10

struct GpuSortBtreeLoad
{
	Relation index;
	GpuSortLevels *levels;
	GpuSortDuplicates *duplicates; /* NULL: there may be some */
	int columns;                   /* of the key */

	/* the current tuples, which become one, if tuples are deduplicated */
	BTDedupState pending; /* NULL: they are not */
	char *base;           /* the first of them, copied */
	Size base_capacity;
};

/* Makes what gathers equal tuples. */
static BTDedupState
create_pending(void)
{
	BTDedupState pending = palloc0(sizeof(BTDedupStateData));

	pending->deduplicate = true;
	pending->maxpostingsize = MAXALIGN_DOWN(BLCKSZ * POSTING_PERCENT / 100) - sizeof(ItemIdData);
	pending->htids = palloc(pending->maxpostingsize);
	return pending;
}

/* Makes the key by which an index's tuples are compared. */
BTScanInsert
gpusort_load_key(Relation index)
{
	BTScanInsert key = _bt_mkscankey(index, NULL);

	key->allequalimage = _bt_allequalimage(index, true);
	return key;
}

static GpuSortBtreeLoad *
create(Relation heap, Relation index, const IndexInfo *info, BTScanInsert key)
{
	GpuSortBtreeLoad *load = palloc0(sizeof(GpuSortBtreeLoad));

	load->index = index;
	load->columns = IndexRelationGetNumberOfKeyAttributes(index);
	/* not indisunique: where a table is rewritten rows are known to be no duplicates */
	if (info->ii_Unique)
		load->duplicates = gpusort_duplicates_create(heap, index, key, info->ii_NullsNotDistinct);
	else if (key->allequalimage && BTGetDeduplicateItems(index))
		load->pending = create_pending();
	return load;
}

/* Begins to load an empty index, which info tells of. */
GpuSortBtreeLoad *
gpusort_load_create(Relation heap, Relation index, const IndexInfo *info)
{
	BTScanInsert key = gpusort_load_key(index);
	GpuSortBtreeLoad *load = create(heap, index, info, key);

	load->levels = gpusort_levels_create(heap, index, key);
	return load;
}

/* Begins, in one of several processes, to load ranges; pages and pivots are as for gpusort_levels_create_leaves. */
GpuSortBtreeLoad *
gpusort_load_create_leaves(Relation heap, Relation index, const IndexInfo *info, GpuSortRangePages *pages,
						   GpuSortPivots *pivots)
{
	BTScanInsert key = gpusort_load_key(index);
	GpuSortBtreeLoad *load = create(heap, index, info, key);

	load->levels = gpusort_levels_create_leaves(heap, index, key, pages, pivots);
	return load;
}

/* Adds the current tuples, as one. */
static void
add_pending(GpuSortBtreeLoad *load)
{
	BTDedupState pending = load->pending;

	if (pending->nitems == 1)
		gpusort_levels_add(load->levels, pending->base, 0);
	else
	{
		IndexTuple posting = _bt_form_posting(pending->base, pending->htids, pending->nhtids);

		gpusort_levels_add(load->levels, posting, IndexTupleSize(posting) - BTreeTupleGetPostingOffset(posting));
		pfree(posting);
	}
	pending->nmaxitems = 0;
	pending->nhtids = 0;
	pending->nitems = 0;
	pending->phystupsize = 0;
}

/* Begins with a tuple that may be one with others to come. */
static void
begin_pending(GpuSortBtreeLoad *load, IndexTuple tuple)
{
	const Size bytes = IndexTupleSize(tuple);

	if (bytes > load->base_capacity)
	{
		load->base_capacity = Max(bytes, 256);
		if (load->base != NULL)
			pfree(load->base);
		load->base = palloc(load->base_capacity);
	}
	memcpy(load->base, tuple, bytes);
	_bt_dedup_start_pending(load->pending, (IndexTuple) load->base, InvalidOffsetNumber);
}

/* Takes the next tuple, which is one with the current ones, or another. */
static void
deduplicate(GpuSortBtreeLoad *load, IndexTuple tuple)
{
	BTDedupState pending = load->pending;

	if (pending->nitems > 0)
	{
		if (_bt_keep_natts_fast(load->index, pending->base, tuple) > load->columns && _bt_dedup_save_htid(pending, tuple))
			return;
		add_pending(load);
	}
	begin_pending(load, tuple);
}

/*
 * Takes the next row in order, which is copied.  It is an error if it is too long for a btree, or a duplicate of the
 * one before and must not be.
 */
void
gpusort_load_row(GpuSortBtreeLoad *load, char *row)
{
	IndexTuple tuple = gpusort_index_row_tuple(row);

	if (load->duplicates != NULL && !gpusort_index_row_is_dead(row))
		gpusort_duplicates_check(load->duplicates, tuple);
	if (load->pending != NULL)
		deduplicate(load, tuple);
	else
		gpusort_levels_add(load->levels, tuple, 0);
}

/* Finishes, when there are no more rows: the index is complete then, and on disk as far as it has to be. */
void
gpusort_load_finish(GpuSortBtreeLoad *load)
{
	if (load->pending != NULL && load->pending->nitems > 0)
		add_pending(load);
	gpusort_levels_finish(load->levels);
}

/* Ends the current range, which has no more rows and had one at least; last: it is the index's last. */
void
gpusort_load_end_range(GpuSortBtreeLoad *load, bool last)
{
	if (load->pending != NULL)
		add_pending(load);
	if (load->duplicates != NULL)
		gpusort_duplicates_forget(load->duplicates);
	gpusort_levels_end_range(load->levels, last);
}
