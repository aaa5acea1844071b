/*-------------------------------------------------------------------------
 *
 * reader.c
 *	  Reads the rows of a sort out of the chunks in which they arrive.
 *
 * Legal order of calls: init; then next_chunk whenever the reader is at the end of
 * its chunk, until it says that there are no more; in between row, and mark and
 * restore within a chunk.  rewind at any time.  The rows stay where they arrived:
 * the reader owns nothing but the chunk at hand, which goes back with the client.
 *
 * WHAT IS VERIFIED
 *	Always: each row lies within its chunk and has legal flags; the rows of a
 *	chunk are as many, use as many bytes and are marked as ties as often as was
 *	said; so are all rows together.  This keeps the reader within its chunks,
 *	whatever lies in them, and tells when rows are missing or too many.
 *
 *	With tails (row_tail.h): each row is one that was put, bit for bit; none has a
 *	smaller key than the one before; ties are marked where keys tie and nowhere
 *	else; and, where all rows that were put come back, each comes once.
 *
 *	A failure's reason is GPUSORT_REASON_VERIFY then.  Rows are believed when they
 *	have been read: what only the end tells, as that one is missing, comes too late
 *	for those before it.
 *
 *-------------------------------------------------------------------------
 */
#include "client/reader.h"

#include "client/elapsed.h"
#include "client/overflow.h"
#include "client/row_tail.h"
#include "server/shared.h"

/* Before the first row. */
static void
start(GpuSortReader *reader)
{
	reader->cursor = reader->end = reader->plain_end = NULL;
	reader->left = 0;
	reader->tie_rows = 0;
	reader->last = false;
	reader->chunks = 0;
	reader->rows = 0;
	reader->bytes = 0;
	reader->all_tie_rows = 0;
	reader->verified.sum = 0;
	reader->verified.key = NULL;
	reader->verified.truncated = false;
	reader->verified.tie_next = false;
}

/* Begins at the first row of a sort that client has had done, of which that is expected; there is no chunk yet. */
void
gpusort_reader_init(GpuSortReader *reader, GpuSortClient *client, const GpuSortExpected *expected)
{
	memset(reader, 0, sizeof(*reader));
	reader->client = client;
	reader->expected = *expected;
	start(reader);
}

/* Takes leave of the chunk at hand, of which all rows should have been read. */
static bool
leave_chunk(GpuSortReader *reader, GpuSortFailure *failure)
{
	GpuSortVerified *verified = &reader->verified;

	if (reader->cursor != reader->end || reader->left != 0)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "chunk %u has other rows than the %u in %u bytes that were announced",
								   reader->chunks, reader->data.emitted.rows, reader->data.emitted.bytes);
	if (reader->data.rows != NULL && reader->tie_rows != reader->data.emitted.tie_rows)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "chunk %u has %u rows marked as ties where %u were announced",
								   reader->chunks, reader->tie_rows, reader->data.emitted.tie_rows);
	if (verified->key != NULL && verified->key != verified->last_key)
	{
		memcpy(verified->last_key, verified->key, reader->expected.key_words * sizeof(uint64));
		verified->key = verified->last_key;
	}
	gpusort_client_free_data(reader->client, &reader->data);
	return true;
}

/* Compares what has been announced so far with what is expected. */
static bool
check_totals(const GpuSortReader *reader, GpuSortFailure *failure)
{
	const GpuSortExpected *expected = &reader->expected;
	bool complete = reader->rows == expected->rows && reader->bytes == expected->bytes;

	if (reader->rows > expected->rows || reader->bytes > expected->bytes || complete != reader->last)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   UINT64_FORMAT " rows in " UINT64_FORMAT " bytes came, of " UINT64_FORMAT " in " UINT64_FORMAT ", by %s %u",
								   reader->rows, reader->bytes, expected->rows, expected->bytes,
								   reader->last ? "the last chunk," : "chunk", reader->chunks);
	if (reader->all_tie_rows > expected->tie_rows)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   UINT64_FORMAT " rows are marked as ties where at most " UINT64_FORMAT " tie",
								   reader->all_tie_rows, expected->tie_rows);
	return true;
}

/*
 * Lets go of the chunk at hand, whose rows have all been read, and waits for
 * the next one.  Returns true with a row to read, or false with failure->reason
 * NONE when there are no more, or false with the reason why the sort is lost.
 */
bool
gpusort_reader_next_chunk(GpuSortReader *reader, GpuSortFailure *failure)
{
	const GpuSortEmitted *emitted = &reader->data.emitted;
	instr_time begun;

	failure->reason = GPUSORT_REASON_NONE;
	Assert(gpusort_reader_at_end(reader));
	if (!leave_chunk(reader, failure))
		return false;
	if (reader->last)
	{
		if (reader->expected.verified && reader->expected.all && reader->verified.sum != reader->expected.sum)
			return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY, "the rows that came are not those that were put");
		return false;
	}

	INSTR_TIME_SET_CURRENT(begun);
	if (!gpusort_client_next_data(reader->client, &reader->data, failure))
		return false;
	reader->wait_ms += gpusort_ms_since(begun);
	reader->gather_ms += emitted->gather_ms;
	reader->last = emitted->last != 0;
	reader->cursor = reader->data.rows;
	reader->end = reader->cursor + emitted->bytes;
	reader->plain_end = reader->expected.verified ? reader->cursor : reader->end;
	reader->left = emitted->rows;
	reader->tie_rows = 0;
	reader->chunks++;
	reader->rows += emitted->rows;
	reader->bytes += emitted->bytes;
	reader->all_tie_rows += emitted->tie_rows;
	return check_totals(reader, failure) && emitted->rows > 0;
}

/* The next row is not one that was put; returns NULL, for the caller to return. */
static char *
refuse_row(GpuSortReader *reader, const char *why)
{
	(void) gpusort_failure_set(&reader->failure, GPUSORT_REASON_VERIFY, "row %u of chunk %u %s",
							   reader->data.emitted.rows - reader->left + 1, reader->chunks, why);
	return NULL;
}

/* Returns less, equal or more than 0 as the order of the keys is. */
static inline int
compare_keys(const uint64 *left, const uint64 *right, uint32 words)
{
	for (uint32 w = 0; w < words; w++)
	{
		if (left[w] != right[w])
			return left[w] < right[w] ? -1 : 1;
	}
	return 0;
}

/* Verifies a row of that length, and cuts its tail off.  Returns why it is refused, or NULL. */
static const char *
verify_row(GpuSortReader *reader, char *row, uint32 length, uint8 flags)
{
	GpuSortVerified *verified = &reader->verified;
	const uint32 key_words = reader->expected.key_words;
	const uint32 tail = gpusort_tail_bytes(key_words);
	const GpuSortTailEnd *end = (GpuSortTailEnd *) (row + length) - 1;
	const uint64 *key;
	uint32 own_length;
	uint8 own_flags;
	int order;

	if (length < GPUSORT_ROW_BYTES_MIN + tail || length % MAXIMUM_ALIGNOF != 0 ||
		gpusort_tail_check(row, end) != end->check)
		return "has a wrong check sum";
	own_length = end->own & GPUSORT_TAIL_LENGTH_MASK;
	own_flags = end->own >> GPUSORT_TAIL_FLAGS_SHIFT;
	if (MAXALIGN(own_length) + tail != length)
		return "has a wrong length";
	if ((flags ^ own_flags) & GPUSORT_ROW_OVERFLOW)
		return "has flags that it was not put with";

	key = (const uint64 *) (row + length - tail);
	order = verified->key == NULL ? -1 : compare_keys(verified->key, key, key_words);
	if (order > 0)
		return "comes after one with a greater key";
	if (verified->tie_next != (order == 0 && verified->truncated))
		return order == 0 ? "ties with the one before, which is not marked so" : "does not tie with the one before, which is marked so";

	verified->key = key;
	verified->truncated = (own_flags & GPUSORT_ROW_KEY_TRUNCATED) != 0;
	verified->tie_next = (flags & GPUSORT_ROW_TIE_NEXT) != 0;
	verified->sum += end->check;
	((MinimalTuple) row)->t_len = own_length;
	return NULL;
}

/*
 * Reads the next row of the chunk at hand, which must not be at its end.  The row
 * is valid until the next chunk is asked for.  Returns NULL if it cannot be one of
 * the rows that were put: reader->failure says why.
 */
char *
gpusort_reader_row(GpuSortReader *reader)
{
	char *row = reader->cursor;
	const uint32 length = ((MinimalTuple) row)->t_len;
	const uint8 flags = gpusort_row_flags(row);

	if (length < GPUSORT_ROW_BYTES_MIN || length > reader->end - row)
		return refuse_row(reader, "has a length that cannot be");
	if ((flags & ~reader->expected.flags) != 0)
		return refuse_row(reader, "has flags that cannot be");
	if ((flags & GPUSORT_ROW_TIE_NEXT) && reader->last && reader->left == 1)
		return refuse_row(reader, "is the last, and marked as a tie with the next");
	if (reader->expected.verified)
	{
		const char *why = verify_row(reader, row, length, flags);

		if (why != NULL)
			return refuse_row(reader, why);
	}
	if ((flags & GPUSORT_ROW_OVERFLOW) && ((MinimalTuple) row)->t_len != GPUSORT_OVERFLOW_ROW_BYTES)
		return refuse_row(reader, "stands for a long row, and has a wrong length");
	__builtin_prefetch(row + 2048);
	reader->cursor += MAXALIGN(length);
	reader->left--;
	reader->tie_rows += (flags & GPUSORT_ROW_TIE_NEXT) != 0;
	return row;
}

/* Starts again at the first row; false, with a reason, if the sort is lost. */
bool
gpusort_reader_rewind(GpuSortReader *reader, GpuSortFailure *failure)
{
	gpusort_client_free_data(reader->client, &reader->data);
	start(reader);
	return gpusort_client_rewind(reader->client, failure);
}
