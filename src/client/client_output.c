/*-------------------------------------------------------------------------
 *
 * client_output.c
 *	  A client's sorted rows: cut into ranges, asked for by intervals, and taken as they come.
 *
 * client.c has the legal order of calls.  Whatever the service sends is checked against what was asked
 * for: rows come in the order of their numbers, each once, in chunks that are the client's.
 *
 *-------------------------------------------------------------------------
 */
#include "client/client.h"

#include "client/client_state.h"
#include "server/reasons.h"

/* The rows of the sort that this process reads are in runs, as the outcome says of which another process was told. */
void
gpusort_client_expect_runs(GpuSortClient *client)
{
	client->in_runs = true;
}

/* Waits for the answer to what the client has asked of the sorted rows. */
static bool
receive_output(GpuSortClient *client, GpuSortMessage *message, GpuSortFailure *failure)
{
	bool received;

	do
	{
		received = client->in_runs ? gpusort_connection_receive(&client->connection, message, failure)
								   : gpusort_connection_receive_soon(&client->connection, message, failure);
	} while (received && client->void_grants && message->type == GPUSORT_MSG_CHUNK);
	return received;
}

/* Gives a chunk back, without the length of its first row: if it came again as it is, that would show. */
static bool
free_chunk(GpuSortClient *client, uint32 chunk, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	memset(gpusort_connection_chunk(&client->connection, chunk), 0, sizeof(uint64));
	message.u.chunk.chunk = chunk;
	return gpusort_connection_send(&client->connection, &message, GPUSORT_MSG_CHUNK_FREE, failure);
}

/* Returns true if ranges that begin at these rows, of so many in all, can be those that were asked for. */
static bool
are_ranges(const uint64 *first_rows, uint32 ranges, uint64 rows, bool may_be_empty)
{
	if (ranges == 0)
		return rows == 0 || may_be_empty;
	if (first_rows[0] != 0)
		return false;
	for (uint32 i = 1; i < ranges; i++)
	{
		if (first_rows[i] < first_rows[i - 1] || (first_rows[i] == first_rows[i - 1] && !may_be_empty))
			return false;
	}
	return may_be_empty ? first_rows[ranges - 1] <= rows : first_rows[ranges - 1] < rows;
}

/*
 * Cuts the rows of a shared sort into ranges, most at most, GPUSORT_RANGES_MAX at most: rows that are equal in
 * the first so many bits of the key stay together.  first_rows, with room for most, gets the number of each
 * range's first row; of the first range that is 0.  like: 0, or the token of another shared sort of this
 * process that was cut by as many bits: the ranges are that one's then, and some of them may be empty.
 */
bool
gpusort_client_cut(GpuSortClient *client, uint32 bits, uint32 most, uint64 like, uint64 *first_rows, uint32 *ranges,
				   GpuSortFailure *failure)
{
	GpuSortMessage message = {0};
	uint32 count;

	Assert(client->shared && client->nintervals == 0 && most <= GPUSORT_RANGES_MAX);
	client->connection.wait = GPUSORT_WAIT_SORT;
	message.u.cut.bits = bits;
	message.u.cut.most = most;
	message.u.cut.like = like;
	if (!gpusort_connection_send(&client->connection, &message, GPUSORT_MSG_CUT, failure) ||
		!receive_output(client, &message, failure))
		return false;
	if (message.type != GPUSORT_MSG_RANGES)
		return gpusort_failure_unexpected(failure, &message);
	count = message.u.ranges.ranges;
	if (count > most || (count > 0 && !gpusort_connection_has_chunk(&client->connection, message.u.ranges.chunk)))
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service cut rows into %u ranges where at most %u were asked for", count, most);
	if (count > 0)
	{
		memcpy(first_rows, gpusort_connection_chunk(&client->connection, message.u.ranges.chunk), count * sizeof(uint64));
		if (!free_chunk(client, message.u.ranges.chunk, failure))
			return false;
	}
	if (!are_ranges(first_rows, count, client->sorted_rows, like != 0))
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service cut " UINT64_FORMAT " rows into %u ranges that cannot be",
								   client->sorted_rows, count);
	*ranges = count;
	return true;
}

/*
 * Asks for the rows of a shared sort from number first on up to the one before end,
 * of which there must be one; they come after those of the intervals asked for before.
 * GPUSORT_READS_MAX intervals may be asked for and not over.
 */
bool
gpusort_client_read(GpuSortClient *client, uint64 first, uint64 end, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	Assert(client->shared && client->nintervals < GPUSORT_READS_MAX && first < end);
	client->connection.wait = GPUSORT_WAIT_EMIT;
	message.u.read.first = first;
	message.u.read.end = end;
	if (client->nintervals == 0)
		client->next_row = first;
	client->intervals[client->nintervals++] = (RowInterval){.first = first, .end = end};
	return gpusort_connection_send(&client->connection, &message, GPUSORT_MSG_READ, failure);
}

/* The current interval is over. */
static void
end_interval(GpuSortClient *client)
{
	client->nintervals--;
	memmove(client->intervals, client->intervals + 1, client->nintervals * sizeof(client->intervals[0]));
	client->epoch++;
	client->next_row = client->intervals[0].first;
}

/* Keeps DATA of an interval that was asked for and is not the current one yet; false if it cannot be. */
static bool
keep_early(GpuSortClient *client, const GpuSortMessage *data)
{
	if (data->u.data.epoch - client->epoch >= (uint32) client->nintervals || data->u.data.emitted.rows == 0 ||
		client->nearly == GPUSORT_JOB_CHUNKS_MAX)
		return false;
	client->early[client->nearly++] = *data;
	return true;
}

/* Takes DATA of the current interval that came early; false if there is none. */
static bool
take_early(GpuSortClient *client, GpuSortMessage *data)
{
	for (int i = 0; i < client->nearly; i++)
	{
		if (client->early[i].u.data.epoch != client->epoch)
			continue;
		*data = client->early[i];
		client->nearly--;
		memmove(&client->early[i], &client->early[i + 1], (client->nearly - i) * sizeof(GpuSortMessage));
		return true;
	}
	return false;
}

/* No more rows of the current interval are wanted: it is over.  Rows held must have been freed. */
bool
gpusort_client_skip(GpuSortClient *client, GpuSortFailure *failure)
{
	GpuSortMessage message;

	Assert(client->shared && client->nintervals > 0);
	while (take_early(client, &message))
	{
		if (!free_chunk(client, message.u.data.chunk, failure))
			return false;
	}
	memset(&message, 0, sizeof(message));
	message.u.skip.number = client->epoch;
	end_interval(client);
	return gpusort_connection_send(&client->connection, &message, GPUSORT_MSG_SKIP, failure);
}

/* Returns true if what a chunk is said to have been filled with fits into one. */
static bool
is_filling(const GpuSortEmitted *emitted)
{
	if (emitted->rows == 0)
		return emitted->bytes == 0 && emitted->tie_rows == 0 && emitted->last != 0;
	return emitted->bytes <= GPUSORT_CHUNK_BYTES && emitted->bytes % MAXIMUM_ALIGNOF == 0 &&
		emitted->rows <= emitted->bytes / MAXIMUM_ALIGNOF && emitted->tie_rows <= emitted->rows;
}

/* Notes that rows of the current interval have come; false if they are not those that it has, and its last as such. */
static bool
note_interval_rows(GpuSortClient *client, const GpuSortEmitted *emitted, GpuSortFailure *failure)
{
	uint64 end = client->intervals[0].end;

	if (client->next_row > end || (client->next_row == end) != (emitted->last != 0))
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service sent rows up to " UINT64_FORMAT " where those up to " UINT64_FORMAT
								   " were asked for%s",
								   client->next_row, end, emitted->last ? ", and says that they are all" : "");
	if (emitted->last)
		end_interval(client);
	return true;
}

/*
 * The next rows in order, until free_data; waits until they have arrived.  Not legal after last.  Of a shared
 * sort they are rows of the current interval, which is over with last; there must be one.
 */
bool
gpusort_client_next_data(GpuSortClient *client, GpuSortData *data, GpuSortFailure *failure)
{
	GpuSortMessage message;

	Assert(!client->shared || client->nintervals > 0);
	client->connection.wait = GPUSORT_WAIT_EMIT;
	while (!take_early(client, &message))
	{
		if (!receive_output(client, &message, failure))
			return false;
		if (message.type != GPUSORT_MSG_DATA)
			return gpusort_failure_unexpected(failure, &message);
		if (message.u.data.emitted.rows > 0 && !gpusort_connection_has_chunk(&client->connection, message.u.data.chunk))
			return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY, "the sort service sent an impossible chunk");
		if (message.u.data.epoch == client->epoch)
			break;
		if (message.u.data.epoch > client->epoch && keep_early(client, &message))
			continue;
		if (message.u.data.epoch > client->epoch)
			return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY, "the sort service sent rows that were not asked for");
		if (message.u.data.emitted.rows > 0 && !free_chunk(client, message.u.data.chunk, failure))
			return false;
	}
	if (message.u.data.first != client->next_row)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service sent rows from " UINT64_FORMAT " on after the first " UINT64_FORMAT,
								   message.u.data.first, client->next_row);
	if (!is_filling(&message.u.data.emitted) || !gpusort_is_duration(message.u.data.emitted.gather_ms))
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service sent a chunk of %u rows in %u bytes, %u of which tie",
								   message.u.data.emitted.rows, message.u.data.emitted.bytes,
								   message.u.data.emitted.tie_rows);
	data->chunk = message.u.data.chunk;
	data->emitted = message.u.data.emitted;
	client->next_row += data->emitted.rows;
	data->rows = data->emitted.rows > 0 ? gpusort_connection_chunk(&client->connection, data->chunk) : NULL;
	return !client->shared || note_interval_rows(client, &data->emitted, failure);
}

/*
 * Gives rows back to the service.  When it is gone that shows with the next
 * rows asked for, so there is nothing to return.
 */
void
gpusort_client_free_data(GpuSortClient *client, GpuSortData *data)
{
	GpuSortFailure ignored;

	if (data->rows == NULL)
		return;
	(void) free_chunk(client, data->chunk, &ignored);
	data->rows = NULL;
}

/* The next rows will be those from number first on; not of a shared sort.  Rows held must have been freed. */
bool
gpusort_client_rewind(GpuSortClient *client, uint64 first, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	Assert(!client->shared);
	message.u.rewind.epoch = ++client->epoch;
	message.u.rewind.first = first;
	client->next_row = first;
	return gpusort_connection_send(&client->connection, &message, GPUSORT_MSG_REWIND, failure);
}
