/*-------------------------------------------------------------------------
 *
 * session_output.c
 *	  The sorted rows of a session: on their way to the client, chunk by chunk.
 *
 * As many emits are under way as there are chunks to be had and rows left to fill
 * them.  Where a read is, is known to the job's thread alone, which fills chunk
 * after chunk without coming back here.
 *
 *-------------------------------------------------------------------------
 */
#include "service/session_state.h"

/* Rows from number first up to end, to be sent; they are the newest read. */
static GpuSortRead *
open_read(GpuSortSession *session, uint64_t first, uint64_t end)
{
	GpuSortRead *read = session->reads;

	while (read->open || read->emits > 0)
		read++;
	read->rows = (GpuSortInterval){.number = session->epoch, .next = first, .end = end};
	read->open = true;
	return read;
}

/* Has a chunk filled with rows of a read; false if there is no chunk. */
static bool
emit(GpuSortSession *session, GpuSortRead *read)
{
	uint32_t chunk = gpusort_pool_take(session->sessions->pool, &session->share, GPUSORT_CHUNK_ENGINE);

	if (chunk == GPUSORT_NO_CHUNK)
		return false;
	read->emits++;
	gpusort_session_command(session, (GpuSortCommand){.type = GPUSORT_COMMAND_EMIT, .chunk = chunk, .interval = &read->rows});
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

/* Has chunks filled, as many as there are rows for and the pool has to give. */
static void
pump(GpuSortSession *session)
{
	GpuSortRead *read;

	do
		read = find_read(session);
	while (read != NULL && session->state == STATE_OUTPUT && emit(session, read));
}

/* SORT was asked for: the first rows follow without coming back here, if there is a chunk. */
void
gpusort_session_open_output(GpuSortSession *session)
{
	emit(session, open_read(session, 0, UINT64_MAX));
}

/* The newest read, of all rows, can begin. */
void
gpusort_session_start_output(GpuSortSession *session)
{
	for (GpuSortRead *read = session->reads; read < session->reads + READS_KEPT; read++)
	{
		if (!read->open)
			continue;
		read->bytes_left = session->outcome.bytes;
		if (session->outcome.rows == 0)
		{
			GpuSortMessage message = {
				.u.data = {.chunk = GPUSORT_NO_CHUNK, .epoch = read->rows.number, .emitted.last = 1}};

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

/* No more rows are wanted of the reads up to a number. */
static void
close_reads(GpuSortSession *session, uint32_t number)
{
	for (GpuSortRead *read = session->reads; read < session->reads + READS_KEPT; read++)
	{
		if (read->rows.number <= number)
			read->open = false;
	}
	gpusort_session_drop(session, gpusort_job_take_back(session->job, session, number));
}

/* REWIND */
bool
gpusort_session_rewind(GpuSortSession *session, const GpuSortMessage *message)
{
	if (message->u.rewind.epoch != session->epoch + 1)
		return false;
	close_reads(session, session->epoch);
	session->epoch++;
	open_read(session, 0, UINT64_MAX);
	gpusort_session_start_output(session);
	return true;
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
	if (session->handle->ops->kind == GPUSORT_ENGINE_CUDA)
		gpusort_device_worked(&session->sessions->device_failures, gpusort_session_device(session));
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
