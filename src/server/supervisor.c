/*-------------------------------------------------------------------------
 *
 * supervisor.c
 *	  The background worker that keeps the sort service gpusortd running.
 *
 * The service is a process of its own that knows nothing of PostgreSQL: a
 * driver that faults in it cannot restart the server.  The supervisor spawns
 * it, tells the backends through shared memory when it is ready and that it
 * lives, logs what it reports, starts it again with growing delays when it ends
 * or hangs, and replaces it when the administrator's settings have changed.
 *
 * Each start of a service is a generation, with a socket and a staging pool of
 * its own: so the next one need not wait for the last.  One of them is current,
 * and takes sorts; others are leaving: they end their last sorts, or cannot be
 * killed.  All are watched until they have ended.  There is one supervisor per
 * server (shared->service.supervisor_pid).
 *
 * The state that backends see is that of the current one:
 *
 *	NONE --start--> STARTING --READY--> READY --settings--> DRAINING --exit, or soon beside it--> STARTING
 *	STARTING, READY --exit, or too long--> BACKOFF --delay over--> STARTING
 *	READY, DRAINING --no PONG--> HUNG --exit, or left behind--> BACKOFF
 *
 * Nothing in the loop waits for a service:
 * a process that hangs in the kernel keeps nobody up.
 *
 *-------------------------------------------------------------------------
 */
#include "server/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "server/installation.h"
#include "server/service_processes.h"
#include "server/wait_events.h"
#include "settings.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"

/* A service that was ready for this long starts the delays anew. */
#define STABLE_MS      10000
#define FIRST_DELAY_MS 200
#define LAST_DELAY_MS  60000

/* Each service is asked so often whether it lives; and a supervisor that sleeps twice as long was kept from asking. */
#define BEAT_MS 500

/*
 * The log tells of a service that is not ready after so long:
 * on a busy machine one that is well may take a few seconds.
 */
#define LATE_MS 10000

/* What is told to drain ends at once, unless it has sorts; then the next one starts beside it. */
#define DRAIN_WAIT_MS 200

/* So many services may be about to end; settings that change meanwhile wait for one of them. */
#define MOST_LEAVING 4

/* A service that lost its devices, and was started again without, is replaced so often until they are back. */
#define DEVICE_RETRY_MS (5 * 60 * 1000)

/* While something is about to change, time is looked at so often. */
#define TICK_MS 50

static GpuSortServiceProcess *current = NULL; /* NULL: there is none, the next one starts at next_start */
static int controls = -1;                     /* an epoll descriptor: readable when a service has something to say */

/* Times are gpusort_process_now's */
static uint64 last_beat = 0;
static uint64 next_start = 0;
static int delay_ms = FIRST_DELAY_MS;        /* before the next start */
static int failures = 0;                     /* in a row, with no ready service between; only the first is logged */
static bool start_failed = false;            /* the last service ended before it was ready */
static int last_status = 0;                  /* how the last one ended */
static char last_report[GPUSORT_TEXT_BYTES]; /* what services had to say, the last time */
static bool change_waits = false;            /* settings have changed, but too many are leaving */
static bool device_missed = false;           /* a service had devices, and the next has none */

/* Tells the backends, those that wait for the service too. */
static void
set_state(GpuSortServiceState service_state)
{
	if (current != NULL)
		gpusort_shared_set_service(service_state, current->pid, current->generation, gpusort_processes_beside(current));
	else
		gpusort_shared_set_service(service_state, 0, 0, gpusort_processes_beside(current));
}

/*
 * Returns the level to log a failure with, of a service or, with NULL, of the attempt to start one: the
 * first one in a row is for the log, the others are not.
 */
static int
failure_level(const GpuSortServiceProcess *process)
{
	if (process != current)
		return LOG;
	return failures++ == 0 ? LOG : DEBUG1;
}

/* Says when to start a service now that there is none: now, or after the next delay. */
static void
schedule_start(bool at_once)
{
	next_start = gpusort_process_now();
	if (at_once)
	{
		delay_ms = FIRST_DELAY_MS;
		return; /* the state is that of what starts now */
	}
	next_start += delay_ms;
	delay_ms = Min(delay_ms * 2, LAST_DELAY_MS);
	set_state(GPUSORT_SERVICE_BACKOFF);
}

/* Starts the current service. */
static void
start_service(void)
{
	GpuSortServiceProcess *process = gpusort_processes_free();
	struct epoll_event event = {.events = EPOLLIN};

	if (process == NULL)
	{
		ereport(failure_level(NULL),
				(errmsg("%d sort services have not ended; gpusort starts no more", GPUSORT_PROCESSES),
				 errhint("A driver or a file system probably hangs. Restart the machine.")));
		schedule_start(false);
		return;
	}
	if (!gpusort_process_start(process, gpusort_processes_next_generation()))
	{
		ereport(failure_level(NULL),
				(errcode_for_file_access(),
				 errmsg("gpusort could not start the sort service \"%s\": %m", process->arguments.text[0]),
				 errhint("Install gpusortd beside the module, or set gpusort.enable = off.")));
		gpusort_shared_set_report("%s cannot be started", process->arguments.text[0]);
		schedule_start(false);
		return;
	}
	(void) epoll_ctl(controls, EPOLL_CTL_ADD, process->control, &event);
	current = process;
	gpusort_shared_set_report("%s", "");
	/* Nobody is to wait again for what did not come before. */
	set_state(start_failed ? GPUSORT_SERVICE_BACKOFF : GPUSORT_SERVICE_STARTING);
}

/*
 * Logs how a service ended, that was not told to.  Of those that end again and
 * again in the same way, without having been ready, the first is told.
 */
static void
log_end(const GpuSortServiceProcess *process, int pid)
{
	int status = process->status;
	char how[GPUSORT_TEXT_BYTES];

	gpusort_process_how_it_ended(process, how, sizeof(how));
	if (status != last_status)
		failures = 0;
	last_status = status;
	/* one that does not start has said why */
	if (process == current && (process->ready != 0 || gpusort_shared_service().report[0] == '\0'))
		gpusort_shared_set_report("%s", how);
	ereport(failure_level(process),
			(errmsg("sort service (PID %d) %s", pid, how),
			 errdetail("It is started again; %s.",
					   WIFSIGNALED(status) ? "sorts that it was doing continue in PostgreSQL or fail"
										   : "until then PostgreSQL sorts")));
}

/* Cleans up after a service that has ended. */
static void
service_ended(GpuSortServiceProcess *process, int pid)
{
	bool in_order = process->drained != 0 && WIFEXITED(process->status) && WEXITSTATUS(process->status) == 0;

	gpusort_process_close(process);
	gpusort_process_remove_files(process);
	gpusort_shared_set_pulse(process->generation, true);
	if (process->left_behind)
		ereport(LOG,
				(errmsg("sort service (PID %d) that was left behind has ended", pid)));
	else if (!in_order && process->killed == 0)
		log_end(process, pid);
	if (process != current)
	{
		set_state(gpusort_shared_service().state);
		return;
	}
	current = NULL;
	start_failed = process->ready == 0 && !in_order;
	if (process->ready != 0 && gpusort_process_now() - process->ready >= STABLE_MS)
		delay_ms = FIRST_DELAY_MS;
	schedule_start(in_order);
}

/* Kills a service that hangs; what it held is lost. */
static void
kill_service(GpuSortServiceProcess *process)
{
	gpusort_process_kill(process);
	gpusort_shared_set_pulse(process->generation, true);
	if (process == current)
		set_state(GPUSORT_SERVICE_HUNG);
}

/* Gives up waiting for the end of a service that was killed: another one takes its place. */
static void
leave_behind(GpuSortServiceProcess *process)
{
	process->left_behind = true;
	gpusort_process_close(process);
	ereport(LOG,
			(errmsg("sort service (PID %d) was killed and does not end: it is left behind", (int) process->pid),
			 errdetail("It hangs in the kernel, perhaps in a driver. Its memory stays in use until it ends.")));
	if (process != current)
		return;
	start_failed = process->ready == 0;
	current = NULL;
	schedule_start(false);
}

/* Tells the current service to end after its last sort; the next one is started then, or beside it. */
static void
replace_service(void)
{
	gpusort_process_drain(current);
	set_state(GPUSORT_SERVICE_DRAINING);
}

/* Replaces a service that was started with other settings. */
static void
apply_settings(void)
{
	if (current == NULL)
	{
		/* Whatever kept the last one from starting may be gone. */
		start_failed = false;
		schedule_start(true);
		return;
	}
	if (current->drained != 0 || current->killed != 0 || !gpusort_process_is_outdated(current))
		change_waits = false;
	else if (gpusort_processes_beside(current) < MOST_LEAVING)
	{
		ereport(LOG,
				(errmsg("gpusort's settings have changed; a new sort service takes over"),
				 errdetail("The old one ends after its last sort.")));
		change_waits = device_missed = false;
		replace_service();
	}
	else if (!change_waits)
	{
		ereport(LOG,
				(errmsg("gpusort's settings have changed, but %d sort services have not ended yet",
						gpusort_processes_beside(current)),
				 errdetail("The change takes effect when one of them ends.")));
		change_waits = true;
	}
}

/* Logs that sorts are PostgreSQL's because of what the server's settings ask for. */
static void
check_engine(void)
{
	const GpuSortService service = gpusort_shared_service();

	if (gpusort_engine == GPUSORT_ENGINE_CUDA && service.state == GPUSORT_SERVICE_READY && service.devices == 0)
		ereport(WARNING,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("gpusort.engine is cuda, but the service has no CUDA device; PostgreSQL sorts"),
				 errhint("With \"auto\" the CPU cores sort if there is no device.")));
}

/* Notes what the service said of itself, and tells the backends. */
static void
service_ready(GpuSortServiceProcess *process, const GpuSortMessage *message)
{
	bool again = failures > 0 || process->told_late;

	process->ready = gpusort_process_now();
	gpusort_shared_set_pulse(process->generation, false);
	if (process != current || process->drained != 0)
		return;
	if (message->u.ready.devices > 0)
		device_missed = false;
	else if (gpusort_shared_service().devices > 0)
		device_missed = true;
	gpusort_shared_set_engines(message);
	failures = 0;
	start_failed = false;
	set_state(GPUSORT_SERVICE_READY);

	if (message->u.ready.devices > 0)
		ereport(LOG,
				(errmsg("sort service ready: %u GPU(s), %.*s", message->u.ready.devices,
						GPUSORT_NAME_BYTES, message->u.ready.device)));
	else
		ereport(again ? LOG : DEBUG1,
				(errmsg("sort service ready: host engine, %u thread%s", message->u.ready.threads,
						message->u.ready.threads == 1 ? "" : "s")));
	check_engine();
}

/*
 * Logs what the service reports.  What each new service reports anew, that there
 * is no GPU say, is for the log once.
 */
static void
log_for_service(const GpuSortServiceProcess *process, GpuSortMessage *message)
{
	char *text = message->u.log.text;
	bool again;

	text[GPUSORT_TEXT_BYTES - 1] = '\0';
	again = process->ready == 0 && strcmp(text, last_report) == 0;
	strlcpy(last_report, text, sizeof(last_report));
	if (process == current && process->ready == 0)
		gpusort_shared_set_report("%s", text);
	ereport(again ? DEBUG1 : message->u.log.warning ? WARNING
													: LOG,
			(errmsg("sort service: %s", text),
			 gpusort_engine_hint(text)));
}

/* Reads what a service says until there is no more. */
static void
read_control(GpuSortServiceProcess *process)
{
	GpuSortMessage message;

	while (gpusort_process_receive(process, &message))
	{
		if (message.magic != GPUSORT_PROTOCOL_MAGIC || message.version != GPUSORT_PROTOCOL_VERSION)
			ereport(LOG,
					(errcode(ERRCODE_PROTOCOL_VIOLATION),
					 errmsg("sort service \"%s\" speaks another protocol version", process->arguments.text[0]),
					 errhint("Install the module and the service from the same build.")));
		else if (message.type == GPUSORT_MSG_PONG)
		{
			process->unanswered = 0;
			if (process->killed == 0)
				gpusort_shared_set_pulse(process->generation, false);
		}
		else if (message.type == GPUSORT_MSG_READY && process->killed == 0)
			service_ready(process, &message);
		else if (message.type == GPUSORT_MSG_LOG)
			log_for_service(process, &message);
	}
}

/* Looks after a service that is not ready yet. */
static void
watch_start(GpuSortServiceProcess *process)
{
	uint64 waited = gpusort_process_now() - process->started;

	if (waited >= gpusort_process_start_limit())
	{
		ereport(failure_level(process),
				(errmsg("sort service (PID %d) was killed: it was not ready after %d seconds",
						(int) process->pid, (int) (waited / 1000)),
				 errdetail("It is started again; until then PostgreSQL sorts.")));
		kill_service(process);
	}
	else if (waited >= LATE_MS && !process->told_late && process == current)
	{
		process->told_late = true;
		ereport(failures == 0 ? LOG : DEBUG1,
				(errmsg("sort service (PID %d) is not ready after %d seconds", (int) process->pid, LATE_MS / 1000),
				 errdetail("Until it is ready, PostgreSQL sorts.")));
	}
}

/* Asks all services whether they live; kills those that have not answered for too long. */
static void
beat(void)
{
	uint64 now = gpusort_process_now();
	bool on_time = now - last_beat < 2 * BEAT_MS;

	if (now - last_beat < BEAT_MS)
		return;
	last_beat = now;
	for (int i = 0; i < GPUSORT_PROCESSES; i++)
	{
		GpuSortServiceProcess *process = &gpusort_processes[i];

		if (process->pid == 0 || process->control < 0 || process->ready == 0 || process->killed != 0 ||
			gpusort_process_ping(process, on_time))
			continue;
		ereport(failure_level(process),
				(errmsg("sort service (PID %d) does not answer: it was killed", (int) process->pid),
				 errdetail("It is started again; sorts that it was doing continue in PostgreSQL or fail.")));
		kill_service(process);
	}
}

/* Does what is due for a service. */
static void
tend(GpuSortServiceProcess *process)
{
	uint64 now = gpusort_process_now();
	int pid = process->pid;

	if (gpusort_process_has_ended(process))
	{
		read_control(process); /* its last words */
		service_ended(process, pid);
	}
	else if (process->killed != 0)
	{
		if (!process->left_behind && now - process->killed >= GPUSORT_EXIT_WAIT_MS)
			leave_behind(process);
	}
	else if (process->closed != 0)
	{
		if (now - process->closed >= GPUSORT_EXIT_WAIT_MS)
			kill_service(process);
	}
	else
	{
		if (process->ready == 0)
			watch_start(process);
		if (process->drained != 0 && !process->told_drain)
			gpusort_process_drain(process);
	}
	if (process == current && process->drained != 0 && process->killed == 0 && now - process->drained >= DRAIN_WAIT_MS)
	{
		/* It has sorts to end. */
		current = NULL;
		schedule_start(true);
	}
}

/* Milliseconds until something is due that no event tells. */
static long
next_due(void)
{
	uint64 now = gpusort_process_now();
	uint64 due = PG_UINT64_MAX;

	if (current == NULL)
		due = Max(next_start, now);
	for (int i = 0; i < GPUSORT_PROCESSES; i++)
	{
		const GpuSortServiceProcess *process = &gpusort_processes[i];

		if (process->pid == 0)
			continue;
		due = Min(due, last_beat + BEAT_MS);
		if (process == current && process->drained != 0)
			due = Min(due, now + TICK_MS);
	}
	return due <= now ? 0 : (long) Min(due - now, LAST_DELAY_MS);
}

/* One round: reads what services say, and does what is due. */
static void
supervise(void)
{
	for (int i = 0; i < GPUSORT_PROCESSES; i++)
	{
		if (gpusort_processes[i].pid != 0)
			read_control(&gpusort_processes[i]);
		if (gpusort_processes[i].pid != 0)
			tend(&gpusort_processes[i]);
	}
	beat();
	if (current == NULL && gpusort_process_now() >= next_start)
		start_service();
	if (change_waits)
		apply_settings();
	if (device_missed && current != NULL && current->ready != 0 && current->drained == 0 && current->killed == 0 &&
		gpusort_processes_beside(current) < MOST_LEAVING && gpusort_process_now() - current->ready >= DEVICE_RETRY_MS)
		replace_service();
}

/* A callback at exit. */
static void
supervisor_exit(int code, Datum arg)
{
	gpusort_processes_end();
	gpusort_shared_release_service();
}

/* A signal handler: a child has ended. */
static void
handle_child(SIGNAL_ARGS)
{
	int saved = errno;

	SetLatch(MyLatch);
	errno = saved;
}

/* Entry point of the background worker. */
void
gpusort_supervisor_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGCHLD, handle_child);
	BackgroundWorkerUnblockSignals();

	if (!gpusort_shared_claim_service())
		proc_exit(0);
	before_shmem_exit(supervisor_exit, (Datum) 0);
	gpusort_process_remove_old_files();
	controls = epoll_create1(EPOLL_CLOEXEC);
	if (controls < 0)
		ereport(FATAL,
				(errcode_for_socket_access(),
				 errmsg("gpusort could not create an epoll descriptor: %m")));

	while (!ShutdownRequestPending)
	{
		supervise();
		(void) WaitLatchOrSocket(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | WL_SOCKET_READABLE | WL_TIMEOUT, controls,
								 next_due(), gpusort_wait_event(GPUSORT_WAIT_SUPERVISOR));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			apply_settings();
			check_engine();
		}
	}

	/* Not 0: a supervisor ended by hand comes back. */
	proc_exit(1);
}
