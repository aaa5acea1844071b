/*-------------------------------------------------------------------------
 *
 * testlib.c
 *	  TAP, random numbers, and a service, for the tests.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

/* What is wrong, for the text of a test. */
const char *
told(const char *problem)
{
	return problem != NULL ? problem : "well";
}

double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* The processor time that a process has taken, all threads together; 0: this one. */
double
processor_ms(pid_t pid)
{
	struct timespec taken;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &taken) != 0)
		bail("no processor time of process %d", (int) pid);
	return taken.tv_sec * 1e3 + taken.tv_nsec / 1e6;
}

/* How many descriptors a process has. */
int
count_descriptors(pid_t pid)
{
	char path[64];
	DIR *directory;
	int count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int) pid);
	directory = opendir(path);
	if (directory == NULL)
		bail("%s: %s", path, strerror(errno));
	while (readdir(directory) != NULL)
		count++;
	closedir(directory);
	return count;
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
	setenv("GPUSORT_FAKE_TELLS", test_directory(), 1);
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
bool
receive_message(int socket, GpuSortMessage *message, int milliseconds)
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
		if (!receive_message(service->control, &service->ready, ANSWER_MS))
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

/* Waits for a LOG message that has part in it, while the service may send one; what is there is read in any case. */
bool
service_log(Service *service, const char *part, int milliseconds)
{
	double end = now_ms() + milliseconds;
	GpuSortMessage message;
	char byte;

	for (;;)
	{
		double left = end - now_ms();

		if (!receive_message(service->control, &message, left > 0 ? (int) left : 0))
		{
			if (left <= 0 || recv(service->control, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
				return false;
			continue;
		}
		if (message.type != GPUSORT_MSG_LOG)
			continue;
		note_log(service, &message);
		if (strstr(message.u.log.text, part) != NULL)
			return true;
	}
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
	while (receive_message(service->control, &message, milliseconds))
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

/* Waits until a call of the fake engine (fake_engine.c) has begun that hangs or is slow; returns true if one does. */
bool
fake_call_begun(const Service *service)
{
	double end = now_ms() + ANSWER_MS;
	char path[128];

	snprintf(path, sizeof(path), "%s/call-%d", test_directory(), (int) service->pid);
	while (access(path, F_OK) != 0)
	{
		if (now_ms() > end)
			return false;
		usleep(2000);
	}
	return true;
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
