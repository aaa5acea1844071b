/*-------------------------------------------------------------------------
 *
 * life.c
 *	  Tests of the sort service: how it begins and ends, and what the end of
 *	  others does to it.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "build_id.h"
#include "testlib.h"

/* sorts that are slow or hang need fake_engine.c */
static const char *fake_engine;

static const char *const plain[] = {"--threads", "2", NULL};

static bool
exists(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0;
}

/* Returns true if a sort can be done. */
static bool
serves(const Service *service)
{
	Rows rows;
	const char *problem;

	rows_make(&rows, 1000, 1, KEYS_RANDOM, 16, 40, 0);
	problem = sort_all(service, &rows, false);
	rows_free(&rows);
	return problem == NULL;
}

/* How willingly the kernel ends a process when memory runs out, -1000 to 1000; -1001: not to be read. */
static int
oom_score_of(pid_t pid)
{
	char path[64];
	int score = -1001;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int) pid);
	file = fopen(path, "r");
	if (file != NULL && fscanf(file, "%d", &score) != 1)
		score = -1001;
	if (file != NULL)
		fclose(file);
	return score;
}

static void
test_end(void)
{
	Service service;

	service_start(&service, plain);
	ok(serves(&service) && exists(service.socket), "a service serves");
	ok(service_stop(&service) == 0, "it ends when the control socket does");
	ok(!exists(service.socket), "and removes its socket");

	service_start(&service, plain);
	kill(service.pid, SIGINT);
	kill(service.pid, SIGHUP);
	kill(service.pid, SIGPIPE);
	kill(service.pid, SIGUSR1);
	ok(service_wait(&service, 50) == -1 && serves(&service), "signals of the terminal do nothing");
	kill(service.pid, SIGTERM);
	ok(service_wait(&service, ANSWER_MS) == 0, "SIGTERM ends it");
	ok(!exists(service.socket), "and removes its socket");
	close(service.control);

	service_start(&service, plain);
	ok(oom_score_of(service.pid) == 1000, "it is what the kernel ends first when memory runs out");
	kill(service.pid, SIGQUIT);
	ok(service_wait(&service, ANSWER_MS) == 0, "SIGQUIT ends it");
	close(service.control);
}

/* A service that does as the fake engine is told, with sorts in every stage. */
static void
start_sorts(Service *service, Client *clients, const char *fake, const Rows *rows)
{
	const char *const options[] = {"--engine", "auto", "--cuda-library", fake_engine, NULL};

	setenv("GPUSORT_FAKE", fake, 1);
	service_start(service, options);
	for (int c = 0; c < 3; c++)
	{
		client_open(&clients[c], service);
		client_begin(&clients[c], 1, false, 0, 0);
		if (c > 0)
			sort_put(&clients[c], rows);
		if (c > 1)
			client_send(&clients[c], GPUSORT_MSG_SORT, (GpuSortMessage){.magic = 0});
	}
	if (strcmp(fake, "good") != 0 && !fake_call_begun(service))
		bail("the sort does not begin");
}

/* Soon is before another service, whose call hangs for a little longer, gives itself up: ten seconds and more. */
static void
test_end_while_sorting(void)
{
	static const char *const fakes[] = {"good", "slow", "hang sort"};

	for (int i = 0; i < 3; i++)
	{
		Service hung;
		Service service;
		Client waiting[3];
		Client clients[3];
		Rows rows;
		int code;

		rows_make(&rows, 1000, 1, KEYS_RANDOM, 16, 16, 0);
		start_sorts(&hung, waiting, "hang sort", &rows);
		start_sorts(&service, clients, fakes[i], &rows);
		code = service_stop(&service);
		ok(code == 0 && service_wait(&hung, 0) == -1, "a service whose sorts are \"%s\" ends soon (%d)", fakes[i], code);
		for (int c = 0; c < 3; c++)
		{
			client_close(&clients[c]);
			client_close(&waiting[c]);
		}
		service_stop(&hung);
		rows_free(&rows);
	}
	unsetenv("GPUSORT_FAKE");
}

/* A sort that takes its time must not keep others waiting, nor its client's end. */
static void
test_slow_sort(void)
{
	const char *const options[] = {"--engine", "auto", "--cuda-library", fake_engine, NULL};
	Service service;
	Client slow;
	Client other;
	Rows rows;
	GpuSortMessage message = {.u.job_begin = {.engine = GPUSORT_ENGINE_HOST, .key_words = 1}};

	setenv("GPUSORT_FAKE", "slow", 1);
	service_start(&service, options);
	rows_make(&rows, 1000, 1, KEYS_RANDOM, 16, 16, 0);
	client_open(&slow, &service);
	client_begin(&slow, 1, false, 0, 0);
	sort_put(&slow, &rows);
	client_send(&slow, GPUSORT_MSG_SORT, (GpuSortMessage){.magic = 0});

	client_open(&other, &service);
	client_send(&other, GPUSORT_MSG_JOB_BEGIN, message);
	client_expect(&other, GPUSORT_MSG_JOB);
	ok(sort_put(&other, &rows) == NULL && sort_finish(&other, &rows, &message) == NULL &&
		   sort_read(&other, &rows) == NULL,
	   "others sort while one takes its time");
	client_close(&other);

	client_close(&slow);
	ok(client_sees_idle(&service), "closing its connection ends a sort that takes its time");
	rows_free(&rows);
	service_stop(&service);
	unsetenv("GPUSORT_FAKE");
}

/* A client in a process of its own, killed at a stage. */
static void
kill_client(const Service *service, const char *stage)
{
	int reached[2];
	char byte;
	pid_t pid;

	if (pipe(reached) != 0)
		bail("pipe");
	pid = fork();
	if (pid == 0)
	{
		Client client;
		Rows rows;
		GpuSortMessage message;

		rows_make(&rows, 100000, 1, KEYS_RANDOM, 60, 60, 0);
		client_open(&client, service);
		client_begin(&client, 1, false, 0, 0);
		if (strcmp(stage, "begin") != 0)
			sort_put(&client, &rows);
		if (strcmp(stage, "sort") == 0)
			client_send(&client, GPUSORT_MSG_SORT, (GpuSortMessage){.magic = 0});
		if (strcmp(stage, "read") == 0)
		{
			sort_finish(&client, &rows, &message);
			client_expect(&client, GPUSORT_MSG_DATA);
		}
		if (write(reached[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(reached[1]);
	if (read(reached[0], &byte, 1) != 1)
		bail("the client to be killed did not get far");
	close(reached[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void
test_killed_clients(void)
{
	static const char *const stages[] = {"begin", "put", "sort", "read"};
	const char *const options[] = {"--threads", "2", "--staging-memory", "16777216", NULL};
	Service service;

	/* four chunks: two sorts, so one client whose chunks were lost would show soon */
	service_start(&service, options);
	for (int s = 0; s < 4; s++)
	{
		bool good = true;

		for (int i = 0; i < 4; i++)
		{
			Client clients[2];
			double end = now_ms() + ANSWER_MS;
			int begun = 0;

			kill_client(&service, stages[s]);
			while (begun < 2 && now_ms() < end)
			{
				begun = 0;
				for (int c = 0; c < 2; c++)
				{
					client_open(&clients[c], &service);
					begun += client_begin(&clients[c], 1, false, 0, 0).type == GPUSORT_MSG_JOB;
				}
				for (int c = 0; c < 2; c++)
					client_close(&clients[c]);
				if (begun < 2)
					usleep(5000);
			}
			good &= begun == 2;
		}
		ok(good, "chunks of clients killed after %s come back", stages[s]);
	}
	ok(serves(&service), "and the service serves");
	service_stop(&service);
}

static void
test_second_service(void)
{
	const char *const none[] = {NULL};
	Service service;
	Service next;

	service_start(&service, plain);
	ok(service_try(service.socket, none, ANSWER_MS) == 3, "a second service on the same socket exits");
	ok(serves(&service), "and the first one still serves");

	kill(service.pid, SIGKILL);
	service_wait(&service, ANSWER_MS);
	close(service.control);
	ok(exists(service.socket), "a service that is killed leaves its socket");
	service_start_at(&next, service.socket, plain);
	ok(serves(&next), "which does not keep the next one from serving there");
	service_stop(&next);
}

/*
 * Starts a service from a process of its own, which is killed: no handler of
 * its can run.
 */
static void
test_parent_killed(void)
{
	int told[2];
	pid_t parent;
	pid_t service_pid;
	int status;
	double end = now_ms() + ANSWER_MS;
	bool gone = false;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe(told) != 0)
		bail("pipe");
	parent = fork();
	if (parent == 0)
	{
		Service service;

		service_start(&service, plain);
		if (write(told[1], &service.pid, sizeof(service.pid)) == sizeof(service.pid))
			pause();
		_exit(1);
	}
	if (read(told[0], &service_pid, sizeof(service_pid)) != sizeof(service_pid))
		bail("no service");
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	while (!gone && now_ms() < end)
	{
		gone = waitpid(service_pid, &status, WNOHANG) == service_pid;
		usleep(2000);
	}
	if (!gone)
		kill(service_pid, SIGKILL);
	ok(gone, "a service whose parent is killed ends");
	close(told[0]);
	close(told[1]);
}

/* PING is answered while sorts run. */
static void
test_pulse(void)
{
	const char *const slow[] = {"--engine", "auto", "--cuda-library", fake_engine, NULL};
	Service service;
	Client client;
	Rows rows;
	bool answered = true;

	setenv("GPUSORT_FAKE", "slow", 1);
	service_start(&service, slow);
	rows_make(&rows, 1000, 1, KEYS_RANDOM, 16, 16, 0);
	client_open(&client, &service);
	client_begin(&client, 1, false, 0, 0);
	sort_put(&client, &rows);
	client_send(&client, GPUSORT_MSG_SORT, (GpuSortMessage){.magic = 0});
	for (uint64_t number = 1; number <= 10; number++)
		answered &= service_pong(&service, number * UINT64_C(0x100000001), ANSWER_MS);
	ok(answered, "PING is answered by PONG of its number, in the middle of a sort");
	kill(service.pid, SIGSTOP);
	waitpid(service.pid, NULL, WUNTRACED);
	ok(!service_pong(&service, 1, 200), "not by a service that is stopped");
	kill(service.pid, SIGCONT);
	ok(service_pong(&service, 1, ANSWER_MS), "but when it goes on");
	client_close(&client);
	rows_free(&rows);
	service_stop(&service);
	unsetenv("GPUSORT_FAKE");
}

/* Service and module of different builds. */
static void
test_builds(void)
{
	char own[17];
	const char *const same[] = {"--build", own, NULL};
	const char *const other[] = {"--build", "0123456789abcdef", NULL};
	GpuSortMessage message = {.u.job_begin = {.key_words = 1}};
	Service service;
	Client client;
	char path[128];

	snprintf(path, sizeof(path), "%s/build", test_directory());
	snprintf(own, sizeof(own), "%016llx", (unsigned long long) GPUSORT_BUILD);
	ok(service_try(path, other, ANSWER_MS) == 2, "a service that is to be of another build exits");
	ok(!exists(path), "before it has a socket");
	service_start(&service, same);
	ok(serves(&service), "one of the right build serves");
	for (int join = 0; join < 2; join++)
	{
		client_connect(&client, &service);
		client_send(&client, GPUSORT_MSG_HELLO, (GpuSortMessage){.u.hello.build = GPUSORT_BUILD + 1});
		client_expect(&client, GPUSORT_MSG_WELCOME);
		client_send(&client, join ? GPUSORT_MSG_JOB_JOIN : GPUSORT_MSG_JOB_BEGIN, message);
		message = client_expect(&client, GPUSORT_MSG_REFUSED);
		ok(message.u.failure.reason == GPUSORT_REASON_BUILD && strstr(message.u.failure.text, "build") != NULL,
		   "%s of a client of another build is refused", join ? "JOB_JOIN" : "JOB_BEGIN");
		client_close(&client);
	}
	ok(serves(&service), "and others are not concerned");
	service_stop(&service);
}

static void
test_descriptors(void)
{
	Service service;
	int leak[2];
	struct pollfd event;

	if (pipe(leak) != 0)
		bail("pipe");
	service_start(&service, plain);
	close(leak[1]);
	event = (struct pollfd){.fd = leak[0], .events = POLLIN};
	ok(poll(&event, 1, ANSWER_MS) == 1 && (event.revents & POLLHUP),
	   "a service holds no descriptors that it happened to inherit");
	close(leak[0]);
	service_stop(&service);
}

static void
test_bad_options(void)
{
	const char *const cases[][4] = {
		{"--engine", "gpu", NULL},
		{"--threads", "-1", NULL},
		{"--threads", "many", NULL},
		{"--host-memory", "1GB", NULL},
		{"--host-memory", "16777215", NULL},
		{"--host-memory", "99999999999999999999", NULL},
		{"--nonsense", NULL},
		{"nonsense", NULL},
	};
	const char *const huge[] = {"--staging-memory", "9000000000000000000", NULL};
	char path[128];
	int good = 0;

	/* stderr is theirs */
	fflush(stderr);
	if (freopen("/dev/null", "w", stderr) == NULL)
		bail("freopen");
	snprintf(path, sizeof(path), "%s/options", test_directory());
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		good += service_try(path, cases[i], ANSWER_MS) == 2;
	ok(good == sizeof(cases) / sizeof(cases[0]), "bad options are refused");
	ok(service_try(path, huge, ANSWER_MS) == 1, "more staging memory than the machine has is refused");
	ok(service_try("/nowhere/at/all", plain, ANSWER_MS) == 1, "a socket where there is no directory is refused");
	snprintf(path, sizeof(path), "%s/%0100d", test_directory(), 0);
	ok(service_try(path, plain, ANSWER_MS) == 2, "so is a path too long for a socket");
}

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	random_seed(time(NULL));
	fake_engine = getenv("FAKE_ENGINE");
	if (fake_engine == NULL)
		bail("FAKE_ENGINE must name the fake engine's library");
	test_end();
	test_end_while_sorting();
	test_slow_sort();
	test_killed_clients();
	test_second_service();
	test_parent_killed();
	test_pulse();
	test_builds();
	test_descriptors();
	test_bad_options();
	return done_testing();
}
