/*-------------------------------------------------------------------------
 *
 * former.h
 *	  Forms rows as the bytes that leave the server, by a receiver of PostgreSQL's, in any process.
 *
 * Legal order of calls: over, then row, one after another, and where these are not the first of all rows, and the head
 * has been taken, first_row for that one; or run, which does the same in a worker around a callback.
 *
 * Own formatters were considered: they would be more code, and right for some types in some versions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FORMER_H
#define GPUSORT_FORMER_H

#include "compat.h"

#include "executor/tuptable.h"
#include "form/messages.h"
#include "tcop/dest.h"

typedef struct GpuSortFormer
{
	DestReceiver *receiver; /* has been started up */
	TupleDesc desc;
	bool for_file; /* rows are what is in messages, and no messages */
	int encoding;  /* to be in force while a row is formed; -1: it is */

	/* What a receiver puts before the first row, as binary COPY does, in its message. */
	bool has_head;
	bool head_taken; /* it is in head, or has been sent */
	StringInfoData head;

	GpuSortCatch caught;
} GpuSortFormer;

typedef void (*GpuSortFormerCallback)(GpuSortFormer *former, void *arg);

extern GpuSortFormer *gpusort_former_over(DestReceiver *receiver, TupleDesc desc, bool has_head, bool for_file);
extern void gpusort_former_take_head(GpuSortFormer *former);
extern bool gpusort_former_row(GpuSortFormer *former, TupleTableSlot *slot);
extern void gpusort_former_first_row(GpuSortFormer *former, TupleTableSlot *slot);
extern void gpusort_former_run(GpuSortFormer *former, int encoding, GpuSortFormerCallback callback, void *arg);

/* What a binary COPY has for a row of NULLs: the number of columns, and a length for each. */
static inline int
gpusort_former_null_row_bytes(const GpuSortFormer *former)
{
	return sizeof(int16) + former->desc->natts * sizeof(int32);
}

/* Returns how many bytes stand before what a receiver has formed, of a row or a head. */
static inline int
gpusort_former_message_head_bytes(const GpuSortFormer *former)
{
	return former->for_file ? 0 : GPUSORT_MESSAGE_HEAD_BYTES;
}

/* Forgets the rows that were formed. */
static inline void
gpusort_former_clear(GpuSortFormer *former)
{
	former->caught.bytes.len = 0;
}

#endif /* GPUSORT_FORMER_H */
