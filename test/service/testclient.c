/*-------------------------------------------------------------------------
 *
 * testclient.c
 *	  A client's side of protocol.h, for the tests.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "build_id.h"
#include "testlib.h"

static bool clients_share_process;

/* Whether clients to come connect as one process, or each as one of its own. */
void
clients_are_one_process(bool one)
{
	clients_share_process = one;
}

/* Connects a socket, which from then on is of the process that does so. */
static bool
connect_socket(int socket, const struct sockaddr_un *address)
{
	pid_t pid = -1;
	int status;

	if (!clients_share_process)
		pid = fork();
	if (pid > 0)
		return waitpid(pid, &status, 0) == pid && status == 0;
	status = connect(socket, (const struct sockaddr *) address, sizeof(*address));
	if (pid == 0)
		_exit(status != 0);
	return status == 0;
}

bool
client_connect(Client *client, const Service *service)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memset(client, 0, sizeof(*client));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", service->socket);
	client->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (client->socket < 0)
		bail("socket: %s", strerror(errno));
	if (connect_socket(client->socket, &address))
		return true;
	close(client->socket);
	client->socket = -1;
	return false;
}

bool
client_send(Client *client, GpuSortMessageType type, GpuSortMessage message)
{
	message.magic = GPUSORT_PROTOCOL_MAGIC;
	message.version = GPUSORT_PROTOCOL_VERSION;
	message.type = type;
	return send(client->socket, &message, sizeof(message), MSG_NOSIGNAL) == sizeof(message);
}

bool
client_receive(Client *client, GpuSortMessage *message, int milliseconds)
{
	const double end = now_ms() + milliseconds;

	do
	{
		const double left = end - now_ms();

		if (!receive_message(client->socket, message, left > 0 ? (int) left : 0) ||
			message->magic != GPUSORT_PROTOCOL_MAGIC || message->version != GPUSORT_PROTOCOL_VERSION)
			return false;
	} while (message->type == GPUSORT_MSG_PONG);
	return true;
}

GpuSortMessage
client_expect(Client *client, GpuSortMessageType type)
{
	GpuSortMessage message;

	if (!client_receive(client, &message, ANSWER_MS))
		bail("message %d did not come", type);
	if (message.type != type)
		bail("message %d came in place of %d: %s", message.type, type,
			 message.type == GPUSORT_MSG_REFUSED || message.type == GPUSORT_MSG_FAILED ||
					 message.type == GPUSORT_MSG_FULL
				 ? message.u.failure.text
				 : "");
	return message;
}

/* Connects, says HELLO, maps the pool; false if the service does not let it, or does not answer. */
bool
client_try_open(Client *client, const Service *service)
{
	GpuSortMessage welcome;
	char space[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct iovec part = {.iov_base = &welcome, .iov_len = sizeof(welcome)};
	struct msghdr header = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
	struct cmsghdr *rights;
	struct pollfd event;
	int descriptor;

	if (!client_connect(client, service))
		return false;
	client_send(client, GPUSORT_MSG_HELLO, (GpuSortMessage){.u.hello.build = GPUSORT_BUILD});
	event = (struct pollfd){.fd = client->socket, .events = POLLIN};
	if (poll(&event, 1, ANSWER_MS) <= 0 ||
		recvmsg(client->socket, &header, MSG_CMSG_CLOEXEC) != sizeof(welcome) ||
		welcome.type != GPUSORT_MSG_WELCOME)
	{
		client_close(client);
		return false;
	}
	rights = CMSG_FIRSTHDR(&header);
	if (rights == NULL || rights->cmsg_type != SCM_RIGHTS)
		bail("WELCOME came without a descriptor");
	memcpy(&descriptor, CMSG_DATA(rights), sizeof(int));
	client->pool_id = welcome.u.welcome.pool_id;
	client->pool_chunks = welcome.u.welcome.pool_chunks;
	client->engines = welcome.u.welcome.engines;
	client->pool = mmap(NULL, welcome.u.welcome.pool_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
						descriptor, 0);
	if (client->pool == MAP_FAILED)
		bail("mmap of the pool: %s", strerror(errno));
	close(descriptor);
	return true;
}

void
client_open(Client *client, const Service *service)
{
	if (!client_try_open(client, service))
		bail("no WELCOME");
}

void
client_close(Client *client)
{
	if (client->pool != NULL)
		munmap(client->pool, client->pool_chunks * GPUSORT_CHUNK_BYTES);
	client->pool = NULL;
	if (client->socket >= 0)
		close(client->socket);
	client->socket = -1;
}

/* Returns true if the service closes the connection in time.  What it sends before is skipped. */
bool
client_is_closed(Client *client, int milliseconds)
{
	double end = now_ms() + milliseconds;
	GpuSortMessage message;

	while (now_ms() < end)
	{
		struct pollfd event = {.fd = client->socket, .events = POLLIN};

		if (poll(&event, 1, 50) > 0 &&
			recv(client->socket, &message, sizeof(message), MSG_DONTWAIT) <= 0)
			return true;
	}
	return false;
}

void *
client_chunk(Client *client, uint32_t chunk)
{
	if (chunk >= client->pool_chunks)
		bail("chunk %u of %u", chunk, client->pool_chunks);
	return client->pool + chunk * GPUSORT_CHUNK_BYTES;
}

/* Sends JOB_BEGIN; returns JOB or REFUSED. */
static GpuSortMessage
begin(Client *client, GpuSortRequest request)
{
	GpuSortMessage message = {.u.job_begin = request};

	client_send(client, GPUSORT_MSG_JOB_BEGIN, message);
	if (!client_receive(client, &message, ANSWER_MS) ||
		(message.type != GPUSORT_MSG_JOB && message.type != GPUSORT_MSG_REFUSED))
		bail("no answer to JOB_BEGIN");
	return message;
}

GpuSortMessage
client_begin(Client *client, uint32_t key_words, bool may_tie, uint64_t rows, uint64_t bytes)
{
	return begin(client, (GpuSortRequest){
							 .key_words = key_words,
							 .may_tie = may_tie,
							 .estimated_rows = rows,
							 .estimated_bytes = bytes,
						 });
}

/* Of a sort whose rows are read by intervals. */
GpuSortMessage
client_begin_shared(Client *client, uint32_t key_words)
{
	return begin(client, (GpuSortRequest){.key_words = key_words, .may_tie = 1, .shared = 1});
}

/* Asks for the devices; true if none of them has a sort or memory of one. */
static bool
sees_idle(const Service *service)
{
	Client client;
	GpuSortMessage device = {.magic = 0};
	bool idle;

	if (!client_try_open(&client, service))
		return false;
	idle = client_send(&client, GPUSORT_MSG_STATUS, device);
	do
	{
		idle &= client_receive(&client, &device, ANSWER_MS) && device.type == GPUSORT_MSG_DEVICE &&
			device.u.device.state.memory_used == 0 && device.u.device.state.jobs == 0;
	} while (idle && !device.u.device.last);
	client_close(&client);
	return idle;
}

/* Returns true if all sorts end and give their memory back, which they do soon after their clients are gone. */
bool
client_sees_idle(const Service *service)
{
	double end = now_ms() + ANSWER_MS;
	bool idle;

	while (!(idle = sees_idle(service)) && now_ms() < end)
		usleep(10000);
	return idle;
}

/*
 * Returns true if so many sorts can be under way at once, each with the chunks that it is guaranteed. The
 * service closes a dead client's sort when it hears of it, so it is asked again for a while.
 */
bool
client_sees_room(const Service *service, int sorts)
{
	Client clients[64];
	double end = now_ms() + ANSWER_MS;
	bool good = false;

	if (sorts > 64)
		bail("%d sorts at once", sorts);
	while (!good && now_ms() < end)
	{
		GpuSortMessage answer;
		int n = 0;

		good = true;
		while (good && n < sorts)
		{
			good = client_try_open(&clients[n], service);
			if (!good)
				break;
			client_send(&clients[n], GPUSORT_MSG_JOB_BEGIN, (GpuSortMessage){.u.job_begin.key_words = 1});
			good = client_receive(&clients[n], &answer, ANSWER_MS) && answer.type == GPUSORT_MSG_JOB;
			n++;
		}
		while (n > 0)
			client_close(&clients[--n]);
		if (!good)
			usleep(20000);
	}
	return good;
}
