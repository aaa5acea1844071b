/*-------------------------------------------------------------------------
 *
 * writer.h
 *	  Writes rows and their keys into the staging pool's chunks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WRITER_H
#define GPUSORT_WRITER_H

#include "compat.h"

#include "client/client.h"
#include "server/jobs.h"
#include "sort/cutoff.h"
#include "keys/keys.h"
#include "sort/overflow.h"

/* Rows longer than this, in bytes, go to the overflow file. */
#define GPUSORT_MAX_INLINE_ROW (GPUSORT_CHUNK_BYTES / 4)

/* What a process has put. */
typedef struct GpuSortPut
{
	uint64 rows;
	uint64 truncated; /* those of them whose keys are */
	uint64 bytes;     /* of rows, as far as they travel */
	uint64 sum;       /* of the checks of rows with tails */
	uint64 dropped;   /* rows that were not put, since they are not among those wanted */
} GpuSortPut;

typedef struct GpuSortWriter
{
	GpuSortClient *client;
	const GpuSortKeys *keys;
	Size tail;                 /* bytes behind each row for verifying it (row_tail.h); 0: none */
	uint32 seed;               /* of the checks in tails */
	GpuSortOverflow *overflow; /* where long rows go; NULL: they are not taken */
	GpuSortJobSlot *job;       /* where progress is shown; NULL: nowhere */
	GpuSortCutoff *cutoff;     /* which rows are wanted, as the caller sets it; NULL: all */

	/* the current chunk */
	char *chunk;      /* NULL: none yet */
	char *cursor;     /* where the next record goes */
	uint32 *offset;   /* where the next record's offset goes */
	uint32 rows_max;  /* that it takes */
	uint32 rows_left; /* of these; 0: no chunk, or a full one */

	/* totals */
	uint64 rows;
	uint64 truncated;   /* those of them whose keys are */
	uint64 bytes;       /* of rows, as far as they travel */
	uint64 sum;         /* of the checks in tails */
	uint64 bytes_shown; /* of them, in job */
	uint64 temp_bytes_shown;
	double wait_ms;         /* for chunks */
	GpuSortFailure failure; /* reason NONE, or why there are no more chunks */
} GpuSortWriter;

extern void gpusort_writer_init(GpuSortWriter *writer, GpuSortClient *client, const GpuSortKeys *keys,
								GpuSortOverflow *overflow, GpuSortJobSlot *job, bool verified);
extern void gpusort_writer_show(GpuSortWriter *writer, uint32 rows);
extern GpuSortPut gpusort_writer_put(const GpuSortWriter *writer);
extern bool gpusort_writer_finish(GpuSortWriter *writer, GpuSortFailure *failure);

/* For put_rows.h alone */
extern bool gpusort_writer_next_chunk(GpuSortWriter *writer, GpuSortFailure *failure);
extern Size gpusort_writer_append_tail(GpuSortWriter *writer, char *row, Size length);

/* Returns where the rows of the current chunk must end, without their tails: at its offsets. */
static inline char *
gpusort_writer_chunk_end(const GpuSortWriter *writer)
{
	return (char *) ((uintptr_t) writer->offset & ~(uintptr_t) (MAXIMUM_ALIGNOF - 1)) - writer->tail;
}

#endif /* GPUSORT_WRITER_H */
