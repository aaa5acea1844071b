/*-------------------------------------------------------------------------
 *
 * heap_pages.h
 *	  The pages of a new table that several processes make, each of ranges of the rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HEAP_PAGES_H
#define GPUSORT_HEAP_PAGES_H

#include "compat.h"

#include "nodes/execnodes.h"
#include "pages/range_pages.h"

/* A table to be filled behind its pages, and how: as its leader's transaction inserts rows, or as they are. */
typedef struct GpuSortNewTable
{
	Oid table;
	BlockNumber pages; /* that it has */
	TransactionId xid;
	CommandId cid;
	int options;    /* of table_tuple_insert */
	bool rewritten; /* tuples keep what tells of transactions, and come by put_tuple alone */
	Index checked;  /* its number in the range table of the query whose rows are checked for NULLs; 0: they are not */
	Size memory;    /* a process may keep so many bytes of pages; 0: work_mem */
	Oid toast_ids;  /* values out of this TOAST table keep their numbers in the new one; InvalidOid: none do */
} GpuSortNewTable;

/* In shared memory; for heap_pages.c alone. */
typedef struct GpuSortNewTableShared
{
	GpuSortNewTable table;
	volatile bool toasted; /* there are values in the TOAST table, or are about to be */
	GpuSortRangePlaces places;
} GpuSortNewTableShared;

typedef struct GpuSortHeapPages GpuSortHeapPages;

/* The leader's */
extern void gpusort_new_table_init(GpuSortNewTableShared *shared, const GpuSortNewTable *table);
extern bool gpusort_new_table_is_begun(const GpuSortNewTableShared *shared);

extern GpuSortHeapPages *gpusort_heap_pages_open(GpuSortNewTableShared *shared, const volatile bool *stop,
												 EState *estate);
extern void gpusort_heap_pages_begin(GpuSortHeapPages *own, uint32 range);
extern void gpusort_heap_pages_put(GpuSortHeapPages *own, TupleTableSlot *slot);
extern void gpusort_heap_pages_put_tuple(GpuSortHeapPages *own, HeapTupleHeader tuple, Size length);
extern void gpusort_heap_pages_end(GpuSortHeapPages *own);
extern uint64 gpusort_heap_pages_close(GpuSortHeapPages *own);

#endif /* GPUSORT_HEAP_PAGES_H */
