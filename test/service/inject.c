/*-------------------------------------------------------------------------
 *
 * inject.c
 *	  Tests of the sort service: each of its system calls that can fail does so
 *	  once, at its first, second, ... call.
 *
 * The service is gpusortd-failing (failing_calls.c).  It may not start, then it
 * exits with a code of its own; it may refuse sorts or lose them.  It must not
 * give a wrong answer, crash, hang, lose chunks or memory, or fail a sort that
 * comes after the failure.
 *
 * INJECT_EACH is at how many places, spread over all its calls, each function
 * fails; 0: at each of them.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testlib.h"

#define POOL_CHUNKS 8
#define FINDING     99 /* the exit code of sanitizers that found something */

static const char *const options[] = {"--staging-memory", "33554432", "--host-memory", "134217728",
									  "--threads", "2", NULL};

/* What comes of a sort. */
typedef enum Result
{
	RIGHT,
	NOT_DONE, /* refused or lost */
	WRONG,
	HUNG,
} Result;

/* How starts of a service ended, and the first problem. */
typedef struct Tally
{
	int runs;
	int not_started;
	int ended;
	int not_done; /* sorts */
	char problem[200];
} Tally;

static Rows rows;

/* What testrows.c says of a sort that was not done; all else that it says is wrong. */
static Result
judge(const char *problem, double start)
{
	static const char *const not_done[] = {
		"no chunk came", "FULL came", "no CHUNK came", "SORTED did not come", "FAILED came", "no SORTED came",
		"DATA did not come", "no DATA came", "RANGES did not come", "no RANGES came", "no answer came",
		"neither CHUNK nor SPACE came"};

	if (problem == NULL)
		return RIGHT;
	if (now_ms() - start > ANSWER_MS)
		return HUNG;
	for (size_t i = 0; i < sizeof(not_done) / sizeof(not_done[0]); i++)
	{
		if (strcmp(problem, not_done[i]) == 0)
			return NOT_DONE;
	}
	diag("%s", problem);
	return WRONG;
}

/* A member that joins the sort, puts nothing and leaves. */
static void
join_and_leave(const Service *service, uint64_t token)
{
	Client member;
	GpuSortMessage message = {.u.job_join.token = token};

	if (!client_try_open(&member, service))
		return;
	client_send(&member, GPUSORT_MSG_JOB_JOIN, message);
	if (client_receive(&member, &message, ANSWER_MS) && message.type == GPUSORT_MSG_JOB)
	{
		client_send(&member, GPUSORT_MSG_LEAVE, message);
		while (client_receive(&member, &message, ANSWER_MS) && message.type != GPUSORT_MSG_LEFT)
			;
	}
	client_close(&member);
}

/* Sends JOB_BEGIN; true, and *message is the answer, if that is JOB, else the client is closed. */
static bool
begin(Client *client, const Service *service, GpuSortMessage *message)
{
	if (!client_try_open(client, service))
		return false;
	client_send(client, GPUSORT_MSG_JOB_BEGIN, *message);
	if (client_receive(client, message, ANSWER_MS) && message->type == GPUSORT_MSG_JOB)
		return true;
	client_close(client);
	return false;
}

/* A sort with a member, whose rows are read twice. */
static Result
sort_once(const Service *service)
{
	Client client;
	GpuSortMessage message = {.u.job_begin = {.key_words = 1, .estimated_rows = rows.n}};
	const char *problem = NULL;
	double start = now_ms();

	if (!begin(&client, service, &message))
		return now_ms() - start > ANSWER_MS ? HUNG : NOT_DONE;
	join_and_leave(service, message.u.job.token);
	problem = sort_put(&client, &rows);
	if (problem == NULL)
		problem = sort_finish(&client, &rows, &message);
	if (problem == NULL)
		problem = sort_read(&client, &rows);
	if (problem == NULL)
	{
		message = (GpuSortMessage){.u.rewind.epoch = ++client.epoch};
		client_send(&client, GPUSORT_MSG_REWIND, message);
		problem = sort_read(&client, &rows);
	}
	client_close(&client);
	return judge(problem, start);
}

/* A reader of a sort, that reads nothing if it is not let in. */
static const char *
join_and_read(const Service *service, uint64_t token)
{
	Client reader;
	GpuSortMessage message = {.u.job_join = {.token = token, .reader = 1}};
	const char *problem = NULL;

	if (!client_try_open(&reader, service))
		return NULL;
	client_send(&reader, GPUSORT_MSG_JOB_JOIN, message);
	if (client_receive(&reader, &message, ANSWER_MS) && message.type == GPUSORT_MSG_JOB)
		problem = sort_read_interval(&reader, &rows, 100, rows.n);
	client_close(&reader);
	return problem;
}

/* A shared sort, whose rows are read by the ranges that they are cut into, and by a reader. */
static Result
sort_shared(const Service *service)
{
	Client client;
	GpuSortMessage message = {.u.job_begin = {.key_words = 1, .shared = 1}};
	const char *problem = NULL;
	double start = now_ms();
	uint64_t token;

	if (!begin(&client, service, &message))
		return now_ms() - start > ANSWER_MS ? HUNG : NOT_DONE;
	token = message.u.job.token;
	problem = sort_put(&client, &rows);
	if (problem == NULL)
		problem = sort_finish(&client, &rows, &message);
	if (problem == NULL)
		problem = join_and_read(service, token);
	if (problem == NULL)
		problem = sort_read_ranges(&client, &rows);
	client_close(&client);
	return judge(problem, start);
}

/* A sort in runs, which are in a file of the client's. */
static Result
sort_in_runs(const Service *service)
{
	Client client;
	SpaceFile file = {.descriptor = -1};
	GpuSortMessage message = {.u.job_begin = {.key_words = 1, .spill = 1}};
	const char *problem = NULL;
	double start = now_ms();

	if (!begin(&client, service, &message))
		return now_ms() - start > ANSWER_MS ? HUNG : NOT_DONE;
	problem = space_sort(&client, &rows, 0, &file, &message);
	if (problem == NULL && message.u.sorted.runs < 2)
		problem = "it is in memory";
	if (problem == NULL)
		problem = sort_read(&client, &rows);
	space_close(&client, &file);
	return judge(problem, start);
}

/* Starts a service whose number-th call of a function fails, and uses it; says in tally what was wrong. */
static void
run(const char *function, uint64_t number, int error, Tally *tally)
{
	Service service;
	char text[64];
	char path[100];
	const char *problem = NULL;
	Result last = NOT_DONE;
	bool started;
	int code;

	snprintf(text, sizeof(text), "%s %llu %d", function, (unsigned long long) number, error);
	setenv("GPUSORT_FAIL", text, 1);
	snprintf(path, sizeof(path), "%s/s", test_directory());
	started = service_begin(&service, path, options);
	tally->runs++;
	for (int i = 0; started && problem == NULL && (i < 3 || (i < 6 && last != RIGHT)); i++)
	{
		last = i % 3 == 0 ? sort_once(&service) : i % 3 == 1 ? sort_shared(&service)
															 : sort_in_runs(&service);
		tally->not_done += last == NOT_DONE;
		if (last == WRONG || last == HUNG)
			problem = last == WRONG ? "a wrong answer" : "no answer";
	}
	/* it may end, but in order; one whose sorts fail has to */
	code = service_wait(&service, problem != NULL || last == RIGHT ? 0 : ANSWER_MS);
	if (started && code < 0)
	{
		if (problem == NULL && last != RIGHT)
			problem = "sorts fail after the failure";
		if (problem == NULL && !client_sees_idle(&service))
			problem = "a sort or its memory is left";
		if (problem == NULL && !client_sees_room(&service, POOL_CHUNKS / GPUSORT_JOB_CHUNKS_MIN))
			problem = "a chunk is lost";
		service_stop(&service);
	}
	else
	{
		if (code < 0)
			code = service_wait(&service, ANSWER_MS);
		if (code < 0)
			problem = "it neither becomes ready nor ends";
		else if (code == FINDING || code >= 1000 || (!started && code == 0))
			problem = "it does not end in order";
		tally->not_started += !started;
		tally->ended += started;
		service_stop(&service);
	}
	if (problem != NULL && tally->problem[0] == '\0')
		snprintf(tally->problem, sizeof(tally->problem), "%s: %s (code %d; %.60s)", text, problem, code, service.last_log);
}

/* How often the service calls a function, as the run without a failure did. */
static uint64_t
calls_of(const char *function, const char *counts)
{
	FILE *file = fopen(counts, "r");
	char name[32];
	unsigned long long count;
	uint64_t found = 0;

	if (file == NULL)
		bail("%s: %s", counts, strerror(errno));
	while (fscanf(file, "%31s %llu", name, &count) == 2)
	{
		if (strcmp(name, function) == 0)
			found = count;
	}
	fclose(file);
	return found;
}

static void
test_function(const char *function, int error, const char *counts, uint64_t each)
{
	uint64_t calls = calls_of(function, counts);
	uint64_t places = each == 0 || each > calls ? calls : each;
	Tally tally = {.runs = 0};

	for (uint64_t i = 0; i < places; i++)
	{
		/* the first and the last call are among them */
		uint64_t number = places > 1 ? 1 + i * (calls - 1) / (places - 1) : 1;

		run(function, number, error, &tally);
	}
	ok(calls > 0 && tally.problem[0] == '\0',
	   "%s fails (%s) at %d of its %d calls: %d starts and %d sorts fail, %d services end",
	   function, strerror(error), tally.runs, (int) calls, tally.not_started, tally.not_done, tally.ended);
	if (tally.problem[0] != '\0')
		diag("%s", tally.problem);
}

/* Has a sanitizer exit with a code that is none of the service's. */
static void
tell_findings_apart(const char *options_name)
{
	const char *present = getenv(options_name);
	char value[1000];

	snprintf(value, sizeof(value), "%s:exitcode=%d", present ? present : "", FINDING);
	setenv(options_name, value, 1);
}

int
main(void)
{
	static const struct
	{
		const char *function;
		int error;
	} failures[] = {
		{"malloc", ENOMEM},
		{"calloc", ENOMEM},
		{"realloc", ENOMEM},
		{"mmap", ENOMEM},
		{"memfd_create", EMFILE},
		{"ftruncate", ENOSPC},
		{"fallocate", ENOSPC},
		{"pthread_create", EAGAIN},
		{"epoll_create1", EMFILE},
		{"epoll_ctl", ENOMEM},
		{"eventfd", EMFILE},
		{"socket", EMFILE},
		{"bind", EADDRINUSE},
		{"listen", EADDRINUSE},
		{"accept4", EMFILE},
		{"accept4", ECONNABORTED},
		{"getsockopt", ENOTCONN},
		{"recv", ECONNRESET},
		{"recvmsg", ECONNRESET},
		{"recvmsg", EINTR},
		{"send", EAGAIN},
		{"sendmsg", ENOBUFS},
		{"sendmsg", EPIPE},
		{"pread", EIO},
		{"pread", EINTR},
		{"pwrite", ENOSPC},
		{"pwrite", EINTR},
	};
	const char *each = getenv("INJECT_EACH");
	char program[4096];
	char counts[100];
	Tally tally = {.runs = 0};

	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(program, sizeof(program), "%s-failing", service_program());
	setenv("GPUSORTD", program, 1);
	tell_findings_apart("ASAN_OPTIONS");
	tell_findings_apart("UBSAN_OPTIONS");
	tell_findings_apart("TSAN_OPTIONS");
	setenv("GPUSORT_RUN_ROWS", "4000", 1); /* of those that may have runs */
	rows_make(&rows, 30000, 1, KEYS_FEW, 100, 300, 0);
	snprintf(counts, sizeof(counts), "%s/counts", test_directory());
	setenv("GPUSORT_FAIL_COUNTS", counts, 1);
	run("none", 0, 0, &tally);
	if (!ok(tally.problem[0] == '\0' && tally.not_done == 0, "without a failure all sorts are done"))
		bail("%s", tally.problem);
	unsetenv("GPUSORT_FAIL_COUNTS");
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		test_function(failures[i].function, failures[i].error, counts, each ? strtoull(each, NULL, 10) : 4);
	rows_free(&rows);
	return done_testing();
}
