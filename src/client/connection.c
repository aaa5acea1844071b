/*-------------------------------------------------------------------------
 *
 * connection.c
 *	  A backend's connection to the service.
 *
 * Legal order of calls: init, open, (send | send_file | receive | has_chunk | chunk)*,
 * close; close is legal at any time after init, and twice.
 *
 * Between two of these the caller says in wait what
 * the next ones wait for; after init that is the connection.
 *
 * Every wait watches the connection, the service's pulse, the process latch and
 * the postmaster, so it ends on cancel (by CHECK_FOR_INTERRUPTS), when the service
 * dies or hangs (LOST) and when the postmaster dies (exit); and when the service says nothing
 * for long, not even that it is at work.
 *
 * The staging pool that a connection uses is mapped_pool.c's.
 *
 *-------------------------------------------------------------------------
 */
#include "client/connection.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "miscadmin.h"
#include "server/installation.h"
#include "server/reasons.h"
#include "storage/latch.h"

/*
 * A service that owes an answer is given up after so many looks at the pulse in which it has said nothing: more than
 * the wait in the service's queue, calls of an engine on devices, or reads of disks, may take.
 */
#define SILENT_LOOKS 30

/* The same while an answer waits for nothing but the host engine, whose calls return sooner. */
#define HOST_SILENT_LOOKS 5

static bool
fail_lost(GpuSortFailure *failure)
{
	return gpusort_failure_set(failure, GPUSORT_REASON_LOST, "the sort service ended or closed the connection");
}

/* A connection that is not open. */
void
gpusort_connection_init(GpuSortConnection *connection)
{
	memset(connection, 0, sizeof(*connection));
	connection->socket = -1;
	connection->wait = GPUSORT_WAIT_CONNECT;
	connection->soon = SILENT_LOOKS;
}

/* From now on, what comes soon waits for nothing but calls of the host engine. */
void
gpusort_connection_expect_host(GpuSortConnection *connection)
{
	connection->soon = HOST_SILENT_LOOKS;
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
		gpusort_mapped_pool_release(connection->pool);
		connection->pool = NULL;
	}
}

/*
 * Waits for events on the socket, until a look at the pulse is due, or, without any, for a millisecond; false if the
 * service hangs or is gone.  *waits: this is not the first call of this wait; it is set here.  May not return, see
 * file header.
 */
static bool
wait_for_service(GpuSortConnection *connection, int events, bool *waits, GpuSortFailure *failure)
{
	long milliseconds;
	int ready;

	if (!*waits)
		gpusort_availability_begin_watch(&connection->watch);
	*waits = true;
	milliseconds = events != 0 ? gpusort_availability_look_due(&connection->watch) : 1;
	ready = WaitLatchOrSocket(MyLatch, events | WL_TIMEOUT | WL_LATCH_SET | WL_EXIT_ON_PM_DEATH,
							  events != 0 ? connection->socket : PGINVALID_SOCKET, milliseconds,
							  gpusort_wait_event(connection->wait));

	if (ready & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	if ((ready & events) != 0 || gpusort_availability_look(&connection->watch))
		return true;
	return gpusort_failure_set(failure, GPUSORT_REASON_LOST, "the sort service does not answer");
}

/*
 * The descriptor of a file.  fd.c closes those of files that are
 * not in use, so it is good until another one is opened.
 */
static int
file_descriptor(File file)
{
	int descriptor = FileSize(file) < 0 ? -1 : FileGetRawDesc(file); /* which opens it if need be */

	if (descriptor < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open temporary file \"%s\": %m", FilePathName(file))));
	return descriptor;
}

/* Sends a message if the socket takes it, with the descriptor of file if that is not 0; as sendmsg. */
static ssize_t
try_send(GpuSortConnection *connection, GpuSortMessage *message, File file)
{
	union
	{
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {.iov_base = message, .iov_len = sizeof(*message)};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (file != 0)
	{
		int descriptor = file_descriptor(file);

		memset(&control, 0, sizeof(control));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(descriptor));
		memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(descriptor));
		header.msg_control = control.space;
		header.msg_controllen = sizeof(control.space);
	}
	return sendmsg(connection->socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/*
 * Sends a message, of which the first fields are filled in here, with a descriptor of file if that is not 0;
 * waits while the socket is full.  Errors: the file cannot be opened.
 */
bool
gpusort_connection_send_file(GpuSortConnection *connection, GpuSortMessage *message, GpuSortMessageType type, File file,
							 GpuSortFailure *failure)
{
	bool waits = false;

	message->magic = GPUSORT_PROTOCOL_MAGIC;
	message->version = GPUSORT_PROTOCOL_VERSION;
	message->type = type;

	for (;;)
	{
		ssize_t n = try_send(connection, message, file);

		if (n == sizeof(*message))
			return true;
		if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			return fail_lost(failure);
		if (errno == EAGAIN && !wait_for_service(connection, WL_SOCKET_WRITEABLE, &waits, failure))
			return false;
	}
}

/* The same without a file. */
bool
gpusort_connection_send(GpuSortConnection *connection, GpuSortMessage *message, GpuSortMessageType type,
						GpuSortFailure *failure)
{
	return gpusort_connection_send_file(connection, message, type, 0, failure);
}

/*
 * Waits for the next message, but for so many looks at most while the service says nothing.  *fd gets a
 * descriptor that came with it, or -1; fd may be NULL, then it is closed.
 */
static bool
receive_message(GpuSortConnection *connection, GpuSortMessage *message, int looks, int *fd, GpuSortFailure *failure)
{
	bool waits = false;

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
			if (!wait_for_service(connection, WL_SOCKET_READABLE, &waits, failure))
				return false;
			if (connection->watch.silent >= looks)
				return gpusort_failure_set(failure, GPUSORT_REASON_LOST, "the sort service has not answered for %d seconds",
										   looks * GPUSORT_LOOK_MS / 1000);
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
		if (message->type != GPUSORT_MSG_PONG)
			return true;
		waits = false;
	}
}

/*
 * Waits for the next message; failure->reason is NONE if there is one.  What it answers may take long, but while the
 * service is at it, it says so each second.
 */
bool
gpusort_connection_receive(GpuSortConnection *connection, GpuSortMessage *message, GpuSortFailure *failure)
{
	return receive_message(connection, message, SILENT_LOOKS, NULL, failure);
}

/*
 * The same for a message that does not take long, however large the sort is and whatever
 * others there are: when it does not come it never will, and the service is as good as lost.
 */
bool
gpusort_connection_receive_soon(GpuSortConnection *connection, GpuSortMessage *message, GpuSortFailure *failure)
{
	return receive_message(connection, message, connection->soon, NULL, failure);
}

/* Maps the pool that WELCOME describes, from fd if it is not the one that the connection has taken. */
static bool
settle_pool(GpuSortConnection *connection, const GpuSortMessage *welcome, int fd, GpuSortFailure *failure)
{
	uint64 id = welcome->u.welcome.pool_id;

	if (connection->pool != NULL && gpusort_mapped_pool_id(connection->pool) == id)
		return true;
	if (fd < 0)
		return gpusort_failure_set(failure, GPUSORT_REASON_INTERNAL, "the sort service sent no staging pool");
	if (connection->pool != NULL)
		gpusort_mapped_pool_release(connection->pool);
	connection->pool = gpusort_mapped_pool_map(id, connection->watch.generation, welcome->u.welcome.pool_bytes,
											   welcome->u.welcome.pool_chunks, fd, failure);
	return connection->pool != NULL;
}

/* Connects to the ready service of that generation, exchanges versions with it, and maps its pool. */
bool
gpusort_connection_open(GpuSortConnection *connection, uint32 generation, GpuSortFailure *failure)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char path[MAXPGPATH];
	GpuSortMessage message = {0};
	int pool_fd;
	bool mapped;
	bool waits = false;

	connection->watch.generation = generation;
	gpusort_socket_path(generation, path);
	strlcpy(address.sun_path, path, sizeof(address.sun_path));
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
			if (!wait_for_service(connection, 0, &waits, failure))
				return false;
			continue;
		}
		return gpusort_failure_set(failure, GPUSORT_REASON_UNAVAILABLE,
								   "could not connect to the sort service: %s", strerror(errno));
	}

	connection->pool = gpusort_mapped_pool_take();
	message.u.hello.pool_id = connection->pool != NULL ? gpusort_mapped_pool_id(connection->pool) : 0;
	message.u.hello.build = gpusort_module_build();
	if (!gpusort_connection_send(connection, &message, GPUSORT_MSG_HELLO, failure) ||
		!receive_message(connection, &message, connection->soon, &pool_fd, failure))
		return false;
	if (message.type == GPUSORT_MSG_WELCOME)
		mapped = settle_pool(connection, &message, pool_fd, failure);
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
	return gpusort_mapped_pool_has_chunk(connection->pool, chunk);
}

/* Where a chunk is mapped. */
char *
gpusort_connection_chunk(GpuSortConnection *connection, uint32 chunk)
{
	return gpusort_mapped_pool_chunk(connection->pool, chunk);
}
