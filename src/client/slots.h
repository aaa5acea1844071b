/*-------------------------------------------------------------------------
 *
 * slots.h
 *	  The slots in which rows that have arrived are shown to the executor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SLOTS_H
#define GPUSORT_SLOTS_H

#include "compat.h"

#include "client/overflow.h"
#include "client/rowform.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"

typedef struct GpuSortSlots
{
	const GpuSortRowForm *form;
	GpuSortOverflow overflow; /* of the sort at hand */
	TupleTableSlot *visible;  /* MinimalTuples of the visible attributes */
	TupleTableSlot *all;      /* MinimalTuples of all attributes; the same slot where all are visible */

	/* for rows with resjunk attributes, else NULL: */
	TupleTableSlot *joined;    /* virtual, all attributes of a row in a chunk */
	TupleTableSlot *projected; /* virtual, the visible attributes of what all holds */
} GpuSortSlots;

extern void gpusort_slots_init(GpuSortSlots *slots, EState *estate, const GpuSortRowForm *form, TupleDesc all,
							   TupleDesc visible);
extern void gpusort_slots_clear(GpuSortSlots *slots);
extern TupleTableSlot *gpusort_slots_load(GpuSortSlots *slots, char *row);
extern TupleTableSlot *gpusort_slots_project(GpuSortSlots *slots);

/*
 * Returns the slot with the visible attributes of a row that has arrived and is
 * not in the overflow file, valid as long as its chunk and until the next call.
 * To be called once for each row: its resjunk attributes are lost.
 *
 * This is ExecStoreMinimalTuple without a call: of all that is done to emit a row
 * it would take most.
 */
static inline TupleTableSlot *
gpusort_slots_emit(GpuSortSlots *slots, char *row)
{
	TupleTableSlot *visible = slots->visible;
	MinimalTupleTableSlot *slot = (MinimalTupleTableSlot *) visible;
	MinimalTuple tuple = (MinimalTuple) row;

	if (slots->joined != NULL)
		gpusort_row_hide_resjunk(row);
	if (unlikely(TTS_SHOULDFREE(visible)))
		return ExecStoreMinimalTuple(tuple, visible, false);
	visible->tts_flags &= ~TTS_FLAG_EMPTY;
	visible->tts_nvalid = 0;
	slot->off = 0;
	slot->mintuple = tuple;
	slot->minhdr.t_len = tuple->t_len + MINIMAL_TUPLE_OFFSET;
	slot->minhdr.t_data = (HeapTupleHeader) (row - MINIMAL_TUPLE_OFFSET);
	return visible;
}

#endif /* GPUSORT_SLOTS_H */
