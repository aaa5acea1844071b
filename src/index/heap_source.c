/*-------------------------------------------------------------------------
 *
 * heap_source.c
 *	  The tuples of a heap that an index is built of, as the source of a sort.
 *
 * PostgreSQL's own scan for index builds reads the heap, part by part (table_index_build_range_scan): what a tuple is
 * to snapshots, chains of HOT updates and which of their tuples stands for them, predicates and expressions are its
 * business.  The index tuples of a part are kept in memory, and given out in batches.  Processes claim parts in
 * turn, so that each finds its next one where the disk has just read.
 *
 * A part has as many blocks as made about PART_BYTES of index tuples in the one before it: few tuples are kept, and
 * yet what a scan costs to begin is paid for seldom.
 *
 *-------------------------------------------------------------------------
 */
#include "index/heap_source.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Of index tuples in memory, about. */
#define PART_BYTES ((Size) 4 << 20)

/* Blocks of the first part, and of any. */
#define FIRST_BLOCKS 16
#define MOST_BLOCKS  1024

/* Sets up the sharing of a heap: no process has claimed a part yet. */
void
gpusort_heap_share_init(GpuSortHeapShare *share, Relation heap)
{
	pg_atomic_init_u64(&share->next, 0);
	share->blocks = RelationGetNumberOfBlocks(heap);
}

/* Forms a row of a tuple's values, and keeps it, as the scan's callback. */
static void
keep_tuple(Relation index, ItemPointer tid, Datum *values, bool *nulls, bool alive, void *arg)
{
	GpuSortHeapSource *scan = arg;
	char *row = gpusort_index_row_form(scan->form, values, nulls, tid, !alive, scan->context);

	if (scan->count == scan->capacity)
	{
		scan->capacity *= 2;
		scan->rows = repalloc_huge(scan->rows, scan->capacity * sizeof(char *));
	}
	scan->rows[scan->count++] = row;
	scan->bytes += gpusort_row_length(row);
}

/* Reports how far the heap has been claimed. */
static void
report_progress(const GpuSortHeapSource *scan, BlockNumber done)
{
	if (scan->progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, done);
}

/*
 * Scans so many blocks of the heap, by PostgreSQL's scan; returns how many tuples are alive.  Where the table changes
 * meanwhile all parts are of one snapshot, the active one of all processes: two would see a row before and after it has
 * moved.
 */
static double
scan_blocks(GpuSortHeapSource *scan, BlockNumber first, BlockNumber blocks)
{
	TableScanDesc part;

	if (!scan->info->ii_Concurrent)
		return table_index_build_range_scan(scan->heap, scan->index, scan->info, false, false, false, first, blocks,
											keep_tuple, scan, NULL);
	part = table_beginscan_strat(scan->heap, GetActiveSnapshot(), 0, NULL, true, false);
	heap_setscanlimits(part, first, blocks);
	return table_index_build_range_scan(scan->heap, scan->index, scan->info, true, false, false, 0, InvalidBlockNumber,
										keep_tuple, scan, part); /* which it ends */
}

/* Claims and reads the next part of the heap; false if there is none. */
static bool
read_part(GpuSortHeapSource *scan)
{
	const BlockNumber blocks = scan->blocks;
	uint64 first = pg_atomic_fetch_add_u64(&scan->share->next, blocks);

	scan->count = scan->next = 0;
	scan->bytes = 0;
	MemoryContextReset(scan->context);
	if (first >= scan->share->blocks)
	{
		report_progress(scan, scan->share->blocks);
		return false;
	}
	report_progress(scan, first);
	scan->heap_tuples += scan_blocks(scan, first, Min(blocks, scan->share->blocks - first));
	if (scan->counted && pgstat_should_count_relation(scan->heap))
		TABLE_SCANS_COUNTED(scan->heap)
	--; /* all parts are one scan */
	scan->counted = true;
	scan->blocks = PART_BYTES / Max(scan->bytes / blocks, 1);
	scan->blocks = Max(Min(scan->blocks, Min(4 * blocks, MOST_BLOCKS)), 1);
	return true;
}

/* The method next_batch. */
static int
next_batch(GpuSortSource *source, GpuSortRow *rows, int n)
{
	GpuSortHeapSource *scan = (GpuSortHeapSource *) source;
	const int columns = scan->form->desc->natts + 1;
	int count;

	while (scan->next == scan->count)
	{
		if (!read_part(scan))
			return 0;
	}
	count = Min(n, scan->count - scan->next);
	for (int i = 0; i < count; i++)
	{
		char *row = scan->rows[scan->next++];
		Datum *values = scan->values + i * columns;
		bool *nulls = scan->nulls + i * columns;

		gpusort_index_row_open(scan->form, row, values, nulls);
		rows[i] = (GpuSortRow){.values = values, .nulls = nulls, .tuple = row, .length = gpusort_row_length(row)};
	}
	scan->tuples += count;
	return count;
}

/* The method table_column. */
static bool
table_column(GpuSortSource *source, AttrNumber attno, GpuSortTableColumn *column, Oid *type)
{
	const GpuSortHeapSource *scan = (const GpuSortHeapSource *) source;

	if (attno > scan->form->desc->natts || scan->info->ii_IndexAttrNumbers[attno - 1] <= 0)
		return false;
	*type = TupleDescAttr(scan->form->desc, attno - 1)->atttypid;
	*column = (GpuSortTableColumn){
		.table = RelationGetRelid(scan->heap),
		.attno = scan->info->ii_IndexAttrNumbers[attno - 1]};
	return true;
}

static const GpuSortSourceMethods methods = {
	.next_batch = next_batch,
	.table_column = table_column,
};

/*
 * Begins at the first block of share's heap that nobody has claimed.  Everything belongs to the current memory context.
 * The source does not give its rows a second time.
 */
void
gpusort_heap_source_init(GpuSortHeapSource *scan, GpuSortIndexRows *form, IndexInfo *info, GpuSortHeapShare *share,
						 bool progress)
{
	const int columns = form->desc->natts + 1;

	*scan = (GpuSortHeapSource){
		.source.methods = &methods,
		.heap = form->heap,
		.index = form->index,
		.info = info,
		.form = form,
		.share = share,
		.progress = progress,
		.blocks = FIRST_BLOCKS,
		.capacity = 4096};
	scan->context = GenerationContextCreate(CurrentMemoryContext, "gpusort index tuples", ALLOCSET_DEFAULT_SIZES);
	scan->rows = palloc(scan->capacity * sizeof(char *));
	scan->values = palloc(GPUSORT_BATCH_ROWS * columns * sizeof(Datum));
	scan->nulls = palloc(GPUSORT_BATCH_ROWS * columns * sizeof(bool));
	if (progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, share->blocks);
}
