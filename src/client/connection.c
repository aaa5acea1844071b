/*-------------------------------------------------------------------------
 *
 * connection.c
 *	  A backend's connection to the service, and the staging pool it has mapped.
 *
 * Legal order of calls: init, open, (send | receive | has_chunk | chunk)*, close;
 * close is legal at any time after init, and twice.
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
#include "client/connection.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "miscadmin.h"
#include "server/installation.h"
#include "server/shared.h"
#include "server/supervisor.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

struct GpuSortMappedPool
{
	uint64 id;
	char *base;
	size_t bytes;
	uint32 chunks;
	int connections;                       /* unmapped with the last one once it is not the newest */
	bool populated[FLEXIBLE_ARRAY_MEMBER]; /* by chunk: its pages are in our page tables */
};

static GpuSortMappedPool *newest_pool = NULL;

static bool
fail_lost(GpuSortFailure *failure)
{
	return gpusort_failure_set(failure, GPUSORT_REASON_LOST, "the sort service ended or closed the connection");
}

static void
release_pool(GpuSortMappedPool *pool)
{
	Assert(pool->connections > 0);
	if (--pool->connections == 0 && pool != newest_pool)
	{
		munmap(pool->base, pool->bytes);
		pfree(pool);
	}
}

/* A connection that is not open. */
void
gpusort_connection_init(GpuSortConnection *connection)
{
	connection->socket = -1;
	connection->pool = NULL;
}

/* Closes the connection, which ends what the service does for it, and lets go of the pool. */
void
gpusort_connection_close(GpuSortConnection *connection)
{
	if (connection->socket >= 0)
	{
		close(connection->socket);
		ReleaseExternalFD();
		connection->socket = -1;
	}
	if (connection->pool != NULL)
	{
		release_pool(connection->pool);
		connection->pool = NULL;
	}
}

/* Waits for events on the socket; may not return, see file header. */
static void
wait_for_socket(GpuSortConnection *connection, int events)
{
	int ready = WaitLatchOrSocket(MyLatch, events | WL_LATCH_SET | WL_EXIT_ON_PM_DEATH,
								  connection->socket, -1, PG_WAIT_EXTENSION);

	if (ready & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Sends a message, of which the first fields are filled in here; waits while the socket is full. */
bool
gpusort_connection_send(GpuSortConnection *connection, GpuSortMessage *message, GpuSortMessageType type,
						GpuSortFailure *failure)
{
	message->magic = GPUSORT_PROTOCOL_MAGIC;
	message->version = GPUSORT_PROTOCOL_VERSION;
	message->type = type;

	for (;;)
	{
		ssize_t n = send(connection->socket, message, sizeof(*message), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n == sizeof(*message))
			return true;
		if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			return fail_lost(failure);
		if (errno == EAGAIN)
			wait_for_socket(connection, WL_SOCKET_WRITEABLE);
	}
}

/*
 * Waits for the next message.  *fd gets a descriptor that came with it, or -1;
 * fd may be NULL, then it is closed.
 */
static bool
receive_message(GpuSortConnection *connection, GpuSortMessage *message, int *fd, GpuSortFailure *failure)
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
		struct msghdr header = {
			.msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = control.space,
			.msg_controllen = sizeof(control.space),
		};
		ssize_t n = recvmsg(connection->socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		struct cmsghdr *attached;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
		{
			wait_for_socket(connection, WL_SOCKET_READABLE);
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
			return gpusort_failure_set(failure, GPUSORT_REASON_INTERNAL,
									   "the sort service speaks another protocol version");
		}
		return true;
	}
}

/* Waits for the next message; failure->reason is NONE if there is one. */
bool
gpusort_connection_receive(GpuSortConnection *connection, GpuSortMessage *message, GpuSortFailure *failure)
{
	return receive_message(connection, message, NULL, failure);
}

/* Returns true if this backend has mapped a staging pool, so that its next sort need not. */
bool
gpusort_connection_pool_is_mapped(void)
{
	return newest_pool != NULL;
}

/* Makes the pool that WELCOME describes the newest one, mapping it from fd if it is not yet. */
static bool
map_pool(GpuSortConnection *connection, const GpuSortMessage *welcome, int fd, GpuSortFailure *failure)
{
	GpuSortMappedPool *pool = newest_pool;

	if (pool == NULL || pool->id != welcome->u.welcome.pool_id)
	{
		void *base;

		if (fd < 0)
			return gpusort_failure_set(failure, GPUSORT_REASON_INTERNAL, "the sort service sent no staging pool");
		if (welcome->u.welcome.pool_bytes < welcome->u.welcome.pool_chunks * GPUSORT_CHUNK_BYTES)
			return gpusort_failure_set(failure, GPUSORT_REASON_INTERNAL, "the sort service's staging pool is too short");
		base = mmap(NULL, welcome->u.welcome.pool_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (base == MAP_FAILED)
			return gpusort_failure_set(failure, GPUSORT_REASON_NO_MEMORY,
									   "could not map the staging pool: %s", strerror(errno));
		pool = MemoryContextAllocExtended(TopMemoryContext,
										  offsetof(GpuSortMappedPool, populated) +
											  welcome->u.welcome.pool_chunks * sizeof(bool),
										  MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO);
		if (pool == NULL)
		{
			munmap(base, welcome->u.welcome.pool_bytes);
			return gpusort_failure_set(failure, GPUSORT_REASON_NO_MEMORY, "out of memory");
		}
		pool->id = welcome->u.welcome.pool_id;
		pool->base = base;
		pool->bytes = welcome->u.welcome.pool_bytes;
		pool->chunks = welcome->u.welcome.pool_chunks;
		pool->connections = 0;
		if (newest_pool != NULL && newest_pool->connections == 0)
		{
			munmap(newest_pool->base, newest_pool->bytes);
			pfree(newest_pool);
		}
		newest_pool = pool;
	}
	pool->connections++;
	connection->pool = pool;
	return true;
}

/* Connects to a service that is ready, shakes hands, and has its pool mapped. */
bool
gpusort_connection_open(GpuSortConnection *connection, GpuSortFailure *failure)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = GPUSORT_SOCKET_PATH};
	GpuSortMessage message = {0};
	int pool_fd;
	bool mapped;

	if (!AcquireExternalFD())
		return gpusort_failure_set(failure, GPUSORT_REASON_UNAVAILABLE, "out of file descriptors");
	connection->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connection->socket < 0)
	{
		ReleaseExternalFD();
		return gpusort_failure_set(failure, GPUSORT_REASON_UNAVAILABLE, "could not create a socket");
	}
	while (connect(connection->socket, (struct sockaddr *) &address, sizeof(address)) != 0)
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
		return gpusort_failure_set(failure, GPUSORT_REASON_UNAVAILABLE,
								   "could not connect to the sort service: %s", strerror(errno));
	}

	message.u.hello.pool_id = newest_pool != NULL ? newest_pool->id : 0;
	message.u.hello.build = gpusort_module_build();
	if (!gpusort_connection_send(connection, &message, GPUSORT_MSG_HELLO, failure) ||
		!receive_message(connection, &message, &pool_fd, failure))
		return false;
	if (message.type == GPUSORT_MSG_WELCOME)
		mapped = map_pool(connection, &message, pool_fd, failure);
	else
		mapped = gpusort_failure_unexpected(failure, &message);
	if (pool_fd >= 0)
		close(pool_fd);
	return mapped;
}

/* Returns true if chunk, whatever number that is, is one of the pool's. */
bool
gpusort_connection_has_chunk(const GpuSortConnection *connection, uint32 chunk)
{
	return chunk < connection->pool->chunks;
}

/*
 * Where a chunk is mapped.  Its pages are entered into the page tables in one
 * go when the backend first meets it: a fault for each would take ten times as
 * long.
 */
char *
gpusort_connection_chunk(GpuSortConnection *connection, uint32 chunk)
{
	GpuSortMappedPool *pool = connection->pool;
	char *address = pool->base + (size_t) chunk * GPUSORT_CHUNK_BYTES;

	if (!pool->populated[chunk])
	{
		/* A kernel before 5.14 does not know how; then the pages fault in one by one. */
		(void) madvise(address, GPUSORT_CHUNK_BYTES, MADV_POPULATE_WRITE);
		pool->populated[chunk] = true;
	}
	return address;
}
