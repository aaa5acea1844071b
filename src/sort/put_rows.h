/*-------------------------------------------------------------------------
 *
 * put_rows.h
 *	  The loop that writes a source's rows, with their keys, into chunks; for the kinds of rows alone.
 *
 * It is compiled for each kind with the kind's way to write a row, so that only the source is called, for the next
 * batch: a kind's method put_rows is gpusort_put_rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PUT_ROWS_H
#define GPUSORT_PUT_ROWS_H

#include "compat.h"

#include "sort/input.h"
#include "sort/row_kind.h"
#include "sort/writer.h"

/* Writes a row of a source at to, below limit; returns its length in bytes, or 0 when it does not fit. */
typedef Size (*GpuSortWriteRow)(GpuSortRows *rows, const GpuSortRow *row, char *to, char *limit);

/* gpusort_put_wanted_row with the kind's way to write a row, compiled once. */
typedef bool (*GpuSortPutWantedRow)(GpuSortRows *rows, GpuSortWriter *writer, const GpuSortRow *row,
									GpuSortFailure *failure);

/*
 * Writes a row with its key: known_key, or if that is NULL the one that is made here, where it belongs; exact is what
 * gpusort_keys_encode said of a known one.  For the rest as gpusort_put_rows.
 */
static pg_attribute_always_inline bool
gpusort_put_row(GpuSortRows *rows, GpuSortWriter *writer, const GpuSortRow *row, const uint64 *known_key, bool exact,
				GpuSortWriteRow write, GpuSortFailure *failure)
{
	const Size key_bytes = writer->keys->words * sizeof(uint64);
	const Size inline_bytes = GPUSORT_MAX_INLINE_ROW - writer->tail;
	Size length = 0;
	char *to = NULL;
	char *end = NULL;

	if (likely(writer->rows_left > 0))
	{
		to = writer->cursor + key_bytes;
		end = gpusort_writer_chunk_end(writer);
		length = write(rows, row, to, Min(end, to + inline_bytes));
	}
	if (unlikely(length == 0))
	{
		/* The chunk is full, unless it is the row that is long. */
		if (to == NULL || to + inline_bytes > end)
		{
			if (!gpusort_writer_next_chunk(writer, failure))
				return false;
			to = writer->cursor + key_bytes;
			length = write(rows, row, to, to + inline_bytes);
		}
		if (length == 0)
		{
			if (writer->overflow == NULL)
			{
				failure->reason = GPUSORT_REASON_NONE;
				return false;
			}
			length = gpusort_rows_store(rows, row, writer->overflow, to);
		}
	}
	if (known_key == NULL)
		exact = gpusort_keys_encode(writer->keys, row->values, row->nulls, (uint64 *) writer->cursor);
	else
		memcpy(writer->cursor, known_key, key_bytes);
	if (!exact)
	{
		to[GPUSORT_ROW_FLAGS_OFFSET] |= GPUSORT_ROW_KEY_TRUNCATED;
		writer->truncated++;
	}
	if (unlikely(writer->tail > 0))
		length = gpusort_writer_append_tail(writer, to, length);

	*writer->offset-- = writer->cursor - writer->chunk;
	writer->cursor = to + MAXALIGN(length);
	writer->rows_left--;
	writer->rows++;
	writer->bytes += MAXALIGN(length);
	return true;
}

/* The same where the first rows alone are wanted, or none again: drops one that is not. */
static pg_attribute_always_inline bool
gpusort_put_wanted_row(GpuSortRows *rows, GpuSortWriter *writer, const GpuSortRow *row, GpuSortWriteRow write,
					   GpuSortFailure *failure)
{
	uint64 key[GPUSORT_MAX_KEY_WORDS];
	bool exact = gpusort_keys_encode(writer->keys, row->values, row->nulls, key);

	if (writer->cutoff != NULL ? gpusort_cutoff_drops(writer->cutoff, key)
							   : exact && gpusort_repeats_drops(writer->repeats, key))
		return true;
	if (!gpusort_put_row(rows, writer, row, key, exact, write, failure))
		return false;
	if (writer->cutoff != NULL)
		gpusort_cutoff_took(writer->cutoff, key);
	else if (exact)
		gpusort_repeats_took(writer->repeats, key);
	return true;
}

/*
 * Writes the rows of the input, but those that are not wanted, until there are none, or *stop says so.  false: the
 * input's next row was not taken, those before it were.  Either there is no chunk for it nor for any row after it,
 * failure says why; or it is a long row and the writer takes none, then failure->reason is NONE.  Errors: those of the
 * source, of detoasting, and of the overflow file.
 */
static pg_attribute_always_inline bool
gpusort_put_rows(GpuSortRows *rows, GpuSortWriter *writer, GpuSortInput *input, const volatile bool *stop,
				 GpuSortWriteRow write, GpuSortPutWantedRow put_wanted, GpuSortFailure *failure)
{
	failure->reason = GPUSORT_REASON_NONE;
	input->source->attributes = writer->keys->last_attno;
	for (;;)
	{
		const GpuSortRow *row = gpusort_input_next(input);
		bool taken;

		if (row == NULL)
			return true;
		if (unlikely(gpusort_writer_drops_rows(writer)))
			taken = put_wanted(rows, writer, row, failure);
		else
			taken = gpusort_put_row(rows, writer, row, NULL, false, write, failure);
		if (unlikely(!taken))
		{
			gpusort_input_put_back(input);
			return false;
		}
		if (unlikely(stop != NULL && *stop))
			return true;
	}
}

/*
 * Writes a row of a source that is formed already, as a GpuSortWriteRow: at to, below limit; returns its length in
 * bytes, or 0 when it does not fit.
 */
static pg_attribute_always_inline Size
gpusort_write_formed_row(GpuSortRows *rows, const GpuSortRow *row, char *to, char *limit)
{
	if (unlikely(to + row->length > limit))
		return 0;
	gpusort_copy(to, row->tuple, row->length);
	return row->length;
}

/* The method copy of such rows. */
static inline char *
gpusort_copy_formed_row(GpuSortRows *rows, const GpuSortRow *row)
{
	char *to = palloc(row->length);

	memcpy(to, row->tuple, row->length);
	return to;
}

#endif /* GPUSORT_PUT_ROWS_H */
