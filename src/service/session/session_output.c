/*-------------------------------------------------------------------------
 *
 * session_output.c
 *	  The sorted rows of a session: on their way to the client, chunk by chunk.
 *
 * As many emits are under way as there are chunks to be had and rows left to fill
 * them.  Where a read is, is known to the job's thread alone, which fills chunk
 * after chunk without coming back here.
 *
 * Readers of a shared sort each have chunks of their own, and their emits stand in
 * the job's queue in the order in which they were asked for, so that none of them
 * waits for more than the others' chunks.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "service/session/session_state.h"

/* Rows from number first up to end, to be sent; they are the newest read. */
static GpuSortRead *
open_read(GpuSortSession *session, uint64_t first, uint64_t end)
{
	GpuSortRead *read = session->reads;

	while (read->open || read->emits > 0)
		read++;
	read->rows = (GpuSortInterval){.number = session->epoch, .next = first, .end = end};
	read->first = first;
	read->open = true;
	return read;
}

/* Asks the job to fill a chunk with rows of a read; false if there is no chunk. */
static bool
emit(GpuSortSession *session, GpuSortRead *read)
{
	uint32_t chunk = gpusort_pool_take(session->sessions->pool, &session->share, GPUSORT_CHUNK_ENGINE);

	if (chunk == GPUSORT_NO_CHUNK)
		return false;
	read->emits++;
	gpusort_session_command(session,
							(GpuSortCommand){.type = GPUSORT_COMMAND_EMIT, .chunk = chunk, .interval = &read->rows});
	return true;
}

/* The oldest read that has more rows than are being emitted; NULL if there is none. */
static GpuSortRead *
find_read(GpuSortSession *session)
{
	GpuSortRead *oldest = NULL;

	for (GpuSortRead *read = session->reads; read < session->reads + READS_KEPT; read++)
	{
		if (read->open && (read->emits == 0 || read->bytes_left > read->emits * GPUSORT_CHUNK_BYTES) &&
			(oldest == NULL || read->rows.number < oldest->rows.number))
			oldest = read;
	}
	return oldest;
}

/* Asks the job to cut the rows, if that was asked for; false if there is no chunk. */
static bool
cut(GpuSortSession *session)
{
	GpuSortCommand command = session->cut;

	if (command.type != GPUSORT_COMMAND_CUT)
		return true;
	command.chunk = gpusort_pool_take(session->sessions->pool, &session->share, GPUSORT_CHUNK_ENGINE);
	if (command.chunk == GPUSORT_NO_CHUNK)
		return false;
	session->cut = (GpuSortCommand){.borders = NULL};
	gpusort_session_command(session, command);
	return true;
}

/* Asks the job to fill as many chunks as there are rows for and the pool can give. */
static void
pump(GpuSortSession *session)
{
	GpuSortRead *read;

	if (session->state != STATE_OUTPUT || !cut(session))
		return;
	do
		read = find_read(session);
	while (read != NULL && session->state == STATE_OUTPUT && emit(session, read));
}

/* About how many bytes so many of the rows have. */
static uint64_t
bytes_of(const GpuSortOutcome *outcome, uint64_t rows)
{
	if (rows == outcome->rows)
		return outcome->bytes;
	return (uint64_t) ((double) outcome->bytes / (double) outcome->rows * (double) rows);
}

/* SORT was asked for: rows from number first on follow without coming back here, if there is a chunk. */
void
gpusort_session_open_output(GpuSortSession *session, uint64_t first)
{
	emit(session, open_read(session, first, UINT64_MAX));
}

/* The newest read, of all rows but perhaps the first, can begin. */
void
gpusort_session_start_output(GpuSortSession *session)
{
	const GpuSortOutcome *outcome = &session->outcome;

	for (GpuSortRead *read = session->reads; read < session->reads + READS_KEPT; read++)
	{
		if (!read->open)
			continue;
		if (read->first < outcome->rows)
			read->bytes_left = bytes_of(outcome, outcome->rows - read->first);
		else
		{
			GpuSortMessage message = {
				.u.data = {.chunk = GPUSORT_NO_CHUNK, .epoch = read->rows.number, .first = read->first, .emitted.last = 1}};

			read->open = false;
			gpusort_session_send(session, &message, GPUSORT_MSG_DATA);
		}
	}
	pump(session);
}

/* CHUNK_FREE */
bool
gpusort_session_chunk_free(GpuSortSession *session, const GpuSortMessage *message)
{
	GpuSortPool *pool = session->sessions->pool;

	if (!gpusort_pool_is(pool, message->u.chunk.chunk, &session->share, GPUSORT_CHUNK_DATA))
		return false;
	gpusort_queue_moved(session->sessions);
	gpusort_pool_give_back(pool, message->u.chunk.chunk);
	pump(session);
	return true;
}

/* REWIND */
bool
gpusort_session_rewind(GpuSortSession *session, const GpuSortMessage *message)
{
	if (session->request.shared || message->u.rewind.epoch != session->epoch + 1)
		return false;
	gpusort_session_close_reads(session, session->epoch);
	session->epoch++;
	open_read(session, message->u.rewind.first, UINT64_MAX);
	gpusort_session_start_output(session);
	return true;
}

/* READ */
bool
gpusort_session_read(GpuSortSession *session, const GpuSortMessage *message)
{
	const GpuSortOutcome *outcome = &session->outcome;
	uint64_t first = message->u.read.first;
	uint64_t end = message->u.read.end;
	int open = 0;

	for (const GpuSortRead *read = session->reads; read < session->reads + READS_KEPT; read++)
		open += read->open;
	if (!session->request.shared || open == GPUSORT_READS_MAX || first >= end || end > outcome->rows)
		return false;
	session->epoch++;
	open_read(session, first, end)->bytes_left = bytes_of(outcome, end - first);
	pump(session);
	return true;
}

/* SKIP */
bool
gpusort_session_skip(GpuSortSession *session, const GpuSortMessage *message)
{
	uint32_t number = message->u.skip.number;

	if (!session->request.shared || number < 1 || number > session->epoch)
		return false;
	gpusort_queue_moved(session->sessions);
	gpusort_session_close_reads(session, number);
	pump(session);
	return true;
}

/* The borders of another sort of the same process, by so many bits and of so many ranges at most; NULL: none. */
static const GpuSortBorders *
find_borders(const GpuSortSession *session, uint64_t token, uint32_t bits, uint32_t most)
{
	for (const GpuSortSession *other = session->sessions->first; other != NULL; other = other->next)
	{
		const GpuSortSession *owner = other->owner != NULL ? other->owner : other;

		if (other != session && owner->token == token && other->pid == session->pid && other->state == STATE_OUTPUT &&
			other->borders != NULL && other->borders->bits == bits && other->borders->ranges <= most)
			return other->borders;
	}
	return NULL;
}

/* CUT */
bool
gpusort_session_cut(GpuSortSession *session, const GpuSortMessage *message)
{
	uint32_t bits = message->u.cut.bits;
	uint32_t most = message->u.cut.most;
	const GpuSortBorders *like = NULL;

	if (!session->request.shared || (session->owner != NULL && !session->sorter) || session->cutting || bits < 1 ||
		bits > 64 * session->request.key_words || most < 1 || most > GPUSORT_RANGES_MAX)
		return false;
	session->cut = (GpuSortCommand){.type = GPUSORT_COMMAND_CUT, .bits = bits, .most = most};
	if (message->u.cut.like != 0)
	{
		like = find_borders(session, message->u.cut.like, bits, most);
		session->cut.borders = like != NULL ? gpusort_borders_copy(like) : NULL;
	}
	session->cutting = true;
	if (message->u.cut.like != 0 && like == NULL)
		gpusort_session_fail(session, GPUSORT_REASON_INTERNAL, "the sort whose ranges were asked for does not exist");
	else if (like != NULL && session->cut.borders == NULL)
		gpusort_session_fail(session, GPUSORT_REASON_NO_MEMORY, "the sort service has no memory left");
	else
		pump(session);
	return true;
}

/* CUT has come back. */
void
gpusort_session_was_cut(GpuSortSession *session, GpuSortCommand *command)
{
	GpuSortPool *pool = session->sessions->pool;
	GpuSortMessage message = {.u.ranges.chunk = GPUSORT_NO_CHUNK};
	GpuSortBorders *borders = command->borders;

	command->borders = NULL;
	session->cutting = false;
	if (session->state != STATE_OUTPUT || command->skipped || command->failed)
	{
		gpusort_pool_give_back(pool, command->chunk);
		free(borders);
		return;
	}
	free(session->borders);
	session->borders = borders;
	message.u.ranges.ranges = borders->ranges;
	if (borders->ranges > 0)
	{
		gpusort_pool_set(pool, command->chunk, GPUSORT_CHUNK_DATA);
		message.u.ranges.chunk = command->chunk;
	}
	else
		gpusort_pool_give_back(pool, command->chunk);
	gpusort_session_send(session, &message, GPUSORT_MSG_RANGES);
	pump(session);
}

/* EMIT came back. */
void
gpusort_session_emitted(GpuSortSession *session, const GpuSortCommand *command)
{
	GpuSortPool *pool = session->sessions->pool;
	GpuSortRead *read = (GpuSortRead *) command->interval;
	GpuSortMessage message = {.type = GPUSORT_MSG_DATA};
	const GpuSortEmitted *emitted = &command->u.emitted;

	read->emits--;
	if (session->state != STATE_OUTPUT || !read->open || command->skipped || command->failed)
	{
		gpusort_pool_give_back(pool, command->chunk);
		if (!command->failed)
			pump(session);
		return;
	}
	gpusort_session_note_rows(gpusort_job_owner(command->job));
	gpusort_pool_set(pool, command->chunk, GPUSORT_CHUNK_DATA);
	read->bytes_left -= emitted->bytes < read->bytes_left ? emitted->bytes : read->bytes_left;
	read->open = !emitted->last;
	message.u.data.chunk = command->chunk;
	message.u.data.epoch = read->rows.number;
	message.u.data.first = command->first;
	message.u.data.emitted = *emitted;
	gpusort_session_send(session, &message, GPUSORT_MSG_DATA);
	pump(session);
}
