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

#include "sort/overflow.h"
#include "sort/rowform.h"
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
 * Has slot, one for MinimalTuples, show a tuple that stays where it is; returns slot.
 *
 * This is ExecStoreMinimalTuple without a call: of all that is done to emit a row
 * it would take most.
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

/*
 * Returns the slot with the visible attributes of a row that has arrived and is
 * not in the overflow file, valid as long as its chunk and until the next call.
 * To be called once for each row: its resjunk attributes are lost.
 */
static inline TupleTableSlot *
gpusort_slots_emit(GpuSortSlots *slots, char *row)
{
	if (slots->joined != NULL)
		gpusort_row_hide_resjunk(row);
	return gpusort_slot_show(slots->visible, (MinimalTuple) row);
}

#endif /* GPUSORT_SLOTS_H */
