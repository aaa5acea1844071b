/*-------------------------------------------------------------------------
 *
 * rowform.h
 *	  Forms rows from values, in place, and takes them apart again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROWFORM_H
#define GPUSORT_ROWFORM_H

#include "compat.h"

#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "sort/row.h"
#include "sort/source.h"

typedef struct GpuSortRowForm GpuSortRowForm;

/*
 * Copies a tuple to row as a MinimalTuple; what is before its t_infomask2 is not looked at, so that the end of a heap
 * tuple will do (gpusort_tuple_end).  Returns its length in bytes, or 0 when it does not fit below limit.
 */
static inline Size
gpusort_copy_tuple(const char *tuple, uint32 length, char *row, char *limit)
{
	if (unlikely(row + length > limit))
		return 0;
	gpusort_copy(row, tuple, length);
	((MinimalTuple) row)->t_len = length;
	memset(((MinimalTuple) row)->mt_padding, 0, sizeof(((MinimalTuple) row)->mt_padding));
	return length;
}

/* Returns the part of a heap tuple that is laid out like a MinimalTuple, and its length in bytes. */
static inline const char *
gpusort_tuple_end(HeapTuple tuple, uint32 *length)
{
	*length = tuple->t_len - MINIMAL_TUPLE_OFFSET;
	return (const char *) tuple->t_data + MINIMAL_TUPLE_OFFSET;
}

/* Returns the physical tuple of a slot that has one, else NULL. */
static inline HeapTuple
gpusort_slot_heap_tuple(TupleTableSlot *slot)
{
	if (TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot))
		return ((HeapTupleTableSlot *) slot)->tuple;
	return NULL;
}

/* Returns the MinimalTuple of a slot that has one, else NULL. */
static inline MinimalTuple
gpusort_slot_minimal_tuple(TupleTableSlot *slot)
{
	return TTS_IS_MINIMALTUPLE(slot) ? ((MinimalTupleTableSlot *) slot)->mintuple : NULL;
}

/* Where a row with resjunk attributes says, in unused bytes of its header, how long its visible tuple is. */
#define GPUSORT_VISIBLE_LENGTH_OFFSET 6

/* Returns the bytes of the visible tuple of a row with resjunk attributes. */
static inline uint32
gpusort_row_visible_length(const char *row)
{
	uint32 length;

	memcpy(&length, row + GPUSORT_VISIBLE_LENGTH_OFFSET, sizeof(length));
	return length;
}

/*
 * Makes a row that was formed with resjunk attributes the MinimalTuple of the visible ones; the others are lost.
 * Errors: it is no such row.
 */
static inline void
gpusort_row_hide_resjunk(char *row)
{
	uint32 visible_length = gpusort_row_visible_length(row);

	if (unlikely(visible_length < GPUSORT_ROW_BYTES_MIN || visible_length > ((MinimalTuple) row)->t_len))
		gpusort_row_report_damaged();
	((MinimalTuple) row)->t_len = visible_length;
}

extern uint8 gpusort_alignment_bytes(char align);
extern GpuSortRowForm *gpusort_rowform_create(TupleDesc desc, int visible);
extern bool gpusort_rowform_has_resjunk(const GpuSortRowForm *form);
extern bool gpusort_rowform_is_visible(const GpuSortRowForm *form, TupleDesc desc);
extern Size gpusort_rowform_fill(const GpuSortRowForm *form, const GpuSortRow *values, char *row, char *limit);
extern Size gpusort_rowform_room(const GpuSortRowForm *form, const GpuSortRow *values);
extern Datum gpusort_rowform_value(const GpuSortRowForm *form, const char *row, AttrNumber attno, bool *isnull);
extern void gpusort_rowform_join(const GpuSortRowForm *form, const char *row, TupleTableSlot *slot);

#endif /* GPUSORT_ROWFORM_H */
