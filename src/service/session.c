/*-------------------------------------------------------------------------
 *
 * session.c
 *	  A client's connection: its side of protocol.h.
 *
 * STATES
 *
 *	NEW --HELLO--> GREETED --JOB_BEGIN--> BEGINNING --JOB--> INGEST --SORT-->
 *	SORTING --SORTED--> OUTPUT
 *
 *	BEGINNING --REFUSED--> REFUSED		only closing is legal
 *	any with a job --FAILED--> FAILED	messages on their way are ignored
 *	any --> CLOSED						the socket is gone; the job may still end
 *
 * A session lives until its socket is closed and its job has ended.  Closing
 * gives back the client's chunks and those of commands that have not started at
 * once, and a chunk in use by an engine call when that call is done.
 *
 * CHUNKS
 *	Ingest: GPUSORT_JOB_CHUNKS_MIN are granted first, one more if the pool has
 *	plenty; each needs a reserve of the engine.  A chunk that was put is granted
 *	again as the answer to its put, so they go round between the two sides.
 *	After FULL every further put is answered by FULL.  After SORT no put is
 *	answered any more.
 *
 *	Output: as many emits are under way as there are chunks to be had and rows
 *	left to fill them.
 *
 * Nothing here blocks.  A client that does what is not legal in its state is
 * logged and closed; others do not notice.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "outbox.h"
#include "service_log.h"
#include "session.h"

/* Chunks granted for ingest when the pool has plenty. */
#define INGEST_CHUNKS			3

#define MESSAGES_AT_ONCE		64

/* So many device failures within so many seconds mean that the context is lost. */
#define DEVICE_FAILURES			3
#define DEVICE_FAILURE_SECONDS	60

typedef enum State
{
	STATE_NEW,
	STATE_GREETED,
	STATE_BEGINNING,
	STATE_INGEST,
	STATE_SORTING,
	STATE_OUTPUT,
	STATE_REFUSED,
	STATE_FAILED,
	STATE_CLOSED,
} State;

static const char *const state_names[] = {
	"new", "greeted", "beginning", "ingest", "sorting", "output", "refused", "failed", "closed"
};

struct GpuSortSession
{
	GpuSortSessions *sessions;
	GpuSortSession *next;
	int			socket;			/* -1 once closed */
	int			pid;			/* of the peer */
	State		state;
	bool		broken;			/* to be closed as soon as nobody uses it */
	bool		waits;			/* EPOLLOUT is asked for */
	GpuSortOutbox outbox;

	/* the sort */
	const GpuSortEngineHandle *handle;
	GpuSortJob *job;			/* NULL before and after */
	bool		finished;		/* the job was told to end */
	GpuSortShare share;

	/* ingest */
	bool		full;
	GpuSortMessage full_message;
	GpuSortMessage job_message; /* JOB, sent when the first reserve is there */

	/* output */
	GpuSortSorted sorted;
	uint64_t	bytes_left;		/* of rows not emitted yet */
	uint32_t	epoch;
	uint32_t	emits;			/* under way, of this epoch */
	bool		last;			/* the last rows of this epoch were sent */
};

/*
 * Sending
 */

static void
watch(GpuSortSession *session, bool waits)
{
	struct epoll_event event = {.events = EPOLLIN | (waits ? EPOLLOUT : 0),.data.ptr = session};

	if (waits != session->waits &&
		epoll_ctl(session->sessions->epoll, EPOLL_CTL_MOD, session->socket, &event) != 0)
		session->broken = true;
	session->waits = waits;
}

static void
send_message(GpuSortSession *session, GpuSortMessage *message, GpuSortMessageType type)
{
	GpuSortOutboxResult result;

	if (session->broken || session->socket < 0)
		return;
	message->magic = GPUSORT_PROTOCOL_MAGIC;
	message->version = GPUSORT_PROTOCOL_VERSION;
	message->type = type;
	result = gpusort_outbox_send(&session->outbox, session->socket, message);
	if (result == GPUSORT_OUTBOX_BROKEN)
		session->broken = true;
	else if (result == GPUSORT_OUTBOX_WAITS)
		watch(session, true);
}

static void
send_failure(GpuSortSession *session, GpuSortMessageType type, GpuSortReason reason, const char *text)
{
	GpuSortMessage message = {.type = type};

	message.u.failure.reason = reason;
	snprintf(message.u.failure.text, sizeof(message.u.failure.text), "%s", text);
	send_message(session, &message, type);
}

static void
send_chunk(GpuSortSession *session, uint32_t chunk)
{
	GpuSortMessage message = {.u.chunk.chunk = chunk};

	gpusort_pool_set(session->sessions->pool, chunk, GPUSORT_CHUNK_GRANTED);
	send_message(session, &message, GPUSORT_MSG_CHUNK);
}

/*
 * The job
 */

static bool
has_chunk(const GpuSortCommand *command)
{
	return command->type == GPUSORT_COMMAND_RESERVE || command->type == GPUSORT_COMMAND_PUT ||
		command->type == GPUSORT_COMMAND_EMIT;
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
		free(command);
		command = next;
	}
}

/* Tells the job to end; it takes no chunk from now on. */
static void
finish_job(GpuSortSession *session)
{
	if (session->job == NULL || session->finished)
		return;
	session->finished = true;
	gpusort_pool_dismiss(session->sessions->pool, &session->share);
	drop_commands(session, gpusort_job_finish(session->job));
}

/* The sort is lost: tells the client, keeps the connection until it closes. */
static void
fail(GpuSortSession *session, GpuSortReason reason, const char *text)
{
	if (session->state == STATE_FAILED || session->state == STATE_CLOSED)
		return;
	if (session->state == STATE_BEGINNING)
	{
		session->state = STATE_REFUSED;
		send_failure(session, GPUSORT_MSG_REFUSED, reason, text);
	}
	else
	{
		session->state = STATE_FAILED;
		send_failure(session, GPUSORT_MSG_FAILED, reason, text);
	}
	finish_job(session);
}

static void
command(GpuSortSession *session, GpuSortCommand what)
{
	if (!gpusort_job_command(session->job, &what))
	{
		if (has_chunk(&what))
			gpusort_pool_give_back(session->sessions->pool, what.chunk);
		fail(session, GPUSORT_REASON_NO_MEMORY, "the sort service has no memory left");
	}
}

/* Counts failures of the device; too many in a short time and it is given up. */
static void
note_failure(GpuSortSession *session, const GpuSortError *error)
{
	static time_t failures[DEVICE_FAILURES];
	static unsigned count;
	struct timespec now;

	if (error->reason != GPUSORT_REASON_DEVICE)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	failures[count++ % DEVICE_FAILURES] = now.tv_sec;
	gpusort_log(true, "a sort of process %d failed: %s", session->pid, error->text);
	if (count >= DEVICE_FAILURES &&
		now.tv_sec - failures[count % DEVICE_FAILURES] <= DEVICE_FAILURE_SECONDS)
		session->sessions->device_lost = true;
}

static void
close_session(GpuSortSession *session)
{
	GpuSortPool *pool = session->sessions->pool;

	if (session->socket < 0)
		return;
	close(session->socket);
	session->socket = -1;
	session->state = STATE_CLOSED;
	gpusort_pool_give_back_all(pool, &session->share, GPUSORT_CHUNK_GRANTED);
	gpusort_pool_give_back_all(pool, &session->share, GPUSORT_CHUNK_DATA);
	finish_job(session);
}

/*
 * Output
 */

/* Has chunks filled, as many as there are rows for and the pool lends. */
static void
pump(GpuSortSession *session)
{
	while (session->state == STATE_OUTPUT && !session->last &&
		   (session->emits == 0 || session->bytes_left > session->emits * GPUSORT_CHUNK_BYTES))
	{
		uint32_t	chunk = gpusort_pool_take(session->sessions->pool, &session->share,
											  GPUSORT_CHUNK_ENGINE);

		if (chunk == GPUSORT_NO_CHUNK)
			return;
		session->emits++;
		command(session, (GpuSortCommand) {
			.type = GPUSORT_COMMAND_EMIT,.chunk = chunk,.epoch = session->epoch
		});
	}
}

static void
start_output(GpuSortSession *session)
{
	session->bytes_left = session->sorted.bytes;
	session->last = false;
	if (session->sorted.rows == 0)
	{
		GpuSortMessage message = {
			.u.data = {.chunk = GPUSORT_NO_CHUNK,.epoch = session->epoch,.last = 1}
		};

		session->last = true;
		send_message(session, &message, GPUSORT_MSG_DATA);
	}
	pump(session);
}

/*
 * What the client sends
 */

static void
on_hello(GpuSortSession *session, const GpuSortMessage *hello)
{
	GpuSortPool *pool = session->sessions->pool;
	GpuSortMessage message = {.type = GPUSORT_MSG_WELCOME};

	session->state = STATE_GREETED;
	session->outbox.descriptor = hello->u.hello.pool_id == gpusort_pool_id(pool) ? -1 :
		gpusort_pool_descriptor(pool);
	message.u.welcome.pool_id = gpusort_pool_id(pool);
	message.u.welcome.pool_chunks = gpusort_pool_chunks(pool);
	message.u.welcome.pool_bytes = message.u.welcome.pool_chunks * GPUSORT_CHUNK_BYTES;
	message.u.welcome.engines = gpusort_engines_mask();
	send_message(session, &message, GPUSORT_MSG_WELCOME);
}

static void
on_status(GpuSortSession *session)
{
	const GpuSortEngineKind kinds[] = {GPUSORT_ENGINE_CUDA, GPUSORT_ENGINE_HOST};

	/* The host is always there and comes last. */
	for (int k = 0; k < 2; k++)
	{
		const GpuSortEngineHandle *handle = gpusort_engines_find(kinds[k]);
		GpuSortDevice devices[GPUSORT_DEVICES_MAX];
		int			n = 0;

		if (handle != NULL)
			n = handle->ops->describe(handle->engine, devices, GPUSORT_DEVICES_MAX);
		for (int i = 0; i < n && i < GPUSORT_DEVICES_MAX; i++)
		{
			GpuSortMessage message = {.type = GPUSORT_MSG_DEVICE};

			message.u.device.engine = kinds[k];
			message.u.device.ordinal = devices[i].ordinal;
			message.u.device.last = kinds[k] == GPUSORT_ENGINE_HOST;
			message.u.device.jobs = devices[i].jobs;
			message.u.device.memory_total = devices[i].memory_total;
			message.u.device.memory_limit = devices[i].memory_limit;
			message.u.device.memory_used = devices[i].memory_used;
			memcpy(message.u.device.name, devices[i].name, GPUSORT_NAME_BYTES);
			memcpy(message.u.device.detail, devices[i].detail, GPUSORT_NAME_BYTES);
			send_message(session, &message, GPUSORT_MSG_DEVICE);
		}
	}
}

static bool
on_job_begin(GpuSortSession *session, const GpuSortMessage *message)
{
	GpuSortSessions *sessions = session->sessions;
	GpuSortSpec spec = {
		.key_words = message->u.job_begin.key_words,
		.may_tie = message->u.job_begin.may_tie != 0,
		.estimated_rows = message->u.job_begin.estimated_rows,
		.estimated_bytes = message->u.job_begin.estimated_bytes,
	};

	if (spec.key_words < 1 || spec.key_words > GPUSORT_MAX_KEY_WORDS ||
		message->u.job_begin.engine > GPUSORT_ENGINE_HOST)
		return false;

	session->state = STATE_BEGINNING;
	if (sessions->draining)
	{
		fail(session, GPUSORT_REASON_DRAINING, "the sort service is about to restart");
		return true;
	}
	session->handle = gpusort_engines_find(message->u.job_begin.engine);
	if (session->handle == NULL)
	{
		fail(session, GPUSORT_REASON_NO_ENGINE, "the sort service has no cuda engine");
		return true;
	}
	if (!gpusort_pool_admit(sessions->pool, &session->share))
	{
		fail(session, GPUSORT_REASON_POOL,
			 "all of gpusort.staging_memory is lent to other sorts");
		return true;
	}
	session->job = gpusort_job_start(session->handle, &spec, sessions->pool, session);
	if (session->job == NULL)
	{
		gpusort_pool_dismiss(sessions->pool, &session->share);
		fail(session, GPUSORT_REASON_NO_MEMORY, "the sort service could not start a thread");
		return true;
	}
	sessions->jobs++;
	command(session, (GpuSortCommand) {.type = GPUSORT_COMMAND_BEGIN});
	for (int i = 0; i < INGEST_CHUNKS && session->state == STATE_BEGINNING; i++)
	{
		uint32_t	chunk = gpusort_pool_take(sessions->pool, &session->share,
											  GPUSORT_CHUNK_ENGINE);

		if (chunk == GPUSORT_NO_CHUNK)
			break;
		command(session, (GpuSortCommand) {.type = GPUSORT_COMMAND_RESERVE,.chunk = chunk});
	}
	return true;
}

static bool
on_put(GpuSortSession *session, const GpuSortMessage *message)
{
	GpuSortPool *pool = session->sessions->pool;
	uint32_t	chunk = message->u.put.chunk;

	if (!gpusort_pool_is(pool, chunk, &session->share, GPUSORT_CHUNK_GRANTED) ||
		message->u.put.rows == 0 ||
		message->u.put.bytes + (uint64_t) message->u.put.rows * sizeof(uint32_t) > GPUSORT_CHUNK_BYTES)
		return false;
	gpusort_pool_set(pool, chunk, GPUSORT_CHUNK_ENGINE);
	command(session, (GpuSortCommand) {
		.type = GPUSORT_COMMAND_PUT,.chunk = chunk,
		.rows = message->u.put.rows,.bytes = message->u.put.bytes,.final = session->full
	});
	return true;
}

static void
on_sort(GpuSortSession *session)
{
	uint32_t	chunk;

	session->state = STATE_SORTING;
	gpusort_pool_give_back_all(session->sessions->pool, &session->share, GPUSORT_CHUNK_GRANTED);
	command(session, (GpuSortCommand) {.type = GPUSORT_COMMAND_SORT});

	/* The first rows follow without coming back here, if there is a chunk. */
	if (session->state != STATE_SORTING)
		return;
	chunk = gpusort_pool_take(session->sessions->pool, &session->share, GPUSORT_CHUNK_ENGINE);
	if (chunk != GPUSORT_NO_CHUNK)
	{
		session->emits++;
		command(session, (GpuSortCommand) {.type = GPUSORT_COMMAND_EMIT,.chunk = chunk});
	}
}

static bool
on_chunk_free(GpuSortSession *session, const GpuSortMessage *message)
{
	GpuSortPool *pool = session->sessions->pool;

	if (!gpusort_pool_is(pool, message->u.chunk.chunk, &session->share, GPUSORT_CHUNK_DATA))
		return false;
	gpusort_pool_give_back(pool, message->u.chunk.chunk);
	pump(session);
	return true;
}

static bool
on_rewind(GpuSortSession *session, const GpuSortMessage *message)
{
	if (message->u.rewind.epoch != session->epoch + 1)
		return false;
	session->epoch++;
	session->emits = 0;
	drop_commands(session, gpusort_job_take_back(session->job, GPUSORT_COMMAND_EMIT));
	command(session, (GpuSortCommand) {.type = GPUSORT_COMMAND_REWIND});
	if (session->state == STATE_OUTPUT)
		start_output(session);
	return true;
}

/* Does what a message asks for; false if it is not legal now. */
static bool
on_message(GpuSortSession *session, const GpuSortMessage *message)
{
	State		state = session->state;

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
			return state == STATE_GREETED && on_job_begin(session, message);
		case GPUSORT_MSG_CHUNK_PUT:
			return state == STATE_INGEST && on_put(session, message);
		case GPUSORT_MSG_SORT:
			if (state != STATE_INGEST)
				return false;
			on_sort(session);
			return true;
		case GPUSORT_MSG_CHUNK_FREE:
			return state == STATE_OUTPUT && on_chunk_free(session, message);
		case GPUSORT_MSG_REWIND:
			return state == STATE_OUTPUT && on_rewind(session, message);
		default:
			return false;
	}
}

/* Reads what the client has sent. */
static void
receive(GpuSortSession *session)
{
	/* One client at a time, but not for ever. */
	for (int i = 0; i < MESSAGES_AT_ONCE && !session->broken; i++)
	{
		GpuSortMessage message;
		ssize_t		size = recv(session->socket, &message, sizeof(message),
								MSG_DONTWAIT | MSG_TRUNC);

		if (size < 0)
		{
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN && errno != EWOULDBLOCK)
				session->broken = true;
			return;
		}
		if (size == 0)
		{
			session->broken = true;
			return;
		}
		if (size != sizeof(message) || message.magic != GPUSORT_PROTOCOL_MAGIC ||
			message.version != GPUSORT_PROTOCOL_VERSION)
		{
			gpusort_log_peer("process %d sent what is no message of protocol version %d (%zd bytes), closed",
							 session->pid, GPUSORT_PROTOCOL_VERSION, size);
			session->broken = true;
		}
		else if (session->state != STATE_FAILED && !on_message(session, &message))
		{
			gpusort_log_peer("process %d sent message %u that is not legal in state \"%s\", closed",
							 session->pid, message.type, state_names[session->state]);
			session->broken = true;
		}
	}
}

/*
 * What the job has done
 */

static void
done_reserve(GpuSortSession *session, const GpuSortCommand *command)
{
	GpuSortPool *pool = session->sessions->pool;

	if (!command->reserved || session->finished)
	{
		/* Only the first one missing is a refusal: the sort can do with fewer. */
		gpusort_pool_give_back(pool, command->chunk);
		if (!command->skipped && session->state == STATE_BEGINNING)
			fail(session, command->error.reason, command->error.text);
		return;
	}
	if (session->state == STATE_BEGINNING)
	{
		session->state = STATE_INGEST;
		send_message(session, &session->job_message, GPUSORT_MSG_JOB);
	}
	if (session->state == STATE_INGEST)
		send_chunk(session, command->chunk);
	else
		gpusort_pool_give_back(pool, command->chunk);
}

static void
done_put(GpuSortSession *session, const GpuSortCommand *command)
{
	GpuSortPool *pool = session->sessions->pool;

	if (session->state != STATE_INGEST || command->skipped || command->failed)
	{
		gpusort_pool_give_back(pool, command->chunk);
		return;
	}
	if (command->reserved)
	{
		send_chunk(session, command->chunk);
		return;
	}
	gpusort_pool_give_back(pool, command->chunk);
	if (!session->full)
	{
		session->full = true;
		session->full_message.u.failure.reason = command->error.reason;
		memcpy(session->full_message.u.failure.text, command->error.text, GPUSORT_TEXT_BYTES);
	}
	send_message(session, &session->full_message, GPUSORT_MSG_FULL);
}

static void
done_sort(GpuSortSession *session, const GpuSortCommand *command)
{
	GpuSortMessage message = {.type = GPUSORT_MSG_SORTED};

	if (session->state != STATE_SORTING || command->skipped || command->failed)
		return;
	session->state = STATE_OUTPUT;
	session->sorted = command->u.sorted;
	message.u.sorted.rows = command->u.sorted.rows;
	message.u.sorted.bytes = command->u.sorted.bytes;
	message.u.sorted.tie_rows = command->u.sorted.tie_rows;
	message.u.sorted.key_bits = command->u.sorted.key_bits;
	message.u.sorted.packed_bits = command->u.sorted.packed_bits;
	message.u.sorted.sort_ms = command->u.sorted.sort_ms;
	send_message(session, &message, GPUSORT_MSG_SORTED);
	start_output(session);
}

static void
done_emit(GpuSortSession *session, const GpuSortCommand *command)
{
	GpuSortPool *pool = session->sessions->pool;
	GpuSortMessage message = {.type = GPUSORT_MSG_DATA};
	const GpuSortEmitted *emitted = &command->u.emitted;

	if (command->epoch == session->epoch)
		session->emits--;
	if (session->state != STATE_OUTPUT || command->epoch != session->epoch ||
		command->skipped || command->failed)
	{
		gpusort_pool_give_back(pool, command->chunk);
		pump(session);
		return;
	}
	gpusort_pool_set(pool, command->chunk, GPUSORT_CHUNK_DATA);
	session->bytes_left -= emitted->bytes < session->bytes_left ? emitted->bytes : session->bytes_left;
	session->last = emitted->last != 0;
	message.u.data.chunk = command->chunk;
	message.u.data.rows = emitted->rows;
	message.u.data.bytes = emitted->bytes;
	message.u.data.tie_rows = emitted->tie_rows;
	message.u.data.epoch = command->epoch;
	message.u.data.last = session->last;
	message.u.data.gather_ms = emitted->gather_ms;
	send_message(session, &message, GPUSORT_MSG_DATA);
	pump(session);
}

/* Goes on with what a done command means for its session.  Frees the command. */
void
gpusort_session_done(GpuSortCommand *command)
{
	GpuSortSession *session = gpusort_job_owner(command->job);

	if (command->failed)
		note_failure(session, &command->error);
	switch (command->type)
	{
		case GPUSORT_COMMAND_BEGIN:
			session->job_message.u.job.engine = session->handle->ops->kind;
			session->job_message.u.job.ordinal = command->u.begun.ordinal;
			memcpy(session->job_message.u.job.device, command->u.begun.device, GPUSORT_NAME_BYTES);
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
			done_emit(session, command);
			break;
		case GPUSORT_COMMAND_REWIND:
			break;
		case GPUSORT_COMMAND_END:
			gpusort_job_free(session->job);
			session->job = NULL;
			session->sessions->jobs--;
			break;
	}
	if (command->failed)
		fail(session, command->error.reason, command->error.text);
	free(command);
}

/*
 * Life
 */

/* Starts a session on a connected socket, which belongs to it then. */
bool
gpusort_session_start(GpuSortSessions *sessions, int socket, int pid)
{
	GpuSortSession *session = calloc(1, sizeof(GpuSortSession));
	struct epoll_event event = {.events = EPOLLIN};

	if (session == NULL)
		return false;
	session->sessions = sessions;
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

void
gpusort_session_event(GpuSortSession *session, uint32_t events)
{
	if (session->socket < 0)
		return;
	if (events & EPOLLOUT)
	{
		GpuSortOutboxResult result = gpusort_outbox_flush(&session->outbox, session->socket);

		if (result == GPUSORT_OUTBOX_BROKEN)
			session->broken = true;
		else if (result == GPUSORT_OUTBOX_SENT)
			watch(session, false);
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive(session);
}

/*
 * Closes the sessions that are broken and frees those that are over.  Called
 * when nobody holds a session: between two rounds of the main loop.
 */
void
gpusort_sessions_reap(GpuSortSessions *sessions)
{
	GpuSortSession **link = &sessions->first;

	while (*link != NULL)
	{
		GpuSortSession *session = *link;

		if (session->broken)
			close_session(session);
		if (session->socket < 0 && session->job == NULL)
		{
			*link = session->next;
			gpusort_outbox_free(&session->outbox);
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
		if (session->job != NULL)
			fail(session, reason, text);
	}
}

/* Closes every session; their jobs end in time. */
void
gpusort_sessions_close(GpuSortSessions *sessions)
{
	for (GpuSortSession *session = sessions->first; session != NULL; session = session->next)
		close_session(session);
}
