/*-------------------------------------------------------------------------
 *
 * watchdog.c
 *	  Tests of the sort service: engine calls that do not return.
 *
 * The limits are those of src/service/session/watchdog.c.  Services with different fakes
 * (fake_engine.c) wait for them side by side.
 *
 *-------------------------------------------------------------------------
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "testlib.h"

/* Longer than any limit, on a busy machine too. */
#define GIVEN_UP_MS 40000

static void
start(Service *service, const char *fake)
{
	const char *const options[] = {"--engine", "auto", "--threads", "1", "--cuda-library", getenv("FAKE_ENGINE"), NULL};

	setenv("GPUSORT_FAKE", fake, 1);
	service_start(service, options);
	unsetenv("GPUSORT_FAKE");
}

/* Sends JOB_BEGIN and waits for no answer. */
static void
ask(Client *client, const Service *service)
{
	client_open(client, service);
	client_send(client, GPUSORT_MSG_JOB_BEGIN, (GpuSortMessage){.u.job_begin.key_words = 1});
}

static void
ask_and_put(Client *client, const Service *service, const Rows *rows)
{
	client_open(client, service);
	if (client_begin(client, 1, false, 0, 0).type != GPUSORT_MSG_JOB || sort_put(client, rows) != NULL)
		bail("a sort was refused");
}

/* Waits until the client is told that its sort is lost, or was refused; counts how often that it is worked for. */
static GpuSortMessage
last_message(Client *client, int *working)
{
	GpuSortMessage message = {.type = 0};
	GpuSortMessage next;

	*working = 0;
	while (receive_message(client->socket, &next, GIVEN_UP_MS))
	{
		message = next;
		*working += next.type == GPUSORT_MSG_PONG;
	}
	return message;
}

static void
check_given_up(Service *service, Client *client, const char *call)
{
	char line[100];

	if (client != NULL)
	{
		int working;
		GpuSortMessage message = last_message(client, &working);

		ok((message.type == GPUSORT_MSG_FAILED || message.type == GPUSORT_MSG_REFUSED) &&
			   message.u.failure.reason == GPUSORT_REASON_DEVICE,
		   "%s: the client is told: %s", call, message.u.failure.text);
		ok((working > 1) == (strcmp(call, "begin") != 0), "%s: and before, %d times, that it is worked for", call, working);
		client_close(client);
	}
	ok(service_wait(service, GIVEN_UP_MS) == 5, "%s: the service exits", call);
	snprintf(line, sizeof(line), "engine call \"%s\"", call);
	ok(service_log(service, line, 1000), "%s: which is logged: %s", call, service->last_log);
	ok(access(service->socket, F_OK) != 0, "%s: and its socket is gone", call);
	service_stop(service);
}

/* How often a process has gone to sleep. */
static long
sleeps_of(pid_t pid)
{
	char line[128];
	long sleeps = -1;
	FILE *file;

	snprintf(line, sizeof(line), "/proc/%d/status", (int) pid);
	file = fopen(line, "r");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		(void) sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
	if (sleeps < 0)
		bail("no count of context switches");
	fclose(file);
	return sleeps;
}

int
main(void)
{
	Service in_begin;
	Service in_put;
	Service in_sort;
	Service in_end;
	Service stopped;
	Service idle;
	Client begins;
	Client behind;
	Client puts;
	Client sorts;
	Client ends;
	Client waits;
	Client cursor;
	Rows rows;
	GpuSortMessage message;
	double began;
	double asked;
	long sleeps;

	setvbuf(stdout, NULL, _IOLBF, 0);
	random_seed(time(NULL));
	if (getenv("FAKE_ENGINE") == NULL)
		bail("FAKE_ENGINE must name the fake engine's library");
	rows_make(&rows, 10, 1, KEYS_RANDOM, 16, 16, 0);
	start(&in_begin, "hang begin");
	start(&in_put, "hang put");
	start(&in_sort, "hang sort");
	start(&in_end, "hang end");
	start(&stopped, "slow");
	start(&idle, "good");

	began = now_ms();
	ask(&begins, &in_begin);
	ask_and_put(&puts, &in_put, &rows);
	ask_and_put(&sorts, &in_sort, &rows);
	client_send(&sorts, GPUSORT_MSG_SORT, (GpuSortMessage){.magic = 0});
	ask_and_put(&waits, &stopped, &rows);
	client_send(&waits, GPUSORT_MSG_SORT, (GpuSortMessage){.magic = 0});
	ask_and_put(&ends, &in_end, &rows);
	client_close(&ends);
	ask_and_put(&cursor, &idle, &rows);
	if (sort_finish(&cursor, &rows, &message) != NULL)
		bail("a sort failed");
	usleep(300000);
	kill(stopped.pid, SIGSTOP);
	client_close(&sorts); /* which cancels it */

	/* others do not stand in line behind a call that hangs, each for its limit */
	asked = now_ms();
	ask(&behind, &in_begin);
	message = client_expect(&behind, GPUSORT_MSG_REFUSED);
	ok(now_ms() - asked < 3000, "a sort is refused soon while another one's begin hangs: %s", message.u.failure.text);
	client_close(&behind);

	sleeps = sleeps_of(idle.pid);
	usleep(2500000);
	ok(sleeps_of(idle.pid) - sleeps <= 1, "nothing wakes a service whose sorts wait for their readers");
	ok(sort_read(&cursor, &rows) == NULL, "and they can be read");
	client_close(&cursor);
	service_stop(&idle);

	check_given_up(&in_sort, NULL, "sort");
	ok(now_ms() - began < GIVEN_UP_MS, "a call that was cancelled (%.0f ms)", now_ms() - began);
	check_given_up(&in_begin, &begins, "begin");
	check_given_up(&in_put, &puts, "put");
	check_given_up(&in_end, NULL, "end");

	while (now_ms() - began < 13000)
		usleep(100000);
	kill(stopped.pid, SIGCONT);
	ok(service_wait(&stopped, 2500) == -1, "a service that was stopped for longer than calls may take goes on");
	client_close(&waits);
	ok(client_sees_idle(&stopped), "and its sort ends when it is cancelled");
	service_stop(&stopped);
	rows_free(&rows);
	return done_testing();
}
