/*-------------------------------------------------------------------------
 *
 * session_begin.c
 *	  How a sort, and a member or a reader of one, is let in: from JOB_BEGIN or
 *	  JOB_JOIN to JOB.
 *
 * A sort needs its guaranteed chunks of the pool, then its engine's begin, and
 * memory of the engine for the first chunk.  While others have what it needs it
 * waits (session_queue.c).
 *
 * The sorts of one process together are guaranteed no more than a part of the pool,
 * so that one session with many cursors leaves room for the others; those of one role
 * no more than a part of what other roles leave, so that there is room for who comes
 * next, however many sessions a role has.  What they have
 * borrowed does not count: it shrinks as the pool fills, and would make it a matter
 * of chance how many sorts a session may have.
 *
 *-------------------------------------------------------------------------
 */
#include <sys/random.h>

#include "service/session/session_state.h"

/* One process's sorts are guaranteed no more than this fraction of the pool, but two of them are let in. */
#define PROCESS_FRACTION 2

/* And this fraction of what other roles leave of it is kept from a role, but two of its sorts are let in. */
#define ROLE_FRACTION 4

/* Readers leave this fraction of the pool to sorts to come: a plan of many processes can do with fewer of them. */
#define SPARE_FRACTION 8

#define POOL_IS_LENT       "other sorts use all of gpusort.staging_memory"
#define ROLE_HAS_ITS_SHARE "other sorts of this role use its whole share of gpusort.staging_memory"

/* Returns true if another sort is more than its process gets of the pool. */
static bool
exceeds_process_share(const GpuSortSession *session)
{
	uint32_t most = gpusort_pool_chunks(session->sessions->pool) / PROCESS_FRACTION;
	uint32_t chunks = GPUSORT_JOB_CHUNKS_MIN;

	for (const GpuSortSession *other = session->sessions->first; other != NULL; other = other->next)
	{
		if (other != session && other->pid == session->pid)
			chunks += gpusort_pool_share_chunks(&other->share);
	}
	return chunks > most && chunks > 2 * GPUSORT_JOB_CHUNKS_MIN;
}

/*
 * Returns true if another sort is more than its role gets of the pool.  Its members and readers count, and are
 * not held to it: they are of plans that are under way.
 */
static bool
exceeds_role_share(const GpuSortSession *session)
{
	uint32_t left = gpusort_pool_chunks(session->sessions->pool);
	uint32_t chunks = GPUSORT_JOB_CHUNKS_MIN;

	if (session->request.role == 0)
		return false;
	for (const GpuSortSession *other = session->sessions->first; other != NULL; other = other->next)
	{
		if (other == session)
			continue;
		if (other->request.role == session->request.role)
			chunks += gpusort_pool_share_chunks(&other->share);
		else
			left -= gpusort_pool_share_chunks(&other->share);
	}
	return chunks > left - left / ROLE_FRACTION && chunks > 2 * GPUSORT_JOB_CHUNKS_MIN;
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

/* Returns true if what is asked for of runs of equal keys can be. */
static bool
runs_make_sense(const GpuSortRequest *request)
{
	if (request->run_rows == 0)
		return request->run_bits == 0 && !request->run_peers && !request->run_exact && !request->run_counts;
	return request->run_bits >= 1 && request->run_bits <= 64 * request->key_words && request->limit == 0 &&
		(!request->run_counts || request->run_rows == 1);
}

/* JOB_BEGIN: has the sort let in, in its turn, or refuses it. */
bool
gpusort_session_begin(GpuSortSession *session, const GpuSortMessage *message)
{
	const GpuSortRequest *request = &message->u.job_begin;

	if (request->key_words < 1 || request->key_words > GPUSORT_MAX_KEY_WORDS ||
		request->engine > GPUSORT_ENGINE_HOST || (request->shared && request->limit > 0) || !runs_make_sense(request))
		return false;

	gpusort_session_move(session, STATE_QUEUED);
	session->request = *request;
	session->handle = gpusort_registry_find(request->engine);
	if (refuse_foreign(session))
		return true;
	if (session->sessions->draining)
		gpusort_session_fail(session, GPUSORT_REASON_DRAINING, "the sort service is about to restart");
	else if (session->handle == NULL)
		gpusort_session_fail(session, GPUSORT_REASON_NO_ENGINE, "the sort service has no cuda engine");
	else if (exceeds_process_share(session))
		gpusort_session_fail(session, GPUSORT_REASON_POOL,
							 "other sorts of this session use its whole share of gpusort.staging_memory");
	else
		gpusort_queue_enter(session);
	return true;
}

/* Memory for the runs of a sort: none where that is what the engine has too little of. */
static GpuSortHostMemory *
run_memory(const GpuSortSession *session)
{
	return session->handle->ops->kind == GPUSORT_ENGINE_HOST ? NULL : session->sessions->host_memory;
}

/* Guarantees a sort its chunks of the pool; false, and lacks says why, if there are none for it now. */
static bool
get_share(GpuSortSession *session)
{
	if (session->share.guaranteed)
		return true;
	session->role_lacks = exceeds_role_share(session);
	if (!session->role_lacks && gpusort_pool_admit(session->sessions->pool, &session->share, 0))
		return true;
	session->lacks = (GpuSortError){.reason = GPUSORT_REASON_POOL, .text = POOL_IS_LENT};
	if (session->role_lacks)
		session->lacks = (GpuSortError){.reason = GPUSORT_REASON_POOL, .text = ROLE_HAS_ITS_SHARE};
	return false;
}

/*
 * Begins a sort that is in the queue, or goes on with beginning it; false if the pool
 * has no chunks for it now.  What the engine says to it comes later.
 */
bool
gpusort_session_admit(GpuSortSession *session)
{
	GpuSortSessions *sessions = session->sessions;

	if (!get_share(session))
		return false;
	gpusort_session_move(session, STATE_BEGINNING);
	session->tried = sessions->releases;
	gpusort_queue_moved(sessions);
	if (session->job == NULL)
	{
		const GpuSortJobMeans means = {.handle = *session->handle,
									   .pool = sessions->pool,
									   .run_memory = run_memory(session),
									   .cpus = sessions->cpus};

		session->job = gpusort_job_start(&means, &session->request, session);
		if (session->job == NULL)
		{
			gpusort_pool_dismiss(sessions->pool, &session->share);
			gpusort_session_fail(session, GPUSORT_REASON_NO_MEMORY, "the sort service could not start a thread");
			return true;
		}
		sessions->jobs++;
		session->commands++; /* END, which is sure to be done */
		session->token = new_token();
	}
	if (!session->begun)
		gpusort_session_command(session, (GpuSortCommand){.type = GPUSORT_COMMAND_BEGIN});
	gpusort_session_reserve(session);
	return true;
}

/* Returns true if a sort has been found to lack what members would take. */
static bool
somebody_waits(const GpuSortSessions *sessions)
{
	const GpuSortSession *session = TAILQ_FIRST(&sessions->queue);

	while (session != NULL && (session->lacks.reason == GPUSORT_REASON_NONE || session->role_lacks))
		session = TAILQ_NEXT(session, neighbours);
	return session != NULL;
}

/*
 * The sort that a token names, if it takes members now, or readers: once it is sorted, or before, to have it
 * sorted; NULL if there is none.
 */
static GpuSortSession *
find_owner(const GpuSortSessions *sessions, uint64_t token, bool reader)
{
	GpuSortSession *owner = sessions->first;

	while (owner != NULL && (owner->token != token || owner->owner != NULL))
		owner = owner->next;
	if (owner == NULL || (owner->state != STATE_INGEST && (!reader || owner->state != STATE_OUTPUT)) ||
		(reader && !owner->request.shared))
		return NULL;
	return owner;
}

/* JOB_JOIN: makes the session a member, or a reader, of the job that the token names. */
bool
gpusort_session_join(GpuSortSession *session, const GpuSortMessage *message)
{
	GpuSortPool *pool = session->sessions->pool;
	bool reader = message->u.job_join.reader != 0;
	GpuSortSession *owner = find_owner(session->sessions, message->u.job_join.token, reader);

	gpusort_session_move(session, STATE_QUEUED);
	if (refuse_foreign(session))
		return true;
	if (owner == NULL)
	{
		gpusort_session_fail(session, GPUSORT_REASON_INTERNAL, "there is no such sort to join");
		return true;
	}
	if (somebody_waits(session->sessions) ||
		!gpusort_pool_admit(pool, &session->share, reader ? gpusort_pool_chunks(pool) / SPARE_FRACTION : 0))
	{
		gpusort_session_fail(session, GPUSORT_REASON_POOL, POOL_IS_LENT);
		return true;
	}
	session->owner = owner;
	session->job = owner->job;
	session->handle = owner->handle;
	session->request = owner->request;
	session->job_message = owner->job_message;
	if (reader)
	{
		session->sorter = owner->state == STATE_INGEST;
		gpusort_session_move(session, owner->state);
		session->outcome = owner->outcome;
		gpusort_queue_moved(session->sessions);
		gpusort_session_send(session, &session->job_message, GPUSORT_MSG_JOB);
		return true;
	}
	gpusort_session_move(session, STATE_BEGINNING);
	gpusort_session_reserve(session);
	return true;
}
