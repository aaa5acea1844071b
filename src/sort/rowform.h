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
#include "service/protocol.h"

typedef struct GpuSortRowForm GpuSortRowForm;

/*
 * memcpy for the sizes that values and rows have.  A variable-length memcpy is
 * compiled into a string instruction, which takes longer to start than most
 * values take to copy.
 */
static inline void
gpusort_copy(char *to, const char *from, Size bytes)
{
	typedef struct Block
	{
		char bytes[16];
	} Block;

	if (bytes >= sizeof(Block))
	{
		Size last = bytes - sizeof(Block);

		for (Size i = 0; i < last; i += sizeof(Block))
			*(Block *) (to + i) = *(const Block *) (from + i);
		*(Block *) (to + last) = *(const Block *) (from + last);
	}
	else if (bytes >= 8)
	{
		uint64 head;
		uint64 tail;

		memcpy(&head, from, 8);
		memcpy(&tail, from + bytes - 8, 8);
		memcpy(to, &head, 8);
		memcpy(to + bytes - 8, &tail, 8);
	}
	else
	{
		for (Size i = 0; i < bytes; i++)
			to[i] = from[i];
	}
}

/* Copies a stored tuple to row as a MinimalTuple.  Returns its length in bytes, or 0 when it does not fit below limit. */
static inline Size
gpusort_copy_tuple(HeapTuple tuple, char *row, char *limit)
{
	Size length = tuple->t_len - MINIMAL_TUPLE_OFFSET;

	if (unlikely(row + length > limit))
		return 0;
	gpusort_copy(row, (char *) tuple->t_data + MINIMAL_TUPLE_OFFSET, length);
	((MinimalTuple) row)->t_len = length;
	memset(((MinimalTuple) row)->mt_padding, 0, sizeof(((MinimalTuple) row)->mt_padding));
	return length;
}

/* The same for a MinimalTuple. */
static inline Size
gpusort_copy_minimal_tuple(MinimalTuple tuple, char *row, char *limit)
{
	Size length = tuple->t_len;

	if (unlikely(row + length > limit))
		return 0;
	gpusort_copy(row, (char *) tuple, length);
	memset(((MinimalTuple) row)->mt_padding, 0, sizeof(((MinimalTuple) row)->mt_padding));
	return length;
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

/* Returns a row's flags, GPUSORT_ROW_* of protocol.h. */
static inline uint8
gpusort_row_flags(const char *row)
{
	return (uint8) row[GPUSORT_ROW_FLAGS_OFFSET];
}

/* No row is shorter, in bytes. */
#define GPUSORT_ROW_BYTES_MIN ((uint32) MAXALIGN(SizeofMinimalTupleHeader))

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

pg_noreturn extern void gpusort_row_report_damaged(void);

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

extern GpuSortRowForm *gpusort_rowform_create(TupleDesc desc, int visible);
extern bool gpusort_rowform_has_resjunk(const GpuSortRowForm *form);
extern bool gpusort_rowform_is_visible(const GpuSortRowForm *form, TupleDesc desc);
extern Size gpusort_rowform_fill(const GpuSortRowForm *form, TupleTableSlot *slot, HeapTuple visible, char *row,
								 char *limit);
extern Datum gpusort_rowform_value(const GpuSortRowForm *form, const char *row, AttrNumber attno, bool *isnull);
extern void gpusort_rowform_join(const GpuSortRowForm *form, const char *row, TupleTableSlot *slot);

#endif /* GPUSORT_ROWFORM_H */
