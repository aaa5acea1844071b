/*-------------------------------------------------------------------------
 *
 * queue.c
 *	  Tests of the sort service: who waits to be let in, in which order, for how
 *	  long, and what one process gets of the pool.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "testlib.h"

/* Less than GPUSORT_QUEUE_WAIT_MS, which a sort waits while others get on, and far more than what is done at once. */
#define WAITS_MS 4500

/* STILL_MS of session_queue.c: so long a sort waits where nobody gets on. */
#define STILL_MS 250

/* A pool for two sorts. */
#define TWO_SORTS "--staging-memory", "16777216"

/* A service that has an engine whose sorts end when they are cancelled, beside the host's. */
static void
start(Service *service, const char *option, const char *value)
{
	const char *const options[] = {"--engine", "auto", "--cuda-library", getenv("FAKE_ENGINE"),
								   "--threads", "1", option, value,
								   NULL};

	setenv("GPUSORT_FAKE", "slow", 1);
	service_start(service, options);
	unsetenv("GPUSORT_FAKE");
}

static void
request(Client *client, const Service *service, GpuSortRequest wanted)
{
	wanted.key_words = 1;
	wanted.engine = GPUSORT_ENGINE_HOST;
	client_open(client, service);
	client_send(client, GPUSORT_MSG_JOB_BEGIN, (GpuSortMessage){.u.job_begin = wanted});
}

static void
ask(Client *client, const Service *service, uint64_t bytes)
{
	request(client, service, (GpuSortRequest){.estimated_bytes = bytes});
}

/* Waits for an answer; type 0 if none comes in time. */
static GpuSortMessage
await(Client *client, int milliseconds)
{
	GpuSortMessage message = {.type = 0};

	if (!client_receive(client, &message, milliseconds))
		message.type = 0;
	return message;
}

/* Asks for a sort and waits for the answer. */
static GpuSortMessage
begin(Client *client, const Service *service, uint64_t bytes)
{
	ask(client, service, bytes);
	return await(client, ANSWER_MS);
}

/* A sort that holds what it has and does nothing; returns its token. */
static uint64_t
hold(Client *client, const Service *service)
{
	GpuSortMessage message = begin(client, service, 0);

	if (message.type != GPUSORT_MSG_JOB)
		bail("a sort was refused: %s", message.u.failure.text);
	return message.u.job.token;
}

/* A sort that has all of its rows, which are the caller's. */
static void
put(Client *client, const Service *service, Rows *rows)
{
	client_open(client, service);
	rows_make(rows, 10, 1, KEYS_RANDOM, 16, 16, 0);
	if (client_begin(client, 1, false, 0, 0).type != GPUSORT_MSG_JOB || sort_put(client, rows) != NULL)
		bail("a sort was refused");
}

/* A sort that gets on until it is closed, however long nobody looks at it. */
static void
start_sorter(Client *client, const Service *service)
{
	Rows rows;

	put(client, service, &rows);
	rows_free(&rows);
	client_send(client, GPUSORT_MSG_SORT, (GpuSortMessage){.magic = 0});
	if (!fake_call_begun(service))
		bail("a sort does not begin");
}

/* The service has read by then what was sent to it before. */
static void
await_service(Service *service)
{
	for (uint64_t round = 1; round <= 2; round++)
	{
		if (!service_pong(service, round, ANSWER_MS))
			bail("the service does not answer");
	}
}

static void
test_order(void)
{
	Service service;
	Client sorter;
	Client first;
	Client waiting[4];
	Client member;
	GpuSortMessage message;
	uint64_t token;
	double asked;
	double waited;

	start(&service, TWO_SORTS);
	message = begin(&first, &service, 0);
	token = message.u.job.token;
	ok(message.type == GPUSORT_MSG_JOB && message.u.job.queue_ms == 0, "a sort that is let in at once has not waited");
	start_sorter(&sorter, &service);
	for (int i = 0; i < 3; i++)
		ask(&waiting[i], &service, 0);
	await_service(&service);
	asked = now_ms();
	ok(await(&waiting[0], 400).type == 0, "while others get on a sort waits for its chunks");
	client_open(&member, &service);
	client_send(&member, GPUSORT_MSG_JOB_JOIN, (GpuSortMessage){.u.job_join.token = token});
	ok(await(&member, ANSWER_MS).type == GPUSORT_MSG_REFUSED && await(&waiting[0], 0).type == 0,
	   "a member does not wait");
	client_close(&member);

	waited = now_ms() - asked;
	client_close(&first);
	ask(&waiting[3], &service, 0);
	message = await(&waiting[0], ANSWER_MS);
	ok(message.type == GPUSORT_MSG_JOB, "the first that waits gets what comes back");
	ok(message.u.job.queue_ms >= waited, "and is told how long it waited (%.0f ms)", message.u.job.queue_ms);
	ok(await(&waiting[1], 200).type == 0 && await(&waiting[3], 100).type == 0,
	   "those behind it wait on, a newcomer too");

	client_close(&waiting[1]);
	client_close(&waiting[0]);
	ok(await(&waiting[2], ANSWER_MS).type == GPUSORT_MSG_JOB, "one that went away while it waited is passed over");
	service_send(&service, GPUSORT_MSG_DRAIN);
	message = await(&waiting[3], ANSWER_MS);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_DRAINING,
	   "a service that drains refuses those that wait");
	client_close(&waiting[2]);
	client_close(&waiting[3]);
	client_close(&sorter);
	ok(service_wait(&service, ANSWER_MS) == 0, "and ends when its sorts have");
	service_stop(&service);
}

static void
test_patience(void)
{
	Service service;
	Client sorter;
	Client holders[2];
	Client late;
	GpuSortMessage message;
	const double guard = now_ms() + ANSWER_MS;
	double begun;
	int refused;

	start(&service, TWO_SORTS);
	start_sorter(&sorter, &service);
	hold(&holders[0], &service);
	begun = now_ms();
	message = begin(&late, &service, 0);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_POOL &&
		   strstr(message.u.failure.text, "gpusort.staging_memory") != NULL,
	   "nobody waits for ever: %s", message.u.failure.text);
	ok(now_ms() - begun > WAITS_MS, "but for some seconds while others get on (%.0f ms)", now_ms() - begun);
	client_close(&late);
	client_close(&sorter);
	if (!client_sees_room(&service, 1))
		bail("a sort that was cancelled keeps its chunks");
	hold(&holders[1], &service);

	/* nobody gets on from here */
	begun = now_ms();
	message = begin(&late, &service, 0);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_POOL &&
		   now_ms() - begun < WAITS_MS,
	   "while nobody gets on one is refused soon (%.0f ms)", now_ms() - begun);
	client_close(&late);
	/* tried again on a machine that takes as long for anything */
	do
	{
		begun = now_ms();
		refused = 0;
		for (int i = 0; i < 20; i++)
		{
			refused += begin(&late, &service, 0).type == GPUSORT_MSG_REFUSED;
			client_close(&late);
		}
		begun = now_ms() - begun;
	} while (refused == 20 && begun >= 20 * STILL_MS && now_ms() < guard);
	ok(refused == 20 && begun < 20 * STILL_MS, "and the next ones at once (20 in %.0f ms)", begun);

	client_close(&holders[0]);
	ok(client_sees_room(&service, 1), "until one ends");
	client_close(&holders[1]);
	service_stop(&service);
}

/* Frees the rows that were read and reads them again, which is getting on. */
static void
read_again(Client *client, uint32_t *chunk)
{
	GpuSortMessage message = {.u.chunk.chunk = *chunk};

	client_send(client, GPUSORT_MSG_CHUNK_FREE, message);
	message = (GpuSortMessage){.u.rewind.epoch = ++client->epoch};
	client_send(client, GPUSORT_MSG_REWIND, message);
	*chunk = client_expect(client, GPUSORT_MSG_DATA).u.data.chunk;
}

/* A sort that is read gets on, too: tried again where the reader was late. */
static void
test_reader(void)
{
	const char *const options[] = {"--threads", "1", TWO_SORTS, NULL};
	const double guard = now_ms() + ANSWER_MS;
	Service service;
	Client reader;
	Client holder;
	Client late;
	Rows rows;
	GpuSortMessage message;
	uint32_t chunk;
	double longest;

	service_start(&service, options);
	put(&reader, &service, &rows);
	if (sort_finish(&reader, &rows, &message) != NULL)
		bail("a sort failed");
	rows_free(&rows);
	chunk = client_expect(&reader, GPUSORT_MSG_DATA).u.data.chunk;
	hold(&holder, &service);
	do
	{
		double before = now_ms();
		const double end = before + 2 * STILL_MS;

		longest = 0;
		read_again(&reader, &chunk);
		ask(&late, &service, 0);
		while (now_ms() < end && longest < STILL_MS)
		{
			const double next = now_ms();

			read_again(&reader, &chunk);
			if (now_ms() - before > longest)
				longest = now_ms() - before;
			before = next;
		}
		message = await(&late, 0);
		client_close(&late);
	} while (longest >= STILL_MS && now_ms() < guard);
	ok(message.type == 0 && longest < STILL_MS, "while one is read another one waits (pauses of %.0f ms)", longest);
	client_close(&reader);
	client_close(&holder);
	service_stop(&service);
}

/* What the engine lacks is waited for as chunks are, whether begin finds it or the first reserve. */
static void
test_memory(void)
{
	Service service;
	Client sorter;
	Client large;
	Client small;
	Client late;
	Rows rows;
	GpuSortMessage message;

	rows_make(&rows, 300000, 1, KEYS_RANDOM, 100, 100, 0);
	for (int by_reserve = 0; by_reserve < 2; by_reserve++)
	{
		const char *what = by_reserve ? "reserve" : "begin";

		start(&service, "--host-memory", "67108864");
		start_sorter(&sorter, &service);
		hold(&large, &service);
		for (uint64_t next = 0; client_receive(&large, &message, ANSWER_MS) && message.type == GPUSORT_MSG_CHUNK;)
		{
			if (next == rows.n)
				next = 0;
			next = rows_fill(&rows, next, message.u.chunk.rows_max, client_chunk(&large, message.u.chunk.chunk),
							 &message.u.put.rows, &message.u.put.bytes);
			client_send(&large, GPUSORT_MSG_CHUNK_PUT, message);
		}
		ok(message.type == GPUSORT_MSG_FULL, "%s: a sort has all the memory there is", what);
		/* but for what is kept for newcomers, which is for one here */
		if (by_reserve)
			hold(&small, &service);
		ask(&late, &service, by_reserve ? 0 : 40000000);
		ok(await(&late, 400).type == 0, "%s: another one waits for it", what);
		client_close(&large);
		ok(await(&late, ANSWER_MS).type == GPUSORT_MSG_JOB, "%s: and gets it in the end", what);
		client_close(&late);
		if (by_reserve)
			client_close(&small);
		client_close(&sorter);
		if (!client_sees_idle(&service))
			bail("memory is not given back");
		service_stop(&service);
	}

	start(&service, "--host-memory", "67108864");
	hold(&large, &service);
	message = begin(&late, &service, UINT64_C(1) << 40);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_MEMORY_LIMIT,
	   "what would never fit is refused at once");
	client_close(&late);
	client_close(&large);
	rows_free(&rows);
	service_stop(&service);
}

/* A process's sorts are guaranteed half of the pool, whatever they have borrowed. */
static void
test_one_process(const char *bytes, int expected)
{
	const char *const options[] = {"--threads", "1", "--staging-memory", bytes, NULL};
	Service service;
	Client own[32];
	Client others[8];
	GpuSortMessage message;
	GpuSortMessage refusal = {.type = 0};
	int begun = 0;
	int others_begun = 0;
	double start = now_ms();

	service_start(&service, options);
	clients_are_one_process(true);
	for (int i = 0; i < 32; i++)
	{
		client_open(&own[i], &service);
		message = client_begin(&own[i], 1, false, 0, 0);
		begun += message.type == GPUSORT_MSG_JOB;
		if (message.type == GPUSORT_MSG_REFUSED)
			refusal = message;
	}
	ok(begun == expected, "of 32 sorts of one process %d are let in, of a pool of %s bytes", begun, bytes);
	ok(refusal.u.failure.reason == GPUSORT_REASON_POOL && strstr(refusal.u.failure.text, "session") != NULL &&
		   now_ms() - start < ANSWER_MS,
	   "the others are told why: %s", refusal.u.failure.text);
	clients_are_one_process(false);
	for (int i = 0; i < expected / 2; i++)
	{
		client_open(&others[i], &service);
		others_begun += client_begin(&others[i], 1, false, 0, 0).type == GPUSORT_MSG_JOB;
	}
	ok(others_begun == expected / 2, "and others find room");
	for (int i = 0; i < 32; i++)
		client_close(&own[i]);
	for (int i = 0; i < expected / 2; i++)
		client_close(&others[i]);
	service_stop(&service);
}

/* Two of one process, each waiting for what the other one has, would wait in vain. */
static void
test_own_sorts(void)
{
	Service service;
	Client own;
	Client sorter;
	Client late;
	GpuSortMessage message;
	double begun;

	start(&service, TWO_SORTS);
	start_sorter(&sorter, &service);
	clients_are_one_process(true);
	hold(&own, &service);
	begun = now_ms();
	message = begin(&late, &service, 0);
	clients_are_one_process(false);
	ok(message.type == GPUSORT_MSG_REFUSED && now_ms() - begun < WAITS_MS,
	   "a process that has a sort does not wait for another one (%.0f ms)", now_ms() - begun);
	client_close(&late);
	client_close(&own);
	client_close(&sorter);
	service_stop(&service);
}

/* A role's sorts get three quarters of what others leave, and hold up nobody else's. */
static void
test_roles(void)
{
	Service service;
	Client sorter;
	Client greedy[8];
	Client other[2];
	Client member;
	GpuSortMessage message;
	uint64_t token = 0;

	/* of 16 chunks the sorter, of no role, has two */
	start(&service, "--staging-memory", "67108864");
	start_sorter(&sorter, &service);
	for (int i = 0; i < 5; i++)
	{
		request(&greedy[i], &service, (GpuSortRequest){.role = 10});
		message = client_expect(&greedy[i], GPUSORT_MSG_JOB);
		ok(message.u.job.queue_ms == 0, "sort %d of a role does not wait", i + 1);
	}
	request(&greedy[5], &service, (GpuSortRequest){.role = 10});
	request(&greedy[6], &service, (GpuSortRequest){.role = 10});
	ok(await(&greedy[5], 300).type == 0, "the next one waits, though there are chunks");
	for (int i = 0; i < 2; i++)
	{
		request(&other[i], &service, (GpuSortRequest){.role = 11});
		message = client_expect(&other[i], GPUSORT_MSG_JOB);
		token = message.u.job.token;
		ok(message.u.job.queue_ms == 0, "sort %d of another role does not wait for it", i + 1);
	}
	client_close(&other[0]);
	client_open(&member, &service);
	client_send(&member, GPUSORT_MSG_JOB_JOIN, (GpuSortMessage){.u.job_join.token = token});
	ok(client_expect(&member, GPUSORT_MSG_JOB).type == GPUSORT_MSG_JOB, "nor is a member of its sort refused for it");
	client_close(&member);
	client_close(&other[1]);

	client_close(&greedy[0]);
	ok(await(&greedy[5], ANSWER_MS).type == GPUSORT_MSG_JOB,
	   "the first that waits goes on when one of its role ends");
	ok(await(&greedy[6], 200).type == 0, "the second waits on");
	message = await(&greedy[6], ANSWER_MS);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_POOL &&
		   strstr(message.u.failure.text, "role") != NULL,
	   "and is told in the end: %s", message.u.failure.text);
	for (int i = 1; i < 7; i++)
		client_close(&greedy[i]);
	client_close(&sorter);
	service_stop(&service);

	/* two sorts of a role are let in, however small the pool is */
	start(&service, TWO_SORTS);
	for (int i = 0; i < 2; i++)
	{
		request(&greedy[i], &service, (GpuSortRequest){.role = 10});
		client_expect(&greedy[i], GPUSORT_MSG_JOB);
	}
	ok(true, "two sorts of one role fill a small pool");
	client_close(&greedy[0]);
	client_close(&greedy[1]);
	service_stop(&service);
}

/* A sort waits for ten times as long as PostgreSQL's own would take, about. */
static void
test_small_sorts(void)
{
	Service service;
	Client sorter;
	Client holder;
	Client small;
	Client large;
	GpuSortMessage message;
	double begun;

	start(&service, TWO_SORTS);
	start_sorter(&sorter, &service);
	hold(&holder, &service);
	request(&large, &service, (GpuSortRequest){.estimated_rows = 10000000});
	begun = now_ms();
	request(&small, &service, (GpuSortRequest){.estimated_rows = 4000});
	message = await(&small, ANSWER_MS);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_POOL &&
		   strstr(message.u.failure.text, "PostgreSQL's own sort") != NULL,
	   "a small sort is refused: %s", message.u.failure.text);
	ok(now_ms() - begun >= 10 && now_ms() - begun < WAITS_MS, "before long (%.0f ms)", now_ms() - begun);
	ok(await(&large, 200).type == 0, "while a large one waits on");
	client_close(&small);
	client_close(&holder);
	ok(await(&large, ANSWER_MS).type == GPUSORT_MSG_JOB, "and is let in");
	client_close(&large);
	client_close(&sorter);
	service_stop(&service);
}

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	random_seed(time(NULL));
	if (getenv("FAKE_ENGINE") == NULL)
		bail("FAKE_ENGINE must name the fake engine's library");
	test_order();
	test_patience();
	test_reader();
	test_memory();
	test_one_process("268435456", 16);
	test_one_process("67108864", 4);
	test_own_sorts();
	test_roles();
	test_small_sorts();
	return done_testing();
}
