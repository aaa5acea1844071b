/*-------------------------------------------------------------------------
 *
 * session.c
 *	  A client's connection: its side of protocol.h.
 *
 * A session lives until its socket is closed and all that it asked of its job
 * is done, the job's end included if it owns it.  Closing gives back the
 * client's chunks and those of commands that have not started at once, and a
 * chunk in use by an engine call when that call is done.
 *
 * Nothing here blocks.  A client that does what is not legal in its state is
 * logged and shut out; others do not notice.  A session found broken is ended
 * when nobody holds it any more, between two rounds of the main loop.
 *
 * A client that is shut out finds its connection closed when it looks, and until
 * then may write to its chunks, or read them.  So they stay its own, and what it
 * sends is dropped, until it has closed its end or is dead.
 *
 * What concerns its sort is in session_begin.c and session_sort.c.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service/build.h"
#include "service/fault.h"
#include "service/service_log.h"
#include "service/session/session.h"
#include "service/session/session_state.h"

/* Messages of one client before others have their turn. */
#define MESSAGES_AT_ONCE 64

/* Descriptors that a message may come with, so that those that nobody asked for are known and closed. */
#define DESCRIPTORS_MAX 8

static void
on_hello(GpuSortSession *session, const GpuSortMessage *hello)
{
	GpuSortPool *pool = session->sessions->pool;
	GpuSortMessage message = {.type = GPUSORT_MSG_WELCOME};

	gpusort_session_move(session, STATE_GREETED);
	session->foreign = hello->u.hello.build != gpusort_service_build;
	session->outbox.descriptor = hello->u.hello.pool_id == gpusort_pool_id(pool) ? -1 : gpusort_pool_descriptor(pool);
	message.u.welcome.pool_id = gpusort_pool_id(pool);
	message.u.welcome.pool_chunks = gpusort_pool_chunks(pool);
	message.u.welcome.pool_bytes = message.u.welcome.pool_chunks * GPUSORT_CHUNK_BYTES;
	message.u.welcome.engines = gpusort_registry_mask();
	gpusort_session_send(session, &message, GPUSORT_MSG_WELCOME);
}

static void
on_status(GpuSortSession *session)
{
	const GpuSortEngineKind kinds[] = {GPUSORT_ENGINE_CUDA, GPUSORT_ENGINE_HOST};

	/* The host is always there and comes last. */
	for (int k = 0; k < 2; k++)
	{
		const GpuSortEngineHandle *handle = gpusort_registry_find(kinds[k]);
		GpuSortDevice devices[GPUSORT_DEVICES_MAX];
		int n = 0;

		if (handle != NULL)
			n = handle->ops->describe(handle->engine, devices, GPUSORT_DEVICES_MAX);
		for (int i = 0; i < n && i < GPUSORT_DEVICES_MAX; i++)
		{
			GpuSortMessage message = {.type = GPUSORT_MSG_DEVICE};

			message.u.device.engine = kinds[k];
			message.u.device.last = kinds[k] == GPUSORT_ENGINE_HOST;
			message.u.device.state = devices[i];
			gpusort_session_send(session, &message, GPUSORT_MSG_DEVICE);
		}
	}
}

/*
 * Does what a message asks for; false if it is not legal now.
 * *descriptor came with it, or is -1; taken if it is set to -1.
 */
static bool
on_message(GpuSortSession *session, const GpuSortMessage *message, int *descriptor)
{
	GpuSortSessionState state = session->state;

	GPUSORT_FAULT_RECEIVED(message);
	switch (message->type)
	{
		case GPUSORT_MSG_HELLO:
			if (state != STATE_NEW)
				return false;
			on_hello(session, message);
			return true;
		case GPUSORT_MSG_STATUS:
			if (state != STATE_GREETED)
				return false;
			on_status(session);
			return true;
		case GPUSORT_MSG_JOB_BEGIN:
			return state == STATE_GREETED && gpusort_session_begin(session, message);
		case GPUSORT_MSG_JOB_JOIN:
			return state == STATE_GREETED && gpusort_session_join(session, message);
		case GPUSORT_MSG_CHUNK_PUT:
			return state == STATE_INGEST && gpusort_session_put(session, message);
		case GPUSORT_MSG_LEAVE:
			if (state != STATE_INGEST || (session->owner == NULL && !session->request.shared))
				return false;
			if (session->owner != NULL)
				gpusort_session_leave(session);
			else
				gpusort_session_leave_to_members(session);
			return true;
		case GPUSORT_MSG_SORT:
			return state == STATE_INGEST && gpusort_session_sort(session, message);
		case GPUSORT_MSG_FILE:
			if (!session->asked_space ||
				(state != STATE_INGEST && state != STATE_SORTING && state != STATE_OUTPUT && state != STATE_LEFT))
				return false;
			return gpusort_session_file(session, message, descriptor);
		case GPUSORT_MSG_CHUNK_FREE:
			return state == STATE_OUTPUT && gpusort_session_chunk_free(session, message);
		case GPUSORT_MSG_REWIND:
			return state == STATE_OUTPUT && gpusort_session_rewind(session, message);
		case GPUSORT_MSG_CUT:
			return state == STATE_OUTPUT && gpusort_session_cut(session, message);
		case GPUSORT_MSG_READ:
			return state == STATE_OUTPUT && gpusort_session_read(session, message);
		case GPUSORT_MSG_SKIP:
			return state == STATE_OUTPUT && gpusort_session_skip(session, message);
		default:
			return false;
	}
}

/* Receives a message as recv does; *descriptor gets the one that came with it, or -1.  Of several all are closed. */
static ssize_t
receive_message(const GpuSortSession *session, GpuSortMessage *message, int *descriptor)
{
	union
	{
		struct cmsghdr header;
		char space[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
	} control;
	struct iovec part = {.iov_base = message, .iov_len = sizeof(*message)};
	struct msghdr header = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)};
	ssize_t size = recvmsg(session->socket, &header, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *attached;

	*descriptor = -1;
	if (size < 0)
		return size;
	for (attached = CMSG_FIRSTHDR(&header); attached != NULL; attached = CMSG_NXTHDR(&header, (struct cmsghdr *) attached))
	{
		int received[DESCRIPTORS_MAX];
		size_t count = (attached->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (attached->cmsg_level != SOL_SOCKET || attached->cmsg_type != SCM_RIGHTS || count > DESCRIPTORS_MAX)
			continue;
		memcpy(received, CMSG_DATA(attached), count * sizeof(int));
		if (count == 1 && *descriptor < 0)
			*descriptor = received[0];
		else
		{
			for (size_t i = 0; i < count; i++)
				close(received[i]);
		}
	}
	return size;
}

/* Reads what the client has sent. */
static void
receive(GpuSortSession *session)
{
	for (int i = 0; i < MESSAGES_AT_ONCE && !session->broken; i++)
	{
		GpuSortMessage message;
		int descriptor;
		ssize_t size = receive_message(session, &message, &descriptor);

		if (size < 0)
		{
			if (errno == EINTR)
				continue;
			if (errno == EAGAIN || errno == EWOULDBLOCK)
				return;
		}
		if (size <= 0)
		{
			if (descriptor >= 0)
				close(descriptor);
			session->broken = true;
			session->gone = true;
			return;
		}
		if (session->state == STATE_CLOSING)
		{
			if (descriptor >= 0)
				close(descriptor);
			continue;
		}
		if (size != sizeof(message) || message.magic != GPUSORT_PROTOCOL_MAGIC ||
			message.version != GPUSORT_PROTOCOL_VERSION)
		{
			gpusort_log_peer("process %d sent something else than a message of protocol version %d (%zd bytes); closed",
							 session->pid, GPUSORT_PROTOCOL_VERSION, size);
			session->broken = true;
		}
		else if (session->state != STATE_FAILED && !on_message(session, &message, &descriptor))
		{
			gpusort_log_peer("process %d sent message %u, which is invalid in state \"%s\"; closed",
							 session->pid, message.type, gpusort_session_state_name(session->state));
			session->broken = true;
		}
		if (descriptor >= 0)
			close(descriptor);
	}
}

/* Ends the session's sort, or its part in one. */
static void
end_sort(GpuSortSession *session, GpuSortSessionState state)
{
	if (session->owner != NULL && (session->state == STATE_INGEST || session->state == STATE_SORTING))
		gpusort_session_fail(session, GPUSORT_REASON_INTERNAL,
							 session->state == STATE_INGEST
								 ? "a process closed its connection while it put rows into the sort"
								 : "a process closed its connection while it waited for the sort");
	gpusort_queue_leave(session);
	gpusort_session_move(session, state);
	gpusort_session_finish(session);
}

/* Closes the connection; nobody has the session's chunks any more. */
static void
close_session(GpuSortSession *session)
{
	GpuSortPool *pool = session->sessions->pool;

	if (session->socket < 0)
		return;
	end_sort(session, STATE_CLOSED);
	close(session->socket);
	session->socket = -1;
	gpusort_pool_give_back_all(pool, &session->share, GPUSORT_CHUNK_GRANTED);
	gpusort_pool_give_back_all(pool, &session->share, GPUSORT_CHUNK_DATA);
}

/* Closes our end of the connection, and all of it if the client has no chunks. */
static void
shut_out(GpuSortSession *session)
{
	session->broken = false;
	end_sort(session, STATE_CLOSING);
	if (session->share.held == 0 || shutdown(session->socket, SHUT_WR) != 0)
		close_session(session);
	else
		gpusort_session_watch(session, false);
}

/* Starts a session on a connected socket, which belongs to it then; false, and it stays the caller's, if that fails. */
bool
gpusort_session_start(GpuSortSessions *sessions, int socket, int pid)
{
	GpuSortSession *session = calloc(1, sizeof(GpuSortSession));
	struct epoll_event event = {.events = EPOLLIN};

	if (session == NULL)
		return false;
	session->sessions = sessions;
	session->number = ++sessions->named;
	session->socket = socket;
	session->pid = pid;
	event.data.ptr = session;
	if (epoll_ctl(sessions->epoll, EPOLL_CTL_ADD, socket, &event) != 0)
	{
		free(session);
		return false;
	}
	session->next = sessions->first;
	sessions->first = session;
	return true;
}

/* Does what the session's socket is ready for; events are epoll's. */
void
gpusort_session_event(GpuSortSession *session, uint32_t events)
{
	if (session->socket < 0)
		return;
	if ((events & EPOLLOUT) && session->state != STATE_CLOSING)
	{
		GpuSortOutboxResult result = gpusort_outbox_flush(&session->outbox, session->socket);

		if (result == GPUSORT_OUTBOX_BROKEN)
			session->broken = true;
		else if (result == GPUSORT_OUTBOX_SENT)
			gpusort_session_watch(session, false);
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive(session);
}

/*
 * Ends the sessions that are broken and frees those that are over.  Called
 * when nobody holds a session: between two rounds of the main loop.
 */
void
gpusort_sessions_reap(GpuSortSessions *sessions)
{
	GpuSortSession **link = &sessions->first;

	while (*link != NULL)
	{
		GpuSortSession *session = *link;

		if (session->broken && session->socket >= 0)
		{
			if (session->gone || session->state == STATE_CLOSING)
				close_session(session);
			else
				shut_out(session);
		}
		if (session->socket < 0 && session->commands == 0)
		{
			*link = session->next;
			gpusort_outbox_free(&session->outbox);
			while (session->spares != NULL)
			{
				GpuSortCommand *spare = session->spares;

				session->spares = spare->next;
				free(spare);
			}
			free(session);
		}
		else
			link = &session->next;
	}
}

/* Ends every sort with a failure. */
void
gpusort_sessions_fail(GpuSortSessions *sessions, GpuSortReason reason, const char *text)
{
	for (GpuSortSession *session = sessions->first; session != NULL; session = session->next)
	{
		if (session->job != NULL || session->queued)
			gpusort_session_fail(session, reason, text);
	}
}

/* Closes every session; their jobs end in time. */
void
gpusort_sessions_close(GpuSortSessions *sessions)
{
	for (GpuSortSession *session = sessions->first; session != NULL; session = session->next)
		close_session(session);
}
