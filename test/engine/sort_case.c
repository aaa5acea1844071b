/*-------------------------------------------------------------------------
 *
 * sort_case.c
 *	  A set of rows through an engine; see sort_case.h.
 *
 * With a limit an engine gives out the rows wanted, or all.
 *
 * The right order comes from qsort over (key words, row number), which is what a
 * stable sort by key gives.  Rows carry bytes that follow from their number, so
 * every row that comes out is compared byte for byte.
 *
 * They are read as rows alone and as records, with keys and the flags that were put.
 *
 * Chunks are overwritten as soon as put returns, and before each emit, so that an
 * engine which reads them late or does not fill them is found out.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include "sort_case.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* length and flags; as much of a row as the service knows */
#define ROW_HEAD 8

/* and with run_counts */
#define COUNT_END (GPUSORT_ROW_COUNT_OFFSET + sizeof(uint64_t))

const int sort_case_never_cancelled = 0;

bool
case_failed(CaseFailure *failure, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(failure->text, sizeof(failure->text), format, args);
	va_end(args);
	return false;
}

GpuSortRequest
sort_case_request(const CaseSpec *spec)
{
	GpuSortRequest request = {
		.key_words = spec->key_words,
		.may_tie = !spec->claim_no_ties,
		.limit = spec->limit,
		.run_bits = spec->run_bits,
		.run_rows = spec->run_rows,
		.run_peers = spec->run_peers,
		.run_exact = spec->run_exact,
		.run_counts = spec->run_counts,
	};

	return request;
}

static int
compare_rows(const void *a, const void *b, void *context)
{
	const SortCase *rows = context;
	uint32_t left = *(const uint32_t *) a;
	uint32_t right = *(const uint32_t *) b;
	const uint64_t *left_key = rows->keys + (uint64_t) left * rows->spec.key_words;
	const uint64_t *right_key = rows->keys + (uint64_t) right * rows->spec.key_words;

	for (uint32_t w = 0; w < rows->spec.key_words; w++)
		if (left_key[w] != right_key[w])
			return left_key[w] < right_key[w] ? -1 : 1;
	return left < right ? -1 : left > right;
}

static bool
keys_equal(const SortCase *rows, uint64_t place)
{
	return memcmp(rows->keys + (uint64_t) rows->order[place] * rows->spec.key_words,
				  rows->keys + (uint64_t) rows->order[place + 1] * rows->spec.key_words,
				  8 * rows->spec.key_words) == 0;
}

void *
sort_case_allocate(uint64_t bytes)
{
	void *memory = malloc(bytes > 0 ? bytes : 1);

	if (memory == NULL)
	{
		fprintf(stderr, "out of memory\n");
		exit(2);
	}
	return memory;
}

/* What is to come out when the first `rows_out` rows of the order do. */
static void
find_output(SortCase *made, uint64_t rows_out)
{
	made->rows_out = rows_out;
	made->bytes = 0;
	made->tie_rows = 0;
	for (uint64_t i = 0; i < rows_out; i++)
		made->bytes += GPUSORT_ALIGN8(made->lengths[made->order[i]]);

	for (uint64_t start = 0, end; start < rows_out; start = end)
	{
		bool truncated = false;

		for (end = start; end < rows_out; end++)
		{
			bool joined = end + 1 < rows_out && keys_equal(made, end);
			bool mine = made->flags[made->order[end]] & GPUSORT_ROW_KEY_TRUNCATED;

			made->tie_next[end] = joined && mine;
			truncated |= mine;
			if (!joined)
			{
				end++;
				break;
			}
		}
		if (truncated && end - start > 1)
			made->tie_rows += end - start;
	}
}

/* The order of the first `rows` rows, and what ties in it. */
static void
find_order(SortCase *made, uint64_t rows)
{
	made->spec.rows = rows;
	for (uint64_t i = 0; i < rows; i++)
		made->order[i] = i;
	qsort_r(made->order, rows, sizeof(uint32_t), compare_rows, made);

	if (made->spec.run_rows > 0 && rows > 0)
	{
		sort_case_pick(made);
		rows = made->rows_out;
	}
	made->wanted = rows;
	if (made->spec.limit > 0 && made->spec.limit < rows)
	{
		made->wanted = made->spec.limit;
		while (!made->spec.claim_no_ties && made->wanted < rows && keys_equal(made, made->wanted - 1))
			made->wanted++;
	}
	find_output(made, rows);
}

void
sort_case_make(SortCase *made, const CaseSpec *spec, uint64_t salt)
{
	uint64_t state = salt;

	made->spec = *spec;
	made->salt = salt;
	made->borders = 0;
	made->records = false;
	made->keys = sort_case_allocate(spec->rows * spec->key_words * sizeof(uint64_t));
	made->lengths = sort_case_allocate(spec->rows * sizeof(uint32_t));
	made->flags = sort_case_allocate(spec->rows);
	made->order = sort_case_allocate(spec->rows * sizeof(uint32_t));
	made->tie_next = sort_case_allocate(spec->rows);
	made->whole = sort_case_allocate(spec->rows * sizeof(uint32_t));
	made->picked = sort_case_allocate(spec->rows);
	made->counts = sort_case_allocate(spec->rows * sizeof(uint64_t));

	for (uint64_t i = 0; i < spec->rows; i++)
	{
		uint32_t most = spec->length_max;

		rig_key(made->keys + i * spec->key_words, spec->key_words, spec->keys, salt, i, spec->rows);
		if (spec->lengths == LENGTHS_SKEWED && rig_random_below(&state, 100) > 0 && most > 150)
			most = 150;
		made->lengths[i] = spec->lengths == LENGTHS_FIXED ? most : ROW_HEAD + rig_random_below(&state, most - ROW_HEAD + 1);
		if (spec->run_counts && made->lengths[i] < COUNT_END)
			made->lengths[i] = COUNT_END;
		made->flags[i] = 0;
		if (rig_random_below(&state, 100) < spec->truncated_percent)
			made->flags[i] |= GPUSORT_ROW_KEY_TRUNCATED;
		if (rig_random_below(&state, 100) < spec->overflow_percent)
			made->flags[i] |= GPUSORT_ROW_OVERFLOW;
	}
	find_order(made, spec->rows);
}

void
sort_case_free(SortCase *made)
{
	free(made->keys);
	free(made->lengths);
	free(made->flags);
	free(made->order);
	free(made->tie_next);
	free(made->whole);
	free(made->picked);
	free(made->counts);
}

/* A row: its bytes follow from its number, which is in bytes 5 to 7, but for its count. */
static void
write_row(const SortCase *from, uint64_t row, char *at, uint8_t flags, uint64_t count)
{
	uint32_t length = from->lengths[row];
	uint64_t state = from->salt ^ row * 1000003;
	uint64_t word = rig_random(&state);

	memcpy(at, &length, sizeof(length));
	at[GPUSORT_ROW_FLAGS_OFFSET] = flags;
	memcpy(at + 5, &row, 3);
	for (uint32_t i = ROW_HEAD; i < length; i += 8)
	{
		word = word * UINT64_C(6364136223846793005) + 1442695040888963407;
		memcpy(at + i, &word, length - i < 8 ? length - i : 8);
	}
	if (from->spec.run_counts)
		memcpy(at + GPUSORT_ROW_COUNT_OFFSET, &count, sizeof(count));
}

bool
sort_case_write(const SortCase *from, uint64_t row, RigChunk *chunk)
{
	uint32_t key_words = from->spec.key_words;
	char *at = rig_chunk_add(chunk, key_words, from->lengths[row]);

	if (at == NULL)
		return false;
	memcpy(at, from->keys + row * key_words, 8 * key_words);
	write_row(from, row, at + 8 * key_words, from->flags[row], sort_case_count(from, row));
	return true;
}

bool
sort_case_put(const SortCase *from, const GpuSortEngineOps *ops, GpuSort *sort, char *in, uint64_t *put_rows,
			  GpuSortError *full, CaseFailure *failure)
{
	const uint32_t most = gpusort_chunk_rows_most(from->spec.key_words);
	uint32_t rows_max[3]; /* of reserves, the oldest first */
	uint64_t row = 0;
	uint32_t reserves = 0;
	uint32_t turn = 0;
	GpuSortError error;

	full->reason = GPUSORT_REASON_NONE;
	while (row < from->spec.rows && full->reason == GPUSORT_REASON_NONE)
	{
		RigChunk chunk;

		do
		{
			/* one that succeeds may leave anything in the error */
			rows_max[reserves] = from->spec.chunk_rows == 0 ? most - most / 5 * (turn++ % 3) : from->spec.chunk_rows;
			if (ops->reserve(sort, rows_max[reserves], &error) != 0)
			{
				*full = error;
				break;
			}
			reserves++;
		} while (from->spec.reserve_ahead && reserves < 3);
		if (reserves == 0)
			break;
		if (from->spec.reserve_ahead)
			full->reason = GPUSORT_REASON_NONE;

		memset(in, 0x5C, GPUSORT_CHUNK_BYTES);
		rig_chunk_start(&chunk, in);
		while (row < from->spec.rows && chunk.rows < rows_max[0] && sort_case_write(from, row, &chunk))
			row++;
		if (chunk.rows == 0)
			return case_failed(failure, "row %llu does not fit a chunk", (unsigned long long) row);
		if (ops->put(sort, in, chunk.rows, chunk.bytes, rows_max[0], &error) != 0)
			return case_failed(failure, "put: %s", error.text);
		memset(in, 0xA5, GPUSORT_CHUNK_BYTES);
		memmove(rows_max, rows_max + 1, --reserves * sizeof(rows_max[0]));
	}
	*put_rows = row;
	return true;
}

uint32_t
sort_case_emitted_bytes(const SortCase *from, uint32_t row)
{
	return GPUSORT_ALIGN8(from->lengths[row]) + (from->records ? 8 * from->spec.key_words : 0);
}

/* Compares the rows of a chunk with what is right from *place on; expected is room for the longest. */
static bool
check_chunk(const SortCase *from, const char *out, const GpuSortEmitted *emitted, uint64_t *place, uint64_t end,
			char *expected, CaseFailure *failure)
{
	const uint32_t key_bytes = from->records ? 8 * from->spec.key_words : 0;
	uint32_t at = 0;
	uint32_t ties = 0;

	for (uint32_t r = 0; r < emitted->rows; r++)
	{
		uint32_t row;
		uint32_t length;
		uint8_t flags;
		bool tie;

		if (*place >= end)
			return case_failed(failure, "more rows came out than were asked for");
		row = from->order[*place];
		length = from->lengths[row];
		tie = !from->records && from->tie_next[*place];
		flags = from->records ? from->flags[row]
							  : (from->flags[row] & ~GPUSORT_ROW_KEY_TRUNCATED) | (tie ? GPUSORT_ROW_TIE_NEXT : 0);
		memcpy(expected, from->keys + (uint64_t) row * from->spec.key_words, key_bytes);
		write_row(from, row, expected + key_bytes, flags, from->counts[*place]);
		if (at + sort_case_emitted_bytes(from, row) > emitted->bytes || emitted->bytes > GPUSORT_CHUNK_BYTES ||
			memcmp(out + at, expected, key_bytes + length) != 0)
			return case_failed(failure, "place %llu: row %u of %u bytes with flags 0x%02x was expected, at %u of %u bytes",
							   (unsigned long long) *place, row, length, flags, at, emitted->bytes);
		at += sort_case_emitted_bytes(from, row);
		ties += tie;
		++*place;
	}
	if (at != emitted->bytes || ties != emitted->tie_rows || !emitted->last != (*place < end) || emitted->rows == 0)
		return case_failed(failure, "a chunk of %u rows, %u bytes, %u ties, last %d; counted %u bytes, %u ties",
						   emitted->rows, emitted->bytes, emitted->tie_rows, emitted->last, at, ties);
	return true;
}

bool
sort_case_read(const SortCase *from, const GpuSortEngineOps *ops, GpuSort *sort, char *out, uint64_t *place,
			   uint64_t end, uint64_t chunks, CaseFailure *failure)
{
	uint32_t most = 0;
	uint32_t not_full = 0;
	char *expected;
	bool passed = true;

	for (uint64_t i = 0; i < from->spec.rows; i++)
		if (from->lengths[i] > most)
			most = from->lengths[i];
	expected = sort_case_allocate(8 * from->spec.key_words + GPUSORT_ALIGN8(most));

	for (uint64_t i = 0; i < chunks && *place < end && passed; i++)
	{
		GpuSortEmitted emitted;
		GpuSortError error;

		memset(out, 0xA5, GPUSORT_CHUNK_BYTES);
		memset(&emitted, 0xA5, sizeof(emitted));
		if (ops->emit(sort, *place, end, from->records, out, &emitted, &error) != 0)
			passed = case_failed(failure, "emit: %s", error.text);
		else
			passed = check_chunk(from, out, &emitted, place, end, expected, failure);
		if (passed && *place < end &&
			emitted.bytes + sort_case_emitted_bytes(from, from->order[*place]) <= GPUSORT_CHUNK_BYTES &&
			++not_full > from->borders)
			passed = case_failed(failure, "the next row would have fit a chunk of %u bytes", emitted.bytes);
	}
	free(expected);
	return passed;
}

/* From begin to end, without either. */
static bool
run_between(SortCase *rows, const GpuSortEngineOps *ops, GpuSort *sort, char *chunks, CaseFailure *failure)
{
	char *in = chunks;
	char *out = chunks + GPUSORT_CHUNK_BYTES;
	uint64_t put_rows;
	uint64_t place = 0;
	GpuSortError error;
	GpuSortOutcome outcome;

	if (!sort_case_put(rows, ops, sort, in, &put_rows, &error, failure))
		return false;
	if ((rows->spec.fits > 0 && error.reason != GPUSORT_REASON_NONE) ||
		(rows->spec.fits < 0 && error.reason == GPUSORT_REASON_NONE))
		return case_failed(failure, "%llu rows were ingested: %s", (unsigned long long) put_rows,
						   error.reason != GPUSORT_REASON_NONE ? error.text : "all");
	if (error.reason != GPUSORT_REASON_NONE)
	{
		/* What was put must still sort. */
		if (error.reason != GPUSORT_REASON_MEMORY_LIMIT && error.reason != GPUSORT_REASON_MEMORY_BUSY &&
			error.reason != GPUSORT_REASON_NO_MEMORY)
			return case_failed(failure, "reserve: %s", error.text);
		find_order(rows, put_rows);
	}

	memset(&outcome, 0xA5, sizeof(outcome));
	if (ops->sort(sort, &outcome, &error) != 0)
		return case_failed(failure, "sort: %s", error.text);
	if (outcome.rows == rows->wanted && rows->wanted < rows->rows_out)
		find_output(rows, rows->wanted);
	if (rows->spec.run_rows > 0 && rows->borders > 0 && outcome.rows <= put_rows)
	{
		if (!sort_case_note_picked(rows, ops, sort, out, outcome.rows, failure))
			return false;
		find_output(rows, rows->rows_out);
	}
	if (outcome.rows_in != rows->spec.rows)
		return case_failed(failure, "%llu rows sorted of %llu put", (unsigned long long) outcome.rows_in,
						   (unsigned long long) rows->spec.rows);
	if (outcome.rows != rows->rows_out || outcome.bytes != rows->bytes || outcome.tie_rows != rows->tie_rows ||
		outcome.key_bits != 64 * rows->spec.key_words || outcome.packed_bits > outcome.key_bits)
		return case_failed(failure, "sorted %llu rows, %llu bytes, %llu tied; not %llu, %llu, %llu; bits %u, %u",
						   (unsigned long long) outcome.rows, (unsigned long long) outcome.bytes,
						   (unsigned long long) outcome.tie_rows, (unsigned long long) rows->rows_out,
						   (unsigned long long) rows->bytes, (unsigned long long) rows->tie_rows,
						   outcome.key_bits, outcome.packed_bits);

	/* One chunk; from the start two, keys, one more, keys, the rest; all once more. */
	if (!sort_case_read(rows, ops, sort, out, &place, rows->rows_out, 1, failure))
		return false;
	place = 0;
	if (!sort_case_read(rows, ops, sort, out, &place, rows->rows_out, 2, failure) ||
		!sort_case_look_up(rows, ops, sort, failure) ||
		!sort_case_read(rows, ops, sort, out, &place, rows->rows_out, 1, failure) ||
		!sort_case_look_up(rows, ops, sort, failure) ||
		!sort_case_read(rows, ops, sort, out, &place, rows->rows_out, UINT64_MAX, failure))
		return false;

	/* Rows, then records. */
	for (int records = 0; records < 2; records++)
	{
		rows->records = records;
		place = 0;
		if (!sort_case_read(rows, ops, sort, out, &place, rows->rows_out, UINT64_MAX, failure) ||
			!sort_case_read_intervals(rows, ops, sort, out, failure))
			return false;
	}
	return true;
}

bool
sort_case_run(const CaseSpec *spec, uint64_t salt, const GpuSortEngineOps *ops, GpuSortEngine *engine, char *chunks,
			  CaseFailure *failure)
{
	GpuSortRequest request = sort_case_request(spec);
	SortCase rows;
	GpuSort *sort;
	GpuSortError error;
	GpuSortPlace place;
	bool passed;

	failure->text[0] = '\0';
	sort_case_make(&rows, spec, salt);
	rows.borders = ops->describe(engine, NULL, 0) - 1;
	request.estimated_rows = spec->reserve_ahead ? spec->rows : 0;
	request.estimated_bytes = spec->reserve_ahead ? rows.bytes + spec->rows * 8 * spec->key_words : 0;
	if (ops->begin(engine, &request, &sort_case_never_cancelled, &sort, &place, &error) != 0)
	{
		sort_case_free(&rows);
		return case_failed(failure, "begin: %s", error.text);
	}
	passed = run_between(&rows, ops, sort, chunks, failure);
	ops->end(sort);
	sort_case_free(&rows);
	return passed;
}
