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

/* Long enough for what is done at once, however busy the machine; shorter than any wait of the queue's to its end. */
#define SOON_MS 2500

/* A pool for two sorts. */
static const char *const two_sorts[] = {"--threads", "1", "--staging-memory", "16777216", NULL};

static void
request(Client *client, const Service *service, GpuSortRequest wanted)
{
	wanted.key_words = 1;
	client_open(client, service);
	client_send(client, GPUSORT_MSG_JOB_BEGIN, (GpuSortMessage){.u.job_begin = wanted});
}

static void
ask(Client *client, const Service *service, uint64_t bytes)
{
	request(client, service, (GpuSortRequest){.estimated_bytes = bytes});
}

/* A sort that holds what it has and does nothing; returns its token. */
static uint64_t
hold(Client *client, const Service *service)
{
	GpuSortMessage message;

	client_open(client, service);
	message = client_begin(client, 1, false, 0, 0);
	if (message.type != GPUSORT_MSG_JOB)
		bail("a sort was refused: %s", message.u.failure.text);
	return message.u.job.token;
}

/* A sort that can get on as often as the test likes. */
typedef struct Mover
{
	Client client;
	uint32_t chunk; /* of the rows it has read */
} Mover;

static void
start_mover(Mover *mover, const Service *service)
{
	Rows rows;
	GpuSortMessage message;

	hold(&mover->client, service);
	rows_make(&rows, 10, 1, KEYS_RANDOM, 16, 16, 0);
	if (sort_put(&mover->client, &rows) != NULL || sort_finish(&mover->client, &rows, &message) != NULL)
		bail("a sort failed");
	rows_free(&rows);
	mover->chunk = client_expect(&mover->client, GPUSORT_MSG_DATA).u.data.chunk;
}

/* Frees the rows that were read and reads them again. */
static void
get_on(Mover *mover)
{
	GpuSortMessage message = {.u.chunk.chunk = mover->chunk};

	client_send(&mover->client, GPUSORT_MSG_CHUNK_FREE, message);
	message = (GpuSortMessage){.u.rewind.epoch = ++mover->client.epoch};
	client_send(&mover->client, GPUSORT_MSG_REWIND, message);
	mover->chunk = client_expect(&mover->client, GPUSORT_MSG_DATA).u.data.chunk;
}

/* Waits for an answer while the mover gets on; type 0 if none comes in time. */
static GpuSortMessage
await(Client *client, Mover *mover, int milliseconds)
{
	GpuSortMessage message = {.type = 0};
	double end = now_ms() + milliseconds;

	while (!client_receive(client, &message, 20) && now_ms() < end)
	{
		message.type = 0;
		get_on(mover);
	}
	return message;
}

static void
test_order(void)
{
	Service service;
	Mover mover;
	Client first;
	Client waiting[4];
	Client member;
	GpuSortMessage message;
	uint64_t token;

	service_start(&service, two_sorts);
	client_open(&first, &service);
	message = client_begin(&first, 1, false, 0, 0);
	token = message.u.job.token;
	ok(message.type == GPUSORT_MSG_JOB && message.u.job.queue_ms == 0, "a sort that is let in at once has not waited");
	start_mover(&mover, &service);
	for (int i = 0; i < 3; i++)
		ask(&waiting[i], &service, 0);
	ok(await(&waiting[0], &mover, 400).type == 0, "while others get on a sort waits for its chunks");
	client_open(&member, &service);
	client_send(&member, GPUSORT_MSG_JOB_JOIN, (GpuSortMessage){.u.job_join.token = token});
	ok(await(&member, &mover, SOON_MS).type == GPUSORT_MSG_REFUSED, "a member does not wait");
	client_close(&member);

	client_close(&first);
	ask(&waiting[3], &service, 0);
	message = await(&waiting[0], &mover, ANSWER_MS);
	ok(message.type == GPUSORT_MSG_JOB, "the first that waits gets what comes back");
	ok(message.u.job.queue_ms >= 300, "and is told how long it waited (%.0f ms)", message.u.job.queue_ms);
	ok(await(&waiting[1], &mover, 200).type == 0 && await(&waiting[3], &mover, 100).type == 0,
	   "those behind it wait on, a newcomer too");

	client_close(&waiting[1]);
	client_close(&waiting[0]);
	ok(await(&waiting[2], &mover, ANSWER_MS).type == GPUSORT_MSG_JOB,
	   "one that went away while it waited is passed over");
	service_send(&service, GPUSORT_MSG_DRAIN);
	message = await(&waiting[3], &mover, SOON_MS);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_DRAINING,
	   "a service that drains refuses those that wait");
	client_close(&waiting[2]);
	client_close(&waiting[3]);
	client_close(&mover.client);
	ok(service_wait(&service, ANSWER_MS) == 0, "and ends when its sorts have");
	service_stop(&service);
}

static void
test_patience(void)
{
	Service service;
	Mover mover;
	Client holder;
	Client late;
	GpuSortMessage message;
	double start;
	int refused = 0;

	service_start(&service, two_sorts);
	start_mover(&mover, &service);
	hold(&holder, &service);
	start = now_ms();
	ask(&late, &service, 0);
	message = await(&late, &mover, ANSWER_MS);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_POOL &&
		   strstr(message.u.failure.text, "gpusort.staging_memory") != NULL,
	   "nobody waits for ever: %s", message.u.failure.text);
	ok(now_ms() - start > 4500, "but for some seconds while others get on (%.0f ms)", now_ms() - start);
	client_close(&late);

	/* nobody gets on from here */
	start = now_ms();
	ask(&late, &service, 0);
	ok(client_expect(&late, GPUSORT_MSG_REFUSED).u.failure.reason == GPUSORT_REASON_POOL && now_ms() - start < SOON_MS,
	   "while nobody gets on one is refused soon (%.0f ms)", now_ms() - start);
	client_close(&late);
	start = now_ms();
	for (int i = 0; i < 20; i++)
	{
		client_open(&late, &service);
		refused += client_begin(&late, 1, false, 0, 0).type == GPUSORT_MSG_REFUSED;
		client_close(&late);
	}
	ok(refused == 20 && now_ms() - start < 20 * 250, "and the next ones at once (20 in %.0f ms)", now_ms() - start);

	ask(&late, &service, 0);
	client_expect(&late, GPUSORT_MSG_REFUSED);
	client_close(&late);
	client_close(&holder);
	client_open(&late, &service);
	message.type = 0;
	for (int i = 0; i < 100 && message.type != GPUSORT_MSG_JOB; i++)
	{
		client_close(&late);
		client_open(&late, &service);
		message = client_begin(&late, 1, false, 0, 0);
	}
	ok(message.type == GPUSORT_MSG_JOB, "until one ends");
	client_close(&late);
	client_close(&mover.client);
	service_stop(&service);
}

/* What the engine lacks is waited for as chunks are, whether begin finds it or the first reserve. */
static void
test_memory(void)
{
	const char *const options[] = {"--threads", "1", "--host-memory", "67108864", NULL};
	Service service;
	Mover mover;
	Client large;
	Client small;
	Client late;
	Rows rows;
	GpuSortMessage message;

	service_start(&service, options);
	rows_make(&rows, 300000, 1, KEYS_RANDOM, 100, 100, 0);
	for (int by_reserve = 0; by_reserve < 2; by_reserve++)
	{
		const char *what = by_reserve ? "reserve" : "begin";

		start_mover(&mover, &service);
		client_open(&large, &service);
		client_begin(&large, 1, false, 0, 0);
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
		ok(await(&late, &mover, 400).type == 0, "%s: another one waits for it", what);
		client_close(&large);
		if (by_reserve)
		{
			ok(await(&late, &mover, ANSWER_MS).type == GPUSORT_MSG_JOB, "reserve: and gets it in the end");
			client_close(&small);
		}
		else
		{
			client_close(&mover.client);
			ok(client_receive(&late, &message, ANSWER_MS) && message.type == GPUSORT_MSG_JOB,
			   "begin: and gets it in the end");
		}
		client_close(&late);
		client_close(&mover.client);
		if (!client_sees_idle(&service))
			bail("memory is not given back");
	}

	hold(&large, &service);
	client_open(&late, &service);
	message = client_begin(&late, 1, false, 0, UINT64_C(1) << 40);
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
	Mover mover;
	Client late;
	GpuSortMessage message;
	double start;

	service_start(&service, two_sorts);
	start_mover(&mover, &service);
	clients_are_one_process(true);
	hold(&own, &service);
	start = now_ms();
	ask(&late, &service, 0);
	clients_are_one_process(false);
	message = await(&late, &mover, ANSWER_MS);
	ok(message.type == GPUSORT_MSG_REFUSED && now_ms() - start < SOON_MS,
	   "a process that has a sort does not wait for another one (%.0f ms)", now_ms() - start);
	client_close(&late);
	client_close(&own);
	client_close(&mover.client);
	service_stop(&service);
}

/* A role's sorts get three quarters of what others leave, and hold up nobody else's. */
static void
test_roles(void)
{
	const char *const options[] = {"--threads", "1", "--staging-memory", "67108864", NULL};
	Service service;
	Mover mover;
	Client greedy[8];
	Client other[2];
	Client member;
	GpuSortMessage message;
	uint64_t token = 0;

	/* of 16 chunks the mover, of no role, has two */
	service_start(&service, options);
	start_mover(&mover, &service);
	for (int i = 0; i < 5; i++)
	{
		request(&greedy[i], &service, (GpuSortRequest){.role = 10});
		message = client_expect(&greedy[i], GPUSORT_MSG_JOB);
		ok(message.u.job.queue_ms == 0, "sort %d of a role does not wait", i + 1);
	}
	request(&greedy[5], &service, (GpuSortRequest){.role = 10});
	request(&greedy[6], &service, (GpuSortRequest){.role = 10});
	ok(await(&greedy[5], &mover, 300).type == 0, "the next one waits, though there are chunks");
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
	ok(await(&greedy[5], &mover, ANSWER_MS).type == GPUSORT_MSG_JOB,
	   "the first that waits goes on when one of its role ends");
	ok(await(&greedy[6], &mover, 200).type == 0, "the second waits on");
	message = await(&greedy[6], &mover, ANSWER_MS);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_POOL &&
		   strstr(message.u.failure.text, "role") != NULL,
	   "and is told in the end: %s", message.u.failure.text);
	for (int i = 1; i < 7; i++)
		client_close(&greedy[i]);
	client_close(&mover.client);
	service_stop(&service);

	/* two sorts of a role are let in, however small the pool is */
	service_start(&service, two_sorts);
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
	Mover mover;
	Client holder;
	Client small;
	Client large;
	GpuSortMessage message;
	double start;

	service_start(&service, two_sorts);
	start_mover(&mover, &service);
	hold(&holder, &service);
	request(&large, &service, (GpuSortRequest){.estimated_rows = 10000000});
	start = now_ms();
	request(&small, &service, (GpuSortRequest){.estimated_rows = 4000});
	message = await(&small, &mover, ANSWER_MS);
	ok(message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_POOL &&
		   strstr(message.u.failure.text, "PostgreSQL's own sort") != NULL,
	   "a small sort is refused: %s", message.u.failure.text);
	ok(now_ms() - start >= 10 && now_ms() - start < SOON_MS, "before long (%.0f ms)", now_ms() - start);
	ok(await(&large, &mover, 200).type == 0, "while a large one waits on");
	client_close(&small);
	client_close(&holder);
	ok(await(&large, &mover, ANSWER_MS).type == GPUSORT_MSG_JOB, "and is let in");
	client_close(&large);
	client_close(&mover.client);
	service_stop(&service);
}

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	random_seed(time(NULL));
	test_order();
	test_patience();
	test_memory();
	test_one_process("268435456", 16);
	test_one_process("67108864", 4);
	test_own_sorts();
	test_roles();
	test_small_sorts();
	return done_testing();
}
