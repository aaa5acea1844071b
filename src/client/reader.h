/*-------------------------------------------------------------------------
 *
 * reader.h
 *	  Reads the rows of a sort out of the chunks in which they arrive.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_READER_H
#define GPUSORT_READER_H

#include "compat.h"

#include "access/htup_details.h"
#include "client/client.h"
#include "client/rowform.h"

/* cursor and left are for reader.[ch] alone. */
typedef struct GpuSortReader
{
	GpuSortClient *client;
	GpuSortData data; /* the chunk at hand */
	char *cursor;     /* its next row */
	uint32 left;      /* its rows not read yet */
	bool last;        /* no chunk comes after it */

	/* totals */
	uint64 rows;      /* in chunks that have arrived */
	double wait_ms;   /* for chunks */
	double gather_ms; /* the service's part */
} GpuSortReader;

/* A position in the chunk at hand, valid until the next one is asked for. */
typedef struct GpuSortReaderMark
{
	char *cursor;
	uint32 left;
} GpuSortReaderMark;

extern void gpusort_reader_init(GpuSortReader *reader, GpuSortClient *client);
extern bool gpusort_reader_next_chunk(GpuSortReader *reader, GpuSortFailure *failure);
extern bool gpusort_reader_rewind(GpuSortReader *reader, GpuSortFailure *failure);

/* Returns true if all rows of the chunk at hand have been read, or there is no chunk yet. */
static inline bool
gpusort_reader_at_end(const GpuSortReader *reader)
{
	return reader->left == 0;
}

/* Returns the flags of the next row, without reading it.  The reader must not be at the end of its chunk. */
static inline uint8
gpusort_reader_next_flags(const GpuSortReader *reader)
{
	return gpusort_row_flags(reader->cursor);
}

/*
 * Reads the next row of the chunk at hand, which must not be at its end.  The row
 * is valid until the next chunk is asked for.
 */
static inline char *
gpusort_reader_row(GpuSortReader *reader)
{
	char *row = reader->cursor;

	reader->cursor += MAXALIGN(((MinimalTuple) row)->t_len);
	__builtin_prefetch(row + 2048); /* written by a device or another core: none of it is in our cache */
	reader->left--;
	return row;
}

/* Returns the position before the next row. */
static inline GpuSortReaderMark
gpusort_reader_mark(const GpuSortReader *reader)
{
	return (GpuSortReaderMark){.cursor = reader->cursor, .left = reader->left};
}

/* Goes back to a marked position.  Rows between must still have their resjunk attributes (gpusort_row_hide_resjunk). */
static inline void
gpusort_reader_restore(GpuSortReader *reader, GpuSortReaderMark mark)
{
	reader->cursor = mark.cursor;
	reader->left = mark.left;
}

/* Returns how many rows were read since mark was taken. */
static inline uint32
gpusort_reader_rows_since(const GpuSortReader *reader, GpuSortReaderMark mark)
{
	return mark.left - reader->left;
}

#endif /* GPUSORT_READER_H */
