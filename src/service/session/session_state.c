/*-------------------------------------------------------------------------
 *
 * session_state.c
 *	  What a session sends, from its connection and from its sort, and its place
 *	  in the queue.
 *
 *-------------------------------------------------------------------------
 */
#include "service/session/session_state.h"
#include "service/session/patience.h"

#include <sys/epoll.h>

#include "service/clock.h"

#include "service/fault.h"

void
gpusort_session_watch(GpuSortSession *session, bool waits)
{
	struct epoll_event event = {.events = EPOLLIN | (waits ? EPOLLOUT : 0), .data.ptr = session};

	if (waits != session->waits &&
		epoll_ctl(session->sessions->epoll, EPOLL_CTL_MOD, session->socket, &event) != 0)
		session->broken = true;
	session->waits = waits;
}

void
gpusort_session_send(GpuSortSession *session, GpuSortMessage *message, GpuSortMessageType type)
{
	GpuSortOutboxResult result;

	if (session->broken || session->state >= STATE_CLOSING || GPUSORT_FAULT_SENT(session, message, type))
		return;
	message->magic = GPUSORT_PROTOCOL_MAGIC;
	message->version = GPUSORT_PROTOCOL_VERSION;
	message->type = type;
	result = gpusort_outbox_send(&session->outbox, session->socket, message);
	if (result == GPUSORT_OUTBOX_BROKEN)
		session->broken = true;
	else if (result == GPUSORT_OUTBOX_WAITS)
		gpusort_session_watch(session, true);
}

void
gpusort_queue_enter(GpuSortSession *session)
{
	session->patience = gpusort_session_patience(session);
	TAILQ_INSERT_TAIL(&session->sessions->queue, session, neighbours);
	session->queued = true;
	session->arrived = gpusort_clock_ms();
}

void
gpusort_queue_leave(GpuSortSession *session)
{
	if (session->queued)
		TAILQ_REMOVE(&session->sessions->queue, session, neighbours);
	session->queued = false;
}

void
gpusort_queue_moved(GpuSortSessions *sessions)
{
	sessions->moved = gpusort_clock_ms();
}
