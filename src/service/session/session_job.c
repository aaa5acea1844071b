/*-------------------------------------------------------------------------
 *
 * session_job.c
 *	  A session and its job: commands for it, and the end of the session's part in
 *	  it, whether that is in order or a loss.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "service/service_log.h"
#include "service/session/session.h"
#include "service/session/session_state.h"

static void
send_failure(GpuSortSession *session, GpuSortMessageType type, const GpuSortError *error)
{
	GpuSortMessage message = {.u.failure = *error};

	gpusort_session_send(session, &message, type);
}

static bool
has_chunk(const GpuSortCommand *command)
{
	return command->type == GPUSORT_COMMAND_RESERVE || command->type == GPUSORT_COMMAND_PUT ||
		command->type == GPUSORT_COMMAND_EMIT || command->type == GPUSORT_COMMAND_CUT;
}

/* Frees commands that will not be done, and gives back their chunks. */
static void
drop_commands(GpuSortSession *session, GpuSortCommand *command)
{
	while (command != NULL)
	{
		GpuSortCommand *next = command->next;

		if (has_chunk(command))
			gpusort_pool_give_back(session->sessions->pool, command->chunk);
		if (command->type == GPUSORT_COMMAND_EMIT)
			((GpuSortRead *) command->interval)->emits--;
		if (command->type == GPUSORT_COMMAND_SPACE && command->descriptor >= 0)
			close(command->descriptor);
		((GpuSortSession *) command->asker)->commands--;
		free(command->borders);
		free(command);
		command = next;
	}
}

/* No more rows are wanted of the reads up to a number. */
void
gpusort_session_close_reads(GpuSortSession *session, uint32_t number)
{
	for (GpuSortRead *read = session->reads; read < session->reads + READS_KEPT; read++)
	{
		if (read->rows.number <= number)
			read->open = false;
	}
	drop_commands(session, gpusort_job_take_back(session->job, session, number));
}

/* The session's part in its job ends: it asks for no more rows. */
static void
end_output(GpuSortSession *session)
{
	gpusort_session_close_reads(session, UINT32_MAX);
	free(session->cut.borders);
	free(session->borders);
	session->cut = (GpuSortCommand){.borders = NULL};
	session->borders = NULL;
}

static void lose(GpuSortSession *session, const GpuSortError *error);

/* The job of an owner is no more to its members and readers. */
static void
lose_members(GpuSortSession *session, const GpuSortError *error)
{
	for (GpuSortSession *member = session->sessions->first; member != NULL; member = member->next)
	{
		if (member->owner == session)
			lose(member, error);
	}
}

/*
 * Ends the session's part in its job: it takes no chunk from now on.  The owner's
 * is the job itself, which is told to end, and its members' parts with it.
 */
void
gpusort_session_finish(GpuSortSession *session)
{
	const GpuSortError ended = {.reason = GPUSORT_REASON_INTERNAL, .text = "the sort has ended"};

	if (session->job == NULL || session->finished)
		return;
	session->finished = true;
	gpusort_pool_dismiss(session->sessions->pool, &session->share);
	end_output(session);
	if (session->owner != NULL)
	{
		session->owner = NULL;
		session->job = NULL;
		return;
	}
	lose_members(session, &ended);
	drop_commands(session, gpusort_job_finish(session->job));
}

/* The sort is lost to this session: tells the client, keeps the connection until it closes. */
static void
lose(GpuSortSession *session, const GpuSortError *error)
{
	if (session->state >= STATE_REFUSED)
		return;
	if (session->state == STATE_QUEUED || session->state == STATE_BEGINNING)
	{
		gpusort_session_move(session, STATE_REFUSED);
		gpusort_queue_leave(session);
		send_failure(session, GPUSORT_MSG_REFUSED, error);
	}
	else
	{
		gpusort_session_move(session, STATE_FAILED);
		send_failure(session, GPUSORT_MSG_FAILED, error);
	}
	if (session->owner == NULL && session->job != NULL)
		lose_members(session, error);
	gpusort_session_finish(session);
}

/*
 * The sort is lost.  A member that is refused is no loss:
 * others put what it would have.
 */
void
gpusort_session_lose(GpuSortSession *session, const GpuSortError *error)
{
	if (session->owner != NULL && (session->state == STATE_INGEST || session->state == STATE_SORTING))
		session = session->owner;
	lose(session, error);
}

/* The same with a reason of the service's own. */
void
gpusort_session_fail(GpuSortSession *session, GpuSortReason reason, const char *text)
{
	GpuSortError error = {.reason = reason};

	snprintf(error.text, sizeof(error.text), "%s", text);
	gpusort_session_lose(session, &error);
}

/* Gives the job a command; the chunk belongs to the job until it comes back. */
void
gpusort_session_command(GpuSortSession *session, GpuSortCommand what)
{
	GpuSortCommand *spare = session->spares;

	if (spare != NULL)
		session->spares = spare->next;
	what.asker = session;
	if (!gpusort_job_command(session->job, &what, spare))
	{
		if (has_chunk(&what))
			gpusort_pool_give_back(session->sessions->pool, what.chunk);
		if (what.type == GPUSORT_COMMAND_SPACE && what.descriptor >= 0)
			close(what.descriptor);
		free(what.borders);
		gpusort_session_fail(session, GPUSORT_REASON_NO_MEMORY, "the sort service has no memory left");
		return;
	}
	session->commands++;
}

/* The device that an owner's sort is on, for what is counted of devices. */
static uint32_t
device_of(const GpuSortSession *owner)
{
	return owner->begun ? owner->job_message.u.job.place.ordinal : GPUSORT_DEVICE_UNKNOWN;
}

/* Takes note of what an engine call failed by, if that is the device. */
void
gpusort_session_note_failure(GpuSortSession *owner, const GpuSortError *error)
{
	/* A sort that was told to end may fail as it likes. */
	if (error->reason != GPUSORT_REASON_DEVICE || owner->finished)
		return;
	gpusort_log(true, "a sort of process %d failed: %s", owner->pid, error->text);
	gpusort_device_failed(&owner->sessions->device_failures, device_of(owner));
}

/* Takes note that the device has given rows out. */
void
gpusort_session_note_rows(GpuSortSession *owner)
{
	if (owner->handle->ops->kind == GPUSORT_ENGINE_CUDA)
		gpusort_device_worked(&owner->sessions->device_failures, device_of(owner));
}

/* The next session of all, or NULL. */
const GpuSortSession *
gpusort_session_next(const GpuSortSession *session)
{
	return session->next;
}

/* The process at the other end. */
int
gpusort_session_pid(const GpuSortSession *session)
{
	return session->pid;
}

/* Returns true if anything that the session has asked of an engine is not done. */
bool
gpusort_session_is_busy(const GpuSortSession *session)
{
	/* Of a sort that goes on, END is counted and not asked for yet. */
	uint32_t to_come = session->job != NULL && session->owner == NULL && !session->finished;

	return session->commands > to_come;
}

/* Fills *call if the job that the session owns is in an engine call. */
bool
gpusort_session_call(const GpuSortSession *session, GpuSortCall *call)
{
	return session->job != NULL && session->owner == NULL && gpusort_job_call(session->job, call);
}

/* The kind of engine that the session's job is on. */
GpuSortEngineKind
gpusort_session_engine(const GpuSortSession *session)
{
	return session->handle->ops->kind;
}

/* Returns true if the client waits, or soon will, for what the job has to do for it, and the job gets on with that. */
static bool
is_worked_for(const GpuSortSession *session)
{
	const GpuSortSession *owner = session->owner != NULL ? session->owner : session;

	switch (session->state)
	{
		case STATE_INGEST:
		case STATE_SORTING:
			return gpusort_session_is_busy(session); /* of calls that do not return the watchdog knows */
		case STATE_OUTPUT:
			return gpusort_session_is_busy(session) && owner->gets_on;
		default:
			return false;
	}
}

/*
 * Tells clients that wait that they are worked for; to be called each second.  One that does not read what it was sent
 * is told nothing.
 */
void
gpusort_sessions_tell_working(GpuSortSessions *sessions)
{
	for (GpuSortSession *session = sessions->first; session != NULL; session = session->next)
		session->gets_on = session->job != NULL && session->owner == NULL && gpusort_job_gets_on(session->job);
	for (GpuSortSession *session = sessions->first; session != NULL; session = session->next)
	{
		GpuSortMessage message = {0};

		if (session->outbox.count == 0 && is_worked_for(session))
			gpusort_session_send(session, &message, GPUSORT_MSG_PONG);
	}
}
