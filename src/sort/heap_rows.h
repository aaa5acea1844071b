/*-------------------------------------------------------------------------
 *
 * heap_rows.h
 *	  Heap rows: the kind of row that the executor has.
 *
 * They are shown in slots, since that is what PostgreSQL's executor and its own sort of such rows take; nothing else in
 * this folder knows of slots.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HEAP_ROWS_H
#define GPUSORT_HEAP_ROWS_H

#include "compat.h"

#include "executor/tuptable.h"
#include "sort/row_kind.h"
#include "sort/rowform.h"

extern const GpuSortRowKind gpusort_heap_rows;

typedef struct GpuSortHeapRows
{
	GpuSortRows rows; /* must be first field */
	GpuSortRowForm *form;
	TupleTableSlot *visible; /* MinimalTuples of the visible attributes */
	TupleTableSlot *all;     /* MinimalTuples of all attributes; the same slot where all are visible */
	TupleTableSlot *stored;  /* heap tuples of all attributes */
	TupleTableSlot *values;  /* virtual, all attributes */
	TupleTableSlot *opened;  /* rows in memory: MinimalTuples of all attributes, or virtual where some are resjunk */

	/* for rows with resjunk attributes, else NULL: */
	TupleTableSlot *joined;    /* virtual, all attributes of a row in memory */
	TupleTableSlot *projected; /* virtual, the visible attributes of what all holds */

	/* for PostgreSQL's sort of rows with numbers; NULL: not made, or rows cannot have one attribute more */
	TupleTableSlot *numbered; /* virtual, all attributes of a row and its number */
	TupleTableSlot *sorted;   /* the same, as the sort returns it */
	TupleTableSlot *plain;    /* virtual, without the number */
} GpuSortHeapRows;

extern GpuSortHeapRows *gpusort_heap_rows_create(TupleDesc all, TupleDesc visible);
extern void gpusort_heap_rows_init(GpuSortHeapRows *heap, TupleDesc all, TupleDesc visible);
extern TupleTableSlot *gpusort_heap_rows_slot(GpuSortHeapRows *heap, const GpuSortRow *row);

/* For counted_rows.c */
extern void gpusort_heap_rows_put_slot(GpuSortHeapRows *heap, Tuplesortstate *sort, TupleTableSlot *slot, bool numbered,
									   int64 number);

/*
 * Makes slot, one for MinimalTuples, show a tuple that stays where it is; returns slot.
 *
 * This is ExecStoreMinimalTuple without a call:
 * of all that is done to emit a row it would take most.
 */
static pg_attribute_always_inline TupleTableSlot *
gpusort_slot_show(TupleTableSlot *slot, MinimalTuple tuple)
{
	MinimalTupleTableSlot *minimal = (MinimalTupleTableSlot *) slot;

	if (unlikely(TTS_SHOULDFREE(slot)))
		return ExecStoreMinimalTuple(tuple, slot, false);
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	slot->tts_nvalid = 0;
	minimal->off = 0;
	minimal->mintuple = tuple;
	minimal->minhdr.t_len = tuple->t_len + MINIMAL_TUPLE_OFFSET;
	minimal->minhdr.t_data = (HeapTupleHeader) ((char *) tuple - MINIMAL_TUPLE_OFFSET);
	return slot;
}

/* The method show of a row in memory, for those who know its kind: its resjunk attributes are lost. */
static inline TupleTableSlot *
gpusort_heap_rows_show(GpuSortHeapRows *heap, char *row)
{
	if (heap->joined != NULL)
		gpusort_row_hide_resjunk(row);
	return gpusort_slot_show(heap->visible, (MinimalTuple) row);
}

#endif /* GPUSORT_HEAP_ROWS_H */
