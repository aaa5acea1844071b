/*-------------------------------------------------------------------------
 *
 * rows.h
 *	  Rows on their way into and out of the staging pool's chunks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROWS_H
#define GPUSORT_ROWS_H

#include "compat.h"

#include "client/client.h"
#include "client/rowform.h"
#include "executor/tuptable.h"
#include "keys/keys.h"
#include "nodes/execnodes.h"
#include "server/shared.h"
#include "storage/buffile.h"

/*
 * Rows longer than this stay in a temporary file of the backend; a short row
 * that says where travels in their place.
 */
#define GPUSORT_MAX_INLINE_ROW (GPUSORT_CHUNK_BYTES / 4)

/* Flags of a row; see protocol.h. */
static inline uint8
gpusort_row_flags(const char *row)
{
	return (uint8) row[GPUSORT_ROW_FLAGS_OFFSET];
}

/* The rows that stay behind. */
typedef struct GpuSortOverflow
{
	BufFile *file; /* NULL until there is one */
	uint64 rows;
} GpuSortOverflow;

/* Where rows that have arrived are shown to the executor. */
typedef struct GpuSortSlots
{
	const GpuSortRowForm *form;
	GpuSortOverflow overflow; /* of the sort at hand */
	TupleTableSlot *given;    /* MinimalTuples of the columns given out */
	TupleTableSlot *all;      /* MinimalTuples of all columns; the same slot where those are given out */

	/* for rows with hidden columns, else NULL: */
	TupleTableSlot *joined; /* virtual, all columns */
	TupleTableSlot *cut;    /* virtual, those given out of what all holds */
} GpuSortSlots;

extern void gpusort_slots_init(GpuSortSlots *slots, EState *estate, const GpuSortRowForm *form, TupleDesc all,
							   TupleDesc given);
extern void gpusort_slots_clear(GpuSortSlots *slots);
extern TupleTableSlot *gpusort_slots_load(GpuSortSlots *slots, char *row);
extern TupleTableSlot *gpusort_slots_cut(GpuSortSlots *slots);
extern void gpusort_overflow_close(GpuSortOverflow *overflow);

typedef struct GpuSortWriter
{
	GpuSortClient *client;
	const GpuSortKeys *keys;
	const GpuSortRowForm *form;
	bool has_hidden;           /* rows have to be formed: a tuple of the child's will not do */
	GpuSortOverflow *overflow; /* NULL: long rows are not taken */
	GpuSortJobSlot *job;       /* where progress is shown; NULL: nowhere */

	/* the chunk at hand */
	char *chunk;    /* NULL: none yet */
	char *cursor;   /* where the next record goes */
	uint32 *offset; /* where the next record's offset goes */
	uint32 chunk_rows;

	/* totals */
	uint64 rows;
	uint64 bytes;           /* of rows, as far as they travel */
	uint64 bytes_shown;     /* of them, in job */
	double wait_ms;         /* for chunks */
	GpuSortFailure failure; /* reason NONE, or why there are no more chunks */
} GpuSortWriter;

extern void gpusort_writer_init(GpuSortWriter *writer, GpuSortClient *client, const GpuSortKeys *keys,
								const GpuSortRowForm *form, GpuSortOverflow *overflow, GpuSortJobSlot *job);
extern TupleTableSlot *gpusort_stored_slot(PlanState *child, const GpuSortRowForm *form);
extern bool gpusort_writer_add(GpuSortWriter *writer, TupleTableSlot *slot, TupleTableSlot *stored,
							   GpuSortFailure *failure);
extern bool gpusort_writer_finish(GpuSortWriter *writer, GpuSortFailure *failure);

typedef struct GpuSortReader
{
	GpuSortClient *client;
	GpuSortData data; /* the chunk at hand */
	char *cursor;     /* its next row */
	uint32 left;      /* its rows not read yet */
	bool last;        /* no chunk comes after it */

	uint64 rows;      /* in chunks that have arrived */
	double wait_ms;   /* for chunks */
	double gather_ms; /* the service's part */
} GpuSortReader;

extern void gpusort_reader_init(GpuSortReader *reader, GpuSortClient *client);
extern bool gpusort_reader_next_chunk(GpuSortReader *reader, GpuSortFailure *failure);
extern bool gpusort_reader_rewind(GpuSortReader *reader, GpuSortFailure *failure);

/*
 * The next row of the chunk at hand; reader->left must not be 0.  It is valid
 * until the next chunk is asked for.
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

/*
 * The slot with what is given out of a row that has arrived, and is not in the
 * overflow file; once for each row.  This is ExecStoreMinimalTuple without a
 * call: of all that is done for a row on its way out it would take most.
 */
static inline TupleTableSlot *
gpusort_slots_give(GpuSortSlots *slots, char *row)
{
	TupleTableSlot *given = slots->given;
	MinimalTupleTableSlot *slot = (MinimalTupleTableSlot *) given;
	MinimalTuple tuple = (MinimalTuple) row;

	if (slots->joined != NULL)
		gpusort_row_hide(row);
	if (unlikely(TTS_SHOULDFREE(given)))
		return ExecStoreMinimalTuple(tuple, given, false);
	given->tts_flags &= ~TTS_FLAG_EMPTY;
	given->tts_nvalid = 0;
	slot->off = 0;
	slot->mintuple = tuple;
	slot->minhdr.t_len = tuple->t_len + MINIMAL_TUPLE_OFFSET;
	slot->minhdr.t_data = (HeapTupleHeader) (row - MINIMAL_TUPLE_OFFSET);
	return given;
}

#endif /* GPUSORT_ROWS_H */
