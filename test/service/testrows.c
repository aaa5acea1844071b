/*-------------------------------------------------------------------------
 *
 * testrows.c
 *	  Rows, the right answer to sorting them, and whole sorts, for the tests.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testlib.h"

static const Rows *compared;

static int
compare_keys(const Rows *rows, uint64_t a, uint64_t b)
{
	const uint64_t *x = rows->keys + a * rows->key_words;
	const uint64_t *y = rows->keys + b * rows->key_words;

	for (uint32_t w = 0; w < rows->key_words; w++)
	{
		if (x[w] != y[w])
			return x[w] < y[w] ? -1 : 1;
	}
	return 0;
}

static int
compare_rows(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *) a;
	uint64_t y = *(const uint64_t *) b;
	int order = compare_keys(compared, x, y);

	return order ? order : (x > y) - (x < y);
}

static void
make_key(uint64_t *key, uint32_t words, Keys keys, uint64_t i, uint64_t n)
{
	for (uint32_t w = 0; w < words; w++)
		key[w] = 0x0123456789ABCDEFu + w;
	switch (keys)
	{
		case KEYS_RANDOM:
			for (uint32_t w = 0; w < words; w++)
				key[w] = random64();
			break;
		case KEYS_FEW:
			for (uint32_t w = 0; w < words; w++)
				key[w] = (random64() % 17) * 0x0F0F00FF00F0F0F1u;
			break;
		case KEYS_EQUAL:
			break;
		case KEYS_ASCENDING:
			key[words - 1] = i / 2;
			break;
		case KEYS_DESCENDING:
			key[0] = n - i;
			break;
		case KEYS_SKEWED:
			key[words - 1] = random64() % 1000 ? random64() % 5 : random64();
			break;
		case KEYS_HIGH_BIT:
			key[0] = random64() % 3 ? 0 : UINT64_C(1) << 63;
			break;
		case KEYS_LAST_WORD:
			key[0] = (random64() % 3) * 0x5555555555555555u;
			key[words - 1] = random64();
			break;
		case KEYS_TEXT:
			for (uint32_t b = 0; b < words * 8; b++)
				key[b / 8] = key[b / 8] << 8 | "0123456789abcdef"[b == 0 && random64() % 2 ? 11 : random64() % 16];
			break;
	}
}

void
rows_make(Rows *rows, uint64_t n, uint32_t key_words, Keys keys,
		  uint32_t shortest, uint32_t longest, int truncated_of_100)
{
	rows->key_words = key_words;
	rows->n = n;
	rows->keys = calloc(n + 1, key_words * sizeof(uint64_t));
	rows->lengths = calloc(n + 1, sizeof(uint32_t));
	rows->flags = calloc(n + 1, 1);
	rows->order = calloc(n + 1, sizeof(uint64_t));
	rows->tie_next = calloc(n + 1, 1);
	rows->tie_rows = 0;
	for (uint64_t i = 0; i < n; i++)
	{
		make_key(rows->keys + i * key_words, key_words, keys, i, n);
		rows->lengths[i] = shortest + random64() % (longest - shortest + 1);
		if (random64() % 100 < (uint64_t) truncated_of_100)
			rows->flags[i] |= GPUSORT_ROW_KEY_TRUNCATED;
		if (random64() % 50 == 0)
			rows->flags[i] |= GPUSORT_ROW_OVERFLOW;
		rows->order[i] = i;
	}
	compared = rows;
	qsort(rows->order, n, sizeof(uint64_t), compare_rows);
	for (uint64_t start = 0, end; start < n; start = end)
	{
		bool truncated = false;

		for (end = start; end < n && compare_keys(rows, rows->order[start], rows->order[end]) == 0; end++)
			truncated |= rows->flags[rows->order[end]] & GPUSORT_ROW_KEY_TRUNCATED;
		for (uint64_t i = start; i + 1 < end; i++)
			rows->tie_next[i] = rows->flags[rows->order[i]] & GPUSORT_ROW_KEY_TRUNCATED;
		if (truncated && end - start > 1)
			rows->tie_rows += end - start;
	}
}

void
rows_free(Rows *rows)
{
	free(rows->keys);
	free(rows->lengths);
	free(rows->flags);
	free(rows->order);
	free(rows->tie_next);
}

static uint8_t
row_byte(uint64_t row, uint32_t at)
{
	return (uint8_t) (row * 31 + at * 7 + (row >> 8));
}

/*
 * Fills a chunk with rows_max rows at most, from a number on; returns the number of the first row
 * that is not in it.
 */
uint64_t
rows_fill(const Rows *rows, uint64_t from, uint32_t rows_max, void *chunk, uint32_t *count, uint32_t *bytes)
{
	char *to = chunk;
	uint32_t at = 0;
	uint64_t i;

	for (i = from; i < rows->n && i - from < rows_max; i++)
	{
		uint32_t key_bytes = rows->key_words * 8;
		uint32_t length = rows->lengths[i];
		uint32_t size = key_bytes + GPUSORT_ALIGN8(length);

		if (at + size + (i - from + 1) * sizeof(uint32_t) > GPUSORT_CHUNK_BYTES)
			break;
		*gpusort_chunk_offset(chunk, i - from) = at;
		memcpy(to + at, rows->keys + i * rows->key_words, key_bytes);
		memset(to + at + key_bytes, 0, GPUSORT_ALIGN8(length));
		memcpy(to + at + key_bytes, &length, 4);
		to[at + key_bytes + GPUSORT_ROW_FLAGS_OFFSET] = rows->flags[i];
		if (length >= 16)
		{
			memcpy(to + at + key_bytes + 8, &i, 8);
			for (uint32_t j = 16; j < length; j++)
				to[at + key_bytes + j] = row_byte(i, j);
		}
		at += size;
	}
	*count = i - from;
	*bytes = at;
	return i;
}

/* Compares the rows of a DATA with the right ones from a place on; NULL if they are. */
const char *
rows_check(const Rows *rows, uint64_t place, const void *chunk, const GpuSortMessage *data)
{
	const char *at = chunk;
	uint32_t tie_rows = 0;

	if (place + data->u.data.emitted.rows > rows->n)
		return "more rows came than were put";
	for (uint32_t i = 0; i < data->u.data.emitted.rows; i++)
	{
		uint64_t row = rows->order[place + i];
		uint32_t length;
		uint8_t flags = rows->flags[row] & GPUSORT_ROW_OVERFLOW;
		uint64_t number;

		memcpy(&length, at, 4);
		if (length != rows->lengths[row])
			return "a row has another length";
		if (length >= 16)
		{
			memcpy(&number, at + 8, 8);
			if (number != row)
				return "another row is in this place";
			for (uint32_t j = 16; j < length; j++)
			{
				if ((uint8_t) at[j] != row_byte(row, j))
					return "a row's bytes differ";
			}
		}
		if (rows->tie_next[place + i])
		{
			flags |= GPUSORT_ROW_TIE_NEXT;
			tie_rows++;
		}
		if ((uint8_t) at[GPUSORT_ROW_FLAGS_OFFSET] != flags)
			return "a row has other flags";
		at += GPUSORT_ALIGN8(length);
	}
	if (at - (const char *) chunk != data->u.data.emitted.bytes)
		return "DATA tells another number of bytes";
	if (tie_rows != data->u.data.emitted.tie_rows)
		return "DATA tells another number of tied rows";
	return NULL;
}

/*
 * Whole sorts.  Each returns NULL or what went wrong.
 */

/* Puts all rows, after JOB. */
const char *
sort_put(Client *client, const Rows *rows)
{
	uint64_t next = 0;

	while (next < rows->n)
	{
		GpuSortMessage message;
		uint32_t chunk;
		uint32_t rows_max;

		if (!client_receive(client, &message, ANSWER_MS))
			return "no chunk came";
		if (message.type != GPUSORT_MSG_CHUNK)
			return message.type == GPUSORT_MSG_FULL ? "FULL came" : "no CHUNK came";
		chunk = message.u.chunk.chunk;
		rows_max = message.u.chunk.rows_max;
		memset(&message, 0, sizeof(message));
		message.u.put.chunk = chunk;
		next = rows_fill(rows, next, rows_max, client_chunk(client, chunk), &message.u.put.rows,
						 &message.u.put.bytes);
		client_send(client, GPUSORT_MSG_CHUNK_PUT, message);
	}
	return NULL;
}

/* Sends SORT, for rows from number first on, and checks what SORTED says. */
const char *
sort_finish_from(Client *client, const Rows *rows, uint64_t first, GpuSortMessage *sorted)
{
	uint64_t bytes = 0;

	client_send(client, GPUSORT_MSG_SORT, (GpuSortMessage){.u.sort.first = first});
	do
	{
		if (!client_receive(client, sorted, ANSWER_MS))
			return "SORTED did not come";
	} while (sorted->type == GPUSORT_MSG_CHUNK || sorted->type == GPUSORT_MSG_FULL);
	if (sorted->type != GPUSORT_MSG_SORTED)
		return sorted->type == GPUSORT_MSG_FAILED ? "FAILED came" : "no SORTED came";
	for (uint64_t i = 0; i < rows->n; i++)
		bytes += GPUSORT_ALIGN8(rows->lengths[i]);
	if (sorted->u.sorted.rows != rows->n)
		return "SORTED tells another number of rows";
	if (sorted->u.sorted.bytes != bytes)
		return "SORTED tells another number of bytes";
	if (sorted->u.sorted.tie_rows != rows->tie_rows)
		return "SORTED tells another number of tied rows";
	if (sorted->u.sorted.key_bits != rows->key_words * 64)
		return "SORTED tells another width of keys";
	return NULL;
}

const char *
sort_finish(Client *client, const Rows *rows, GpuSortMessage *sorted)
{
	return sort_finish_from(client, rows, 0, sorted);
}

/* Reads the rows of the client's epoch, which was asked for from number first on, and frees every chunk. */
const char *
sort_read_from(Client *client, const Rows *rows, uint64_t first)
{
	uint64_t place = first;
	GpuSortMessage data;
	const char *problem = NULL;

	do
	{
		if (!client_receive(client, &data, ANSWER_MS))
			return "DATA did not come";
		if (data.type != GPUSORT_MSG_DATA)
			return "no DATA came";
		if (data.u.data.epoch == client->epoch && data.u.data.emitted.rows > 0)
		{
			problem = data.u.data.first != place
				? "DATA tells another number of rows before it"
				: rows_check(rows, place, client_chunk(client, data.u.data.chunk), &data);
			if (problem != NULL)
				return problem;
			place += data.u.data.emitted.rows;
		}
		else if (data.u.data.epoch == client->epoch &&
				 (rows->n > first || !data.u.data.emitted.last || data.u.data.first != first))
			return "a DATA without rows came";
		if (data.u.data.emitted.rows > 0)
			client_send(client, GPUSORT_MSG_CHUNK_FREE,
						(GpuSortMessage){.u.chunk.chunk = data.u.data.chunk});
	} while (data.u.data.epoch != client->epoch || !data.u.data.emitted.last);
	return place == rows->n || first > rows->n ? NULL : "fewer rows came than were put";
}

const char *
sort_read(Client *client, const Rows *rows)
{
	return sort_read_from(client, rows, 0);
}

/* Has the rows of a shared sort cut; fills first_rows, with the number of rows behind the last, and *ranges. */
const char *
sort_cut(Client *client, const Rows *rows, uint32_t bits, uint32_t most, uint64_t *first_rows, uint32_t *ranges)
{
	GpuSortMessage message = {.u.cut = {.bits = bits, .most = most}};

	client_send(client, GPUSORT_MSG_CUT, message);
	if (!client_receive(client, &message, ANSWER_MS))
		return "RANGES did not come";
	if (message.type != GPUSORT_MSG_RANGES)
		return "no RANGES came";
	*ranges = message.u.ranges.ranges;
	if (*ranges > most || (*ranges == 0) != (rows->n == 0) || (*ranges == 0) != (message.u.ranges.chunk == UINT32_MAX))
		return "RANGES tells another number of ranges";
	if (*ranges > 0)
	{
		memcpy(first_rows, client_chunk(client, message.u.ranges.chunk), *ranges * sizeof(uint64_t));
		client_send(client, GPUSORT_MSG_CHUNK_FREE, (GpuSortMessage){.u.chunk.chunk = message.u.ranges.chunk});
	}
	first_rows[*ranges] = rows->n;
	return NULL;
}

/* Asks for rows of a shared sort, reads them and frees every chunk; rows of earlier READs are not looked at. */
const char *
sort_read_interval(Client *client, const Rows *rows, uint64_t first, uint64_t end)
{
	GpuSortMessage data = {.u.read = {.first = first, .end = end}};
	uint64_t place = first;
	const char *problem;

	client->epoch++;
	client_send(client, GPUSORT_MSG_READ, data);
	do
	{
		if (!client_receive(client, &data, ANSWER_MS))
			return "DATA did not come";
		if (data.type != GPUSORT_MSG_DATA)
			return "no DATA came";
		problem = NULL;
		if (data.u.data.epoch == client->epoch)
		{
			problem = data.u.data.first != place
				? "DATA tells another number of rows before it"
				: rows_check(rows, place, client_chunk(client, data.u.data.chunk), &data);
			place += data.u.data.emitted.rows;
			if (problem == NULL && (data.u.data.emitted.rows == 0 || data.u.data.emitted.last != (place == end)))
				problem = "an interval ends elsewhere";
		}
		client_send(client, GPUSORT_MSG_CHUNK_FREE, (GpuSortMessage){.u.chunk.chunk = data.u.data.chunk});
	} while (problem == NULL && place < end);
	return problem;
}

/* Reads all rows of a shared sort range by range. */
const char *
sort_read_ranges(Client *client, const Rows *rows)
{
	uint64_t first_rows[33];
	uint32_t ranges;
	const char *problem = sort_cut(client, rows, 64 * rows->key_words, 32, first_rows, &ranges);

	for (uint32_t i = 0; problem == NULL && i < ranges; i++)
		problem = sort_read_interval(client, rows, first_rows[i], first_rows[i + 1]);
	return problem;
}

const char *
sort_all(const Service *service, const Rows *rows, bool may_tie)
{
	Client client;
	GpuSortMessage message;
	const char *problem = NULL;

	client_open(&client, service);
	if (client_begin(&client, rows->key_words, may_tie, rows->n, 0).type != GPUSORT_MSG_JOB)
		problem = "REFUSED came";
	if (problem == NULL)
		problem = sort_put(&client, rows);
	if (problem == NULL)
		problem = sort_finish(&client, rows, &message);
	if (problem == NULL)
		problem = sort_read(&client, rows);
	client_close(&client);
	return problem;
}
