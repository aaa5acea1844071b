/*-------------------------------------------------------------------------
 *
 * writer.c
 *	  Writes rows and their keys into the staging pool's chunks.
 *
 * The key and a MinimalTuple of each row are written straight into the chunk,
 * with no allocation and no second copy.  A row that is a tuple already is copied
 * as it is; others are formed in place (rowform.c).  Rows longer than a
 * quarter of a chunk go to the overflow file.
 *
 * Legal order of calls: init, add*, finish.  A writer owns nothing but the chunk
 * at hand, which goes back with the client.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/writer.h"

#include "access/htup_details.h"
#include "client/elapsed.h"
#include "sort/row_tail.h"

/*
 * Begins writing into client's chunks.  overflow: where long rows go; NULL: add
 * refuses them.  job: where progress is shown; NULL: nowhere.  All belong to the
 * caller, and must be there until the writer is done with.  verified: rows get tails,
 * in every process that writes or in none.
 */
void
gpusort_writer_init(GpuSortWriter *writer, GpuSortClient *client, const GpuSortKeys *keys,
					const GpuSortRowForm *form, GpuSortOverflow *overflow, GpuSortJobSlot *job, bool verified)
{
	memset(writer, 0, sizeof(*writer));
	writer->client = client;
	writer->keys = keys;
	writer->form = form;
	writer->has_resjunk = gpusort_rowform_has_resjunk(form);
	writer->overflow = overflow;
	writer->job = job;
	writer->tail = verified ? gpusort_tail_bytes(keys->words) : 0;
	writer->seed = gpusort_tail_seed(gpusort_client_token(client));
}

/* Returns what was put so far, the rows of the chunk at hand included. */
GpuSortPut
gpusort_writer_put(const GpuSortWriter *writer)
{
	return (GpuSortPut){
		.rows = writer->rows,
		.truncated = writer->truncated,
		.bytes = writer->bytes,
		.sum = writer->sum,
		.dropped = writer->cutoff != NULL ? writer->cutoff->dropped : 0,
	};
}

/* Shows so many more rows, and what has been written of them since the last time, in gpusort_jobs. */
void
gpusort_writer_show(GpuSortWriter *writer, uint32 rows)
{
	uint64 temp_bytes = gpusort_client_temp_bytes(writer->client);

	gpusort_shared_job_add(writer->job, rows, writer->bytes - writer->bytes_shown, temp_bytes - writer->temp_bytes_shown);
	writer->bytes_shown = writer->bytes;
	writer->temp_bytes_shown = temp_bytes;
}

/* Hands over the chunk at hand; false, with a reason, if the sort is full or lost. */
static bool
flush_chunk(GpuSortWriter *writer, GpuSortFailure *failure)
{
	uint32 bytes = writer->cursor - writer->chunk;
	uint32 rows = writer->rows_max - writer->rows_left;

	writer->chunk = NULL;
	writer->rows_left = 0;
	gpusort_writer_show(writer, rows);
	return gpusort_client_put_chunk(writer->client, rows, bytes, failure);
}

/* Gets another chunk, after handing over the one at hand; false as above. */
static bool
next_chunk(GpuSortWriter *writer, GpuSortFailure *failure)
{
	instr_time start;

	/* The client must not be asked again after a failure, but we may be. */
	if (writer->failure.reason == GPUSORT_REASON_NONE &&
		(writer->chunk == NULL || flush_chunk(writer, &writer->failure)))
	{
		INSTR_TIME_SET_CURRENT(start);
		writer->chunk = gpusort_client_get_chunk(writer->client, &writer->rows_max, &writer->failure);
		writer->wait_ms += gpusort_ms_since(start);
	}
	if (writer->chunk == NULL)
	{
		*failure = writer->failure;
		return false;
	}
	writer->cursor = writer->chunk;
	writer->offset = gpusort_chunk_offset(writer->chunk, 0);
	writer->rows_left = writer->rows_max;
	return true;
}

/* Returns where the rows of the chunk at hand must end, without their tails: at its offsets. */
static inline char *
chunk_end(const GpuSortWriter *writer)
{
	return (char *) ((uintptr_t) writer->offset & ~(uintptr_t) (MAXIMUM_ALIGNOF - 1)) - writer->tail;
}

/*
 * Writes the row in slot at row, below limit; returns its length in bytes, or 0
 * when it does not fit.
 */
static pg_attribute_always_inline Size
write_row(GpuSortWriter *writer, TupleTableSlot *slot, TupleTableSlot *stored, char *row, char *limit)
{
	HeapTuple heap_tuple = gpusort_slot_heap_tuple(slot);
	MinimalTuple minimal_tuple = gpusort_slot_minimal_tuple(slot);

	if (writer->has_resjunk || (heap_tuple == NULL && minimal_tuple == NULL))
	{
		slot_getallattrs(slot);
		return gpusort_rowform_fill(writer->form, slot, stored != NULL ? gpusort_slot_heap_tuple(stored) : NULL, row, limit);
	}
	if (heap_tuple != NULL)
		return gpusort_copy_tuple(heap_tuple, row, limit);
	return gpusort_copy_minimal_tuple(minimal_tuple, row, limit);
}

/*
 * Returns the slot with the stored tuple that child makes its rows of, if that tuple, as it is, is
 * their visible attributes; else NULL.  A child that computes a key beside all columns of its table
 * takes the tuple apart, but nobody has to put it together again.
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
	if (!gpusort_rowform_has_resjunk(form) || !gpusort_rowform_is_visible(form, stored->tts_tupleDescriptor))
		return NULL;
	for (int i = 0; i < natts; i++)
	{
		const Var *var = (const Var *) list_nth_node(TargetEntry, child->plan->targetlist, i)->expr;

		if (!IsA(var, Var) || var->varno != relid || var->varattno != i + 1)
			return NULL;
	}
	return stored;
}

/* Appends the tail to a row of length bytes, whose key is before it.  Returns the length with it. */
static pg_noinline Size
append_tail(GpuSortWriter *writer, char *row, Size length)
{
	char *tail = row + MAXALIGN(length);
	GpuSortTailEnd *end = (GpuSortTailEnd *) (tail + writer->tail) - 1;

	for (char *from = writer->cursor, *to = tail; to < (char *) end; from += sizeof(uint64), to += sizeof(uint64))
		*(uint64 *) to = *(uint64 *) from;
	end->own = length | (uint32) gpusort_row_flags(row) << GPUSORT_TAIL_FLAGS_SHIFT;
	end->check = gpusort_tail_check(row, end, writer->seed);
	writer->sum += end->check;
	length = tail + writer->tail - row;
	((MinimalTuple) row)->t_len = length;
	return length;
}

/* Makes the key of the row in slot; returns what gpusort_keys_encode does. */
static inline bool
encode_key(const GpuSortWriter *writer, TupleTableSlot *slot, uint64 *key)
{
	slot_getsomeattrs(slot, writer->keys->last_attno);
	return gpusort_keys_encode(writer->keys, slot->tts_values, slot->tts_isnull, key);
}

/*
 * Writes the row in slot with its key: known_key, or if that is NULL the one that is made here, where it belongs;
 * exact is what encode_key said of a known one.  For the rest as gpusort_writer_add.
 */
static pg_attribute_always_inline bool
put_row(GpuSortWriter *writer, TupleTableSlot *slot, TupleTableSlot *stored, const uint64 *known_key, bool exact,
		GpuSortFailure *failure)
{
	const Size key_bytes = writer->keys->words * sizeof(uint64);
	const Size inline_bytes = GPUSORT_MAX_INLINE_ROW - writer->tail;
	Size length = 0;
	char *row = NULL;
	char *end = NULL;

	if (likely(writer->rows_left > 0))
	{
		row = writer->cursor + key_bytes;
		end = chunk_end(writer);
		length = write_row(writer, slot, stored, row, Min(end, row + inline_bytes));
	}
	if (unlikely(length == 0))
	{
		/* The chunk is full, unless it is the row that is long. */
		if (row == NULL || row + inline_bytes > end)
		{
			if (!next_chunk(writer, failure))
				return false;
			row = writer->cursor + key_bytes;
			length = write_row(writer, slot, stored, row, row + inline_bytes);
		}
		if (length == 0)
		{
			if (writer->overflow == NULL)
			{
				failure->reason = GPUSORT_REASON_NONE;
				return false;
			}
			length = gpusort_overflow_store(writer->overflow, slot, row);
		}
	}
	if (known_key == NULL)
		exact = encode_key(writer, slot, (uint64 *) writer->cursor);
	else
		memcpy(writer->cursor, known_key, key_bytes);
	if (!exact)
	{
		row[GPUSORT_ROW_FLAGS_OFFSET] |= GPUSORT_ROW_KEY_TRUNCATED;
		writer->truncated++;
	}
	if (unlikely(writer->tail > 0))
		length = append_tail(writer, row, length);

	*writer->offset-- = writer->cursor - writer->chunk;
	writer->cursor = row + MAXALIGN(length);
	writer->rows_left--;
	writer->rows++;
	writer->bytes += MAXALIGN(length);
	return true;
}

/* The same where the first rows alone are wanted: drops one that is not. */
static pg_noinline bool
put_wanted_row(GpuSortWriter *writer, TupleTableSlot *slot, TupleTableSlot *stored, GpuSortFailure *failure)
{
	uint64 key[GPUSORT_MAX_KEY_WORDS];
	bool exact = encode_key(writer, slot, key);

	if (gpusort_cutoff_drops(writer->cutoff, key))
		return true;
	if (!put_row(writer, slot, stored, key, exact, failure))
		return false;
	gpusort_cutoff_took(writer->cutoff, key);
	return true;
}

/*
 * Adds the row in slot, unless it is one that is not wanted; stored is what gpusort_stored_slot says of the
 * plan that has just made it.  false: the row was not taken, those before it were.  Either there
 * is no chunk for it nor for any row after it, failure says why; or it is a long
 * row and there is no overflow file, then failure->reason is NONE.  Errors: those
 * of detoasting, and of the overflow file.
 */
bool
gpusort_writer_add(GpuSortWriter *writer, TupleTableSlot *slot, TupleTableSlot *stored, GpuSortFailure *failure)
{
	if (unlikely(writer->cutoff != NULL && !writer->cutoff->useless))
		return put_wanted_row(writer, slot, stored, failure);
	return put_row(writer, slot, stored, NULL, false, failure);
}

/* Hands over the last chunk; false, with a reason, if the sort is full or lost. */
bool
gpusort_writer_finish(GpuSortWriter *writer, GpuSortFailure *failure)
{
	return writer->chunk == NULL || writer->rows_left == writer->rows_max || flush_chunk(writer, failure);
}
