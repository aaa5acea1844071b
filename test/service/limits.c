/*-------------------------------------------------------------------------
 *
 * limits.c
 *	  Tests of the sort service: memory, chunks and engines that are not there,
 *	  devices that fail, draining.
 *
 * The cuda engine here is fake_engine.c.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "testlib.h"

/* A sanitizer ends the service when it gets no memory of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* Puts rows until FULL; the rows put so far are then the first of rows. */
static GpuSortMessage
put_until_full(Client *client, Rows *rows)
{
	uint64_t next = 0;
	uint32_t granted = 0;
	GpuSortMessage message;

	for (;;)
	{
		uint32_t chunk;
		uint32_t rows_max;

		if (!client_receive(client, &message, ANSWER_MS))
			bail("no chunk came");
		if (message.type == GPUSORT_MSG_FULL)
			break;
		if (message.type != GPUSORT_MSG_CHUNK || next == rows->n)
			bail("no FULL came");
		granted++;
		chunk = message.u.chunk.chunk;
		rows_max = message.u.chunk.rows_max;
		message.u.put.chunk = chunk;
		next = rows_fill(rows, next, rows_max, client_chunk(client, chunk), &message.u.put.rows,
						 &message.u.put.bytes);
		client_send(client, GPUSORT_MSG_CHUNK_PUT, message);
	}
	rows->n = next;
	diag("full after %u chunks", granted);
	return message;
}

/* Leaves only the first n rows in the right answer. */
static void
shorten(Rows *rows, uint64_t all)
{
	uint64_t place = 0;

	for (uint64_t i = 0; i < all; i++)
	{
		if (rows->order[i] < rows->n)
			rows->order[place++] = rows->order[i];
	}
}

static void
test_host_memory(void)
{
	const char *const options[] = {"--host-memory", "67108864", "--threads", "2", NULL};
	Service service;
	Client first;
	Client second;
	Rows rows;
	GpuSortMessage message;
	uint64_t all = 900000;

	service_start(&service, options);
	ok(service.ready.u.ready.host_limit == 67108864, "READY tells gpusort.host_memory");

	client_open(&first, &service);
	message = client_begin(&first, 1, false, 100, 200000000);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_MEMORY_LIMIT,
	   "an estimate of too many bytes is refused");
	ok(strstr(message.u.failure.text, "gpusort.host_memory") != NULL, "with the name of the setting");
	client_close(&first);
	client_open(&first, &service);
	message = client_begin(&first, 1, false, 10000000, 0);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_MEMORY_LIMIT,
	   "an estimate of too many rows is refused");
	client_close(&first);
	client_open(&first, &service);
	message = client_begin(&first, 1, false, UINT64_MAX, UINT64_MAX);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_TOO_MANY_ROWS,
	   "an estimate of more rows than ids is refused");
	client_close(&first);

	/* estimates may be wrong */
	rows_make(&rows, all, 1, KEYS_RANDOM, 100, 100, 0);
	client_open(&first, &service);
	client_begin(&first, 1, false, 0, 0);
	message = put_until_full(&first, &rows);
	ok(message.u.failure.reason == GPUSORT_REASON_MEMORY_LIMIT, "a sort that grows too large is told FULL");
	ok(rows.n > 150000 && rows.n < all, "but not before it has what it may have");

	client_open(&second, &service);
	message = client_begin(&second, 1, false, 0, 40000000);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_MEMORY_BUSY,
	   "another sort is refused what would fit without the first");
	client_close(&second);

	shorten(&rows, all);
	ok(sort_finish(&first, &rows, &message) == NULL, "what was put is sorted all the same");
	ok(sort_read(&first, &rows) == NULL, "and read");
	client_close(&first);
	rows_free(&rows);
	ok(client_sees_idle(&service), "all memory is given back");
	service_stop(&service);
}

/* Reads what memory a process has mapped, and touched of it, in bytes. */
static void
read_size(pid_t pid, uint64_t *mapped, uint64_t *touched)
{
	char path[64];
	unsigned long long pages[2] = {0, 0};
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int) pid);
	file = fopen(path, "r");
	if (file == NULL || fscanf(file, "%llu %llu", &pages[0], &pages[1]) != 2)
		bail("%s cannot be read", path);
	fclose(file);
	*mapped = pages[0] * sysconf(_SC_PAGESIZE);
	*touched = pages[1] * sysconf(_SC_PAGESIZE);
}

static uint64_t
mapped_by(pid_t pid)
{
	uint64_t mapped;
	uint64_t touched;

	read_size(pid, &mapped, &touched);
	return mapped;
}

static uint64_t
touched_by(pid_t pid)
{
	uint64_t mapped;
	uint64_t touched;

	read_size(pid, &mapped, &touched);
	return touched;
}

/* Sort after sort of all kinds must not need more and more. */
static void
test_no_leak(void)
{
	const char *const options[] = {"--threads", "2", NULL};
	Service service;
	Rows random;
	Rows sorted;
	uint64_t before = 0;
	uint64_t after;

	service_start(&service, options);
	rows_make(&random, 100000, 1, KEYS_RANDOM, 16, 16, 0);
	rows_make(&sorted, 100000, 2, KEYS_ASCENDING, 16, 16, 0);
	for (int i = 0; i < 300; i++)
	{
		if (i == 60)
			before = touched_by(service.pid);
		if (sort_all(&service, i % 3 ? &random : &sorted, true) != NULL)
			bail("a sort failed");
	}
	after = touched_by(service.pid);
	/*
	 * A lost array of elements would be 1.6 MB each time.  What one sort needs it may have twice, where the one
	 * before has not ended yet, and of the pool's chunks it meets others when its client is late.
	 */
	ok(after < before + (UINT64_C(160) << 20), "the service does not grow (%lld MB in 240 sorts)",
	   (long long) (after - before) >> 20);
	rows_free(&random);
	rows_free(&sorted);
	service_stop(&service);
}

/* Every put after FULL has its answer too. */
static void
test_full_again(void)
{
	const char *const options[] = {"--host-memory", "41943040", "--threads", "1", NULL};
	Service service;
	Client client;
	Rows rows;
	GpuSortMessage message;
	uint32_t chunks[4];
	uint32_t n = 0;
	int fulls = 0;

	service_start(&service, options);
	client_open(&client, &service);
	client_begin(&client, 1, false, 0, 0);
	/* if there is another one it comes at once */
	while (client_receive(&client, &message, n < 2 ? ANSWER_MS : 600))
	{
		if (message.type != GPUSORT_MSG_CHUNK || n == 4)
			bail("message %u, chunk %u", message.type, n);
		chunks[n++] = message.u.chunk.chunk;
	}
	ok(n == 2, "the sort is granted the chunks that there is memory for");

	/* rows that fill their chunks, so that there is no memory for more of them */
	rows_make(&rows, 400000, 1, KEYS_RANDOM, 8, 8, 0);
	for (uint64_t i = 0, next = 0; i < n; i++)
	{
		message.u.put.chunk = chunks[i];
		next = rows_fill(&rows, next, UINT32_MAX, client_chunk(&client, chunks[i]), &message.u.put.rows,
						 &message.u.put.bytes);
		client_send(&client, GPUSORT_MSG_CHUNK_PUT, message);
	}
	while (client_receive(&client, &message, fulls < 2 ? ANSWER_MS : 600))
		fulls += message.type == GPUSORT_MSG_FULL;
	ok(fulls == 2, "each of two puts is answered by FULL");
	rows_free(&rows);
	client_close(&client);
	service_stop(&service);
}

/* The system gives no more: FULL, or REFUSED, and never the loss of what was put. */
static void
test_no_memory_left(void)
{
	const char *const options[] = {"--host-memory", "1073741824", "--threads", "2", NULL};
	const uint64_t all = 900000;
	struct rlimit old;
	Service service;

	service_start(&service, options);
	for (uint64_t more = 0; more <= 48; more += 8)
	{
		struct rlimit limit = {.rlim_cur = mapped_by(service.pid) + (more << 20), .rlim_max = RLIM_INFINITY};
		Client client;
		Rows rows;
		GpuSortMessage message;

		if (prlimit(service.pid, RLIMIT_AS, NULL, &old) != 0)
			bail("prlimit");
		limit.rlim_max = old.rlim_max;
		if (prlimit(service.pid, RLIMIT_AS, &limit, NULL) != 0)
			bail("prlimit");
		client_open(&client, &service);
		message = client_begin(&client, 1, false, 0, 0);
		if (message.type == GPUSORT_MSG_JOB)
		{
			rows_make(&rows, all, 1, KEYS_RANDOM, 100, 100, 0);
			message = put_until_full(&client, &rows);
			ok(message.u.failure.reason == GPUSORT_REASON_NO_MEMORY, "with %d MB left a put is answered by FULL",
			   (int) more);
			shorten(&rows, all);
			ok(sort_finish(&client, &rows, &message) == NULL && sort_read(&client, &rows) == NULL,
			   "and the rows so far are sorted and read");
			rows_free(&rows);
		}
		else
			ok(message.u.failure.reason == GPUSORT_REASON_NO_MEMORY, "with %d MB left a sort is refused", (int) more);
		client_close(&client);
		if (prlimit(service.pid, RLIMIT_AS, &old, NULL) != 0)
			bail("prlimit");
		ok(client_sees_idle(&service), "all memory is given back");
	}
	service_stop(&service);
}

/* Readers that pause must not take the pool from others. */
static void
test_paused_readers(void)
{
	const char *const options[] = {"--threads", "1", NULL};
	Service service;
	Client clients[28];
	Rows rows;
	GpuSortMessage message;
	const char *problem = NULL;
	int good = 0;

	service_start(&service, options);
	rows_make(&rows, 16000, 1, KEYS_RANDOM, 1000, 1000, 0);
	for (int i = 0; i < 28; i++)
	{
		client_open(&clients[i], &service);
		if (client_begin(&clients[i], 1, false, 0, 0).type != GPUSORT_MSG_JOB)
			break;
		problem = sort_put(&clients[i], &rows);
		if (problem == NULL)
			problem = sort_finish(&clients[i], &rows, &message);
		if (problem != NULL)
		{
			diag("sort %d: %s", i, problem);
			break;
		}
		good++;
	}
	ok(good == 28, "28 sorts of 16 MB wait to be read, of a pool of 64 chunks");
	for (int i = 0; i < good; i++)
	{
		if (sort_read(&clients[i], &rows) != NULL)
			good = -1;
		client_close(&clients[i]);
	}
	ok(good == 28, "and all are read in the end");
	rows_free(&rows);
	service_stop(&service);
}

static void
test_engines(void)
{
	const char *const options[] = {"--engine", "cuda", "--cuda-library", "/nowhere/gpusort_cuda.so", NULL};
	const char *const host_only[] = {NULL};
	const char *const fake[] = {"--engine", "auto", "--cuda-library", getenv("FAKE_ENGINE"), NULL};
	Service service;
	Client client;
	GpuSortMessage message = {0};

	service_start(&service, options);
	ok(strstr(service.last_log, "/nowhere/gpusort_cuda.so") != NULL, "a missing library is logged");
	ok(service.ready.u.ready.engines == 1u << GPUSORT_ENGINE_HOST, "the host engine serves");
	client_open(&client, &service);
	message.u.job_begin.engine = GPUSORT_ENGINE_CUDA;
	message.u.job_begin.key_words = 1;
	client_send(&client, GPUSORT_MSG_JOB_BEGIN, message);
	message = client_expect(&client, GPUSORT_MSG_REFUSED);
	ok(message.u.failure.reason == GPUSORT_REASON_NO_ENGINE, "a sort for the cuda engine is refused");
	client_close(&client);
	service_stop(&service);

	service_start(&service, host_only);
	ok(service.last_log[0] == '\0', "with --engine host no other is looked for");
	service_stop(&service);

	setenv("GPUSORT_FAKE", "abi", 1);
	service_start(&service, fake);
	ok(strstr(service.last_log, "another version") != NULL &&
		   service.ready.u.ready.engines == 1u << GPUSORT_ENGINE_HOST,
	   "a library of another version is not used");
	service_stop(&service);

	setenv("GPUSORT_FAKE", "build", 1);
	service_start(&service, fake);
	ok(strstr(service.last_log, "another build") != NULL &&
		   service.ready.u.ready.engines == 1u << GPUSORT_ENGINE_HOST,
	   "nor one of another build");
	service_stop(&service);

	setenv("GPUSORT_FAKE", "open", 1);
	service_start(&service, fake);
	ok(strstr(service.last_log, "fake failure of open") != NULL &&
		   service.ready.u.ready.engines == 1u << GPUSORT_ENGINE_HOST,
	   "without a device the host engine serves");
	service_stop(&service);

	setenv("GPUSORT_FAKE", "good", 1);
	service_start(&service, fake);
	ok(service.ready.u.ready.engines == (1u << GPUSORT_ENGINE_HOST | 1u << GPUSORT_ENGINE_CUDA) &&
		   service.ready.u.ready.devices == 1 && strcmp(service.ready.u.ready.device, "fake device") == 0,
	   "READY tells both engines");
	client_open(&client, &service);
	message = client_begin(&client, 1, false, 0, 0);
	ok(message.type == GPUSORT_MSG_JOB && message.u.job.engine == GPUSORT_ENGINE_CUDA &&
		   strcmp(message.u.job.place.device, "fake device") == 0,
	   "auto is the cuda engine where there is one");
	client_close(&client);
	service_stop(&service);
}

/*
 * A device that fails: the sort is lost, after the second in a row the service ends,
 * unless others are sorting, after the third in any case.
 */
static void
test_failing_device(const char *call)
{
	const char *const options[] = {"--engine", "auto", "--cuda-library", getenv("FAKE_ENGINE"), NULL};
	Service service;
	Rows rows;
	Client bystander;
	int failures = strcmp(call, "begin") != 0 ? 3 : 2;
	int told = 0;

	setenv("GPUSORT_FAKE", call, 1);
	service_start(&service, options);
	rows_make(&rows, 10, 1, KEYS_RANDOM, 16, 16, 0);
	client_open(&bystander, &service);
	if (failures > 2)
		client_begin(&bystander, 1, false, 0, 0);
	for (int i = 0; i < failures; i++)
	{
		Client client;
		GpuSortMessage message;

		client_open(&client, &service);
		message = client_begin(&client, 1, false, 0, 0);
		if (message.type == GPUSORT_MSG_JOB)
		{
			sort_put(&client, &rows);
			client_send(&client, GPUSORT_MSG_SORT, (GpuSortMessage){.magic = 0});
			while (client_receive(&client, &message, ANSWER_MS) &&
				   (message.type == GPUSORT_MSG_CHUNK || message.type == GPUSORT_MSG_SORTED))
				;
			told += message.type == GPUSORT_MSG_FAILED && message.u.failure.reason == GPUSORT_REASON_DEVICE;
		}
		else
			told += message.u.failure.reason == GPUSORT_REASON_DEVICE;
		client_close(&client);
	}
	ok(told == failures, "%s: the clients are told", call);
	if (failures > 2)
	{
		GpuSortMessage message = {.type = 0};

		while (client_receive(&bystander, &message, ANSWER_MS) && message.type == GPUSORT_MSG_CHUNK)
			;
		ok(message.type == GPUSORT_MSG_FAILED, "%s: so is one that had no part in it", call);
	}
	client_close(&bystander);
	ok(service_wait(&service, ANSWER_MS) == 4, "%s: after %d failures the service exits for a fresh start", call,
	   failures);
	ok(service_log(&service, "failed too often", ANSWER_MS), "%s: which is logged", call);
	service_stop(&service);
	rows_free(&rows);
	unsetenv("GPUSORT_FAKE");
}

/* Sorts that work in between make failures what may happen. */
static void
test_odd_failures(void)
{
	const char *const options[] = {"--engine", "auto", "--cuda-library", getenv("FAKE_ENGINE"), NULL};
	Service service;
	Rows rows;
	int failed = 0;

	setenv("GPUSORT_FAKE", "odd", 1);
	service_start(&service, options);
	rows_make(&rows, 10, 1, KEYS_RANDOM, 16, 16, 0);
	for (int i = 0; i < 4; i++)
		failed += sort_all(&service, &rows, false) != NULL;
	ok(failed == 2 && client_sees_idle(&service) && service_wait(&service, 100) == -1,
	   "two failures with a success in between are no reason to exit");
	service_stop(&service);
	rows_free(&rows);
	unsetenv("GPUSORT_FAKE");
}

static void
test_drain(void)
{
	const char *const options[] = {"--threads", "1", NULL};
	Service service;
	Client running;
	Client idle;
	Client late;
	Rows rows;
	GpuSortMessage message;

	service_start(&service, options);
	rows_make(&rows, 1000, 1, KEYS_RANDOM, 16, 16, 0);
	client_open(&running, &service);
	client_open(&idle, &service);
	client_begin(&running, 1, false, 0, 0);
	service_send(&service, GPUSORT_MSG_DRAIN);
	if (!service_pong(&service, 1, ANSWER_MS))
		bail("a service that drains does not answer");
	client_open(&late, &service);
	message = client_begin(&late, 1, false, 0, 0);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_DRAINING,
	   "a service that drains takes no new sort");
	client_close(&late);
	ok(sort_put(&running, &rows) == NULL && sort_finish(&running, &rows, &message) == NULL &&
		   sort_read(&running, &rows) == NULL,
	   "but finishes the one that runs");
	ok(service_wait(&service, 50) == -1, "and lives until that one is closed");
	client_close(&running);
	ok(service_wait(&service, ANSWER_MS) == 0, "then it exits");
	client_close(&idle);
	service_stop(&service);

	service_start(&service, options);
	service_send(&service, GPUSORT_MSG_DRAIN);
	ok(service_wait(&service, ANSWER_MS) == 0, "without a sort it exits at once");
	service_stop(&service);
	rows_free(&rows);
}

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	random_seed(time(NULL));
	if (getenv("FAKE_ENGINE") == NULL)
		bail("FAKE_ENGINE must name the fake engine's library");
	test_host_memory();
	test_no_leak();
	test_full_again();
	if (!SANITIZED)
		test_no_memory_left();
	test_paused_readers();
	test_engines();
	test_failing_device("begin");
	test_failing_device("put");
	test_failing_device("sort");
	test_failing_device("emit");
	test_odd_failures();
	test_drain();
	return done_testing();
}
