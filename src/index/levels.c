/*-------------------------------------------------------------------------
 *
 * levels.c
 *	  The pages of a btree, made of its tuples in order.
 *
 * They are made from the leaves upwards, one page of each level at a time, and at last the metapage.  They are the same
 * that PostgreSQL's btree build makes of the tuples (nbtsort.c explains their form, and nbtree's README why), down to
 * their block numbers: page fills, where pages end, high keys and truncation of suffixes, links and downlinks.
 *
 *	  - A page is full when the next tuple does not fit it, with room for a TID that truncation may have to add to
 *		the high key; or when as much of it is used as fillfactor says, and it has two tuples at least.  A posting list
 *		that becomes the high key is cut off, so that its bytes count as free.
 *	  - The last tuple of a full page becomes the first of the next, and, without what is not needed to tell it from
 *		the one before, the high key of its own.
 *	  - The high key of a page is the low key of the next, by which the level above refers to that.  The first page
 *		of a level, and the first tuple of any page above the leaves, has the key that is below all.
 *
 * A page's block number is the next that is free when its first tuple is known to come, on whatever level.
 *
 * Or several processes make the leaves, each of ranges of the rows (range_pages.c, which knows block numbers), and keep
 * their high keys, of which one process makes the levels above, behind all leaves.  A range's last page ends where the
 * range does.  The tuple that comes next is another process's, but one that is as good is known: the same key with the
 * next TID.  Between it and the last tuple there is no other, and it is the high key, whole.
 *
 * Legal order of calls: create, add for each tuple in order, finish; or in each process create_leaves, and for each of
 * its ranges add for each tuple, end_range; then create_above, add_leaf for each leaf page in order, finish.  Errors of
 * comparators and of the disk are raised.
 *
 *-------------------------------------------------------------------------
 */
#include "index/levels.h"

#include "pages/page_writer.h"
#include "utils/rel.h"

/* The current page of a level. */
typedef struct Level
{
	Page page; /* BLCKSZ bytes */
	Page next_page;
	BlockNumber block;
	uint32 level;        /* 0: leaves */
	IndexTuple low_key;  /* NULL: the page has no tuple */
	OffsetNumber last;   /* tuple; P_HIKEY: none */
	Size last_posting;   /* bytes of that which are a posting list */
	Size full;           /* so many bytes are left free */
	struct Level *above; /* NULL: there is no page */
} Level;

struct GpuSortLevels
{
	Relation heap;
	Relation index;
	BTScanInsert key;
	BlockNumber blocks; /* that are somebody's; of a range: its pages */
	Level *lowest;      /* NULL: no tuple has come */
	GpuSortPageWriter *writer;

	/* for ranges: the leaves, and their high keys; NULL: it is all of the tree, or the levels above them */
	GpuSortRangePages *pages;
	GpuSortPivots *pivots;

	/* above the leaves */
	BlockNumber leaf;   /* the next */
	IndexTuple low_key; /* its, palloc'd */
};

static GpuSortLevels *
create(Relation heap, Relation index, BTScanInsert key)
{
	GpuSortLevels *levels = palloc0(sizeof(GpuSortLevels));

	levels->heap = heap;
	levels->index = index;
	levels->key = key;
	return levels;
}

/* Begins a btree in an empty index, whose _bt_mkscankey key is.  It belongs to the current memory context. */
GpuSortLevels *
gpusort_levels_create(Relation heap, Relation index, BTScanInsert key)
{
	GpuSortLevels *levels = create(heap, index, key);

	levels->blocks = BTREE_METAPAGE + 1;
	levels->writer = gpusort_page_writer_create(index, 0);
	return levels;
}

/* Empties a page of a level; its high key's place is taken, and not filled. */
static void
init_page(Page page, uint32 level)
{
	BTPageOpaque opaque;

	_bt_pageinit(page, BLCKSZ);
	opaque = BTPageGetOpaque(page);
	opaque->btpo_prev = opaque->btpo_next = P_NONE;
	opaque->btpo_level = level;
	opaque->btpo_flags = level == 0 ? BTP_LEAF : 0;
	opaque->btpo_cycleid = 0;
	((PageHeader) page)->pd_lower += sizeof(ItemIdData);
}

static Level *
create_level(GpuSortLevels *levels, uint32 number)
{
	Level *level = palloc0(sizeof(Level));

	level->page = palloc0(BLCKSZ);
	level->next_page = palloc0(BLCKSZ);
	level->block = levels->blocks++;
	level->level = number;
	level->last = P_HIKEY;
	level->full = number == 0 ? BTGetTargetPageFreeSpace(levels->index)
							  : BLCKSZ * (100 - BTREE_NONLEAF_FILLFACTOR) / 100;
	init_page(level->page, number);
	return level;
}

/* Makes the key that is below all others. */
static void
set_lowest_key(IndexTuple tuple)
{
	tuple->t_info = sizeof(IndexTupleData);
	BTreeTupleSetNAtts(tuple, 0, false);
}

static IndexTuple
make_lowest_key(void)
{
	IndexTuple key = palloc0(sizeof(IndexTupleData));

	set_lowest_key(key);
	return key;
}

/* Puts a tuple of so many bytes, aligned, on a page.  Of the lowest tuple of a page only the downlink is put there. */
static void
put_tuple(Page page, OffsetNumber offset, IndexTuple tuple, Size bytes, bool lowest)
{
	IndexTupleData cut;

	if (lowest)
	{
		cut = *tuple;
		set_lowest_key(&cut);
		tuple = &cut;
		bytes = sizeof(IndexTupleData);
	}
	if (PageAddItem(page, (Pointer) tuple, bytes, offset, false, false) == InvalidOffsetNumber)
		elog(ERROR, "a tuple does not fit the page of an index that is built");
}

/* Puts a page of a level, which is complete, where pages go. */
static void
put_page(GpuSortLevels *levels, const Level *level)
{
	if (levels->pages != NULL)
		memcpy(gpusort_range_pages_add(levels->pages), level->page, BLCKSZ);
	else
		gpusort_page_writer_put(levels->writer, level->block, level->page);
}

static void add_tuple(GpuSortLevels *levels, Level *level, IndexTuple tuple, Size posting_bytes);

/* Tells the level above of the current page, by its low key, which is gone then. */
static void
add_downlink(GpuSortLevels *levels, Level *level)
{
	BTreeTupleSetDownLink(level->low_key, level->block);
	add_tuple(levels, level->above, level->low_key, 0);
	pfree(level->low_key);
	level->low_key = NULL;
}

/* Truncates the high key of a full leaf page, which is still its last tuple. */
static void
truncate_high_key(GpuSortLevels *levels, Page page, OffsetNumber last_left)
{
	IndexTuple right = (IndexTuple) PageGetItem(page, PageGetItemId(page, P_HIKEY));
	IndexTuple left = (IndexTuple) PageGetItem(page, PageGetItemId(page, last_left));
	IndexTuple key = _bt_truncate(levels->index, left, right, levels->key);

	if (!PageIndexTupleOverwrite(page, P_HIKEY, (Pointer) key, IndexTupleSize(key)))
		elog(ERROR, "a high key does not fit the page of an index that is built");
	pfree(key);
}

/* Ends the current page, which has two tuples at least, and goes to the next, which begins with its last. */
static void
next_page(GpuSortLevels *levels, Level *level)
{
	Page page = level->page;
	Page next = level->next_page;
	ItemId last = PageGetItemId(page, level->last);
	ItemId high = PageGetItemId(page, P_HIKEY);
	BlockNumber next_block = levels->blocks++;
	IndexTuple high_key;

	init_page(next, level->level);
	put_tuple(next, P_FIRSTKEY, (IndexTuple) PageGetItem(page, last), ItemIdGetLength(last), level->level > 0);
	*high = *last;
	ItemIdSetUnused(last);
	((PageHeader) page)->pd_lower -= sizeof(ItemIdData);
	if (level->level == 0)
		truncate_high_key(levels, page, OffsetNumberPrev(level->last));

	high_key = (IndexTuple) PageGetItem(page, PageGetItemId(page, P_HIKEY));
	if (levels->pivots != NULL)
		gpusort_pivots_add(levels->pivots, high_key);
	else
	{
		if (level->above == NULL)
			level->above = create_level(levels, level->level + 1);
		add_downlink(levels, level);
		level->low_key = CopyIndexTuple(high_key);
	}

	BTPageGetOpaque(page)->btpo_next = next_block;
	BTPageGetOpaque(next)->btpo_prev = level->block;
	put_page(levels, level);
	level->page = next;
	level->next_page = page;
	level->block = next_block;
	level->last = P_FIRSTKEY;
}

/* Returns true if the current page has no room for a tuple of so many bytes, or is as full as it is to be. */
static inline bool
is_full(const Level *level, Size bytes)
{
	const Size space = PageGetFreeSpace(level->page);
	const Size for_tid = level->level == 0 ? MAXALIGN(sizeof(ItemPointerData)) : 0;

	return space < bytes + for_tid || (space + level->last_posting < level->full && level->last > P_FIRSTKEY);
}

static void
add_tuple(GpuSortLevels *levels, Level *level, IndexTuple tuple, Size posting_bytes)
{
	const Size bytes = MAXALIGN(IndexTupleSize(tuple));

	if (unlikely(bytes > BT_MAX_ITEM_SIZE(level->page)))
		_bt_check_third_page(levels->index, levels->heap, level->level == 0, level->page, tuple);
	if (is_full(level, bytes))
		next_page(levels, level);
	level->last_posting = posting_bytes;
	if (level->last == P_HIKEY && levels->pivots == NULL)
		level->low_key = make_lowest_key();
	level->last++;
	put_tuple(level->page, level->last, tuple, bytes, level->level > 0 && level->last == P_FIRSTKEY);
}

/*
 * Adds the next tuple of the leaves; so many bytes of it are a posting list.  It is an error if it is too long for a
 * btree.
 */
void
gpusort_levels_add(GpuSortLevels *levels, IndexTuple tuple, Size posting_bytes)
{
	if (unlikely(levels->lowest == NULL))
		levels->lowest = create_level(levels, 0);
	add_tuple(levels, levels->lowest, tuple, posting_bytes);
}

/* Gives the high key's place to the first tuple: the current page is the last of its level, and has no high key. */
static void
drop_high_key(Page page)
{
	OffsetNumber last = PageGetMaxOffsetNumber(page);

	for (OffsetNumber offset = P_FIRSTKEY; offset <= last; offset++)
		*PageGetItemId(page, OffsetNumberPrev(offset)) = *PageGetItemId(page, offset);
	((PageHeader) page)->pd_lower -= sizeof(ItemIdData);
}

/* Finishes, when all tuples have come: writes the last page of each level, and the metapage. */
void
gpusort_levels_finish(GpuSortLevels *levels)
{
	BlockNumber root = P_NONE;
	uint32 root_level = 0;
	Page meta = palloc0(BLCKSZ);

	for (Level *level = levels->lowest; level != NULL; level = level->above)
	{
		if (level->above != NULL)
			add_downlink(levels, level);
		else
		{
			BTPageGetOpaque(level->page)->btpo_flags |= BTP_ROOT;
			root = level->block;
			root_level = level->level;
		}
		drop_high_key(level->page);
		put_page(levels, level);
	}
	_bt_initmetapage(meta, root, root_level, levels->key->allequalimage);
	gpusort_page_writer_put(levels->writer, BTREE_METAPAGE, meta);
	gpusort_page_writer_flush(levels->writer);
}

/*
 * Begins, in one of several processes, the leaves of ranges; pages takes them, and pivots their high keys, but for the
 * index's last leaf.
 */
GpuSortLevels *
gpusort_levels_create_leaves(Relation heap, Relation index, BTScanInsert key, GpuSortRangePages *pages,
							 GpuSortPivots *pivots)
{
	GpuSortLevels *levels = create(heap, index, key);

	levels->pages = pages;
	levels->pivots = pivots;
	return levels;
}

/* Ends a range's current page behind its last tuple. */
static void
end_last_page(GpuSortLevels *levels, Level *level)
{
	IndexTuple last = (IndexTuple) PageGetItem(level->page, PageGetItemId(level->page, level->last));
	ItemPointerData tid = *BTreeTupleGetMaxHeapTID(last);
	IndexTuple next;

	ItemPointerSetOffsetNumber(&tid, ItemPointerGetOffsetNumberNoCheck(&tid) + 1);
	next = _bt_form_posting(last, &tid, 1);
	add_tuple(levels, level, next, 0);
	next_page(levels, level);
	pfree(next);
}

/* Ends the current range, which has a tuple at least, and its last page; last: it is the index's last. */
void
gpusort_levels_end_range(GpuSortLevels *levels, bool last)
{
	Level *level = levels->lowest;

	if (last)
	{
		drop_high_key(level->page);
		put_page(levels, level);
	}
	else
		end_last_page(levels, level);
	gpusort_range_pages_end(levels->pages, last);
	init_page(level->page, 0);
	level->last = P_HIKEY;
	level->last_posting = 0;
}

/* Links leaf pages that have their place, as a GpuSortPagesPlaced. */
void
gpusort_levels_link(Page *pages, int count, BlockNumber first, bool last)
{
	for (int i = 0; i < count; i++)
	{
		BTPageOpaque opaque = BTPageGetOpaque(pages[i]);
		const BlockNumber block = first + i;

		opaque->btpo_prev = block == BTREE_METAPAGE + 1 ? P_NONE : block - 1;
		opaque->btpo_next = last && i == count - 1 ? P_NONE : block + 1;
	}
}

/* Begins the levels above all leaves, which are more than one, in an index whose file ends behind them. */
GpuSortLevels *
gpusort_levels_create_above(Relation heap, Relation index, BTScanInsert key, BlockNumber end)
{
	GpuSortLevels *levels = create(heap, index, key);

	levels->blocks = end;
	levels->writer = gpusort_page_writer_create(index, end);
	levels->lowest = create_level(levels, 1);
	levels->leaf = BTREE_METAPAGE + 1;
	levels->low_key = make_lowest_key();
	return levels;
}

/* Adds the next leaf page, whose high key is copied; NULL for the last page. */
void
gpusort_levels_add_leaf(GpuSortLevels *levels, IndexTuple high_key)
{
	BTreeTupleSetDownLink(levels->low_key, levels->leaf);
	add_tuple(levels, levels->lowest, levels->low_key, 0);
	pfree(levels->low_key);
	levels->low_key = high_key != NULL ? CopyIndexTuple(high_key) : NULL;
	levels->leaf++;
}
