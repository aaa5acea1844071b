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
#include "sort/repeats.h"

/* Rows longer than this, in bytes, go to the overflow file. */
#define GPUSORT_MAX_INLINE_ROW (GPUSORT_CHUNK_BYTES / 4)

/* What a process has put. */
typedef struct GpuSortPut
{
	uint64 rows;
	uint64 truncated; /* number of rows with truncated keys */
	uint64 bytes;     /* bytes of rows that travel */
	uint64 sum;       /* sum of the checks, if rows have tails */
	uint64 dropped;   /* rows that were not put, because they are not wanted */
} GpuSortPut;

typedef struct GpuSortWriter
{
	GpuSortClient *client;
	const GpuSortKeys *keys;
	Size tail;                 /* bytes of the tail behind each row (row_tail.h), or 0 */
	uint32 seed;               /* seed of the checks in tails */
	GpuSortOverflow *overflow; /* where long rows go; NULL if they are not accepted */
	GpuSortJobSlot *job;       /* where progress is shown, or NULL */
	GpuSortCutoff *cutoff;     /* which rows are wanted, set by the caller; NULL means all */
	GpuSortRepeats *repeats;   /* which rows are not wanted again, likewise; not with a cutoff */

	/* the current chunk */
	char *chunk;      /* NULL before the first one */
	char *cursor;     /* where the next record goes */
	uint32 *offset;   /* where the next record's offset goes */
	uint32 rows_max;  /* number of rows that it takes */
	uint32 rows_left; /* number of rows that it still takes; 0 if it is full or there is none */

	/* totals */
	uint64 rows;
	uint64 truncated;   /* number of rows with truncated keys */
	uint64 bytes;       /* bytes of rows that travel */
	uint64 sum;         /* sum of the checks in tails */
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

/* Returns true if rows may be dropped by their keys. */
static inline bool
gpusort_writer_drops_rows(const GpuSortWriter *writer)
{
	return (writer->cutoff != NULL && !writer->cutoff->useless) ||
		(writer->repeats != NULL && !writer->repeats->useless);
}

/* Returns where the rows of the current chunk must end, without their tails: at its offsets. */
static inline char *
gpusort_writer_chunk_end(const GpuSortWriter *writer)
{
	return (char *) ((uintptr_t) writer->offset & ~(uintptr_t) (MAXIMUM_ALIGNOF - 1)) - writer->tail;
}

#endif /* GPUSORT_WRITER_H */
