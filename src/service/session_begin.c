/*-------------------------------------------------------------------------
 *
 * session_begin.c
 *	  How a sort, and a member of one, is let in: JOB_BEGIN and JOB_JOIN.
 *
 *-------------------------------------------------------------------------
 */
#include <sys/random.h>

#include "service/session_state.h"

/* Guarantees the session its chunks, or refuses it. */
static bool
admit(GpuSortSession *session)
{
	if (gpusort_pool_admit(session->sessions->pool, &session->share))
		return true;
	gpusort_session_fail(session, GPUSORT_REASON_POOL,
						 "all of gpusort.staging_memory is lent to other sorts");
	return false;
}

/* Refuses a sort of a module whose rows may not be what this service takes them for. */
static bool
refuse_foreign(GpuSortSession *session)
{
	if (session->foreign)
		gpusort_session_fail(session, GPUSORT_REASON_BUILD,
							 "the sort service is of another build than the server's module: restart the server");
	return session->foreign;
}

static uint64_t
new_token(void)
{
	uint64_t token = 0;

	while (token == 0)
	{
		if (getrandom(&token, sizeof(token), 0) != sizeof(token))
			token = 0;
	}
	return token;
}

/* JOB_BEGIN: admits the sort and starts its job. */
bool
gpusort_session_begin(GpuSortSession *session, const GpuSortMessage *message)
{
	GpuSortSessions *sessions = session->sessions;
	const GpuSortRequest *request = &message->u.job_begin;

	if (request->key_words < 1 || request->key_words > GPUSORT_MAX_KEY_WORDS ||
		request->engine > GPUSORT_ENGINE_HOST)
		return false;

	session->state = STATE_BEGINNING;
	if (refuse_foreign(session))
		return true;
	if (sessions->draining)
	{
		gpusort_session_fail(session, GPUSORT_REASON_DRAINING, "the sort service is about to restart");
		return true;
	}
	session->handle = gpusort_registry_find(request->engine);
	if (session->handle == NULL)
	{
		gpusort_session_fail(session, GPUSORT_REASON_NO_ENGINE, "the sort service has no cuda engine");
		return true;
	}
	if (!admit(session))
		return true;
	session->job = gpusort_job_start(session->handle, request, sessions->pool, session);
	if (session->job == NULL)
	{
		gpusort_pool_dismiss(sessions->pool, &session->share);
		gpusort_session_fail(session, GPUSORT_REASON_NO_MEMORY, "the sort service could not start a thread");
		return true;
	}
	sessions->jobs++;
	session->commands++; /* END, which is sure to be done */
	session->token = new_token();
	gpusort_session_command(session, (GpuSortCommand){.type = GPUSORT_COMMAND_BEGIN});
	gpusort_session_reserve(session);
	return true;
}

/* JOB_JOIN: makes the session a member of the job that the token names. */
bool
gpusort_session_join(GpuSortSession *session, const GpuSortMessage *message)
{
	GpuSortSession *owner = session->sessions->first;

	session->state = STATE_BEGINNING;
	if (refuse_foreign(session))
		return true;
	while (owner != NULL &&
		   !(owner->state == STATE_INGEST && owner->owner == NULL && owner->token == message->u.job_join.token))
		owner = owner->next;
	if (owner == NULL)
	{
		gpusort_session_fail(session, GPUSORT_REASON_INTERNAL, "there is no such sort to join");
		return true;
	}
	if (!admit(session))
		return true;
	session->owner = owner;
	session->job = owner->job;
	session->handle = owner->handle;
	session->job_message = owner->job_message;
	gpusort_session_reserve(session);
	return true;
}
