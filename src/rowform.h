/*-------------------------------------------------------------------------
 *
 * rowform.h
 *	  Forms rows from values, in place.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROWFORM_H
#define GPUSORT_ROWFORM_H

#include "compat.h"

#include "executor/tuptable.h"

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
		char		bytes[16];
	} Block;

	if (bytes >= sizeof(Block))
	{
		Size		last = bytes - sizeof(Block);

		for (Size i = 0; i < last; i += sizeof(Block))
			*(Block *) (to + i) = *(const Block *) (from + i);
		*(Block *) (to + last) = *(const Block *) (from + last);
	}
	else if (bytes >= 8)
	{
		uint64		head;
		uint64		tail;

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

extern GpuSortRowForm *gpusort_rowform_create(TupleDesc desc);
extern Size gpusort_rowform_fill(const GpuSortRowForm *form, TupleTableSlot *slot, char *row, char *limit);

#endif							/* GPUSORT_ROWFORM_H */
