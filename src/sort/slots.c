/*-------------------------------------------------------------------------
 *
 * slots.c
 *	  The slots in which rows that have arrived are shown to the executor.
 *
 * Rows are shown where they lie in their chunk; those of the overflow file are
 * read back first.  emit shows a row's visible attributes; load shows all of
 * them, to be compared, or for a tuplesort, out of which they come back into all:
 * project then shows the visible ones.
 *
 * The slots belong to the query.  The overflow file is that of one sort, and its
 * owner's to close (overflow.c).
 *
 *-------------------------------------------------------------------------
 */
#include "sort/slots.h"

#include "executor/executor.h"
#include "service/protocol.h"

/* Makes the slots for rows of this form, with the attributes of all, and, of them, the visible ones. */
void
gpusort_slots_init(GpuSortSlots *slots, EState *estate, const GpuSortRowForm *form, TupleDesc all, TupleDesc visible)
{
	slots->form = form;
	slots->overflow = (GpuSortOverflow){0};
	slots->visible = ExecInitExtraTupleSlot(estate, visible, &TTSOpsMinimalTuple);
	slots->all = slots->visible;
	slots->joined = NULL;
	slots->projected = NULL;
	if (gpusort_rowform_has_resjunk(form))
	{
		slots->all = ExecInitExtraTupleSlot(estate, all, &TTSOpsMinimalTuple);
		slots->joined = ExecInitExtraTupleSlot(estate, all, &TTSOpsVirtual);
		slots->projected = ExecInitExtraTupleSlot(estate, visible, &TTSOpsVirtual);
	}
}

/* Empties the slots. */
void
gpusort_slots_clear(GpuSortSlots *slots)
{
	ExecClearTuple(slots->all);
	ExecClearTuple(slots->visible);
	if (slots->joined != NULL)
	{
		ExecClearTuple(slots->joined);
		ExecClearTuple(slots->projected);
	}
}

/*
 * Returns a slot with all attributes of a row that has arrived, valid as long as
 * its chunk and until the next call.  Errors: those of the overflow file.
 */
TupleTableSlot *
gpusort_slots_load(GpuSortSlots *slots, char *row)
{
	if (gpusort_row_flags(row) & GPUSORT_ROW_OVERFLOW)
		return ExecStoreMinimalTuple(gpusort_overflow_fetch(&slots->overflow, row), slots->all, true);
	if (slots->joined == NULL)
		return ExecStoreMinimalTuple((MinimalTuple) row, slots->all, false);
	gpusort_rowform_join(slots->form, row, slots->joined);
	return slots->joined;
}

/* Returns a slot with the visible attributes of the row in slots->all; an empty one if that is empty. */
TupleTableSlot *
gpusort_slots_project(GpuSortSlots *slots)
{
	TupleTableSlot *projected = slots->projected;
	int visible;

	if (projected == NULL)
		return slots->all;
	ExecClearTuple(projected);
	if (TupIsNull(slots->all))
		return projected;
	visible = projected->tts_tupleDescriptor->natts;
	slot_getsomeattrs(slots->all, visible);
	memcpy(projected->tts_values, slots->all->tts_values, visible * sizeof(Datum));
	memcpy(projected->tts_isnull, slots->all->tts_isnull, visible * sizeof(bool));
	return ExecStoreVirtualTuple(projected);
}
