/*-------------------------------------------------------------------------
 *
 * session_queue.c
 *	  The queue of sorts that wait to be let in.
 *
 * A sort for which there are no chunks, or no memory of the engine, waits while
 * others get on, in the order of arrival: newcomers go behind those that wait,
 * and only the first is tried, whenever chunks or memory have come back.  It is
 * refused, and PostgreSQL sorts,
 *
 *	- when it has waited for WAIT_MS;
 *	- when nothing has moved for STILL_MS: no chunk was put, filled or freed, and
 *	  no sort is in its engine call.  Idle cursors hold what they have for as long
 *	  as they like, and nobody is to wait for them.  While it stays so newcomers
 *	  are refused at once;
 *	- at once, when its process has other sorts here: those might be what it waits
 *	  for;
 *	- when the service drains.
 *
 * Members of a sort never wait, for they would hold it up: they are refused, and
 * others put their rows.  They are refused as well while anybody waits.
 *
 * Every sort goes through the queue, and stays in it while it begins, until it has
 * its JOB or is refused.  One that lacks nothing holds nobody up.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>

#include "service/clock.h"
#include "service/session/session.h"
#include "service/session/session_state.h"

#define WAIT_MS  5000
#define STILL_MS 250

/* An empty queue. */
void
gpusort_queue_init(GpuSortSessions *sessions)
{
	TAILQ_INIT(&sessions->queue);
}

/* Returns true if any session is in that state. */
static bool
is_any(const GpuSortSessions *sessions, GpuSortSessionState state)
{
	const GpuSortSession *session = sessions->first;

	while (session != NULL && session->state != state)
		session = session->next;
	return session != NULL;
}

/* Returns true if nothing gets on, so that it is no use to wait. */
static bool
is_still(const GpuSortSessions *sessions, double now)
{
	return now - sessions->moved >= STILL_MS && !is_any(sessions, STATE_SORTING);
}

/* Returns true if the session's process has another sort here, which may hold what this one lacks. */
static bool
process_has_sorts(const GpuSortSession *session)
{
	for (const GpuSortSession *other = session->sessions->first; other != NULL; other = other->next)
	{
		if (other != session && other->pid == session->pid && other->share.guaranteed)
			return true;
	}
	return false;
}

/* Tries to let a session in; false, and lacks says why, if that is no use now. */
static bool
try_session(GpuSortSession *session, double now)
{
	/*
	 * Nobody has given back memory since it was found too little; or what was asked of
	 * the engine then (END is only counted) is not all back yet, and has the chunks.
	 */
	if (session->share.guaranteed && (session->tried == session->sessions->releases || session->commands > 1))
		return false;
	if (is_still(session->sessions, now) && is_any(session->sessions, STATE_BEGINNING))
	{
		session->lacks.reason = GPUSORT_REASON_DEVICE;
		snprintf(session->lacks.text, sizeof(session->lacks.text), "the engine does not get on with another sort");
		return false;
	}
	return gpusort_session_admit(session);
}

/* Refuses a session what it lacks. */
static void
refuse(GpuSortSession *session, double now)
{
	GpuSortError *lacks = &session->lacks;
	char text[sizeof(lacks->text)];

	if (lacks->reason == GPUSORT_REASON_NONE)
		*lacks = (GpuSortError){.reason = GPUSORT_REASON_DEVICE, .text = "the engine does not get on with the sort"};
	snprintf(text, sizeof(text), "after a wait of %.0f ms: %.150s", now - session->arrived, lacks->text);
	gpusort_session_fail(session, lacks->reason, now - session->arrived < 1 ? lacks->text : text);
}

/* Lets in whom it can, refuses who waits in vain.  Called between two rounds of the main loop. */
void
gpusort_queue_advance(GpuSortSessions *sessions)
{
	double now = gpusort_clock_ms();
	GpuSortSession *lacking = NULL; /* the first that has to wait */
	GpuSortSession *next;

	for (GpuSortSession *session = TAILQ_FIRST(&sessions->queue); session != NULL; session = next)
	{
		next = TAILQ_NEXT(session, neighbours);
		if (session->state == STATE_QUEUED && sessions->draining)
			gpusort_session_fail(session, GPUSORT_REASON_DRAINING, "the sort service is about to restart");
		else if (now - session->arrived >= WAIT_MS)
			refuse(session, now);
		else if (session->state == STATE_QUEUED)
		{
			if (lacking != NULL)
				session->lacks = lacking->lacks;
			else
				(void) try_session(session, now);
			if (session->state == STATE_QUEUED && (process_has_sorts(session) || is_still(sessions, now)))
				refuse(session, now);
		}
		if (lacking == NULL && session->queued && session->lacks.reason != GPUSORT_REASON_NONE)
			lacking = session;
	}
}

/* Milliseconds until advance has to be called though nothing happens, or -1. */
int
gpusort_queue_timeout(const GpuSortSessions *sessions)
{
	const GpuSortSession *first = TAILQ_FIRST(&sessions->queue);
	const GpuSortSession *last = TAILQ_LAST(&sessions->queue, GpuSortQueue);
	double now;
	double until;

	if (first == NULL)
		return -1;
	now = gpusort_clock_ms();
	until = first->arrived + WAIT_MS;
	if (last->state == STATE_QUEUED && sessions->moved + STILL_MS < until)
		until = sessions->moved + STILL_MS > now ? sessions->moved + STILL_MS : now + STILL_MS;
	return until > now ? (int) (until - now) + 1 : 0;
}
