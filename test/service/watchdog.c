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
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "testlib.h"

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
	while (receive_message(client->socket, &next, ANSWER_MS))
	{
		message = next;
		*working += next.type == GPUSORT_MSG_PONG;
	}
	return message;
}

/* Returns how many seconds, as the service counts them, the call had taken. */
static int
check_given_up(Service *service, Client *client, const char *call)
{
	char line[100];
	const char *found;
	int seconds = 0;

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
	ok(service_wait(service, ANSWER_MS) == 5, "%s: the service exits", call);
	snprintf(line, sizeof(line), "engine call \"%s\"", call);
	ok(service_log(service, line, ANSWER_MS), "%s: which is logged: %s", call, service->last_log);
	found = strstr(service->last_log, "returned for ");
	if (found != NULL)
		(void) sscanf(found, "returned for %d seconds", &seconds);
	ok(access(service->socket, F_OK) != 0, "%s: and its socket is gone", call);
	service_stop(service);
	return seconds;
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
	struct pollfd event;
	double paused;
	long sleeps;
	int refused = 0;
	int cancelled_seconds;
	int put_seconds;
	int rounds = 0;

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
	if (!fake_call_begun(&in_begin) || !fake_call_begun(&in_put) || !fake_call_begun(&in_sort) ||
		!fake_call_begun(&in_end) || !fake_call_begun(&stopped))
		bail("a call does not begin");
	paused = now_ms();
	kill(stopped.pid, SIGSTOP);
	client_close(&sorts); /* which cancels it */

	/*
	 * Others do not stand in line behind a call that has not got on for a while, each for its limit: it would be given
	 * up meanwhile.
	 */
	usleep(500000);
	for (int i = 0; i < 5; i++)
	{
		ask(&behind, &in_begin);
		refused += client_receive(&behind, &message, ANSWER_MS) && message.type == GPUSORT_MSG_REFUSED;
		client_close(&behind);
	}
	ok(refused == 5 && service_wait(&in_begin, 0) == -1, "sorts are refused soon while another one's begin hangs: %s",
	   message.u.failure.text);

	/* until all is done that it was asked for */
	event = (struct pollfd){.fd = cursor.socket, .events = POLLIN};
	if (poll(&event, 1, ANSWER_MS) != 1 || !service_pong(&idle, 1, ANSWER_MS))
		bail("no rows come");
	sleeps = sleeps_of(idle.pid);
	usleep(2500000);
	ok(sleeps_of(idle.pid) - sleeps <= 1, "nothing wakes a service whose sorts wait for their readers");
	ok(sort_read(&cursor, &rows) == NULL, "and they can be read");
	client_close(&cursor);
	service_stop(&idle);

	cancelled_seconds = check_given_up(&in_sort, NULL, "sort");
	check_given_up(&in_begin, &begins, "begin");
	put_seconds = check_given_up(&in_put, &puts, "put");
	ok(cancelled_seconds > 0 && cancelled_seconds < put_seconds,
	   "a call that was cancelled sooner (%d s) than another (%d s)", cancelled_seconds, put_seconds);
	check_given_up(&in_end, NULL, "end");

	while (now_ms() - paused < 13000)
		usleep(100000);
	while (receive_message(waits.socket, &message, 0))
		;
	kill(stopped.pid, SIGCONT);
	/* it tells the client each time that it looks at its calls */
	while (rounds < 3 && receive_message(waits.socket, &message, ANSWER_MS) && message.type == GPUSORT_MSG_PONG)
		rounds++;
	ok(rounds == 3, "a service that was stopped for longer than calls may take goes on");
	client_close(&waits);
	ok(client_sees_idle(&stopped), "and its sort ends when it is cancelled");
	service_stop(&stopped);
	rows_free(&rows);
	return done_testing();
}
