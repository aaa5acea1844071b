/*-------------------------------------------------------------------------
 *
 * format.h
 *	  How processes form rows.
 *
 * The leader makes a GpuSortFormat, in one piece, which goes to workers in shared memory.  A worker has
 * gpusort_with_former call back with a former by it, and forms one row after another (former.h).  The leader has a
 * receiver already, and makes a former over that.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FORMAT_H
#define GPUSORT_FORMAT_H

#include "compat.h"

#include "form/former.h"
#include "nodes/parsenodes.h"

/* What rows are formed as. */
typedef enum GpuSortMessages
{
	GPUSORT_DATA_ROWS, /* messages of a SELECT */
	GPUSORT_COPY_DATA, /* those of a COPY */
	GPUSORT_COPY_FILE, /* what is in those */
} GpuSortMessages;

typedef struct GpuSortFormat
{
	Size bytes; /* of all of this */
	GpuSortMessages messages;
	int encoding; /* the client's */
	bool binary;  /* a COPY is */

	/* Of a SELECT the format of each column, 0: text, 1: binary; of a COPY a text (copy_former.c). */
	pg_attribute_aligned(sizeof(int16)) char data[FLEXIBLE_ARRAY_MEMBER];
} GpuSortFormat;

extern GpuSortFormat *gpusort_format_of_portal(TupleDesc desc, const int16 *columns);
extern GpuSortFormat *gpusort_format_of_copy(const CopyStmt *copy, TupleDesc desc, bool binary);
extern void gpusort_with_former(const GpuSortFormat *format, TupleDesc desc, GpuSortFormerCallback callback, void *arg);

#endif /* GPUSORT_FORMAT_H */
