/*-------------------------------------------------------------------------
 *
 * session_queue.c
 *	  The queue of sorts that wait to be let in.
 *
 * A sort for which there are no chunks, or no memory of the engine, waits while
 * others get on, in the order of arrival: newcomers go behind those that wait,
 * and only the first is tried, whenever chunks or memory have come back.  One that
 * lacks its role's part of the pool holds up its role's alone.  It is
 * refused, and PostgreSQL sorts,
 *
 *	- when it has waited for GPUSORT_QUEUE_WAIT_MS, or GPUSORT_QUEUE_NATIVE_TIMES as long as PostgreSQL's own sort
 *	  of it would take: of all of its role that wait, were they refused, on as many
 *	  processors as there are;
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
#include "service/session/patience.h"
#include "service/session/session_state.h"

#define STILL_MS 250

/* Roles known to lack their part of the pool while the queue is gone through; of more, each session is asked again. */
#define ROLES_MAX 16

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
		snprintf(session->lacks.text, sizeof(session->lacks.text), "the engine makes no progress with another sort");
		return false;
	}
	return gpusort_session_admit(session);
}

/* Refuses a session what it lacks. */
static void
refuse(GpuSortSession *session, double now)
{
	GpuSortError *lacks = &session->lacks;
	double waited = now - session->arrived;
	const char *because = waited >= session->patience && session->patience < GPUSORT_QUEUE_WAIT_MS
		? ", ten times what PostgreSQL's own sort takes"
		: "";
	char text[sizeof(lacks->text)];

	if (lacks->reason == GPUSORT_REASON_NONE)
		*lacks = (GpuSortError){.reason = GPUSORT_REASON_DEVICE, .text = "the engine makes no progress with this sort"};
	snprintf(text, sizeof(text), "after a wait of %.0f ms%s: %.110s", waited, because, lacks->text);
	gpusort_session_fail(session, lacks->reason, waited < 1 ? lacks->text : text);
}

/* What holds sessions up that are behind in the queue. */
typedef struct Lacking
{
	const GpuSortSession *first; /* of those that lack what all have in common; NULL: there is none */
	const GpuSortSession *roles[ROLES_MAX];
	int nroles;
} Lacking;

/* Takes note of what a session lacks. */
static void
note_lacking(Lacking *lacking, const GpuSortSession *session)
{
	if (!session->queued || session->lacks.reason == GPUSORT_REASON_NONE)
		return;
	if (!session->role_lacks)
		lacking->first = lacking->first != NULL ? lacking->first : session;
	else if (lacking->nroles < ROLES_MAX)
		lacking->roles[lacking->nroles++] = session;
}

/* Returns the session before this one that has to be let in before it, or NULL. */
static const GpuSortSession *
held_up_by(const Lacking *lacking, const GpuSortSession *session)
{
	for (int i = 0; i < lacking->nroles && !session->share.guaranteed; i++)
	{
		if (lacking->roles[i]->request.role == session->request.role)
			return lacking->roles[i];
	}
	return lacking->first;
}

/* Lets a session in that waits, if it can; refuses it if it waits in vain. */
static void
advance(GpuSortSession *session, const Lacking *lacking, double now)
{
	const GpuSortSession *before = held_up_by(lacking, session);

	if (before != NULL)
	{
		session->lacks = before->lacks;
		session->role_lacks = before->role_lacks;
	}
	else
		(void) try_session(session, now);
	if (session->state == STATE_QUEUED &&
		(now - session->arrived >= session->patience || process_has_sorts(session) || is_still(session->sessions, now)))
		refuse(session, now);
}

/* Lets in whom it can, refuses who waits in vain.  Called between two rounds of the main loop. */
void
gpusort_queue_advance(GpuSortSessions *sessions)
{
	double now = gpusort_clock_ms();
	Lacking lacking = {.first = NULL};
	GpuSortSession *next;

	for (GpuSortSession *session = TAILQ_FIRST(&sessions->queue); session != NULL; session = next)
	{
		next = TAILQ_NEXT(session, neighbours);
		if (session->state == STATE_QUEUED && sessions->draining)
			gpusort_session_fail(session, GPUSORT_REASON_DRAINING, "the sort service is about to restart");
		else if (session->state == STATE_QUEUED)
			advance(session, &lacking, now);
		else if (now - session->arrived >= GPUSORT_QUEUE_WAIT_MS)
			refuse(session, now);
		note_lacking(&lacking, session);
	}
}

/* Milliseconds until advance has to be called though nothing happens, or -1. */
int
gpusort_queue_timeout(const GpuSortSessions *sessions)
{
	const GpuSortSession *last = TAILQ_LAST(&sessions->queue, GpuSortQueue);
	const GpuSortSession *session;
	double now;
	double until;

	if (last == NULL)
		return -1;
	now = gpusort_clock_ms();
	until = now + GPUSORT_QUEUE_WAIT_MS;
	TAILQ_FOREACH(session, &sessions->queue, neighbours)
	{
		double own = session->arrived + (session->state == STATE_QUEUED ? session->patience : GPUSORT_QUEUE_WAIT_MS);

		if (own < until)
			until = own;
	}
	if (last->state == STATE_QUEUED && sessions->moved + STILL_MS < until)
		until = sessions->moved + STILL_MS > now ? sessions->moved + STILL_MS : now + STILL_MS;
	return until > now ? (int) (until - now) + 1 : 0;
}
