/*-------------------------------------------------------------------------
 *
 * supervisor.c
 *	  The background worker that keeps the sort service gpusortd running.
 *
 * The service is a process of its own that knows nothing of PostgreSQL: a
 * driver that faults in it cannot restart the server.  The supervisor spawns
 * it, tells the backends through shared memory when it is ready, logs what it
 * reports, starts it again with growing delays when it ends, and replaces it
 * when the administrator's settings have changed.
 *
 * Supervisor and service hold the two ends of a socket pair.  When the service
 * sees its end close, it exits: so it never outlives the supervisor, which
 * never outlives the postmaster, not even one killed with -9.  There is one
 * supervisor per server (shared->service.supervisor_pid), and the service locks
 * its socket path besides.
 *
 *	 NONE --spawn--> STARTING --READY--> READY --settings--> DRAINING
 *						|				   |				   |
 *						+---- exit --------+--> BACKOFF		   | exit
 *						^						   |		   |
 *						+------- delay over -------+-----------+
 *
 *-------------------------------------------------------------------------
 */
#include "server/supervisor.h"

#include <errno.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "server/installation.h"
#include "server/shared.h"
#include "service/protocol.h"
#include "settings.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/procarray.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* A service that was ready for this long starts the delays anew. */
#define STABLE_MS      10000
#define FIRST_DELAY_MS 200
#define LAST_DELAY_MS  60000

/* How long a query waits for a service that is just starting. */
#define READY_WAIT_MS 10000
#define DRAIN_WAIT_MS 1000 /* or for one that has old sorts to end first */

/* How long the supervisor gives the service to end before it kills it. */
#define EXIT_WAIT_MS 2000

/* A failed attempt to get a supervisor is not repeated by this session for so long. */
#define REGISTER_RETRY_MS 10000

/* The arguments the service was started with; a change of theirs replaces it. */
#define MAX_ARGUMENTS 20
typedef struct ServiceArguments
{
	int count;
	char text[MAX_ARGUMENTS][MAXPGPATH];
} ServiceArguments;

/* The supervisor's own: the service that runs, or the next one */
static ServiceArguments arguments; /* of the one that was started last */
static int control = -1;           /* our end of the socket pair; -1: no service */
static pid_t service_pid = 0;
static TimestampTz ready_since = 0; /* 0: not ready */
static TimestampTz next_start = 0;
static int delay_ms = FIRST_DELAY_MS;        /* before the next start */
static int failures = 0;                     /* starts in a row that led to no ready service; only the first is logged */
static int last_status = 0;                  /* how the last one ended */
static char last_report[GPUSORT_TEXT_BYTES]; /* what services had to say, the last time */

/* A backend's own: when it last found no worker slot for a supervisor; 0: never, or one since */
static TimestampTz register_failed = 0;

/* Likewise: it is not to start one */
static bool leave_alone = false;

extern char **environ;

/* Tells the backends, those that wait for the service too. */
static void
set_state(GpuSortServiceState service_state)
{
	GpuSortShared *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	state->service.state = service_state;
	LWLockRelease(&state->lock);
	ConditionVariableBroadcast(&state->service_changed);
}

static void
add_argument(ServiceArguments *list, const char *fmt, ...) pg_attribute_printf(2, 3);

/* Appends an argument, formatted as by printf. */
static void
add_argument(ServiceArguments *list, const char *fmt, ...)
{
	va_list values;

	Assert(list->count < MAX_ARGUMENTS);
	va_start(values, fmt);
	vsnprintf(list->text[list->count++], MAXPGPATH, fmt, values);
	va_end(values);
}

/* Fills in the service's command line under the present settings. */
static void
build_arguments(ServiceArguments *list)
{
	const uint64 mb = UINT64CONST(1) << 20;
	char path[MAXPGPATH];

	memset(list, 0, sizeof(*list));
	gpusort_installed_path(GPUSORT_SERVICE_FILE, path);
	add_argument(list, "%s", path);
	add_argument(list, "--build");
	add_argument(list, "%016" INT64_MODIFIER "x", gpusort_module_build());
	gpusort_installed_path(GPUSORT_CUDA_ENGINE_FILE, path);
	add_argument(list, "--cuda-library");
	add_argument(list, "%s", path);
	add_argument(list, "--socket");
	add_argument(list, "%s", GPUSORT_SOCKET_PATH);
	add_argument(list, "--engine");
	add_argument(list, "auto");
	add_argument(list, "--devices");
	add_argument(list, "%s", gpusort_devices[0] != '\0' ? gpusort_devices : "all");
	add_argument(list, "--device-memory");
	add_argument(list, UINT64_FORMAT, gpusort_device_memory * mb);
	add_argument(list, "--host-memory");
	add_argument(list, UINT64_FORMAT, gpusort_host_memory * mb);
	add_argument(list, "--staging-memory");
	add_argument(list, UINT64_FORMAT, gpusort_staging_memory * mb);
	add_argument(list, "--threads");
	add_argument(list, "%d", gpusort_host_threads);
}

/* Says when to start a service after one has ended, or would not start: now, or after the next delay. */
static void
schedule_restart(bool at_once)
{
	TimestampTz now = GetCurrentTimestamp();

	if (at_once || (ready_since != 0 && TimestampDifferenceExceeds(ready_since, now, STABLE_MS)))
		delay_ms = FIRST_DELAY_MS;
	ready_since = 0;
	next_start = now;
	if (!at_once)
	{
		next_start = TimestampTzPlusMilliseconds(now, delay_ms);
		delay_ms = Min(delay_ms * 2, LAST_DELAY_MS);
	}
	set_state(GPUSORT_SERVICE_BACKOFF);
}

/* Returns the level to log a failure with: the first one in a row is for the log, the others are not. */
static int
failure_level(void)
{
	return failures++ == 0 ? LOG : DEBUG1;
}

/* Spawns the service with one end of a new socket pair as its standard input. */
static void
start_service(void)
{
	int pair[2];
	char *argv[MAX_ARGUMENTS + 1] = {0};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t signals;
	pid_t pid;
	int error;

	build_arguments(&arguments);
	for (int i = 0; i < arguments.count; i++)
		argv[i] = arguments.text[i];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
	{
		ereport(failure_level(),
				(errcode_for_socket_access(),
				 errmsg("gpusort could not create a socket pair: %m")));
		schedule_restart(false);
		return;
	}

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
		ereport(failure_level(),
				(errcode_for_file_access(),
				 errmsg("gpusort could not start the sort service \"%s\": %m", argv[0]),
				 errhint("Install gpusort completely, or set gpusort.enable = off.")));
		schedule_restart(false);
		return;
	}
	control = pair[0];
	service_pid = pid;
	set_state(GPUSORT_SERVICE_STARTING);
}

/* Waits for the service to exit, kills it when it does not; returns its wait status. */
static int
reap_service(void)
{
	int status = 0;

	for (int waited = 0; waitpid(service_pid, &status, WNOHANG) == 0; waited += 10)
	{
		if (waited == EXIT_WAIT_MS)
			kill(service_pid, SIGKILL);
		pg_usleep(10000L);
	}
	service_pid = 0;
	return status;
}

/* Closes our end of the socket pair; the service exits when it sees that. */
static void
close_control(void)
{
	close(control);
	control = -1;
}

/* Reaps the service after it closed its end: it has ended, or is about to. */
static void
service_ended(void)
{
	bool draining = gpusort_shared_service().state == GPUSORT_SERVICE_DRAINING;
	int pid = service_pid;
	int status;

	close_control();
	status = reap_service();

	if (draining && WIFEXITED(status) && WEXITSTATUS(status) == 0)
	{
		schedule_restart(true);
		return;
	}
	schedule_restart(false);
	if (status != last_status)
		failures = 0;
	if (WIFSIGNALED(status))
		ereport(failure_level(),
				(errmsg("sort service (PID %d) was terminated by signal %d: %s",
						pid, WTERMSIG(status), pg_strsignal(WTERMSIG(status))),
				 errdetail("It is started again; sorts that it held fall back to PostgreSQL's or fail.")));
	else
		ereport(failure_level(),
				(errmsg("sort service (PID %d) exited with exit code %d",
						pid, WEXITSTATUS(status)),
				 errdetail("It is started again; until then PostgreSQL sorts by itself.")));
	last_status = status;
}

/* Notes what the service said of itself, and tells the backends. */
static void
service_ready(const GpuSortMessage *message)
{
	GpuSortShared *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	state->service.engines = message->u.ready.engines;
	state->service.devices = message->u.ready.devices;
	state->service.device_limit = message->u.ready.device_limit;
	state->service.host_limit = message->u.ready.host_limit;
	LWLockRelease(&state->lock);
	ready_since = GetCurrentTimestamp();
	failures = 0;
	set_state(GPUSORT_SERVICE_READY);

	if (message->u.ready.devices > 0)
		ereport(LOG,
				(errmsg("sort service ready: %u GPU(s), %.*s", message->u.ready.devices,
						GPUSORT_NAME_BYTES, message->u.ready.device)));
	else
		ereport(DEBUG1,
				(errmsg_internal("sort service ready: host engine, %u threads", message->u.ready.threads)));
}

/*
 * Logs what the service reports.  What each new service reports anew, that there
 * is no GPU say, is for the log once.
 */
static void
log_for_service(GpuSortMessage *message)
{
	char *text = message->u.log.text;
	bool again;

	text[GPUSORT_TEXT_BYTES - 1] = '\0';
	again = ready_since == 0 && strcmp(text, last_report) == 0;
	strlcpy(last_report, text, sizeof(last_report));
	ereport(again ? DEBUG1 : message->u.log.warning ? WARNING
													: LOG,
			(errmsg("sort service: %s", text)));
}

/* Reads what the service says until there is no more. */
static void
read_control(void)
{
	GpuSortMessage message;

	for (;;)
	{
		ssize_t n = recv(control, &message, sizeof(message), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
		{
			service_ended();
			return;
		}
		if (n != sizeof(message) || message.magic != GPUSORT_PROTOCOL_MAGIC ||
			message.version != GPUSORT_PROTOCOL_VERSION)
			ereport(LOG,
					(errcode(ERRCODE_PROTOCOL_VIOLATION),
					 errmsg("sort service \"%s\" speaks another protocol version", arguments.text[0]),
					 errhint("Install the module and the service from the same build.")));
		else if (message.type == GPUSORT_MSG_READY)
			service_ready(&message);
		else if (message.type == GPUSORT_MSG_LOG)
			log_for_service(&message);
	}
}

/* Has the service end after its last sort when it was started with other settings. */
static void
apply_settings(void)
{
	ServiceArguments wanted;
	GpuSortMessage message = {
		.magic = GPUSORT_PROTOCOL_MAGIC,
		.version = GPUSORT_PROTOCOL_VERSION,
		.type = GPUSORT_MSG_DRAIN,
	};

	build_arguments(&wanted);
	if (memcmp(&wanted, &arguments, sizeof(wanted)) == 0 ||
		gpusort_shared_service().state == GPUSORT_SERVICE_DRAINING)
		return;
	if (control < 0)
	{
		/* Whatever kept the last one from starting may be gone. */
		schedule_restart(true);
		return;
	}
	ereport(LOG,
			(errmsg("gpusort's settings changed: the sort service restarts when its sorts have ended")));
	set_state(GPUSORT_SERVICE_DRAINING);
	(void) send(control, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A callback at exit: ends the service with the supervisor. */
static void
supervisor_exit(int code, Datum arg)
{
	GpuSortShared *state = gpusort_shared();

	if (service_pid != 0)
	{
		kill(service_pid, SIGTERM);
		close_control();
		(void) reap_service();
	}
	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	if (state->service.supervisor_pid == MyProcPid)
		memset(&state->service, 0, sizeof(state->service));
	LWLockRelease(&state->lock);
	ConditionVariableBroadcast(&state->service_changed);
}

/* Makes this process the supervisor; false if there is one already. */
static bool
become_supervisor(void)
{
	GpuSortShared *state = gpusort_shared();
	pid_t other;

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	other = state->service.supervisor_pid;
	if (other != 0 && other != MyProcPid && kill(other, 0) == 0)
	{
		LWLockRelease(&state->lock);
		return false;
	}
	memset(&state->service, 0, sizeof(state->service));
	state->service.supervisor_pid = MyProcPid;
	LWLockRelease(&state->lock);
	before_shmem_exit(supervisor_exit, (Datum) 0);
	return true;
}

/* Entry point of the background worker. */
void
gpusort_supervisor_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();

	if (!become_supervisor())
		proc_exit(0);

	while (!ShutdownRequestPending)
	{
		int events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;
		long timeout = -1;

		if (control < 0)
		{
			TimestampTz now = GetCurrentTimestamp();

			if (now >= next_start)
				start_service();
			if (control < 0)
			{
				timeout = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next_start) + 1;
				events |= WL_TIMEOUT;
			}
		}
		if (control >= 0)
			events |= WL_SOCKET_READABLE;

		(void) WaitLatchOrSocket(MyLatch, events, control >= 0 ? control : PGINVALID_SOCKET,
								 timeout, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();

		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			apply_settings();
		}
		if (control >= 0)
			read_control();
	}

	/* Not 0: a supervisor ended by hand comes back. */
	proc_exit(1);
}

/* Fills in how the postmaster runs the supervisor. */
static void
describe_worker(BackgroundWorker *worker)
{
	memset(worker, 0, sizeof(*worker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker->bgw_start_time = BgWorkerStart_PostmasterStart;
	worker->bgw_restart_time = 1;
	/* This very module, wherever it was loaded from, if its path is not too long to say so. */
	if (strlcpy(worker->bgw_library_name, gpusort_module_path(), BGW_MAXLEN) >= BGW_MAXLEN)
		strlcpy(worker->bgw_library_name, "gpusort", BGW_MAXLEN);
	strlcpy(worker->bgw_function_name, "gpusort_supervisor_main", BGW_MAXLEN);
	strlcpy(worker->bgw_name, "gpusort supervisor", BGW_MAXLEN);
	strlcpy(worker->bgw_type, "gpusort supervisor", BGW_MAXLEN);
}

/* To be called while shared_preload_libraries are loaded: the service starts with the server. */
void
gpusort_supervisor_register(void)
{
	BackgroundWorker worker;

	describe_worker(&worker);
	RegisterBackgroundWorker(&worker);
}

/* To be called at load: this session does not start a supervisor, but may use one. */
void
gpusort_supervisor_leave_alone(void)
{
	leave_alone = true;
}

/*
 * Starts the supervisor on demand, for a server that did not preload gpusort.
 * Does not wait; does nothing when there is one.  Returns NULL, or why there
 * will be none.
 */
const char *
gpusort_supervisor_wake(void)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;
	GpuSortService service = gpusort_shared_service();

	if (service.supervisor_pid != 0)
		return NULL;
	if (gpusort_shared_is_private())
		return "there is no shared memory for gpusort";
	if (leave_alone)
		return "this session has loaded gpusort by a function call, which starts no sort service";
	if (!gpusort_allowed)
		return "gpusort.allowed is off";
	if (!IsUnderPostmaster)
		return "a server in single-user mode has no background workers";
	if (register_failed == 0 ||
		TimestampDifferenceExceeds(register_failed, GetCurrentTimestamp(), REGISTER_RETRY_MS))
	{
		describe_worker(&worker);
		if (RegisterDynamicBackgroundWorker(&worker, &handle))
		{
			register_failed = 0;
			return NULL;
		}
		register_failed = GetCurrentTimestamp();
		ereport(LOG,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("gpusort found no background worker slot for its supervisor"),
				 errhint("Raise max_worker_processes, or add gpusort to shared_preload_libraries.")));
	}
	return "there is no background worker slot for gpusort's supervisor";
}

/*
 * Waits for a service that is starting; false, with a text, when there is none
 * to wait for or it takes too long.  Ends on cancel.
 */
bool
gpusort_supervisor_wait_ready(char *why_not, size_t why_not_size)
{
	GpuSortShared *state = gpusort_shared();
	TimestampTz deadline = 0;
	bool ready = false;

	for (;;)
	{
		GpuSortService service = gpusort_shared_service();
		long left;

		if (service.state == GPUSORT_SERVICE_READY)
		{
			ready = true;
			break;
		}
		if (service.state == GPUSORT_SERVICE_BACKOFF)
		{
			strlcpy(why_not, "the sort service ended and has not been started again yet", why_not_size);
			break;
		}
		if (deadline == 0)
		{
			const char *no_supervisor = gpusort_supervisor_wake();

			if (no_supervisor != NULL)
			{
				strlcpy(why_not, no_supervisor, why_not_size);
				break;
			}
			deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												   service.state == GPUSORT_SERVICE_DRAINING ? DRAIN_WAIT_MS : READY_WAIT_MS);
			ConditionVariablePrepareToSleep(&state->service_changed);
			continue; /* it may have changed before we were on the list */
		}
		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
		if (left <= 0)
		{
			strlcpy(why_not, "the sort service did not become ready in time", why_not_size);
			break;
		}
		(void) ConditionVariableTimedSleep(&state->service_changed, left, PG_WAIT_EXTENSION);
	}
	ConditionVariableCancelSleep();
	return ready;
}
