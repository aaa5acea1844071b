/*-------------------------------------------------------------------------
 *
 * gpusortd.c
 *	  The sort service: options, main loop, beginning and end.
 *
 * The other parts: protocol.h (what clients and the service say), sessions.h
 * (what sessions have in common), session_state.h (a client's connection and its
 * states), session.c, outbox.c (what waits to be sent), session_begin.c,
 * session_queue.c and session_sort.c (a connection's sort), job.c (a sort's engine
 * calls on their thread), pool.c (the chunks), engine.h (what an engine is),
 * registry.c (which there are), watchdog.c and device_failures.c (when a fresh start
 * is due), host/sort_state.h and on (the host engine), service_log.c.
 *
 * Started by the supervisor, or by hand:
 *
 *	gpusortd --socket PATH --engine auto|cuda|host --devices all|0,1
 *			 --device-memory BYTES --host-memory BYTES --staging-memory BYTES
 *			 [--threads N] [--cuda-library PATH] [--build HEX]
 *
 * Descriptor 0 ties the service to whoever started it.
 * If it is a socket it carries messages both ways (protocol.h);
 * whatever it is, its end is the end of the service.
 *
 * The main thread does all that concerns clients and the pool, in one epoll
 * loop, and never waits for an engine.
 *
 * Only one service serves a socket: it holds a lock on PATH.lock as long as it
 * lives.  Whoever holds the lock may remove socket and lock, so whoever gets it
 * makes sure that it is still the file of that name.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "service/build.h"
#include "service/external/run_rows.h"
#include "service/fault.h"
#include "service/machine/machine.h"
#include "service/service_log.h"
#include "service/session/session.h"
#include "service/session/watchdog.h"

/* Exit codes that tell the supervisor what happened. */
#define EXIT_START_FAILED    1
#define EXIT_USAGE           2 /* its options are not this build's, or --build is another one */
#define EXIT_ALREADY_RUNNING 3
#define EXIT_DEVICE_LOST     4
#define EXIT_ENGINE_HUNG     5

#define CONTROL        0
#define BACKLOG        256
#define EVENTS_AT_ONCE 64

/* When the service ends, sorts have so long to return from their engine calls. */
#define END_MS 500

typedef struct Options
{
	const char *socket;
	const char *build;       /* what started it is of this build; NULL: not told */
	uint64_t staging_memory; /* bytes; 0: the default */
	uint64_t host_memory;    /* bytes; 0: the default */
	GpuSortRegistryConfig engines;
} Options;

static const Options *options;
static GpuSortSessions sessions;
static bool supervised;
static char lock_path[sizeof(((struct sockaddr_un *) 0)->sun_path) + sizeof(".lock")];

/* Descriptors that the main loop watches besides sessions. */
static int listener = -1;
static int signals = -1;
static int done_event = -1;
static int spare = -1;  /* to be given up when descriptors run out */
static int control_tag; /* its address stands for CONTROL, which is a constant */

/*
 * Options
 */

static void
usage(const char *problem)
{
	fprintf(stderr, "gpusortd: %s\n"
					"usage: gpusortd --socket PATH [--engine auto|cuda|host] [--devices all|0,1]\n"
					"       [--device-memory BYTES] [--host-memory BYTES] [--staging-memory BYTES]\n"
					"       [--threads N] [--cuda-library PATH] [--build HEX]\n",
			problem);
	exit(EXIT_USAGE);
}

static uint64_t
parse_number(const char *text, uint64_t max)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || number > max)
		usage("a number is out of range");
	return number;
}

static void
parse_options(int argc, char **argv, Options *parsed)
{
	enum
	{
		SOCKET,
		ENGINE,
		DEVICES,
		DEVICE_MEMORY,
		HOST_MEMORY,
		STAGING_MEMORY,
		THREADS,
		CUDA_LIBRARY,
		BUILD
	};
	static const struct option names[] = {
		{"socket", required_argument, NULL, SOCKET},
		{"engine", required_argument, NULL, ENGINE},
		{"devices", required_argument, NULL, DEVICES},
		{"device-memory", required_argument, NULL, DEVICE_MEMORY},
		{"host-memory", required_argument, NULL, HOST_MEMORY},
		{"staging-memory", required_argument, NULL, STAGING_MEMORY},
		{"threads", required_argument, NULL, THREADS},
		{"cuda-library", required_argument, NULL, CUDA_LIBRARY},
		{"build", required_argument, NULL, BUILD},
		{NULL, 0, NULL, 0}};
	int option;

	parsed->engines.devices = "all";
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
	{
		switch (option)
		{
			case SOCKET:
				parsed->socket = optarg;
				break;
			case ENGINE:
				if (strcmp(optarg, "auto") == 0)
					parsed->engines.kind = GPUSORT_ENGINE_AUTO;
				else if (strcmp(optarg, "cuda") == 0)
					parsed->engines.kind = GPUSORT_ENGINE_CUDA;
				else if (strcmp(optarg, "host") == 0)
					parsed->engines.kind = GPUSORT_ENGINE_HOST;
				else
					usage("--engine is auto, cuda or host");
				break;
			case DEVICES:
				parsed->engines.devices = optarg;
				break;
			case DEVICE_MEMORY:
				parsed->engines.device_memory = parse_number(optarg, UINT64_MAX / 2);
				break;
			case HOST_MEMORY:
				parsed->host_memory = parse_number(optarg, UINT64_MAX / 2);
				if (parsed->host_memory != 0 && parsed->host_memory < GPUSORT_MEMORY_MIN)
					usage("--host-memory is less than 16 MB: one sort needs as much, 0 is a quarter of the machine's");
				break;
			case STAGING_MEMORY:
				parsed->staging_memory = parse_number(optarg, UINT64_MAX / 2);
				break;
			case THREADS:
				parsed->engines.threads = parse_number(optarg, 1024);
				break;
			case CUDA_LIBRARY:
				parsed->engines.cuda_library = optarg;
				break;
			case BUILD:
				parsed->build = optarg;
				break;
			default:
				usage("unknown option");
		}
	}
	if (optind < argc)
		usage("too many arguments");
	if (parsed->socket == NULL || parsed->socket[0] == '\0')
		usage("--socket is missing");
	if (strlen(parsed->socket) >= sizeof(((struct sockaddr_un *) 0)->sun_path))
		usage("the socket's path is too long");
}

/*
 * Beginning
 */

static void
start_failed(const char *what)
{
	gpusort_log(true, "%s: %s", what, strerror(errno));
	exit(EXIT_START_FAILED);
}

/* Ends a service that was started by what is not built of the same sources. */
static void
check_build(void)
{
	char own[17];

	snprintf(own, sizeof(own), "%016llx", (unsigned long long) gpusort_service_build);
	if (options->build == NULL || strcmp(options->build, own) == 0)
		return;
	gpusort_log(true, "the installed gpusortd is of build %s, the server's module of %.16s: restart the server", own,
				options->build);
	exit(EXIT_USAGE);
}

static void
remove_files(void)
{
	unlink(options->socket);
	unlink(lock_path);
}

/* Takes the lock that makes this the only service on the socket. */
static void
take_lock(void)
{
	snprintf(lock_path, sizeof(lock_path), "%s.lock", options->socket);
	for (;;)
	{
		struct stat held;
		struct stat there;
		int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (lock < 0)
			start_failed("could not open the lock file beside the service's socket");
		if (flock(lock, LOCK_EX | LOCK_NB) != 0)
		{
			if (errno != EWOULDBLOCK)
				start_failed("could not lock the file beside the service's socket");
			gpusort_log(true, "another gpusortd serves \"%s\"", options->socket);
			exit(EXIT_ALREADY_RUNNING);
		}
		if (fstat(lock, &held) == 0 && stat(lock_path, &there) == 0 && held.st_ino == there.st_ino)
			break;
		close(lock); /* it was removed before we had it */
	}
	/* The descriptor stays open, and the lock held, until the process ends. */
	atexit(remove_files);
}

static void
start_listening(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t mask;

	strcpy(address.sun_path, options->socket);
	unlink(address.sun_path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener < 0)
		start_failed("could not make the service's socket");
	mask = umask(0177);
	if (bind(listener, (struct sockaddr *) &address, sizeof(address)) != 0)
		start_failed("could not bind the service's socket");
	umask(mask);
	if (listen(listener, BACKLOG) != 0)
		start_failed("could not listen on the service's socket");
}

/* Signals become readable events; threads started later inherit the mask. */
static void
start_signals(void)
{
	sigset_t set;

	/* The terminal's and the server's signals to the whole group are not for us. */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_SETMASK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		start_failed("could not set up signals");
}

static void
watch(int descriptor, int *tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = tag};

	if (epoll_ctl(sessions.epoll, EPOLL_CTL_ADD, descriptor, &event) != 0)
		start_failed("could not watch a descriptor");
}

static void
start(void)
{
	GpuSortMessage ready = {.type = GPUSORT_MSG_READY};
	GpuSortRegistryConfig engines = options->engines;
	struct rlimit files;
	char problem[GPUSORT_TEXT_BYTES];

	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
	{
		files.rlim_cur = files.rlim_max;
		(void) setrlimit(RLIMIT_NOFILE, &files);
	}
	start_signals();
	take_lock();

	gpusort_queue_init(&sessions);
	sessions.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (sessions.epoll < 0 || !gpusort_jobs_open(&done_event))
		start_failed("could not set up the main loop");
	sessions.pool = gpusort_pool_create(options->staging_memory, problem, sizeof(problem));
	if (sessions.pool == NULL)
	{
		gpusort_log(true, "%s", problem);
		exit(EXIT_START_FAILED);
	}
	sessions.cpus = gpusort_machine()->cpus;
	sessions.host_memory =
		gpusort_host_memory_create(gpusort_machine_memory_limit(gpusort_machine(), options->host_memory));
	if (sessions.host_memory == NULL)
		start_failed("could not set up the accounting of the host's memory");
	engines.host_memory = sessions.host_memory;
	engines.pool = gpusort_pool_start(sessions.pool);
	engines.pool_bytes = gpusort_pool_chunks(sessions.pool) * GPUSORT_CHUNK_BYTES;
	if (!gpusort_registry_open(&engines))
		exit(EXIT_START_FAILED);

	spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	start_listening();
	watch(CONTROL, &control_tag);
	watch(signals, &signals);
	watch(done_event, &done_event);
	watch(listener, &listener);

	GPUSORT_FAULT_START();
	gpusort_registry_ready(&ready);
	ready.u.ready.pool_chunks = gpusort_pool_chunks(sessions.pool);
	/* a service that nobody knows of is of no use */
	if (!gpusort_log_ready(&ready) && supervised)
		start_failed("could not tell the supervisor that the service is ready");
}

/*
 * Main loop
 */

static void
accept_clients(void)
{
	int client;

	while ((client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
	{
		struct ucred peer;
		socklen_t size = sizeof(peer);

		if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid())
		{
			gpusort_log_peer("process %d of user %d may not use the sort service; closed",
							 (int) peer.pid, (int) peer.uid);
			close(client);
		}
		else if (!gpusort_session_start(&sessions, client, peer.pid))
			close(client);
	}
	if ((errno == EMFILE || errno == ENFILE) && spare >= 0)
	{
		/* Turn one away, or it would be reported as waiting for ever. */
		close(spare);
		client = accept(listener, NULL, NULL);
		if (client >= 0)
			close(client);
		spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
		gpusort_log_peer("too many connections, one was rejected");
	}
}

/* Reads from the control socket; false if its other end is gone. */
static bool
read_control(void)
{
	GpuSortMessage message;
	ssize_t size = supervised ? recv(CONTROL, &message, sizeof(message), MSG_DONTWAIT)
							  : read(CONTROL, &message, sizeof(message));

	if (size < 0)
		return errno == EAGAIN || errno == EINTR;
	if (size == 0)
		return false;
	if (size == sizeof(message) && message.magic == GPUSORT_PROTOCOL_MAGIC &&
		message.version == GPUSORT_PROTOCOL_VERSION && message.type == GPUSORT_MSG_DRAIN)
		sessions.draining = true;
	else if (size == sizeof(message) && message.magic == GPUSORT_PROTOCOL_MAGIC &&
			 message.version == GPUSORT_PROTOCOL_VERSION && message.type == GPUSORT_MSG_PING)
		gpusort_log_pong(&message);
	else if (supervised)
		gpusort_log(true, "ignored an unknown message from the supervisor");
	return true;
}

static void
handle_done(void)
{
	GpuSortCommand *command = gpusort_jobs_done();

	while (command != NULL)
	{
		GpuSortCommand *next = command->next;

		gpusort_session_done(command);
		command = next;
	}
}

/*
 * Ends the process while an engine call runs.  If that never returns its thread keeps
 * what is left of the process, with all descriptors that are open, so none stays open
 * that others look at.  The sessions and the listener are closed already.
 */
static void __attribute__((noreturn))
leave_thread(int code)
{
	remove_files();
	close(CONTROL);
	_exit(code);
}

/*
 * Ends the process.  Sorts are asked to stop, and if they do soon everything is
 * taken down in order; one that does not is left to the end of the process,
 * without running anything that its thread might trip over.
 */
static void __attribute__((noreturn))
finish(int code)
{
	struct timespec start;
	struct timespec now;
	int left;

	/* The supervisor is not to wait for answers any more. */
	if (supervised)
		(void) shutdown(CONTROL, SHUT_WR);
	unlink(options->socket);
	close(listener);
	gpusort_sessions_close(&sessions);
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (sessions.jobs > 0)
	{
		struct pollfd event = {.fd = done_event, .events = POLLIN};

		clock_gettime(CLOCK_MONOTONIC, &now);
		left = END_MS - (now.tv_sec - start.tv_sec) * 1000 - (now.tv_nsec - start.tv_nsec) / 1000000;
		if (left <= 0)
			leave_thread(code);
		(void) poll(&event, 1, left);
		handle_done();
	}
	gpusort_sessions_reap(&sessions);
	gpusort_registry_close();
	gpusort_host_memory_destroy(sessions.host_memory);
	gpusort_jobs_close();
	gpusort_pool_destroy(sessions.pool);
	exit(code);
}

/* Ends the service, for a fresh start, when an engine does not do any more. */
static void
check_engines(void)
{
	GpuSortDeviceVerdict verdict = gpusort_device_verdict(&sessions.device_failures);

	if (gpusort_watchdog_look(&sessions))
	{
		gpusort_sessions_fail(&sessions, GPUSORT_REASON_DEVICE,
							  "an engine call does not return; the sort service restarts");
		close(listener);
		gpusort_sessions_close(&sessions);
		leave_thread(EXIT_ENGINE_HUNG);
	}
	if (verdict == GPUSORT_DEVICE_LOST || (verdict == GPUSORT_DEVICE_DOUBTFUL && sessions.jobs == 0))
	{
		gpusort_sessions_fail(&sessions, GPUSORT_REASON_DEVICE,
							  "the device has failed too often; the sort service restarts");
		gpusort_log(true, "the device has failed too often; exiting to be restarted");
		finish(EXIT_DEVICE_LOST);
	}
}

/* Milliseconds until the main loop has something to do though nothing happens, or -1. */
static int
next_timeout(void)
{
	int queue = gpusort_queue_timeout(&sessions);
	int watchdog = gpusort_watchdog_timeout(&sessions);

	if (queue < 0 || watchdog < 0)
		return queue > watchdog ? queue : watchdog;
	return queue < watchdog ? queue : watchdog;
}

static void __attribute__((noreturn))
main_loop(void)
{
	for (;;)
	{
		struct epoll_event events[EVENTS_AT_ONCE];
		int n = epoll_wait(sessions.epoll, events, EVENTS_AT_ONCE, next_timeout());

		if (n < 0 && errno != EINTR)
		{
			gpusort_log(true, "the sort service cannot wait for events: %s", strerror(errno));
			finish(EXIT_START_FAILED);
		}
		for (int i = 0; i < n; i++)
		{
			void *tag = events[i].data.ptr;

			if (tag == &control_tag)
			{
				if (!read_control())
					finish(EXIT_SUCCESS);
			}
			else if (tag == &signals)
				finish(EXIT_SUCCESS);
			else if (tag == &done_event)
				handle_done();
			else if (tag == &listener)
				accept_clients();
			else
				gpusort_session_event(tag, events[i].events);
		}
		gpusort_sessions_reap(&sessions);
		gpusort_queue_advance(&sessions);
		check_engines();
		if (sessions.draining && sessions.jobs == 0)
			finish(EXIT_SUCCESS);
	}
}

/*
 * When memory runs out the kernel is to end the service, whose sorts can be done
 * otherwise, and no process of the server, whose end restarts all sessions.
 */
static void
offer_for_oom(void)
{
	int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (file >= 0 && write(file, "1000", 4) != 4)
		gpusort_log(false, "could not raise the service's oom_score_adj: %s", strerror(errno));
	if (file >= 0)
		close(file);
}

int
main(int argc, char **argv)
{
	static Options parsed;

	parse_options(argc, argv, &parsed);
	options = &parsed;

	/* Whatever else was inherited is not ours to hold open. */
	(void) close_range(3, ~0U, 0);
	/* It does not outlive the supervisor, not even stopped: what was not ended in order is of no use to anybody. */
	(void) prctl(PR_SET_PDEATHSIG, SIGKILL);
	gpusort_log_open(CONTROL);
	supervised = gpusort_log_has_supervisor();
	offer_for_oom();
	check_build();
	gpusort_run_rows_init();
	start();
	main_loop();
}
