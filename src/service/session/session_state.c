/*-------------------------------------------------------------------------
 *
 * session_state.c
 *	  The states of a session and the moves between them; what it sends, from its
 *	  connection and from its sort, and its place in the queue.
 *
 *-------------------------------------------------------------------------
 */
#include "service/session/session_state.h"

#include <sys/epoll.h>

#include "service/clock.h"
#include "service/fault.h"
#include "service/service_log.h"
#include "service/session/patience.h"

#define BIT(state) (1u << (state))
#define ENDS       (BIT(STATE_CLOSING) | BIT(STATE_CLOSED))

/* The states that may follow each, as bits: STATES in session_state.h. */
static const uint32_t moves[] = {
	[STATE_NEW] = BIT(STATE_GREETED) | ENDS,
	[STATE_GREETED] = BIT(STATE_QUEUED) | ENDS,
	[STATE_QUEUED] = BIT(STATE_BEGINNING) | BIT(STATE_INGEST) | BIT(STATE_OUTPUT) | BIT(STATE_REFUSED) | ENDS,
	[STATE_BEGINNING] = BIT(STATE_QUEUED) | BIT(STATE_INGEST) | BIT(STATE_REFUSED) | ENDS,
	[STATE_INGEST] = BIT(STATE_SORTING) | BIT(STATE_LEFT) | BIT(STATE_FAILED) | ENDS,
	[STATE_SORTING] = BIT(STATE_OUTPUT) | BIT(STATE_FAILED) | ENDS,
	[STATE_OUTPUT] = BIT(STATE_FAILED) | ENDS,
	[STATE_LEFT] = BIT(STATE_FAILED) | ENDS,
	[STATE_REFUSED] = ENDS,
	[STATE_FAILED] = ENDS,
	[STATE_CLOSING] = BIT(STATE_CLOSED),
	[STATE_CLOSED] = 0,
};

static const char *const state_names[] = {
	[STATE_NEW] = "new",
	[STATE_GREETED] = "greeted",
	[STATE_QUEUED] = "queued",
	[STATE_BEGINNING] = "beginning",
	[STATE_INGEST] = "ingest",
	[STATE_SORTING] = "sorting",
	[STATE_OUTPUT] = "output",
	[STATE_LEFT] = "left",
	[STATE_REFUSED] = "refused",
	[STATE_FAILED] = "failed",
	[STATE_CLOSING] = "closing",
	[STATE_CLOSED] = "closed",
};

const char *
gpusort_session_state_name(GpuSortSessionState state)
{
	return state_names[state];
}

void
gpusort_session_move(GpuSortSession *session, GpuSortSessionState to)
{
	if (!(moves[session->state] & BIT(to)))
	{
		gpusort_log(true, "a session of process %d cannot go from %s to %s: it was ended", session->pid,
					state_names[session->state], state_names[to]);
		session->broken = true;
		return;
	}
	session->state = to;
}

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
