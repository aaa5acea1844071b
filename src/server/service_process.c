/*-------------------------------------------------------------------------
 *
 * service_process.c
 *	  A process of the sort service, as its supervisor has it.
 *
 * Legal order of calls: start; then any but start, in any order, until has_ended
 * returns true, which is told once.  Nothing here waits, and nothing is logged:
 * what it means is for the supervisor to say.
 *
 * Supervisor and service hold the two ends of a socket pair.  When the service
 * sees its end close, it exits: so it never outlives the supervisor, which
 * never outlives the postmaster, not even one killed with -9.
 *
 *-------------------------------------------------------------------------
 */
#include "server/service_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/installation.h"
#include "settings.h"
#include "storage/fd.h"

/* A service that is not ready after so long is given up; pinning of the staging pool takes its time. */
#define START_LIMIT_MS        30000
#define START_LIMIT_MS_PER_GB 1000

extern char **environ;

/* Milliseconds of a clock that only goes forward; never 0. */
uint64
gpusort_process_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64) now.tv_sec * 1000 + now.tv_nsec / 1000000 + 1;
}

static void
add_argument(GpuSortServiceArguments *list, const char *fmt, ...) pg_attribute_printf(2, 3);

/* Appends an argument, formatted as by printf. */
static void
add_argument(GpuSortServiceArguments *list, const char *fmt, ...)
{
	va_list values;

	Assert(list->count < GPUSORT_SERVICE_ARGUMENTS);
	va_start(values, fmt);
	vsnprintf(list->text[list->count++], MAXPGPATH, fmt, values);
	va_end(values);
}

/* Adds gpusort.devices as the service reads it, without blanks; for 'none' it turns the cuda engine off. */
static void
add_devices(GpuSortServiceArguments *list)
{
	bool none = strcmp(gpusort_devices, "none") == 0;
	char devices[MAXPGPATH];
	char *to = devices;

	strlcpy(devices, none ? "all" : gpusort_devices, sizeof(devices));
	for (const char *from = devices; *from != '\0'; from++)
	{
		if (*from != ' ' && *from != '\t')
			*to++ = *from;
	}
	*to = '\0';
	add_argument(list, "--engine");
	add_argument(list, "%s", none ? "host" : "auto");
	add_argument(list, "--devices");
	add_argument(list, "%s", devices);
}

/* Fills in the command line of a service of that generation under the present settings. */
static void
build_arguments(GpuSortServiceArguments *list, uint32 generation)
{
	const uint64 mb = UINT64CONST(1) << 20;
	char path[MAXPGPATH];

	memset(list, 0, sizeof(*list));
	gpusort_installed_path(GPUSORT_SERVICE_FILE, path);
	add_argument(list, "%s", path);
	add_argument(list, "--build");
	add_argument(list, "%016llx", (unsigned long long) gpusort_module_build());
	gpusort_installed_path(GPUSORT_CUDA_ENGINE_FILE, path);
	add_argument(list, "--cuda-library");
	add_argument(list, "%s", path);
	gpusort_socket_path(generation, path);
	add_argument(list, "--socket");
	add_argument(list, "%s", path);
	add_devices(list);
	add_argument(list, "--device-memory");
	add_argument(list, UINT64_FORMAT, gpusort_device_memory * mb);
	add_argument(list, "--host-memory");
	add_argument(list, UINT64_FORMAT, gpusort_host_memory * mb);
	add_argument(list, "--staging-memory");
	add_argument(list, UINT64_FORMAT, gpusort_staging_memory * mb);
	add_argument(list, "--threads");
	add_argument(list, "%d", gpusort_host_threads);
}

/* Returns true if it would be started otherwise today. */
bool
gpusort_process_is_outdated(const GpuSortServiceProcess *process)
{
	GpuSortServiceArguments wanted;

	build_arguments(&wanted, process->generation);
	return memcmp(&wanted, &process->arguments, sizeof(wanted)) != 0;
}

/* How long a service may take, in milliseconds, until it is ready. */
uint64
gpusort_process_start_limit(void)
{
	return START_LIMIT_MS + (uint64) gpusort_staging_memory / 1024 * START_LIMIT_MS_PER_GB;
}

/*
 * Spawns a service with one end of a new socket pair as its standard input.  If that fails errno says
 * why, and process->pid is 0.
 */
bool
gpusort_process_start(GpuSortServiceProcess *process, uint32 generation)
{
	int pair[2];
	char *argv[GPUSORT_SERVICE_ARGUMENTS + 1] = {0};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t signals;
	pid_t pid;
	int error;

	memset(process, 0, sizeof(*process));
	process->control = -1;
	build_arguments(&process->arguments, generation);
	for (int i = 0; i < process->arguments.count; i++)
		argv[i] = process->arguments.text[i];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
		return false;

	/* Signals as a program started from a shell has them. */
	posix_spawnattr_init(&attributes);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&attributes, &signals);
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	/* A group of its own: Ctrl-C in the postmaster's terminal is not for it. */
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pair[1], STDIN_FILENO);

	error = posix_spawn(&pid, argv[0], &actions, &attributes, argv, environ);

	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	close(pair[1]);
	if (error != 0)
	{
		close(pair[0]);
		errno = error;
		return false;
	}
	process->pid = pid;
	process->control = pair[0];
	process->generation = generation;
	process->started = gpusort_process_now();
	return true;
}

/* Closes our end of the socket pair; the service exits when it sees that. */
void
gpusort_process_close(GpuSortServiceProcess *process)
{
	if (process->control >= 0)
		close(process->control);
	process->control = -1;
}

/*
 * Returns true if there is a message from the service.  When there will be no more, because it has
 * closed its end, process->closed is set.
 */
bool
gpusort_process_receive(GpuSortServiceProcess *process, GpuSortMessage *message)
{
	ssize_t n;

	if (process->control < 0)
		return false;
	do
		n = recv(process->control, message, sizeof(*message), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0)
	{
		if (n != sizeof(*message))
			memset(message, 0, sizeof(*message)); /* is no message of this protocol */
		return true;
	}
	if (n == 0 || errno != EAGAIN)
	{
		process->closed = gpusort_process_now();
		gpusort_process_close(process);
	}
	return false;
}

static bool
send_message(GpuSortServiceProcess *process, GpuSortMessageType type)
{
	GpuSortMessage message = {
		.magic = GPUSORT_PROTOCOL_MAGIC,
		.version = GPUSORT_PROTOCOL_VERSION,
		.type = type,
	};

	return process->control >= 0 &&
		send(process->control, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(message);
}

/*
 * Asks whether it is alive; false if it has left too many such questions unanswered.  One that does
 * not count is asked by a supervisor that was late itself: then the service may have been, too.
 */
bool
gpusort_process_ping(GpuSortServiceProcess *process, bool counts)
{
	if (process->unanswered >= GPUSORT_PINGS_UNANSWERED)
		return false;
	/* One that does not fit into the socket, since nobody reads there, counts all the same. */
	(void) send_message(process, GPUSORT_MSG_PING);
	if (counts)
		process->unanswered++;
	return true;
}

/* Tells it to end after its last sort; to be called again until told_drain is set. */
void
gpusort_process_drain(GpuSortServiceProcess *process)
{
	if (process->drained == 0)
		process->drained = gpusort_process_now();
	process->told_drain = send_message(process, GPUSORT_MSG_DRAIN);
}

/* Kills it; that it has ended is seen later, if ever. */
void
gpusort_process_kill(GpuSortServiceProcess *process)
{
	if (process->killed == 0)
		process->killed = gpusort_process_now();
	kill(process->pid, SIGKILL);
}

/* Returns true, once, if it has ended: process->status is how, process->pid is 0 from then on. */
bool
gpusort_process_has_ended(GpuSortServiceProcess *process)
{
	if (process->pid == 0 || waitpid(process->pid, &process->status, WNOHANG) != process->pid)
		return false;
	process->pid = 0;
	return true;
}

/* Fills in how it has ended. */
void
gpusort_process_how_it_ended(const GpuSortServiceProcess *process, char *text, size_t size)
{
	int status = process->status;

	if (WIFSIGNALED(status))
		snprintf(text, size, "was terminated by signal %d: %s", WTERMSIG(status), pg_strsignal(WTERMSIG(status)));
	else
		snprintf(text, size, "exited with exit code %d", WEXITSTATUS(status));
}

/* Removes a socket and its lock, if no service holds it. */
static void
remove_files(const char *socket)
{
	char lock[MAXPGPATH];
	int fd;

	snprintf(lock, sizeof(lock), "%s.lock", socket);
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
	{
		(void) unlink(socket);
		(void) unlink(lock);
	}
	close(fd);
}

/* Removes what a service that has ended could not remove itself. */
void
gpusort_process_remove_files(const GpuSortServiceProcess *process)
{
	char path[MAXPGPATH];

	gpusort_socket_path(process->generation, path);
	remove_files(path);
}

/* Removes what services of earlier runs of the server have left, of whatever build they were. */
void
gpusort_process_remove_old_files(void)
{
	DIR *directory = AllocateDir(GPUSORT_SOCKET_DIRECTORY);
	struct dirent *entry;

	while ((entry = ReadDirExtended(directory, GPUSORT_SOCKET_DIRECTORY, LOG)) != NULL)
	{
		char path[MAXPGPATH];
		char *end;

		if (strncmp(entry->d_name, GPUSORT_SOCKET_PREFIX, strlen(GPUSORT_SOCKET_PREFIX)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", GPUSORT_SOCKET_DIRECTORY, entry->d_name);
		end = strstr(path, ".sock");
		if (end == NULL || (strcmp(end, ".sock") != 0 && strcmp(end, ".sock.lock") != 0))
			continue;
		end[strlen(".sock")] = '\0';
		remove_files(path);
	}
	FreeDir(directory);
}
