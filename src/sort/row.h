/*-------------------------------------------------------------------------
 *
 * row.h
 *	  What all rows in a chunk have in common, and how bytes of theirs are copied.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_H
#define GPUSORT_ROW_H

#include "compat.h"

#include "access/htup_details.h"
#include "service/protocol.h"

/*
 * memcpy for the sizes that values and rows have.
 * A variable-length memcpy is compiled into a string instruction,
 * which takes longer to start than most values take to copy.
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

/* Returns a row's length in bytes, without its tail. */
static inline uint32
gpusort_row_length(const char *row)
{
	return *(const uint32 *) row;
}

static inline void
gpusort_row_set_length(char *row, uint32 length)
{
	*(uint32 *) row = length;
}

/* Returns a row's flags, GPUSORT_ROW_* of protocol.h. */
static inline uint8
gpusort_row_flags(const char *row)
{
	return (uint8) row[GPUSORT_ROW_FLAGS_OFFSET];
}

/* Returns how many rows a row stands for, of those that carry the number. */
static inline uint64
gpusort_row_count(const char *row)
{
	return *(const uint64 *) (row + GPUSORT_ROW_COUNT_OFFSET);
}

static inline void
gpusort_row_set_count(char *row, uint64 count)
{
	*(uint64 *) (row + GPUSORT_ROW_COUNT_OFFSET) = count;
}

/* The least length of a row, in bytes. */
#define GPUSORT_ROW_BYTES_MIN ((uint32) MAXALIGN(SizeofMinimalTupleHeader))

/* That of one which carries how many it stands for. */
#define GPUSORT_COUNTED_ROW_BYTES_MIN (GPUSORT_ROW_BYTES_MIN + (uint32) sizeof(uint64))

/* Returns the bytes of a row in a chunk, for the planner's estimated width. */
static inline uint64
gpusort_row_bytes(uint32 width)
{
	return MAXALIGN(SizeofMinimalTupleHeader) + MAXALIGN(width);
}

pg_noreturn extern void gpusort_row_report_damaged(void);

#endif /* GPUSORT_ROW_H */
