/*-------------------------------------------------------------------------
 *
 * former.h
 *	  Forms rows as the bytes that leave the server, by PostgreSQL's own receivers, in any process.
 *
 * The leader describes what is wanted: a GpuSortFormat, in one piece, which goes to workers in shared memory.
 * A worker has gpusort_with_former call back with a former by it, for rows of one descriptor; one row after another is
 * formed then.  The leader has a receiver already, and makes a former over that.
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

/* What rows are to be formed as. */
typedef struct GpuSortFormat
{
	Size bytes;                           /* of all of this */
	int encoding;                         /* the client's */
	int16 columns[FLEXIBLE_ARRAY_MEMBER]; /* 0: text, 1: binary */
} GpuSortFormat;

typedef struct GpuSortFormer
{
	DestReceiver *receiver;
	int encoding; /* to be in force while a row is formed; -1: it is */
	GpuSortCatch caught;
} GpuSortFormer;

typedef void (*GpuSortFormerCallback)(GpuSortFormer *former, void *arg);

extern GpuSortFormat *gpusort_format_of_portal(TupleDesc desc);
extern void gpusort_with_former(const GpuSortFormat *format, TupleDesc desc, GpuSortFormerCallback callback, void *arg);
extern GpuSortFormer *gpusort_former_over(DestReceiver *receiver);
extern bool gpusort_former_row(GpuSortFormer *former, TupleTableSlot *slot);

/* Forgets the rows that were formed. */
static inline void
gpusort_former_clear(GpuSortFormer *former)
{
	former->caught.bytes.len = 0;
}

#endif /* GPUSORT_FORMER_H */
