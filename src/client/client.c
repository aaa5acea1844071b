/*-------------------------------------------------------------------------
 *
 * client.c
 *	  A backend's side of one sort in the service.
 *
 * Legal order of calls: begin, (get_chunk, put_chunk)*, sort, (next_data,
 * free_data | rewind)*, end; in a process that only adds rows to another's sort:
 * join, (get_chunk, put_chunk)*, leave, end.  A call that fails says why in
 * *failure; after that only end is legal, but for get_chunk when is_full, after
 * which sort and leave are.
 *
 * A client belongs to the memory context that was current at begin: when that
 * is reset, on error say, the connection closes, and the service takes back all
 * that the sort held.  end does the same at once.
 *
 * Every wait watches the connection, the process latch and the postmaster, so
 * it ends on cancel (by CHECK_FOR_INTERRUPTS), when the service dies (LOST) and
 * when the postmaster does (exit).
 *
 * The staging pool is mapped once per backend and kept: later sorts find their
 * page tables filled.  It is replaced when the service was restarted.
 *
 *-------------------------------------------------------------------------
 */
#include "client/client.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "server/shared.h"
#include "server/supervisor.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* A mapped staging pool, shared by this backend's clients. */
typedef struct GpuSortPool
{
	uint64 id;
	char *base;
	size_t bytes;
	uint32 chunks;
	int clients;                           /* unmapped with the last one once it is not the newest */
	bool populated[FLEXIBLE_ARRAY_MEMBER]; /* by chunk: its pages are in our page tables */
} GpuSortPool;

struct GpuSortClient
{
	int socket; /* -1: closed */
	GpuSortPool *pool;
	GpuSortEngineKind engine;
	char device[GPUSORT_NAME_BYTES];
	uint64 token;
	MemoryContextCallback on_reset;

	/* Chunks granted and not put yet, oldest first. */
	uint32 granted[GPUSORT_JOB_CHUNKS_MAX];
	int ngranted;
	uint32 current; /* the chunk that get_chunk gave out */
	bool full;
	GpuSortFailure full_reason;

	uint32 epoch; /* number of rewinds */
};

static GpuSortPool *newest_pool = NULL;

static bool
fail(GpuSortFailure *failure, int reason, const char *text)
{
	failure->reason = reason;
	strlcpy(failure->text, text, sizeof(failure->text));
	return false;
}

/* The service's own words, whatever it put behind the end of them. */
static bool
fail_with_message(GpuSortFailure *failure, const GpuSortMessage *message)
{
	failure->reason = message->u.failure.reason;
	memcpy(failure->text, message->u.failure.text, sizeof(failure->text));
	failure->text[sizeof(failure->text) - 1] = '\0';
	return false;
}

static bool
fail_lost(GpuSortFailure *failure)
{
	return fail(failure, GPUSORT_REASON_LOST, "the sort service ended or closed the connection");
}

static void
release_pool(GpuSortPool *pool)
{
	Assert(pool->clients > 0);
	if (--pool->clients == 0 && pool != newest_pool)
	{
		munmap(pool->base, pool->bytes);
		pfree(pool);
	}
}

static void
close_client(void *arg)
{
	GpuSortClient *client = arg;

	if (client->socket >= 0)
	{
		close(client->socket);
		ReleaseExternalFD();
		client->socket = -1;
	}
	if (client->pool != NULL)
	{
		release_pool(client->pool);
		client->pool = NULL;
	}
}

/* Waits for events on the socket; may not return, see file header. */
static void
wait_for_socket(GpuSortClient *client, int events)
{
	int ready = WaitLatchOrSocket(MyLatch, events | WL_LATCH_SET | WL_EXIT_ON_PM_DEATH,
								  client->socket, -1, PG_WAIT_EXTENSION);

	if (ready & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

static bool
send_message(GpuSortClient *client, GpuSortMessage *message, GpuSortMessageType type, GpuSortFailure *failure)
{
	message->magic = GPUSORT_PROTOCOL_MAGIC;
	message->version = GPUSORT_PROTOCOL_VERSION;
	message->type = type;

	for (;;)
	{
		ssize_t n = send(client->socket, message, sizeof(*message), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n == sizeof(*message))
			return true;
		if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			return fail_lost(failure);
		if (errno == EAGAIN)
			wait_for_socket(client, WL_SOCKET_WRITEABLE);
	}
}

/*
 * Receives the next message.  With wait = false returns false and leaves
 * failure->reason NONE when there is none.  *fd gets a descriptor that came
 * with it, or -1; fd may be NULL, then it is closed.
 */
static bool
receive_message(GpuSortClient *client, GpuSortMessage *message, int *fd, bool wait, GpuSortFailure *failure)
{
	failure->reason = GPUSORT_REASON_NONE;
	if (fd != NULL)
		*fd = -1;

	for (;;)
	{
		union
		{
			struct cmsghdr header;
			char space[CMSG_SPACE(sizeof(int))];
		} control;
		struct iovec part = {.iov_base = message, .iov_len = sizeof(*message)};
		struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)};
		ssize_t n = recvmsg(client->socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		struct cmsghdr *attached;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
		{
			if (!wait)
				return false;
			wait_for_socket(client, WL_SOCKET_READABLE);
			continue;
		}
		if (n <= 0)
			return fail_lost(failure);

		attached = CMSG_FIRSTHDR(&header);
		if (attached != NULL && attached->cmsg_level == SOL_SOCKET && attached->cmsg_type == SCM_RIGHTS)
		{
			int received;

			memcpy(&received, CMSG_DATA(attached), sizeof(received));
			if (fd != NULL)
				*fd = received;
			else
				close(received);
		}
		if (n != sizeof(*message) || (header.msg_flags & MSG_TRUNC) != 0 ||
			message->magic != GPUSORT_PROTOCOL_MAGIC || message->version != GPUSORT_PROTOCOL_VERSION)
		{
			if (fd != NULL && *fd >= 0)
				close(*fd);
			return fail(failure, GPUSORT_REASON_INTERNAL,
						"the sort service speaks another protocol version");
		}
		return true;
	}
}

/* For a message that is not legal where it came. */
static bool
fail_unexpected(GpuSortFailure *failure, const GpuSortMessage *message)
{
	if (message->type == GPUSORT_MSG_FAILED || message->type == GPUSORT_MSG_REFUSED)
		return fail_with_message(failure, message);
	fail(failure, GPUSORT_REASON_INTERNAL, "");
	snprintf(failure->text, sizeof(failure->text), "unexpected message %d from the sort service", message->type);
	return false;
}

/* Has this backend mapped a staging pool, so that a sort need not? */
bool
gpusort_client_has_pool(void)
{
	return newest_pool != NULL;
}

/* Makes the pool that WELCOME describes the newest one, mapping it from fd if it is not yet. */
static bool
map_pool(GpuSortClient *client, const GpuSortMessage *welcome, int fd, GpuSortFailure *failure)
{
	GpuSortPool *pool = newest_pool;

	if (pool == NULL || pool->id != welcome->u.welcome.pool_id)
	{
		void *base;

		if (fd < 0)
			return fail(failure, GPUSORT_REASON_INTERNAL, "the sort service sent no staging pool");
		if (welcome->u.welcome.pool_bytes < welcome->u.welcome.pool_chunks * GPUSORT_CHUNK_BYTES)
			return fail(failure, GPUSORT_REASON_INTERNAL, "the sort service's staging pool is too short");
		base = mmap(NULL, welcome->u.welcome.pool_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (base == MAP_FAILED)
		{
			fail(failure, GPUSORT_REASON_NO_MEMORY, "");
			snprintf(failure->text, sizeof(failure->text), "could not map the staging pool: %s", strerror(errno));
			return false;
		}
		pool = MemoryContextAllocExtended(TopMemoryContext,
										  offsetof(GpuSortPool, populated) +
											  welcome->u.welcome.pool_chunks * sizeof(bool),
										  MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO);
		if (pool == NULL)
		{
			munmap(base, welcome->u.welcome.pool_bytes);
			return fail(failure, GPUSORT_REASON_NO_MEMORY, "out of memory");
		}
		pool->id = welcome->u.welcome.pool_id;
		pool->base = base;
		pool->bytes = welcome->u.welcome.pool_bytes;
		pool->chunks = welcome->u.welcome.pool_chunks;
		pool->clients = 0;
		if (newest_pool != NULL && newest_pool->clients == 0)
		{
			munmap(newest_pool->base, newest_pool->bytes);
			pfree(newest_pool);
		}
		newest_pool = pool;
	}
	pool->clients++;
	client->pool = pool;
	return true;
}

/* Connects and shakes hands. */
static bool
connect_client(GpuSortClient *client, GpuSortFailure *failure)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = GPUSORT_SOCKET_PATH};
	GpuSortMessage message = {0};
	int pool_fd;
	bool mapped;

	if (!AcquireExternalFD())
		return fail(failure, GPUSORT_REASON_UNAVAILABLE, "out of file descriptors");
	client->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (client->socket < 0)
	{
		ReleaseExternalFD();
		return fail(failure, GPUSORT_REASON_UNAVAILABLE, "could not create a socket");
	}
	while (connect(client->socket, (struct sockaddr *) &address, sizeof(address)) != 0)
	{
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN)
		{
			/* The listen queue is full: a UNIX socket offers nothing to wait on. */
			(void) WaitLatch(MyLatch, WL_TIMEOUT | WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, 1, PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
			continue;
		}
		fail(failure, GPUSORT_REASON_UNAVAILABLE, "");
		snprintf(failure->text, sizeof(failure->text), "could not connect to the sort service: %s", strerror(errno));
		return false;
	}

	message.u.hello.pool_id = newest_pool != NULL ? newest_pool->id : 0;
	if (!send_message(client, &message, GPUSORT_MSG_HELLO, failure) ||
		!receive_message(client, &message, &pool_fd, true, failure))
		return false;
	if (message.type == GPUSORT_MSG_WELCOME)
		mapped = map_pool(client, &message, pool_fd, failure);
	else
		mapped = fail_unexpected(failure, &message);
	if (pool_fd >= 0)
		close(pool_fd);
	return mapped;
}

static GpuSortClient *
new_client(void)
{
	GpuSortClient *client = palloc0(sizeof(GpuSortClient));

	client->socket = -1;
	client->on_reset.func = close_client;
	client->on_reset.arg = client;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &client->on_reset);
	return client;
}

static GpuSortClient *
open_client(GpuSortFailure *failure)
{
	GpuSortClient *client = new_client();

	if (connect_client(client, failure))
		return client;
	gpusort_client_end(client);
	return NULL;
}

/* Connects, after waiting for a service that is just starting. */
static GpuSortClient *
wait_and_open_client(GpuSortFailure *failure)
{
	if (gpusort_supervisor_wait_ready(failure->text, sizeof(failure->text)))
		return open_client(failure);
	failure->reason = GPUSORT_REASON_UNAVAILABLE;
	return NULL;
}

/* Asks for a part in a sort; ends the client if there is none to be had. */
static GpuSortClient *
enter_job(GpuSortClient *client, GpuSortMessage *request, GpuSortMessageType type, GpuSortFailure *failure)
{
	GpuSortMessage answer;

	if (!send_message(client, request, type, failure) ||
		!receive_message(client, &answer, NULL, true, failure) ||
		(answer.type != GPUSORT_MSG_JOB && !fail_unexpected(failure, &answer)))
	{
		gpusort_client_end(client);
		return NULL;
	}
	client->engine = answer.u.job.engine;
	client->token = answer.u.job.token;
	memcpy(client->device, answer.u.job.place.device, sizeof(client->device));
	client->device[sizeof(client->device) - 1] = '\0';
	return client;
}

/*
 * Begins a sort; NULL when the service is not there or refuses.  The client is
 * allocated in the current memory context.
 */
GpuSortClient *
gpusort_client_begin(const GpuSortRequest *request, GpuSortFailure *failure)
{
	GpuSortClient *client = wait_and_open_client(failure);
	GpuSortMessage message = {0};

	if (client == NULL)
		return NULL;
	message.u.job_begin = *request;
	return enter_job(client, &message, GPUSORT_MSG_JOB_BEGIN, failure);
}

/*
 * Joins the sort that another process has begun; NULL when the service is not
 * there or refuses.  The client is allocated in the current memory context.
 */
GpuSortClient *
gpusort_client_join(uint64 token, GpuSortFailure *failure)
{
	GpuSortClient *client = open_client(failure);
	GpuSortMessage message = {0};

	if (client == NULL)
		return NULL;
	message.u.job_join.token = token;
	return enter_job(client, &message, GPUSORT_MSG_JOB_JOIN, failure);
}

/* What other processes join the sort by. */
uint64
gpusort_client_token(const GpuSortClient *client)
{
	return client->token;
}

GpuSortEngineKind
gpusort_client_engine(const GpuSortClient *client)
{
	return client->engine;
}

const char *
gpusort_client_device(const GpuSortClient *client)
{
	return client->device;
}

/*
 * Where a chunk is mapped.  Its pages are entered into the page tables in one
 * go when the backend first meets it: a fault for each would take ten times as
 * long.
 */
static char *
chunk_address(GpuSortClient *client, uint32 chunk)
{
	GpuSortPool *pool = client->pool;
	char *address = pool->base + (size_t) chunk * GPUSORT_CHUNK_BYTES;

	if (!pool->populated[chunk])
	{
		/* A kernel before 5.14 does not know how; then the pages fault in one by one. */
		(void) madvise(address, GPUSORT_CHUNK_BYTES, MADV_POPULATE_WRITE);
		pool->populated[chunk] = true;
	}
	return address;
}

/* Takes note of a message that may come while chunks are put. */
static bool
note_ingest_message(GpuSortClient *client, const GpuSortMessage *message, GpuSortFailure *failure)
{
	switch (message->type)
	{
		case GPUSORT_MSG_CHUNK:
			if (message->u.chunk.chunk >= client->pool->chunks || client->ngranted == GPUSORT_JOB_CHUNKS_MAX)
				return fail(failure, GPUSORT_REASON_INTERNAL, "the sort service granted a chunk that cannot be");
			client->granted[client->ngranted++] = message->u.chunk.chunk;
			return true;
		case GPUSORT_MSG_FULL:
			client->full = true;
			fail_with_message(&client->full_reason, message);
			return true;
		default:
			return fail_unexpected(failure, message);
	}
}

/*
 * The next chunk to fill, GPUSORT_CHUNK_BYTES long; waits for one if need be.
 * NULL when the sort takes no more rows (what was put can still be sorted) or
 * is lost: failure->reason tells.
 */
char *
gpusort_client_get_chunk(GpuSortClient *client, GpuSortFailure *failure)
{
	GpuSortMessage message;

	while (client->ngranted == 0)
	{
		if (client->full)
		{
			*failure = client->full_reason;
			return NULL;
		}
		if (!receive_message(client, &message, NULL, true, failure) ||
			!note_ingest_message(client, &message, failure))
			return NULL;
	}
	client->current = client->granted[0];
	client->ngranted--;
	memmove(client->granted, client->granted + 1, client->ngranted * sizeof(client->granted[0]));
	return chunk_address(client, client->current);
}

/* Has get_chunk failed because the service takes no more rows, and for no worse reason? */
bool
gpusort_client_is_full(const GpuSortClient *client)
{
	return client->full;
}

/* Hands over the chunk that get_chunk gave. */
bool
gpusort_client_put_chunk(GpuSortClient *client, uint32 rows, uint32 bytes, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	message.u.put.chunk = client->current;
	message.u.put.rows = rows;
	message.u.put.bytes = bytes;
	return send_message(client, &message, GPUSORT_MSG_CHUNK_PUT, failure);
}

/* Says that no more rows come, by a message of that type, and waits for the answer to it. */
static bool
end_input(GpuSortClient *client, GpuSortMessageType type, GpuSortMessageType answer_type,
		  GpuSortMessage *answer, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	if (!send_message(client, &message, type, failure))
		return false;
	client->ngranted = 0;
	for (;;)
	{
		if (!receive_message(client, answer, NULL, true, failure))
			return false;
		if (answer->type == answer_type)
			return true;
		/* Grants may cross ours on the wire: they are void. */
		if (answer->type != GPUSORT_MSG_CHUNK && answer->type != GPUSORT_MSG_FULL)
			return fail_unexpected(failure, answer);
	}
}

/* After join: what was put is sure to be in the sort when this returns true. */
bool
gpusort_client_leave(GpuSortClient *client, GpuSortFailure *failure)
{
	GpuSortMessage message;

	return end_input(client, GPUSORT_MSG_LEAVE, GPUSORT_MSG_LEFT, &message, failure);
}

/* After begin: ends the input and waits for the order. */
bool
gpusort_client_sort(GpuSortClient *client, GpuSortOutcome *outcome, GpuSortFailure *failure)
{
	GpuSortMessage message;

	if (!end_input(client, GPUSORT_MSG_SORT, GPUSORT_MSG_SORTED, &message, failure))
		return false;
	*outcome = message.u.sorted;
	return true;
}

static bool
free_chunk(GpuSortClient *client, uint32 chunk, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	message.u.chunk.chunk = chunk;
	return send_message(client, &message, GPUSORT_MSG_CHUNK_FREE, failure);
}

/* The next rows in order; waits until they have arrived.  Not legal after last. */
bool
gpusort_client_next_data(GpuSortClient *client, GpuSortData *data, GpuSortFailure *failure)
{
	GpuSortMessage message;

	for (;;)
	{
		if (!receive_message(client, &message, NULL, true, failure))
			return false;
		if (message.type != GPUSORT_MSG_DATA)
			return fail_unexpected(failure, &message);
		if (message.u.data.epoch == client->epoch)
			break;
		if (message.u.data.emitted.rows > 0 && !free_chunk(client, message.u.data.chunk, failure))
			return false;
	}
	if (message.u.data.emitted.rows > 0 && message.u.data.chunk >= client->pool->chunks)
		return fail(failure, GPUSORT_REASON_INTERNAL, "the sort service sent a chunk that cannot be");
	data->chunk = message.u.data.chunk;
	data->emitted = message.u.data.emitted;
	data->rows = data->emitted.rows > 0 ? chunk_address(client, data->chunk) : NULL;
	return true;
}

/*
 * Gives rows back to the service.  When it is gone that shows with the next
 * rows asked for, so there is nothing to return.
 */
void
gpusort_client_free_data(GpuSortClient *client, GpuSortData *data)
{
	GpuSortFailure ignored;

	if (data->rows == NULL)
		return;
	(void) free_chunk(client, data->chunk, &ignored);
	data->rows = NULL;
}

/* The next rows will be the first again.  Rows held must have been freed. */
bool
gpusort_client_rewind(GpuSortClient *client, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	message.u.rewind.epoch = ++client->epoch;
	return send_message(client, &message, GPUSORT_MSG_REWIND, failure);
}

/* Ends the sort, wherever it is; the client's few bytes stay with their context. */
void
gpusort_client_end(GpuSortClient *client)
{
	close_client(client);
}

/* Calls back for every device of the service's engines. */
bool
gpusort_client_devices(GpuSortDeviceCallback callback, void *arg, GpuSortFailure *failure)
{
	GpuSortClient *client = wait_and_open_client(failure);
	GpuSortMessage message = {0};
	bool ok;

	if (client == NULL)
		return false;
	ok = send_message(client, &message, GPUSORT_MSG_STATUS, failure);
	while (ok)
	{
		ok = receive_message(client, &message, NULL, true, failure) &&
			(message.type == GPUSORT_MSG_DEVICE || fail_unexpected(failure, &message));
		if (!ok)
			break;
		message.u.device.state.name[GPUSORT_NAME_BYTES - 1] = '\0';
		message.u.device.state.detail[GPUSORT_NAME_BYTES - 1] = '\0';
		callback(&message, arg);
		if (message.u.device.last)
			break;
	}
	gpusort_client_end(client);
	return ok;
}
