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

#include "client/client.h"
#include "sort/row.h"

/* What is known about the rows before they come back. */
typedef struct GpuSortExpected
{
	uint64 rows;
	uint64 bytes;     /* padded to 8 */
	uint64 first;     /* number of the first row that comes */
	uint64 tie_rows;  /* most rows that may be marked TIE_NEXT; unknown if in_runs */
	bool in_runs;     /* the rows were sorted in runs, and are merged while they come */
	uint8 flags;      /* GPUSORT_ROW_*: those that a row may have */
	bool verified;    /* rows have tails (row_tail.h) */
	bool all;         /* all rows that were put come back, so sum is the sum of their checks */
	uint64 counted;   /* rows that all rows together stand for, of those that carry their number; 0: they carry none */
	uint32 key_words; /* number of key words in a tail */
	uint64 sum;
	bool parallel;     /* the rows are read by ranges, and some by other processes */
	uint32 range_bits; /* if parallel: rows of two ranges differ in this many leading bits of the key */
} GpuSortExpected;

/* Totals of the ranges of a parallel sort that were read to their ends. */
typedef struct GpuSortWhole
{
	uint64 rows;
	uint64 bytes; /* padded to 8 */
	uint64 sum;   /* sum of the checks, if rows have tails */
	uint64 count; /* rows that they stand for, if they carry the number */
} GpuSortWhole;

/* What the reader keeps about the rows that it has verified. */
typedef struct GpuSortVerified
{
	uint32 seed;       /* seed of the checks */
	uint64 sum;        /* sum of the checks */
	uint64 count;      /* rows that they stand for */
	const uint64 *key; /* key of the last row; zeros before the first */
	uint8 flags;       /* of the last row: KEY_TRUNCATED as it was put, TIE_NEXT as it came */
} GpuSortVerified;

/* A range of a parallel sort that has been asked for. */
typedef struct GpuSortAskedRange
{
	bool empty;
	bool row_before; /* the row before it is read with it */
	bool again;      /* some of its rows are also read with another range */
} GpuSortAskedRange;

/* For reader.[ch] alone, but for the totals and failure. */
typedef struct GpuSortReader
{
	GpuSortClient *client;
	GpuSortData data;   /* the current chunk */
	char *cursor;       /* the next row in it */
	char *end;          /* end of its rows */
	char *verified_end; /* end of the rows that are verified, and counted, or need not be */
	uint32 tail;        /* bytes of the tail behind each of these rows */
	uint32 left;        /* number of rows not yet read */
	uint32 tie_rows;    /* number of rows read that are marked TIE_NEXT */
	bool last;          /* it is the last chunk, of the current range in a parallel sort */
	GpuSortExpected expected;
	GpuSortVerified verified;
	uint64 last_key[GPUSORT_MAX_KEY_WORDS]; /* keeps verified.key once its chunk is gone */

	/* totals of the chunks that have arrived */
	uint32 chunks;
	uint64 rows;
	uint64 bytes;
	uint64 all_tie_rows; /* marked TIE_NEXT */

	/* in a parallel sort */
	GpuSortAskedRange asked[GPUSORT_READS_MAX]; /* ranges that were asked for and not begun, in order */
	int nasked;
	bool in_range;      /* a range is being read */
	bool again;         /* the range's rows are not counted, because it is read twice */
	bool row_before;    /* the row before the current range comes first, to be compared with */
	bool at_border;     /* that row has come, so the next one is the first of the range */
	bool all_asked;     /* the current range has all rows, which are compared with expected at its end */
	GpuSortWhole begun; /* rows, bytes, verified.sum and verified.count when the range began */
	uint64 begun_tie_rows;
	GpuSortWhole whole; /* totals of the ranges that were read to their ends */

	/* totals */
	double wait_ms;   /* time of waiting for chunks */
	double gather_ms; /* the service's part */

	GpuSortFailure failure; /* why there was no row */
} GpuSortReader;

/* A position in the current chunk, valid until the next one is asked for. */
typedef struct GpuSortReaderMark
{
	char *cursor;
	uint32 left;
} GpuSortReaderMark;

extern void gpusort_reader_init(GpuSortReader *reader, GpuSortClient *client, const GpuSortExpected *expected);
extern bool gpusort_reader_next_chunk(GpuSortReader *reader, GpuSortFailure *failure);
extern bool gpusort_reader_ask(GpuSortReader *reader, uint64 first, uint64 end, bool again, GpuSortFailure *failure);
extern bool gpusort_reader_begin_range(GpuSortReader *reader, GpuSortFailure *failure);
extern bool gpusort_reader_check_whole(const GpuSortExpected *expected, const GpuSortWhole *whole,
									   GpuSortFailure *failure);
extern bool gpusort_reader_skip_range(GpuSortReader *reader, GpuSortFailure *failure);
extern bool gpusort_reader_rewind(GpuSortReader *reader, uint64 first, GpuSortFailure *failure);
extern char *gpusort_reader_row(GpuSortReader *reader);

/* Returns true if there is no row left in the current chunk, or no chunk yet.  Less than the shortest row is none. */
static inline bool
gpusort_reader_at_end(const GpuSortReader *reader)
{
	return reader->end - reader->cursor < GPUSORT_ROW_BYTES_MIN;
}

/* Returns true if the next row ties with no other and is no reference to a long row.  Not to be called at the end. */
static inline bool
gpusort_reader_next_is_plain(const GpuSortReader *reader)
{
	return (gpusort_row_flags(reader->cursor) & ~GPUSORT_ROW_KEY_TRUNCATED) == 0;
}

/*
 * Reads the next row if there is one in the current chunk, and it is a plain one that
 * need not be verified any more; else returns NULL, and at_end and gpusort_reader_row
 * tell more.  The row is valid until the next chunk is asked for.
 */
static pg_attribute_always_inline char *
gpusort_reader_plain_row(GpuSortReader *reader)
{
	char *row = reader->cursor;
	ptrdiff_t room = reader->verified_end - row;
	uint32 length;

	if (unlikely(room < GPUSORT_ROW_BYTES_MIN))
		return NULL;
	length = gpusort_row_length(row);
	/* One comparison for a length that is too short or too long: room is no less than the minimum. */
	if (unlikely(length - GPUSORT_ROW_BYTES_MIN > (uint32) room - GPUSORT_ROW_BYTES_MIN) ||
		unlikely(!gpusort_reader_next_is_plain(reader)))
		return NULL;
	__builtin_prefetch(row + 2048); /* written by a device or another core: none of it is in our cache */
	reader->cursor = row + reader->tail + MAXALIGN(length);
	reader->left--;
	return row;
}

/* Returns the position before the next row. */
static inline GpuSortReaderMark
gpusort_reader_mark(const GpuSortReader *reader)
{
	return (GpuSortReaderMark){.cursor = reader->cursor, .left = reader->left};
}

/*
 * Goes back to a marked position.  Rows between must be plain ones that still have their resjunk
 * attributes (gpusort_row_hide_resjunk).
 */
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
