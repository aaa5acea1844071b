/*-------------------------------------------------------------------------
 *
 * fault_spoil.c
 *	  Spoils messages to clients, and the chunks that come with them, in the ways that
 *	  src/service/fault.h names.
 *
 *-------------------------------------------------------------------------
 */
#include "fault_spoil.h"

#include <stdlib.h>
#include <string.h>

/*
 * Rows of a chunk
 */

static char *
chunk_of(const Answer *answer)
{
	return gpusort_pool_chunk(answer->session->sessions->pool, answer->message.u.data.chunk);
}

static GpuSortEmitted *
emitted_of(Answer *answer)
{
	return &answer->message.u.data.emitted;
}

/* Bytes of a row, padded. */
static uint32_t
room_of(const char *row)
{
	return GPUSORT_ALIGN8(*(const uint32_t *) row);
}

/* Row i of the chunk. */
static char *
row_at(Answer *answer, uint32_t i)
{
	char *row = chunk_of(answer);

	while (i-- > 0)
		row += room_of(row);
	return row;
}

/* A number below n, by the seed; the same for the same k. */
static uint32_t
some(const Answer *answer, uint32_t n, uint32_t k)
{
	uint64_t x = (answer->seed + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15) + k * UINT64_C(0xD1B54A32D192ED03);

	x ^= x >> 31;
	x *= UINT64_C(0x94D049BB133111EB);
	x ^= x >> 29;
	return (x >> 16) % n;
}

/* A row of the chunk; NULL if it has none. */
static char *
some_row(Answer *answer)
{
	uint32_t rows = emitted_of(answer)->rows;

	return rows > 0 ? row_at(answer, some(answer, rows, 0)) : NULL;
}

static uint32_t
pool_chunks(const Answer *answer)
{
	return gpusort_pool_chunks(answer->session->sessions->pool);
}

static bool
set_length(Answer *answer, uint32_t length)
{
	char *row = some_row(answer);

	if (row == NULL)
		return false;
	*(uint32_t *) row = length;
	return true;
}

/* Sets flags of some row that has none of them. */
static bool
set_flags(Answer *answer, uint8_t flags)
{
	char *row = some_row(answer);

	if (row == NULL || (row[GPUSORT_ROW_FLAGS_OFFSET] & flags) != 0)
		return false;
	row[GPUSORT_ROW_FLAGS_OFFSET] |= flags;
	return true;
}

/* Turns one of the bytes' bits over. */
static bool
flip(const Answer *answer, char *bytes, uint32_t count)
{
	uint32_t bit = some(answer, count * 8, 1);

	bytes[bit / 8] ^= 1 << bit % 8;
	return true;
}

/*
 * What is wrong with DATA
 */

bool
drop_row(Answer *answer)
{
	emitted_of(answer)->rows--;
	return true;
}

bool
drop_row_and_bytes(Answer *answer)
{
	GpuSortEmitted *emitted = emitted_of(answer);

	if (emitted->rows < 2)
		return false;
	emitted->rows--;
	emitted->bytes -= room_of(row_at(answer, emitted->rows));
	return true;
}

bool
last_early(Answer *answer)
{
	GpuSortEmitted *emitted = emitted_of(answer);

	if (emitted->last)
		return false;
	emitted->last = 1;
	return true;
}

bool
last_missing(Answer *answer)
{
	GpuSortEmitted *emitted = emitted_of(answer);

	if (!emitted->last)
		return false;
	emitted->last = 0;
	return true;
}

bool
skip_chunk(Answer *answer)
{
	answer->times = 0;
	return true;
}

bool
no_rows(Answer *answer)
{
	emitted_of(answer)->rows = emitted_of(answer)->bytes = 0;
	emitted_of(answer)->last = 0;
	return true;
}

bool
send_twice(Answer *answer)
{
	answer->times = 2;
	return true;
}

bool
more_rows(Answer *answer)
{
	emitted_of(answer)->rows++;
	return true;
}

bool
more_bytes(Answer *answer)
{
	emitted_of(answer)->bytes += 8;
	return true;
}

bool
huge_bytes(Answer *answer)
{
	emitted_of(answer)->bytes = GPUSORT_CHUNK_BYTES + 8;
	return true;
}

bool
other_epoch(Answer *answer)
{
	answer->message.u.data.epoch++;
	return true;
}

bool
chunk_range(Answer *answer)
{
	answer->message.u.data.chunk = pool_chunks(answer) + some(answer, 1000, 0);
	return true;
}

bool
chunk_again(Answer *answer)
{
	if (answer->chunk_before == GPUSORT_NO_CHUNK || answer->chunk_before == answer->message.u.data.chunk)
		return false;
	answer->message.u.data.chunk = answer->chunk_before;
	return true;
}

bool
other_chunk(Answer *answer)
{
	uint32_t chunks = pool_chunks(answer);

	answer->message.u.data.chunk = (answer->message.u.data.chunk + 1 + some(answer, chunks - 1, 0)) % chunks;
	return true;
}

bool
zero_length(Answer *answer)
{
	return set_length(answer, 0);
}

bool
short_length(Answer *answer)
{
	return set_length(answer, 8);
}

bool
huge_length(Answer *answer)
{
	return set_length(answer, 0xFFFFFFF0u - some(answer, 1000, 1));
}

bool
long_length(Answer *answer)
{
	const char *row = some_row(answer);

	return row != NULL && set_length(answer, chunk_of(answer) + emitted_of(answer)->bytes - row + 8);
}

bool
false_overflow(Answer *answer)
{
	return set_flags(answer, GPUSORT_ROW_OVERFLOW);
}

bool
false_flags(Answer *answer)
{
	return set_flags(answer, 0x7C);
}

bool
false_count(Answer *answer)
{
	char *row = some_row(answer);

	if (row == NULL)
		return false;
	++*(uint64_t *) (row + GPUSORT_ROW_COUNT_OFFSET);
	return true;
}

bool
false_tie(Answer *answer)
{
	return set_flags(answer, GPUSORT_ROW_TIE_NEXT);
}

bool
tie_at_end(Answer *answer)
{
	GpuSortEmitted *emitted = emitted_of(answer);

	if (!emitted->last || emitted->rows == 0)
		return false;
	row_at(answer, emitted->rows - 1)[GPUSORT_ROW_FLAGS_OFFSET] |= GPUSORT_ROW_TIE_NEXT;
	return true;
}

bool
lost_tie(Answer *answer)
{
	uint32_t rows = emitted_of(answer)->rows;
	uint32_t first = rows > 0 ? some(answer, rows, 0) : 0;
	char *row = chunk_of(answer);

	for (uint32_t i = 0; i < rows; i++, row += room_of(row))
	{
		if (i >= first && (row[GPUSORT_ROW_FLAGS_OFFSET] & GPUSORT_ROW_TIE_NEXT) != 0)
		{
			row[GPUSORT_ROW_FLAGS_OFFSET] &= ~GPUSORT_ROW_TIE_NEXT;
			return true;
		}
	}
	return false;
}

bool
insert_row(Answer *answer)
{
	GpuSortEmitted *emitted = emitted_of(answer);
	char *end = chunk_of(answer) + emitted->bytes;
	const char *row = some_row(answer);

	if (row == NULL || emitted->bytes + room_of(row) > GPUSORT_CHUNK_BYTES)
		return false;
	memcpy(end, row, room_of(row));
	emitted->rows++;
	emitted->bytes += room_of(row);
	return true;
}

bool
duplicate_row(Answer *answer)
{
	const char *row = some_row(answer);
	char *other = chunk_of(answer);

	for (uint32_t i = 0; row != NULL && i < emitted_of(answer)->rows; i++, other += room_of(other))
	{
		if (room_of(other) == room_of(row) && memcmp(other, row, room_of(row)) != 0)
		{
			memcpy(other, row, room_of(row));
			return true;
		}
	}
	return false;
}

/* The first row of the chunk and some other one change places, of whatever lengths they are. */
bool
swap_rows(Answer *answer)
{
	uint32_t rows = emitted_of(answer)->rows;
	char *first = chunk_of(answer);
	char *other;
	char *copy;
	uint32_t span;
	uint32_t between;

	if (rows < 2)
		return false;
	other = row_at(answer, 1 + some(answer, rows - 1, 0));
	span = other + room_of(other) - first;
	between = other - first - room_of(first);
	copy = malloc(span);
	if (copy == NULL)
		return false;
	memcpy(copy, other, room_of(other));
	memcpy(copy + room_of(other), first + room_of(first), between);
	memcpy(copy + room_of(other) + between, first, room_of(first));
	memcpy(first, copy, span);
	free(copy);
	return true;
}

bool
flip_bit(Answer *answer)
{
	return emitted_of(answer)->bytes > 0 && flip(answer, chunk_of(answer), emitted_of(answer)->bytes);
}

bool
flip_header(Answer *answer)
{
	char *row = some_row(answer);

	return row != NULL && flip(answer, row, 16);
}

bool
flip_end(Answer *answer)
{
	char *row = some_row(answer);

	return row != NULL && flip(answer, row + *(uint32_t *) row - 16, 16);
}

/*
 * What is wrong with other messages
 */

bool
sorted_more_rows(Answer *answer)
{
	answer->message.u.sorted.rows++;
	return true;
}

bool
sorted_fewer_rows(Answer *answer)
{
	answer->message.u.sorted.rows--;
	return true;
}

bool
sorted_rows_in(Answer *answer)
{
	answer->message.u.sorted.rows_in--;
	return true;
}

bool
sorted_bytes(Answer *answer)
{
	answer->message.u.sorted.bytes -= 8;
	return true;
}

/*
 * What is wrong with RANGES
 */

/* The numbers of the ranges' first rows. */
static uint64_t *
borders_of(Answer *answer)
{
	return (uint64_t *) gpusort_pool_chunk(answer->session->sessions->pool, answer->message.u.ranges.chunk);
}

bool
ranges_range(Answer *answer)
{
	if (answer->message.u.ranges.ranges == 0)
		return false;
	answer->message.u.ranges.chunk = pool_chunks(answer) + some(answer, 1000, 0);
	return true;
}

bool
ranges_more(Answer *answer)
{
	answer->message.u.ranges.ranges = GPUSORT_RANGES_MAX + 1;
	return true;
}

bool
ranges_first(Answer *answer)
{
	if (answer->message.u.ranges.ranges == 0)
		return false;
	borders_of(answer)[0]++;
	return true;
}

bool
ranges_swapped(Answer *answer)
{
	uint32_t ranges = answer->message.u.ranges.ranges;
	uint64_t *borders;
	uint64_t border;

	if (ranges < 3)
		return false;
	borders = borders_of(answer);
	border = borders[1];
	borders[1] = borders[2];
	borders[2] = border;
	return true;
}

bool
ranges_beyond(Answer *answer)
{
	uint32_t ranges = answer->message.u.ranges.ranges;

	if (ranges == 0)
		return false;
	borders_of(answer)[ranges - 1] += UINT64_C(1) << 40;
	return true;
}

bool
grant_range(Answer *answer)
{
	answer->message.u.chunk.chunk = pool_chunks(answer) + some(answer, 1000, 0);
	return true;
}

bool
grant_twice(Answer *answer)
{
	answer->times = 2;
	return true;
}

bool
grant_missing(Answer *answer)
{
	answer->times = 0;
	return true;
}

bool
job_token(Answer *answer)
{
	answer->message.u.job.token++;
	return true;
}

bool
job_engine(Answer *answer)
{
	answer->message.u.job.engine = 77;
	return true;
}

bool
welcome_bytes(Answer *answer)
{
	answer->message.u.welcome.pool_bytes *= 2;
	return true;
}

bool
welcome_chunks(Answer *answer)
{
	answer->message.u.welcome.pool_chunks *= 2;
	return true;
}

bool
welcome_id(Answer *answer)
{
	answer->message.u.welcome.pool_id = 0;
	return true;
}

bool
welcome_other_id(Answer *answer)
{
	answer->message.u.welcome.pool_id++;
	answer->session->outbox.descriptor = -1;
	return true;
}

bool
message_short(Answer *answer)
{
	answer->bytes /= 2;
	return true;
}

bool
message_long(Answer *answer)
{
	answer->bytes += 8;
	return true;
}

bool
message_version(Answer *answer)
{
	answer->message.version++;
	return true;
}

bool
message_type(Answer *answer)
{
	answer->message.type = 999;
	return true;
}

bool
message_late(Answer *answer)
{
	answer->message.type = answer->message.type == GPUSORT_MSG_WELCOME ? GPUSORT_MSG_LEFT : GPUSORT_MSG_WELCOME;
	return true;
}

bool
exit_service(Answer *answer)
{
	return answer->bytes > 0;
}
