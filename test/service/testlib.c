/*-------------------------------------------------------------------------
 *
 * testlib.c
 *	  TAP, a service, and a client's side of protocol.h, for the tests.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "build_id.h"
#include "testlib.h"

static int tests;
static int failures;

bool
ok(bool good, const char *format, ...)
{
	va_list args;

	printf("%sok %d - ", good ? "" : "not ", ++tests);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	if (!good)
		failures++;
	return good;
}

void
diag(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

void
bail(const char *format, ...)
{
	va_list args;

	printf("Bail out! ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	exit(1);
}

int
done_testing(void)
{
	printf("1..%d\n", tests);
	return failures > 0;
}

double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static uint64_t random_state = 1;

void
random_seed(uint64_t seed)
{
	random_state = seed;
}

/* splitmix64 */
uint64_t
random64(void)
{
	uint64_t z = random_state += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/*
 * The service
 */

static char directory[64];

static void
remove_directory(void)
{
	char line[128];

	snprintf(line, sizeof(line), "rm -rf '%s'", directory);
	if (system(line) != 0)
		fprintf(stderr, "could not remove %s\n", directory);
}

/* A directory of this program, gone with it. */
const char *
test_directory(void)
{
	if (directory[0] == '\0')
	{
		strcpy(directory, "/tmp/gpusort-test-XXXXXX");
		if (mkdtemp(directory) == NULL)
			bail("mkdtemp: %s", strerror(errno));
		atexit(remove_directory);
	}
	return directory;
}

const char *
service_program(void)
{
	const char *program = getenv("GPUSORTD");

	return program ? program : "./gpusortd";
}

static pid_t
spawn(const char *socket, const char *const *options, int control)
{
	const char *args[64] = {service_program(), "--socket", socket, "--engine", "host"};
	int n = 5;
	pid_t pid;

	while (*options != NULL)
		args[n++] = *options++;
	pid = fork();
	if (pid < 0)
		bail("fork: %s", strerror(errno));
	if (pid == 0)
	{
		if (dup2(control, 0) != 0)
			_exit(126);
		execv(args[0], (char **) args);
		_exit(127);
	}
	return pid;
}

/* Reads a message from a socket; false when none comes in time or it is closed. */
static bool
receive(int socket, GpuSortMessage *message, int milliseconds)
{
	struct pollfd event = {.fd = socket, .events = POLLIN};

	if (poll(&event, 1, milliseconds) <= 0)
		return false;
	return recv(socket, message, sizeof(*message), MSG_DONTWAIT) == sizeof(*message);
}

/* Notes a LOG message. */
static void
note_log(Service *service, const GpuSortMessage *message)
{
	memcpy(service->last_log, message->u.log.text, sizeof(service->last_log));
	service->warnings += message->u.log.warning != 0;
}

/* On a socket of its own. */
void
service_start(Service *service, const char *const *options)
{
	static int number;
	char path[100];

	snprintf(path, sizeof(path), "%s/s%d-%d", test_directory(), (int) getpid(), number++);
	service_start_at(service, path, options);
}

/* Starts a service; returns true if it becomes ready in time. */
bool
service_begin(Service *service, const char *path, const char *const *options)
{
	int pair[2];

	memset(service, 0, sizeof(*service));
	snprintf(service->socket, sizeof(service->socket), "%s", path);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		bail("socketpair: %s", strerror(errno));
	service->pid = spawn(service->socket, options, pair[1]);
	service->control = pair[0];
	close(pair[1]);
	do
	{
		if (!receive(service->control, &service->ready, ANSWER_MS))
			return false;
		if (service->ready.type == GPUSORT_MSG_LOG)
			note_log(service, &service->ready);
	} while (service->ready.type != GPUSORT_MSG_READY);
	return true;
}

void
service_start_at(Service *service, const char *path, const char *const *options)
{
	if (!service_begin(service, path, options))
		bail("%s did not become ready: %s", service_program(), service->last_log);
}

/* Starts a service that is expected to fail; returns its exit code, -1 if it does not end. */
int
service_try(const char *socket, const char *const *options, int milliseconds)
{
	Service service = {.control = -1};
	int pair[2];
	int code;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		bail("socketpair: %s", strerror(errno));
	service.pid = spawn(socket, options, pair[1]);
	close(pair[1]);
	code = service_wait(&service, milliseconds);
	close(pair[0]);
	if (code < 0)
	{
		kill(service.pid, SIGKILL);
		waitpid(service.pid, NULL, 0);
	}
	return code;
}

/* Waits for a LOG message that has part in it. */
bool
service_log(Service *service, const char *part, int milliseconds)
{
	double end = now_ms() + milliseconds;
	GpuSortMessage message;

	while (now_ms() < end)
	{
		if (!receive(service->control, &message, 50))
			continue;
		if (message.type != GPUSORT_MSG_LOG)
			continue;
		note_log(service, &message);
		if (strstr(message.u.log.text, part) != NULL)
			return true;
	}
	return false;
}

void
service_send(Service *service, GpuSortMessageType type)
{
	GpuSortMessage message = {
		.magic = GPUSORT_PROTOCOL_MAGIC, .version = GPUSORT_PROTOCOL_VERSION, .type = type};

	if (send(service->control, &message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
		bail("the control socket is gone");
}

/* Sends a PING of that number; returns true if its PONG comes in time. */
bool
service_pong(Service *service, uint64_t number, int milliseconds)
{
	GpuSortMessage message = {.magic = GPUSORT_PROTOCOL_MAGIC,
							  .version = GPUSORT_PROTOCOL_VERSION,
							  .type = GPUSORT_MSG_PING,
							  .u.ping.number = number};

	if (send(service->control, &message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
		bail("the control socket is gone");
	while (receive(service->control, &message, milliseconds))
	{
		if (message.type == GPUSORT_MSG_PONG)
			return message.u.ping.number == number;
	}
	return false;
}

/* The exit code, 1000 and the signal that ended it, or -1 if it still runs. */
int
service_wait(Service *service, int milliseconds)
{
	double end = now_ms() + milliseconds;
	int status;

	if (service->pid <= 0)
		bail("the service was waited for already");
	do
	{
		pid_t pid = waitpid(service->pid, &status, WNOHANG);

		if (pid == service->pid)
		{
			service->pid = -1;
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
		}
		usleep(2000);
	} while (now_ms() < end);
	return -1;
}

/*
 * Ends the service through its control socket, if it has not ended; returns as
 * service_wait.  Sanitizers tell what they found by the exit code, so anything
 * but 0 is a failed test.
 */
int
service_stop(Service *service)
{
	int code = 0;

	close(service->control);
	if (service->pid <= 0)
		return 0;
	code = service_wait(service, ANSWER_MS);
	if (code < 0)
	{
		kill(service->pid, SIGKILL);
		waitpid(service->pid, NULL, 0);
	}
	if (code != 0)
		ok(false, "the service ends in order (%d)", code);
	return code;
}

/*
 * Clients
 */

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
	return receive(client->socket, message, milliseconds) &&
		message->magic == GPUSORT_PROTOCOL_MAGIC && message->version == GPUSORT_PROTOCOL_VERSION;
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
	for (int i = 0; i < 400; i++)
	{
		if (sees_idle(service))
			return true;
		usleep(10000);
	}
	return false;
}

/*
 * Returns true if so many sorts can be under way at once, each with the chunks that it is guaranteed. The
 * service closes a dead client's sort when it hears of it, so it is asked again for a while.
 */
bool
client_sees_room(const Service *service, int sorts)
{
	Client clients[64];
	bool good = false;

	if (sorts > 64)
		bail("%d sorts at once", sorts);
	for (int attempt = 0; attempt < 100 && !good; attempt++)
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
