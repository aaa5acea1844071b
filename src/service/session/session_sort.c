/*-------------------------------------------------------------------------
 *
 * session_sort.c
 *	  The sort of a session: from a client's messages to commands for the job,
 *	  from what the job has done to messages for the client.  How it is let in is
 *	  in session_begin.c, how its rows are given out in session_output.c, how it is
 *	  lost in session_job.c.
 *
 * CHUNKS
 *	Ingest: GPUSORT_JOB_CHUNKS_MIN are granted first, one more if the pool has
 *	plenty, to each member as to the owner; each needs a reserve of the engine.
 *	A chunk that was put is granted again as the answer to its put, so they go
 *	round between the two sides.  After FULL every further put is answered by
 *	FULL.  After SORT no put is answered any more.
 *
 * A chunk with a command (RESERVE, PUT, EMIT, CUT) is in state ENGINE until the
 * command comes back, done or dropped.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <unistd.h>

#include "service/clock.h"
#include "service/session/session.h"
#include "service/session/session_state.h"

/* Chunks granted for ingest when the pool has plenty. */
#define INGEST_CHUNKS 3

/* Grants the chunk that a command has made a reserve for. */
static void
send_chunk(GpuSortSession *session, const GpuSortCommand *reserved)
{
	GpuSortMessage message = {.u.chunk = {.chunk = reserved->chunk, .rows_max = reserved->rows_max}};

	gpusort_pool_grant(session->sessions->pool, reserved->chunk, reserved->rows_max);
	gpusort_session_send(session, &message, GPUSORT_MSG_CHUNK);
}

/*
 * What the client sends
 */

/* Asks the engine for room for the first chunks; they are granted when it has it. */
void
gpusort_session_reserve(GpuSortSession *session)
{
	for (int i = 0; i < INGEST_CHUNKS && session->state == STATE_BEGINNING; i++)
	{
		uint32_t chunk = gpusort_pool_take(session->sessions->pool, &session->share,
										   GPUSORT_CHUNK_ENGINE);

		if (chunk == GPUSORT_NO_CHUNK)
			break;
		gpusort_session_command(session, (GpuSortCommand){.type = GPUSORT_COMMAND_RESERVE, .chunk = chunk});
	}
}

/*
 * LEAVE.  The puts are in the job's queue, so they come before a SORT that the
 * owner sends when it hears of LEFT.
 */
void
gpusort_session_leave(GpuSortSession *session)
{
	GpuSortMessage message = {.type = GPUSORT_MSG_LEFT};

	gpusort_session_move(session, STATE_LEFT);
	gpusort_pool_give_back_all(session->sessions->pool, &session->share, GPUSORT_CHUNK_GRANTED);
	gpusort_session_finish(session);
	gpusort_session_send(session, &message, GPUSORT_MSG_LEFT);
}

/* CHUNK_PUT */
bool
gpusort_session_put(GpuSortSession *session, const GpuSortMessage *message)
{
	GpuSortPool *pool = session->sessions->pool;
	uint32_t chunk = message->u.put.chunk;

	if (!gpusort_pool_is(pool, chunk, &session->share, GPUSORT_CHUNK_GRANTED) ||
		message->u.put.rows == 0 || message->u.put.rows > gpusort_pool_rows_max(pool, chunk) ||
		message->u.put.bytes + (uint64_t) message->u.put.rows * sizeof(uint32_t) > GPUSORT_CHUNK_BYTES)
		return false;
	gpusort_queue_moved(session->sessions);
	gpusort_pool_set(pool, chunk, GPUSORT_CHUNK_ENGINE);
	gpusort_session_command(session,
							(GpuSortCommand){.type = GPUSORT_COMMAND_PUT,
											 .chunk = chunk,
											 .rows = message->u.put.rows,
											 .bytes = message->u.put.bytes,
											 .rows_max = gpusort_pool_rows_max(pool, chunk),
											 .final = session->full});
	return true;
}

/*
 * LEAVE of the owner of a shared sort: what it put is in the job's queue,
 * and a member may send SORT.  It stays the owner.
 */
void
gpusort_session_leave_to_members(GpuSortSession *session)
{
	GpuSortMessage message = {.type = GPUSORT_MSG_LEFT};

	session->left = true;
	gpusort_pool_give_back_all(session->sessions->pool, &session->share, GPUSORT_CHUNK_GRANTED);
	gpusort_session_send(session, &message, GPUSORT_MSG_LEFT);
}

/* SORT, of the owner or of a member in its place */
bool
gpusort_session_sort(GpuSortSession *session, const GpuSortMessage *message)
{
	GpuSortSession *owner = session->owner != NULL ? session->owner : session;
	uint64_t first = message->u.sort.first;

	if (session->request.shared && first > 0)
		return false;
	if (session != owner && (!session->sorter || owner->state != STATE_INGEST))
		return false;
	for (GpuSortSession *member = session->sessions->first; member != NULL; member = member->next)
	{
		if (member->owner == owner && member != session)
		{
			gpusort_session_fail(session, GPUSORT_REASON_INTERNAL,
								 "a process has not handed over its rows yet");
			return true;
		}
	}
	if (session != owner)
	{
		gpusort_session_move(owner, STATE_SORTING);
		gpusort_pool_give_back_all(session->sessions->pool, &owner->share, GPUSORT_CHUNK_GRANTED);
	}
	session->left = false;
	gpusort_session_move(session, STATE_SORTING);
	gpusort_pool_give_back_all(session->sessions->pool, &session->share, GPUSORT_CHUNK_GRANTED);
	gpusort_session_command(session, (GpuSortCommand){.type = GPUSORT_COMMAND_SORT});

	if (session->state == STATE_SORTING && !session->request.shared)
		gpusort_session_open_output(session, first);
	return true;
}

/*
 * FILE: space that the job has lacked; of a session that has no part in it any more it is dropped, and where others
 * gave enough meanwhile, so that all is sorted.
 */
bool
gpusort_session_file(GpuSortSession *session, const GpuSortMessage *message, int *descriptor)
{
	GpuSortCommand command = {
		.type = GPUSORT_COMMAND_SPACE,
		.descriptor = *descriptor,
		.owner = session->number,
		.start = message->u.space.start,
		.space = message->u.space.bytes};

	session->asked_space = false;
	gpusort_queue_moved(session->sessions);
	if (session->finished || session->state == STATE_OUTPUT)
		return true;
	*descriptor = -1;
	gpusort_session_command(session, command);
	return true;
}

/*
 * What the job has done
 */

/*
 * A command of the session's waits for space in files: asks the client, unless it has been asked.  One that has left
 * gives none until it sends SORT itself: whoever does is asked.
 */
static void
lacks_space(GpuSortSession *session, const GpuSortCommand *lack)
{
	GpuSortMessage message = {.u.space.bytes = lack->space};

	if (session->asked_space || session->finished || session->left ||
		(session->state != STATE_INGEST && session->state != STATE_SORTING))
		return;
	session->asked_space = true;
	gpusort_session_send(session, &message, GPUSORT_MSG_SPACE);
}

/* The engine has not the memory to begin the sort: it waits, if that will change when others end. */
static void
lacks_memory(GpuSortSession *session, const GpuSortError *error)
{
	if (session->state != STATE_BEGINNING)
		return;
	if (error->reason != GPUSORT_REASON_MEMORY_BUSY || !session->queued)
		gpusort_session_lose(session, error);
	else
	{
		gpusort_session_move(session, STATE_QUEUED);
		session->lacks = *error;
	}
}

/* The engine has room for the first chunk: the sort has begun. */
static void
admitted(GpuSortSession *session)
{
	GpuSortMessage *message = &session->job_message;

	gpusort_queue_leave(session);
	gpusort_queue_moved(session->sessions);
	gpusort_session_move(session, STATE_INGEST);
	if (session->lacks.reason != GPUSORT_REASON_NONE)
		message->u.job.queue_ms = gpusort_clock_ms() - session->arrived;
	gpusort_session_send(session, message, GPUSORT_MSG_JOB);
}

/* Returns true if the session's client may put rows, and hears of it when it can. */
static bool
takes_rows(const GpuSortSession *session)
{
	return session->state == STATE_INGEST && !session->left;
}

static void
done_reserve(GpuSortSession *session, const GpuSortCommand *command)
{
	GpuSortPool *pool = session->sessions->pool;

	if (!command->reserved || session->finished)
	{
		/* Only the first one missing is a refusal, or to be waited for: the sort can do with fewer. */
		gpusort_pool_give_back(pool, command->chunk);
		if (!command->skipped)
			lacks_memory(session, &command->error);
		return;
	}
	if (session->state == STATE_QUEUED || session->state == STATE_BEGINNING)
		admitted(session);
	if (takes_rows(session))
		send_chunk(session, command);
	else
		gpusort_pool_give_back(pool, command->chunk);
}

static void
done_put(GpuSortSession *session, const GpuSortCommand *command)
{
	GpuSortPool *pool = session->sessions->pool;

	if (!takes_rows(session) || command->skipped || command->failed)
	{
		gpusort_pool_give_back(pool, command->chunk);
		return;
	}
	/* Memory may have come free since FULL, but a client that was told stays told. */
	if (command->reserved && !session->full)
	{
		send_chunk(session, command);
		return;
	}
	gpusort_pool_give_back(pool, command->chunk);
	if (!session->full)
	{
		session->full = true;
		session->full_message.u.failure = command->error;
	}
	gpusort_session_send(session, &session->full_message, GPUSORT_MSG_FULL);
}

static void
done_sort(GpuSortSession *session, const GpuSortCommand *command)
{
	GpuSortMessage message = {.type = GPUSORT_MSG_SORTED};

	if (session->state != STATE_SORTING || command->skipped || command->failed)
		return;
	gpusort_session_move(session, STATE_OUTPUT);
	session->outcome = command->u.outcome;
	if (session->owner != NULL)
	{
		gpusort_session_move(session->owner, STATE_OUTPUT);
		session->owner->outcome = command->u.outcome;
	}
	message.u.sorted = command->u.outcome;
	gpusort_session_send(session, &message, GPUSORT_MSG_SORTED);
	gpusort_session_start_output(session);
}

/* Goes on with what a done command means for its session, which keeps the command. */
void
gpusort_session_done(GpuSortCommand *command)
{
	GpuSortSession *session = command->asker;
	GpuSortSession *owner = gpusort_job_owner(command->job);

	if (command->type == GPUSORT_COMMAND_LACK)
	{
		lacks_space(session, command);
		free(command);
		return;
	}
	session->commands--;
	if (!command->skipped && command->type != GPUSORT_COMMAND_BEGIN && command->type != GPUSORT_COMMAND_RESERVE)
		gpusort_queue_moved(session->sessions);
	if (command->type == GPUSORT_COMMAND_SORT || command->type == GPUSORT_COMMAND_END || command->released)
		session->sessions->releases++;
	if (command->failed)
		gpusort_session_note_failure(owner, &command->error);
	switch (command->type)
	{
		case GPUSORT_COMMAND_BEGIN:
			if (command->busy)
				lacks_memory(session, &command->error);
			session->begun = !command->busy && !command->failed && !command->skipped;
			session->job_message.u.job.engine = session->handle->ops->kind;
			session->job_message.u.job.token = session->token;
			session->job_message.u.job.place = command->u.place;
			break;
		case GPUSORT_COMMAND_RESERVE:
			done_reserve(session, command);
			break;
		case GPUSORT_COMMAND_PUT:
			done_put(session, command);
			break;
		case GPUSORT_COMMAND_SORT:
			done_sort(session, command);
			break;
		case GPUSORT_COMMAND_EMIT:
			gpusort_session_emitted(session, command);
			break;
		case GPUSORT_COMMAND_CUT:
			gpusort_session_was_cut(session, command);
			break;
		case GPUSORT_COMMAND_SPACE:
			if (command->descriptor >= 0)
				close(command->descriptor);
			break;
		case GPUSORT_COMMAND_LACK:
			break;
		case GPUSORT_COMMAND_END:
			gpusort_job_free(session->job);
			session->job = NULL;
			session->sessions->jobs--;
			break;
	}
	if (command->failed)
		gpusort_session_lose(owner, &command->error);
	command->next = session->spares;
	session->spares = command;
}
