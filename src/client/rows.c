/*-------------------------------------------------------------------------
 *
 * rows.c
 *	  Rows on their way into and out of the staging pool's chunks.
 *
 * In: the key and a MinimalTuple of each row are written straight into the
 * chunk, with no allocation and no second copy.  A row that is a tuple already
 * is copied as it is; others are formed in place (rowform.c).  Out: rows are read where
 * they arrived.
 *
 * A writer's legal order is init, add*, finish; a reader's is init, then
 * next_chunk whenever left is 0, until it says that there are no more.  Neither
 * owns anything but the chunk at hand, which goes back with the client.  The
 * overflow file belongs to the resource owner that was current when its first
 * row was written, and to whoever calls gpusort_overflow_close.
 *
 *-------------------------------------------------------------------------
 */
#include "client/rows.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "portability/instr_time.h"

/* What travels in place of a row in the overflow file; laid out like one as far as others look. */
typedef struct OverflowRow
{
	uint32 length; /* of this struct */
	uint8 flags;
	uint8 unused[3];
	uint32 tuple_length;
	int32 fileno;
	int64 offset;
} OverflowRow;

static double
ms_since(instr_time start)
{
	instr_time now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_MILLISEC(now);
}

/* Moves the row in slot to the overflow file; writes at row where it is, returns that one's length. */
static Size
overflow_store(GpuSortOverflow *overflow, TupleTableSlot *slot, char *row)
{
	OverflowRow where = {.length = sizeof(OverflowRow), .flags = GPUSORT_ROW_OVERFLOW};
	bool should_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &should_free);
	int fileno;
	off_t offset;

	if (overflow->file == NULL)
		overflow->file = BufFileCreateTemp(false);
	BufFileTell(overflow->file, &fileno, &offset);
	BufFileWrite(overflow->file, tuple, tuple->t_len);
	overflow->rows++;

	where.tuple_length = tuple->t_len;
	where.fileno = fileno;
	where.offset = offset;
	memcpy(row, &where, sizeof(where));
	if (should_free)
		heap_free_minimal_tuple(tuple);
	return sizeof(where);
}

/* The row that one with GPUSORT_ROW_OVERFLOW stands for, palloc'd. */
static MinimalTuple
overflow_fetch(GpuSortOverflow *overflow, const char *row)
{
	OverflowRow where;
	MinimalTuple tuple;

	memcpy(&where, row, sizeof(where));
	tuple = palloc(where.tuple_length);
	if (BufFileSeek(overflow->file, where.fileno, where.offset, SEEK_SET) != 0 ||
		BufFileRead(overflow->file, tuple, where.tuple_length) != where.tuple_length)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read a row back from gpusort's temporary file: %m")));
	return tuple;
}

/*
 * Makes the slots for rows of this form, with the columns that all and, of them,
 * given describes; they end with the query.
 */
void
gpusort_slots_init(GpuSortSlots *slots, EState *estate, const GpuSortRowForm *form, TupleDesc all, TupleDesc given)
{
	slots->form = form;
	slots->overflow = (GpuSortOverflow){0};
	slots->given = ExecInitExtraTupleSlot(estate, given, &TTSOpsMinimalTuple);
	slots->all = slots->given;
	slots->joined = NULL;
	slots->cut = NULL;
	if (gpusort_rowform_has_hidden(form))
	{
		slots->all = ExecInitExtraTupleSlot(estate, all, &TTSOpsMinimalTuple);
		slots->joined = ExecInitExtraTupleSlot(estate, all, &TTSOpsVirtual);
		slots->cut = ExecInitExtraTupleSlot(estate, given, &TTSOpsVirtual);
	}
}

/* Lets go of what the slots hold. */
void
gpusort_slots_clear(GpuSortSlots *slots)
{
	ExecClearTuple(slots->all);
	ExecClearTuple(slots->given);
	if (slots->joined != NULL)
	{
		ExecClearTuple(slots->joined);
		ExecClearTuple(slots->cut);
	}
}

/*
 * A slot with all columns of a row that has arrived, valid as long as its chunk
 * and until the next call.
 */
TupleTableSlot *
gpusort_slots_load(GpuSortSlots *slots, char *row)
{
	if (gpusort_row_flags(row) & GPUSORT_ROW_OVERFLOW)
		return ExecStoreMinimalTuple(overflow_fetch(&slots->overflow, row), slots->all, true);
	if (slots->joined == NULL)
		return ExecStoreMinimalTuple((MinimalTuple) row, slots->all, false);
	gpusort_rowform_join(slots->form, row, slots->joined);
	return slots->joined;
}

/* What is given out of the row whose columns are all in slots->all; likewise if that is empty. */
TupleTableSlot *
gpusort_slots_cut(GpuSortSlots *slots)
{
	TupleTableSlot *cut = slots->cut;
	int given;

	if (cut == NULL)
		return slots->all;
	ExecClearTuple(cut);
	if (TupIsNull(slots->all))
		return cut;
	given = cut->tts_tupleDescriptor->natts;
	slot_getsomeattrs(slots->all, given);
	memcpy(cut->tts_values, slots->all->tts_values, given * sizeof(Datum));
	memcpy(cut->tts_isnull, slots->all->tts_isnull, given * sizeof(bool));
	return ExecStoreVirtualTuple(cut);
}

void
gpusort_overflow_close(GpuSortOverflow *overflow)
{
	if (overflow->file != NULL)
		BufFileClose(overflow->file);
	overflow->file = NULL;
	overflow->rows = 0;
}

void
gpusort_writer_init(GpuSortWriter *writer, GpuSortClient *client, const GpuSortKeys *keys,
					const GpuSortRowForm *form, GpuSortOverflow *overflow, GpuSortJobSlot *job)
{
	memset(writer, 0, sizeof(*writer));
	writer->client = client;
	writer->keys = keys;
	writer->form = form;
	writer->has_hidden = gpusort_rowform_has_hidden(form);
	writer->overflow = overflow;
	writer->job = job;
}

/* Hands over the chunk at hand. */
static bool
flush_chunk(GpuSortWriter *writer, GpuSortFailure *failure)
{
	uint32 bytes = writer->cursor - writer->chunk;

	writer->chunk = NULL;
	gpusort_shared_job_add(writer->job, writer->chunk_rows, writer->bytes - writer->bytes_shown);
	writer->bytes_shown = writer->bytes;
	return gpusort_client_put_chunk(writer->client, writer->chunk_rows, bytes, failure);
}

/* Gets another chunk, after handing over the one at hand. */
static bool
next_chunk(GpuSortWriter *writer, GpuSortFailure *failure)
{
	instr_time start;

	/* The client must not be asked again after a failure, but we may be. */
	if (writer->failure.reason == GPUSORT_REASON_NONE &&
		(writer->chunk == NULL || flush_chunk(writer, &writer->failure)))
	{
		INSTR_TIME_SET_CURRENT(start);
		writer->chunk = gpusort_client_get_chunk(writer->client, &writer->failure);
		writer->wait_ms += ms_since(start);
	}
	if (writer->chunk == NULL)
	{
		*failure = writer->failure;
		return false;
	}
	writer->cursor = writer->chunk;
	writer->offset = gpusort_chunk_offset(writer->chunk, 0);
	writer->chunk_rows = 0;
	return true;
}

/* Where the rows of the chunk at hand must end: at its offsets. */
static inline char *
chunk_end(const GpuSortWriter *writer)
{
	return (char *) ((uintptr_t) writer->offset & ~(uintptr_t) (MAXIMUM_ALIGNOF - 1));
}

/* The physical tuple of a slot that has one, else NULL. */
static inline HeapTuple
slot_heap_tuple(TupleTableSlot *slot)
{
	if (TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot))
		return ((HeapTupleTableSlot *) slot)->tuple;
	return NULL;
}

static inline MinimalTuple
slot_minimal_tuple(TupleTableSlot *slot)
{
	return TTS_IS_MINIMALTUPLE(slot) ? ((MinimalTupleTableSlot *) slot)->mintuple : NULL;
}

/*
 * Writes the row in slot at row, below limit; returns its length, or 0 when it
 * does not fit.
 */
static inline Size
write_row(GpuSortWriter *writer, TupleTableSlot *slot, TupleTableSlot *stored, char *row, char *limit)
{
	HeapTuple heap_tuple = slot_heap_tuple(slot);
	MinimalTuple minimal_tuple = slot_minimal_tuple(slot);
	Size length;

	if (writer->has_hidden || (heap_tuple == NULL && minimal_tuple == NULL))
	{
		slot_getallattrs(slot);
		return gpusort_rowform_fill(writer->form, slot, stored != NULL ? slot_heap_tuple(stored) : NULL, row, limit);
	}
	if (heap_tuple != NULL)
		return gpusort_copy_tuple(heap_tuple, row, limit);

	length = minimal_tuple->t_len;
	if (unlikely(row + length > limit))
		return 0;
	gpusort_copy(row, (char *) minimal_tuple, length);
	memset(((MinimalTuple) row)->mt_padding, 0, sizeof(((MinimalTuple) row)->mt_padding));
	return length;
}

/*
 * Where the tuple lies of which child makes its rows, if it is, as it is stored,
 * the columns of them that are given out; else NULL.  A child that computes a
 * key beside all columns of its table takes the tuple apart, but nobody has to
 * put it together again.
 */
TupleTableSlot *
gpusort_stored_slot(PlanState *child, const GpuSortRowForm *form)
{
	Index relid;
	TupleTableSlot *stored;
	int natts;

	switch (nodeTag(child))
	{
		case T_SeqScanState:
		case T_SampleScanState:
		case T_IndexScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
			break;
		default:
			return NULL;
	}
	relid = ((Scan *) child->plan)->scanrelid;
	stored = ((ScanState *) child)->ss_ScanTupleSlot;
	natts = stored->tts_tupleDescriptor->natts;
	if (!gpusort_rowform_has_hidden(form) || !gpusort_rowform_is_given(form, stored->tts_tupleDescriptor))
		return NULL;
	for (int i = 0; i < natts; i++)
	{
		const Var *var = (const Var *) list_nth_node(TargetEntry, child->plan->targetlist, i)->expr;

		if (!IsA(var, Var) || var->varno != relid || var->varattno != i + 1)
			return NULL;
	}
	return stored;
}

/*
 * Adds the row in slot; stored is what gpusort_stored_slot says of the plan that
 * has just made it.  false: the row was not taken, those before it were.  Either there
 * is no chunk for it nor for any row after it, failure says why; or it is a long
 * row and there is no overflow file, then failure->reason is NONE.  Errors: those
 * of detoasting, and of the overflow file.
 */
bool
gpusort_writer_add(GpuSortWriter *writer, TupleTableSlot *slot, TupleTableSlot *stored, GpuSortFailure *failure)
{
	const Size key_bytes = writer->keys->words * sizeof(uint64);
	Size length = 0;
	char *row = NULL;
	char *end = NULL;

	if (likely(writer->chunk != NULL))
	{
		row = writer->cursor + key_bytes;
		end = chunk_end(writer);
		length = write_row(writer, slot, stored, row, Min(end, row + GPUSORT_MAX_INLINE_ROW));
	}
	if (unlikely(length == 0))
	{
		/* The chunk is full, unless it is the row that is long. */
		if (row == NULL || row + GPUSORT_MAX_INLINE_ROW > end)
		{
			if (!next_chunk(writer, failure))
				return false;
			row = writer->cursor + key_bytes;
			length = write_row(writer, slot, stored, row, row + GPUSORT_MAX_INLINE_ROW);
		}
		if (length == 0)
		{
			if (writer->overflow == NULL)
			{
				failure->reason = GPUSORT_REASON_NONE;
				return false;
			}
			length = overflow_store(writer->overflow, slot, row);
		}
	}
	if (!gpusort_keys_encode(writer->keys, slot, (uint64 *) writer->cursor))
		row[GPUSORT_ROW_FLAGS_OFFSET] |= GPUSORT_ROW_KEY_TRUNCATED;

	*writer->offset-- = writer->cursor - writer->chunk;
	writer->cursor = row + MAXALIGN(length);
	writer->chunk_rows++;
	writer->rows++;
	writer->bytes += MAXALIGN(length);
	return true;
}

/* Hands over the last chunk. */
bool
gpusort_writer_finish(GpuSortWriter *writer, GpuSortFailure *failure)
{
	return writer->chunk == NULL || writer->chunk_rows == 0 || flush_chunk(writer, failure);
}

void
gpusort_reader_init(GpuSortReader *reader, GpuSortClient *client)
{
	memset(reader, 0, sizeof(*reader));
	reader->client = client;
}

/*
 * Lets go of the chunk at hand, whose rows have all been read, and waits for
 * the next one.  Returns true with left > 0, or false with failure->reason NONE
 * when there are no more rows, or false with the reason why the sort is lost.
 */
bool
gpusort_reader_next_chunk(GpuSortReader *reader, GpuSortFailure *failure)
{
	instr_time start;

	failure->reason = GPUSORT_REASON_NONE;
	Assert(reader->left == 0);
	gpusort_client_free_data(reader->client, &reader->data);
	if (reader->last)
		return false;

	INSTR_TIME_SET_CURRENT(start);
	if (!gpusort_client_next_data(reader->client, &reader->data, failure))
		return false;
	reader->wait_ms += ms_since(start);
	reader->gather_ms += reader->data.emitted.gather_ms;
	reader->last = reader->data.emitted.last != 0;
	reader->cursor = reader->data.rows;
	reader->left = reader->data.emitted.rows;
	reader->rows += reader->data.emitted.rows;
	return reader->left > 0;
}

/* Starts again at the first row. */
bool
gpusort_reader_rewind(GpuSortReader *reader, GpuSortFailure *failure)
{
	gpusort_client_free_data(reader->client, &reader->data);
	reader->left = 0;
	reader->last = false;
	return gpusort_client_rewind(reader->client, failure);
}
