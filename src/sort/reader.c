/*-------------------------------------------------------------------------
 *
 * reader.c
 *	  Reads the rows of a sort out of the chunks in which they arrive.
 *
 * Legal order of calls: init; then next_chunk whenever the reader is at the end of
 * its chunk, until it says that there are no more; in between row, and mark and
 * restore within a chunk.  rewind at any time.  The rows stay where they arrived:
 * the reader owns nothing but the current chunk, which goes back with the client.
 *
 * A parallel sort's rows are read by ranges: init; then ask for each range, in rising
 * order, up to GPUSORT_READS_MAX of them ahead; begin_range goes to the next of those,
 * whether the one before was read to its end or not, and next_chunk says that there are
 * no more at the end of the range.  Or this process alone reads the rows: then rewind comes
 * first, and again at any time.
 *
 * WHAT IS VERIFIED
 *	Always: each row lies within its chunk and has legal flags; the rows of a
 *	chunk are as many, use as many bytes and are marked as ties as often as was
 *	said; so are all rows together, but for their bytes where the first rows do not come.  This keeps the reader within
 *	its chunks,
 *	whatever lies in them, and tells when rows are missing or too many.
 *
 *	With tails (row_tail.h): each row is one that was put into this sort, bit for bit; none has a
 *	smaller key than the one before; ties are marked where keys tie and nowhere
 *	else; and, where all rows that were put come back, each comes once.
 *
 *	Rows are verified some ahead, in one go: their CRCs do not wait for each other then,
 *	and reading them is what it is without tails, but for the step over these.
 *
 *	In a parallel sort that is so for each range: its rows have the numbers that were asked for
 *	(client.c), and none of them ties with one of another range.  What all ranges
 *	have together, whoever reads them, is compared by check_whole, where the numbers of all
 *	processes are added up.  With tails a range is asked for with the row before it, which is
 *	compared with its first one and not read: so none has a smaller key than the one before,
 *	whoever reads that, and the two differ in the bits by which they were cut.
 *
 *	Where rows carry how many they stand for (counted_rows.c), all together must stand for as many as were put.
 *
 *	A failure's reason is GPUSORT_REASON_VERIFY then.  Rows are believed when they
 *	have been read: what only the end tells, as that one is missing, comes too late
 *	for those before it.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/reader.h"

#include "client/elapsed.h"
#include "server/reasons.h"
#include "sort/overflow.h"
#include "sort/row_tail.h"

/* So many bytes of rows are verified in one go: they are in the fastest cache still when they are read. */
#define VERIFY_BYTES 8192

/* Drops the current chunk, if there is one. */
static void
drop_chunk(GpuSortReader *reader)
{
	gpusort_client_free_data(reader->client, &reader->data);
	reader->cursor = reader->end = reader->verified_end = NULL;
	reader->left = 0;
	reader->tie_rows = 0;
}

/* Goes to before the first row; in a parallel sort, before the first range. */
static void
start(GpuSortReader *reader)
{
	drop_chunk(reader);
	reader->last = reader->expected.parallel;
	reader->chunks = 0;
	reader->rows = 0;
	reader->bytes = 0;
	reader->all_tie_rows = 0;
	memset(reader->last_key, 0, sizeof(reader->last_key));
	reader->verified = (GpuSortVerified){
		.seed = gpusort_tail_seed(gpusort_client_token(reader->client)),
		.key = reader->last_key,
	};
}

/* Begins at the first row of a sort that client has had done, of which that is expected; there is no chunk yet. */
void
gpusort_reader_init(GpuSortReader *reader, GpuSortClient *client, const GpuSortExpected *expected)
{
	memset(reader, 0, sizeof(*reader));
	reader->client = client;
	reader->expected = *expected;
	reader->tail = expected->verified ? gpusort_tail_bytes(expected->key_words) : 0;
	if (expected->in_runs)
		gpusort_client_expect_runs(client);
	start(reader);
}

/* Keeps what is needed of the current chunk, which is about to go, to verify the next row. */
static void
keep_last_key(GpuSortReader *reader)
{
	if (reader->verified.key == reader->last_key)
		return;
	memcpy(reader->last_key, reader->verified.key, reader->expected.key_words * sizeof(uint64));
	reader->verified.key = reader->last_key;
}

/* Takes leave of the current chunk, of which all rows should have been read. */
static bool
leave_chunk(GpuSortReader *reader, GpuSortFailure *failure)
{
	if (reader->cursor != reader->end || reader->left != 0)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "chunk %u has other rows than the %u in %u bytes that were announced",
								   reader->chunks, reader->data.emitted.rows, reader->data.emitted.bytes);
	if (reader->data.rows != NULL && reader->tie_rows != reader->data.emitted.tie_rows)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "chunk %u has %u rows marked as ties where %u were announced",
								   reader->chunks, reader->tie_rows, reader->data.emitted.tie_rows);
	keep_last_key(reader);
	gpusort_client_free_data(reader->client, &reader->data);
	return true;
}

/* Compares what has been announced so far with what is expected. */
static bool
check_totals(const GpuSortReader *reader, GpuSortFailure *failure)
{
	const GpuSortExpected *expected = &reader->expected;
	uint64 rows = expected->rows - Min(expected->first, expected->rows);
	bool complete = reader->rows == rows && (reader->bytes == expected->bytes || expected->first > 0);

	if (reader->again)
		return true;
	if (reader->rows > rows || reader->bytes > expected->bytes ||
		(!expected->parallel && complete != reader->last))
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   UINT64_FORMAT " rows in " UINT64_FORMAT " bytes came, of " UINT64_FORMAT " in " UINT64_FORMAT ", by %s %u",
								   reader->rows, reader->bytes, rows, expected->bytes,
								   reader->last ? "the last chunk," : "chunk", reader->chunks);
	if (!expected->in_runs && reader->all_tie_rows > expected->tie_rows)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   UINT64_FORMAT " rows are marked as ties where at most " UINT64_FORMAT " tie",
								   reader->all_tie_rows, expected->tie_rows);
	return true;
}

/* Adds the current range, if there is one, to those that have been read to their ends. */
static void
note_whole_range(GpuSortReader *reader)
{
	if (!reader->in_range || reader->again)
		return;
	reader->in_range = false;
	reader->whole.rows += reader->rows - reader->begun.rows;
	reader->whole.bytes += reader->bytes - reader->begun.bytes;
	reader->whole.sum += reader->verified.sum - reader->begun.sum;
	reader->whole.count += reader->verified.count - reader->begun.count;
}

/* A row, so many after the next one, is not one that was put; returns false, for the caller to return. */
static bool
refuse_row(GpuSortReader *reader, uint32 after, const char *why)
{
	return gpusort_failure_set(&reader->failure, GPUSORT_REASON_VERIFY, "row %u of chunk %u %s",
							   reader->data.emitted.rows - reader->left + 1 + after, reader->chunks, why);
}

/* Returns the number of the word that decides how two keys compare: the first that differs, or the last. */
static inline uint32
deciding_word(const uint64 *left, const uint64 *right, uint32 words)
{
	uint32 w = 0;

	while (w + 1 < words && left[w] == right[w])
		w++;
	return w;
}

/* Returns the shortest length of a row with a tail, in bytes. */
static inline uint32
verified_bytes_min(uint32 key_words)
{
	return GPUSORT_ROW_BYTES_MIN + gpusort_tail_bytes(key_words);
}

/*
 * Verifies a row that says to have so many bytes, in room bytes,
 * which are enough for the shortest; it is to follow those in verified.
 * Cuts its tail off.  Returns why it is refused, or NULL.
 */
static pg_attribute_always_inline const char *
verify_row(GpuSortVerified *verified, char *row, uint32 length, uint32 room, uint32 key_words, bool counted)
{
	const uint32 bytes_min = verified_bytes_min(key_words);
	const uint32 tail = gpusort_tail_bytes(key_words);
	const uint8 flags = gpusort_row_flags(row);
	const GpuSortTailEnd *end = (GpuSortTailEnd *) (row + length) - 1;
	const uint64 *key = (const uint64 *) (row + length - tail);
	uint64 count = 1;
	uint32 check;
	uint32 own_length;
	uint8 own_flags;
	uint32 w;

	if (length - bytes_min > room - bytes_min || length % MAXIMUM_ALIGNOF != 0)
		return "has an impossible length";
	if (unlikely(counted))
	{
		/* It was put with that number. */
		count = gpusort_row_count(row);
		gpusort_row_set_count(row, 1);
	}
	check = gpusort_tail_check(row, end, verified->seed);
	if (unlikely(counted))
		gpusort_row_set_count(row, count);
	if (check != end->check)
		return "has a wrong check sum";
	own_length = end->own & GPUSORT_TAIL_LENGTH_MASK;
	own_flags = end->own >> GPUSORT_TAIL_FLAGS_SHIFT;
	if (MAXALIGN(own_length) + tail != length)
		return "has a wrong length";
	if ((flags ^ own_flags) & GPUSORT_ROW_OVERFLOW)
		return "has other flags than it was given";

	w = deciding_word(verified->key, key, key_words);
	if (verified->key[w] > key[w])
		return "comes after one with a greater key";
	if (verified->flags != 0)
	{
		bool ties = verified->key[w] == key[w] && (verified->flags & GPUSORT_ROW_KEY_TRUNCATED);

		if (ties && !(verified->flags & GPUSORT_ROW_TIE_NEXT))
			return "ties with the row before, but is not marked as a tie";
		if (!ties && (verified->flags & GPUSORT_ROW_TIE_NEXT))
			return "does not tie with the row before, but is marked as a tie";
	}

	verified->key = key;
	verified->flags = (own_flags & GPUSORT_ROW_KEY_TRUNCATED) | (flags & GPUSORT_ROW_TIE_NEXT);
	verified->sum += end->check;
	verified->count += count;
	gpusort_row_set_length(row, own_length);
	return NULL;
}

/*
 * Verifies the next row of the current chunk, and so many bytes of rows;
 * false if one is refused, and reader->failure says why.
 */
static pg_attribute_always_inline bool
verify_rows(GpuSortReader *reader, uint32 bytes, uint32 key_words)
{
	char *row = reader->verified_end;
	char *const end = reader->end;
	const char *stop = end - verified_bytes_min(key_words);
	GpuSortVerified verified = reader->verified;
	const bool counted = reader->expected.counted > 0;
	uint32 rows = 0;

	if (row > stop)
		return refuse_row(reader, 0, "is cut off");
	stop = Min(stop, row + bytes);
	do
	{
		const uint32 length = gpusort_row_length(row);
		const char *why = verify_row(&verified, row, length, end - row, key_words, counted);

		if (unlikely(why != NULL))
			return refuse_row(reader, rows, why);
		__builtin_prefetch(row + 2048);
		row += length;
		rows++;
	} while (row <= stop);
	if (rows > reader->left)
		return refuse_row(reader, reader->left, "was not announced");
	reader->verified = verified;
	reader->verified_end = row;
	return true;
}

/* The same, with code of its own for the keys that most rows have. */
static pg_noinline bool
verify_bytes(GpuSortReader *reader, uint32 bytes)
{
	const uint32 key_words = reader->expected.key_words;

	if (key_words == 1)
		return verify_rows(reader, bytes, 1);
	if (key_words == 2)
		return verify_rows(reader, bytes, 2);
	return verify_rows(reader, bytes, key_words);
}

/* Returns true if two keys differ in their first so many bits. */
static bool
differ_in_bits(const uint64 *left, const uint64 *right, uint32 bits)
{
	uint32 words = bits / 64;

	for (uint32 w = 0; w < words; w++)
	{
		if (left[w] != right[w])
			return true;
	}
	return bits % 64 != 0 && (left[words] ^ right[words]) >> (64 - bits % 64) != 0;
}

/* Adds up how many rows the next ones stand for, which have no tails; false if one is refused. */
static bool
count_rows(GpuSortReader *reader)
{
	char *row = reader->verified_end;
	const char *stop = row + VERIFY_BYTES;
	uint32 rows = 0;

	do
	{
		const uint32 length = gpusort_row_length(row);

		if (length < GPUSORT_COUNTED_ROW_BYTES_MIN || MAXALIGN(length) > reader->end - row)
			return refuse_row(reader, rows, "has an impossible length");
		reader->verified.count += gpusort_row_count(row);
		row += MAXALIGN(length);
		rows++;
	} while (row < stop && reader->end - row >= GPUSORT_COUNTED_ROW_BYTES_MIN);
	reader->verified_end = row;
	return true;
}

/* Verifies the next rows; the first of a range must be of another group than the row before it. */
static pg_noinline bool
verify_next_rows(GpuSortReader *reader)
{
	const uint64 *before = reader->verified.key;
	const char *first = reader->verified_end;
	const uint64 *key;

	if (!reader->expected.verified)
		return count_rows(reader);
	if (!verify_bytes(reader, VERIFY_BYTES))
		return false;
	if (likely(!reader->at_border))
		return true;
	reader->at_border = false;
	key = (const uint64 *) (first + MAXALIGN(gpusort_row_length(first)));
	return differ_in_bits(before, key, reader->expected.range_bits) ||
		refuse_row(reader, 0, "belongs to the range before");
}

/* Steps over the row before the current range, which has come first; false, with a reason, if it cannot be that. */
static bool
step_over_row_before(GpuSortReader *reader, GpuSortFailure *failure)
{
	char *row = reader->cursor;
	bool ties = (gpusort_row_flags(row) & GPUSORT_ROW_TIE_NEXT) != 0;

	if (!verify_bytes(reader, 0) || (ties && !refuse_row(reader, 0, "ties with a row of the next range")))
	{
		*failure = reader->failure;
		return false;
	}
	reader->row_before = false;
	reader->at_border = true;
	reader->cursor = reader->verified_end;
	reader->left--;
	reader->rows--;
	reader->bytes -= reader->verified_end - row;
	reader->verified.sum = reader->begun.sum;
	reader->verified.count = reader->begun.count;
	return true;
}

/* Compares how many rows all rows that came stand for with how many were put. */
static bool
check_count(const GpuSortExpected *expected, uint64 count, GpuSortFailure *failure)
{
	return expected->counted == 0 || count == expected->counted ||
		gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
							"the rows that came back stand for " UINT64_FORMAT " rows of " UINT64_FORMAT, count,
							expected->counted);
}

/*
 * Lets go of the current chunk, whose rows have all been read, and waits for
 * the next one.  Returns true with a row to read, or false with failure->reason
 * NONE when there are no more, in a parallel sort in the current range, or false with
 * the reason why the sort is lost.
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
		note_whole_range(reader);
		if (reader->all_asked)
		{
			(void) gpusort_reader_check_whole(&reader->expected, &reader->whole, failure);
			return false;
		}
		if (!reader->expected.parallel && reader->expected.verified && reader->expected.all && reader->expected.first == 0 &&
			reader->verified.sum != reader->expected.sum)
			return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY, "the rows that came back are not those that were sent");
		if (!reader->expected.parallel && reader->expected.first == 0)
			(void) check_count(&reader->expected, reader->verified.count, failure);
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
	reader->verified_end = reader->expected.verified || reader->expected.counted > 0 ? reader->cursor : reader->end;
	reader->left = emitted->rows;
	reader->tie_rows = 0;
	reader->chunks++;
	reader->rows += emitted->rows;
	reader->bytes += emitted->bytes;
	reader->all_tie_rows += emitted->tie_rows;
	if (reader->row_before)
	{
		if (!step_over_row_before(reader, failure))
			return false;
		if (gpusort_reader_at_end(reader) && !reader->last)
			return gpusort_reader_next_chunk(reader, failure);
	}
	return check_totals(reader, failure) && emitted->rows > 0;
}

/*
 * Reads the next row of the current chunk, which must not be at its end.  The row
 * is valid until the next chunk is asked for.  Returns NULL if it cannot be one of
 * the rows that were put: reader->failure says why.
 */
char *
gpusort_reader_row(GpuSortReader *reader)
{
	char *row = reader->cursor;
	const char *why = NULL;
	uint32 length;
	uint8 flags;

	if (row == reader->verified_end && !verify_next_rows(reader))
		return NULL;
	length = gpusort_row_length(row);
	flags = gpusort_row_flags(row);
	if (length < GPUSORT_ROW_BYTES_MIN || length > reader->verified_end - row)
		why = "has an impossible length";
	else if ((flags & ~reader->expected.flags) != 0)
		why = "has flags that cannot be";
	else if ((flags & GPUSORT_ROW_TIE_NEXT) && reader->last && reader->left == 1)
		why = "is the last, but is marked as a tie with the next";
	else if ((flags & GPUSORT_ROW_OVERFLOW) && length != GPUSORT_OVERFLOW_ROW_BYTES)
		why = "is the reference to a long row, and has a wrong length";
	if (unlikely(why != NULL))
	{
		(void) refuse_row(reader, 0, why);
		return NULL;
	}
	__builtin_prefetch(row + 2048);
	reader->cursor = row + reader->tail + MAXALIGN(length);
	reader->left--;
	reader->tie_rows += (flags & GPUSORT_ROW_TIE_NEXT) != 0;
	return row;
}

/*
 * Asks for the rows of a range of a parallel sort, from number first on up to the one before end; it may be empty.
 * GPUSORT_READS_MAX ranges, the current one included, may be asked for and not read to their ends.  again: its rows are
 * those of other ranges, too, and do not count when all rows are compared with what is expected.  false, with a
 * reason, if the sort is lost.
 */
bool
gpusort_reader_ask(GpuSortReader *reader, uint64 first, uint64 end, bool again, GpuSortFailure *failure)
{
	bool row_before = reader->expected.verified && first > 0 && first < end;

	Assert(reader->expected.parallel && reader->nasked < GPUSORT_READS_MAX);
	Assert(first <= end && end <= reader->expected.rows);
	reader->asked[reader->nasked++] =
		(GpuSortAskedRange){.empty = first == end, .row_before = row_before, .again = again};
	return first == end || gpusort_client_read(reader->client, row_before ? first - 1 : first, end, failure);
}

/*
 * Goes to the first row of the next range asked for; there must be one.  What was not read of the current range
 * is skipped.  false, with a reason, if the sort is lost.
 */
bool
gpusort_reader_begin_range(GpuSortReader *reader, GpuSortFailure *failure)
{
	const GpuSortAskedRange range = reader->asked[0];

	Assert(reader->expected.parallel && reader->nasked > 0);
	keep_last_key(reader);
	drop_chunk(reader);
	if (!reader->last && !gpusort_client_skip(reader->client, failure))
		return false;
	if (reader->in_range)
	{
		reader->verified.sum = reader->begun.sum;
		reader->verified.count = reader->begun.count;
	}
	if (reader->again)
	{
		/* The next one may come before it. */
		memset(reader->last_key, 0, sizeof(reader->last_key));
		reader->rows = reader->begun.rows;
		reader->bytes = reader->begun.bytes;
		reader->all_tie_rows = reader->begun_tie_rows;
	}
	reader->nasked--;
	memmove(reader->asked, reader->asked + 1, reader->nasked * sizeof(reader->asked[0]));
	reader->last = range.empty;
	reader->in_range = true;
	reader->again = range.again;
	reader->row_before = range.row_before;
	reader->at_border = false;
	reader->verified.flags = 0;
	reader->begun = (GpuSortWhole){
		.rows = reader->rows,
		.bytes = reader->bytes,
		.sum = reader->verified.sum,
		.count = reader->verified.count};
	reader->begun_tie_rows = reader->all_tie_rows;
	return true;
}

/*
 * Compares what was read of a parallel sort with what is expected: whole is the sum over all processes, each range
 * read by one of them.  Where some were not read to their ends there is not much to say.
 */
bool
gpusort_reader_check_whole(const GpuSortExpected *expected, const GpuSortWhole *whole, GpuSortFailure *failure)
{
	if (whole->rows < expected->rows)
		return true;
	if (whole->rows > expected->rows || whole->bytes != expected->bytes)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   UINT64_FORMAT " rows in " UINT64_FORMAT " bytes came by all ranges, of " UINT64_FORMAT
												 " in " UINT64_FORMAT,
								   whole->rows, whole->bytes, expected->rows, expected->bytes);
	if (expected->verified && expected->all && whole->sum != expected->sum)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY, "the rows that came back are not those that were sent");
	return check_count(expected, whole->count, failure);
}

/*
 * What was not read of the current range is not wanted;
 * there must be no other asked for.  false, with a reason, if the sort is lost.
 */
bool
gpusort_reader_skip_range(GpuSortReader *reader, GpuSortFailure *failure)
{
	bool skip = !reader->last;

	Assert(reader->expected.parallel && reader->nasked == 0);
	drop_chunk(reader);
	reader->last = true;
	reader->in_range = false;
	return !skip || gpusort_client_skip(reader->client, failure);
}

/*
 * Starts to read at row number first: after init, or again.  Of a parallel sort that is 0, and this process
 * reads all rows then, as one range.  false, with a reason, if the sort is lost.
 */
bool
gpusort_reader_rewind(GpuSortReader *reader, uint64 first, GpuSortFailure *failure)
{
	bool unread = reader->chunks == 0 && reader->expected.first == first;

	if (reader->expected.parallel)
	{
		Assert(first == 0);
		if (!gpusort_reader_skip_range(reader, failure))
			return false;
		start(reader);
		reader->whole = (GpuSortWhole){0};
		reader->all_asked = true;
		return gpusort_reader_ask(reader, 0, reader->expected.rows, false, failure) &&
			gpusort_reader_begin_range(reader, failure);
	}
	start(reader);
	reader->expected.first = first;
	return unread || gpusort_client_rewind(reader->client, first, failure);
}
