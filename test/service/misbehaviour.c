/*-------------------------------------------------------------------------
 *
 * misbehaviour.c
 *	  Tests of the sort service: what clients that do not behave get, and that
 *	  the others do not notice.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "testlib.h"

/* The pool is as small as makes what is lost show. */
#define POOL_CHUNKS 8

static Service service;

/* Returns true if as many sorts can begin as there are chunks for, and not one more. */
static bool
all_chunks_are_back(void)
{
	Client clients[POOL_CHUNKS / GPUSORT_JOB_CHUNKS_MIN + 1];
	int n = POOL_CHUNKS / GPUSORT_JOB_CHUNKS_MIN;
	double end = now_ms() + ANSWER_MS;
	bool good = false;

	/* The service closes a dead client's sort when it hears of it. */
	while (!good && now_ms() < end)
	{
		GpuSortMessage message;

		good = true;
		for (int i = 0; i <= n; i++)
			client_open(&clients[i], &service);
		for (int i = 0; i < n; i++)
			good &= client_begin(&clients[i], 1, false, 0, 0).type == GPUSORT_MSG_JOB;
		message = client_begin(&clients[n], 1, false, 0, 0);
		if (good &&
			(message.type != GPUSORT_MSG_REFUSED || message.u.failure.reason != GPUSORT_REASON_POOL ||
			 strstr(message.u.failure.text, "gpusort.staging_memory") == NULL))
			bail("one sort too many was let in");
		for (int i = 0; i <= n; i++)
			client_close(&clients[i]);
		if (!good)
			usleep(20000);
	}
	return good;
}

/* Sends one message with everything in it as given. */
static void
send_raw(Client *client, uint32_t magic, uint16_t version, uint16_t type, size_t size)
{
	char buffer[2 * sizeof(GpuSortMessage)] = {0};
	GpuSortMessage *message = (GpuSortMessage *) buffer;

	message->magic = magic;
	message->version = version;
	message->type = type;
	if (send(client->socket, buffer, size, MSG_NOSIGNAL) < 0)
		bail("send");
}

static void
test_no_messages(void)
{
	static const struct
	{
		const char *name;
		uint32_t magic;
		uint16_t version;
		uint16_t type;
		size_t size;
	} cases[] = {
		{"one byte", GPUSORT_PROTOCOL_MAGIC, GPUSORT_PROTOCOL_VERSION, GPUSORT_MSG_HELLO, 1},
		{"a short message", GPUSORT_PROTOCOL_MAGIC, GPUSORT_PROTOCOL_VERSION, GPUSORT_MSG_HELLO, sizeof(GpuSortMessage) - 1},
		{"a long message", GPUSORT_PROTOCOL_MAGIC, GPUSORT_PROTOCOL_VERSION, GPUSORT_MSG_HELLO, sizeof(GpuSortMessage) + 1},
		{"a very long message", GPUSORT_PROTOCOL_MAGIC, GPUSORT_PROTOCOL_VERSION, GPUSORT_MSG_HELLO,
		 2 * sizeof(GpuSortMessage)},
		{"another magic", GPUSORT_PROTOCOL_MAGIC + 1, GPUSORT_PROTOCOL_VERSION, GPUSORT_MSG_HELLO, sizeof(GpuSortMessage)},
		{"another version", GPUSORT_PROTOCOL_MAGIC, GPUSORT_PROTOCOL_VERSION + 1, GPUSORT_MSG_HELLO, sizeof(GpuSortMessage)},
		{"type 0", GPUSORT_PROTOCOL_MAGIC, GPUSORT_PROTOCOL_VERSION, 0, sizeof(GpuSortMessage)},
		{"an unknown type", GPUSORT_PROTOCOL_MAGIC, GPUSORT_PROTOCOL_VERSION, 50, sizeof(GpuSortMessage)},
		{"the service's WELCOME", GPUSORT_PROTOCOL_MAGIC, GPUSORT_PROTOCOL_VERSION, GPUSORT_MSG_WELCOME,
		 sizeof(GpuSortMessage)},
		{"the supervisor's DRAIN", GPUSORT_PROTOCOL_MAGIC, GPUSORT_PROTOCOL_VERSION, GPUSORT_MSG_DRAIN,
		 sizeof(GpuSortMessage)},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		Client client;
		bool closed;

		client_connect(&client, &service);
		send_raw(&client, cases[i].magic, cases[i].version, cases[i].type, cases[i].size);
		closed = client_is_closed(&client, ANSWER_MS);
		client_close(&client);
		ok(closed, "%s is answered by closing", cases[i].name);
	}
}

/* How far a client gets before it misbehaves. */
typedef enum Stage
{
	CONNECTED,
	GREETED,
	INGEST,  /* holds at least one chunk, has put nothing */
	SORTED,  /* has put rows; no DATA was read yet */
	READING, /* has read one DATA and not freed it */
	REFUSED,
} Stage;

static void
reach(Client *client, Stage stage, uint32_t *chunk)
{
	Rows rows;
	GpuSortMessage message;

	if (stage == CONNECTED)
	{
		client_connect(client, &service);
		return;
	}
	client_open(client, &service);
	if (stage == GREETED)
		return;
	if (stage == REFUSED)
	{
		if (client_begin(client, 1, false, UINT64_C(1) << 31, UINT64_C(1) << 50).type != GPUSORT_MSG_REFUSED)
			bail("a sort of 2^50 bytes was let in");
		return;
	}
	if (client_begin(client, 1, false, 0, 0).type != GPUSORT_MSG_JOB)
		bail("refused");
	if (stage == INGEST)
	{
		*chunk = client_expect(client, GPUSORT_MSG_CHUNK).u.chunk.chunk;
		return;
	}
	rows_make(&rows, 100, 1, KEYS_RANDOM, 16, 16, 0);
	if (sort_put(client, &rows) != NULL || sort_finish(client, &rows, &message) != NULL)
		bail("a sort failed");
	rows_free(&rows);
	if (stage == READING)
		*chunk = client_expect(client, GPUSORT_MSG_DATA).u.data.chunk;
}

static const char *const stage_names[] = {
	"before HELLO", "after HELLO", "while putting", "after SORTED", "while reading", "after REFUSED"};

static void
misbehave(Stage stage, GpuSortMessageType type, GpuSortMessage message, bool own_chunk, int times,
		  const char *name)
{
	Client client;
	uint32_t chunk = 0;
	bool closed;

	reach(&client, stage, &chunk);
	if (own_chunk)
		message.u.put.chunk = chunk;
	for (int i = 0; i < times; i++)
		client_send(&client, type, message);
	closed = client_is_closed(&client, ANSWER_MS);
	client_close(&client);
	ok(closed, "%s %s is answered by closing", name, stage_names[stage]);
}

static void
test_wrong_order(void)
{
	static const GpuSortMessageType types[] = {
		GPUSORT_MSG_HELLO, GPUSORT_MSG_STATUS, GPUSORT_MSG_JOB_BEGIN, GPUSORT_MSG_CHUNK_PUT,
		GPUSORT_MSG_SORT, GPUSORT_MSG_CHUNK_FREE, GPUSORT_MSG_REWIND, GPUSORT_MSG_CUT, GPUSORT_MSG_READ,
		GPUSORT_MSG_SKIP};
	static const char *const names[] = {
		"HELLO", "STATUS", "JOB_BEGIN", "CHUNK_PUT", "SORT", "CHUNK_FREE", "REWIND", "CUT", "READ", "SKIP"};

	/* which of types are legal in each stage, as bits; the sort is not shared (shared.c) */
	static const unsigned legal[] = {0x01, 0x06, 0x18, 0x60, 0x60, 0};

	for (Stage stage = CONNECTED; stage <= REFUSED; stage++)
	{
		for (int t = 0; t < 10; t++)
		{
			GpuSortMessage message = {.u.job_begin = {.key_words = 1}};

			if (legal[stage] & 1u << t)
				continue;
			misbehave(stage, types[t], message, false, 1, names[t]);
		}
	}
}

static void
test_wrong_arguments(void)
{
	const uint32_t big = GPUSORT_CHUNK_BYTES;
	Client other;
	uint32_t others;

	reach(&other, INGEST, &others);
	misbehave(GREETED, GPUSORT_MSG_JOB_BEGIN, (GpuSortMessage){.u.job_begin.key_words = 0},
			  false, 1, "JOB_BEGIN with no key");
	misbehave(GREETED, GPUSORT_MSG_JOB_BEGIN, (GpuSortMessage){.u.job_begin.key_words = 33},
			  false, 1, "JOB_BEGIN with too wide a key");
	misbehave(GREETED, GPUSORT_MSG_JOB_BEGIN,
			  (GpuSortMessage){.u.job_begin = {.engine = 9, .key_words = 1}},
			  false, 1, "JOB_BEGIN for an unknown engine");
	misbehave(GREETED, GPUSORT_MSG_JOB_BEGIN, (GpuSortMessage){.u.job_begin = {.key_words = 1, .run_rows = 1}},
			  false, 1, "JOB_BEGIN for rows of runs of no bits");
	misbehave(GREETED, GPUSORT_MSG_JOB_BEGIN,
			  (GpuSortMessage){.u.job_begin = {.key_words = 1, .run_rows = 1, .run_bits = 65}},
			  false, 1, "JOB_BEGIN for runs of more bits than the key has");
	misbehave(GREETED, GPUSORT_MSG_JOB_BEGIN,
			  (GpuSortMessage){.u.job_begin = {.key_words = 1, .run_rows = 1, .run_bits = 1, .limit = 1}},
			  false, 1, "JOB_BEGIN for rows of runs and with a limit");
	misbehave(GREETED, GPUSORT_MSG_JOB_BEGIN,
			  (GpuSortMessage){.u.job_begin = {.key_words = 1, .run_rows = 2, .run_bits = 1, .run_counts = 1}},
			  false, 1, "JOB_BEGIN for counts with two rows of each run");
	misbehave(GREETED, GPUSORT_MSG_JOB_BEGIN, (GpuSortMessage){.u.job_begin = {.key_words = 1, .run_bits = 1}},
			  false, 1, "JOB_BEGIN for runs and no rows of them");
	misbehave(INGEST, GPUSORT_MSG_CHUNK_PUT, (GpuSortMessage){.u.put = {.chunk = POOL_CHUNKS, .rows = 1, .bytes = 16}},
			  false, 1, "CHUNK_PUT of a chunk beyond the pool");
	misbehave(INGEST, GPUSORT_MSG_CHUNK_PUT, (GpuSortMessage){.u.put = {.chunk = UINT32_MAX, .rows = 1, .bytes = 16}},
			  false, 1, "CHUNK_PUT of no chunk");
	misbehave(INGEST, GPUSORT_MSG_CHUNK_PUT, (GpuSortMessage){.u.put = {.chunk = others, .rows = 1, .bytes = 16}},
			  false, 1, "CHUNK_PUT of a chunk not granted");
	misbehave(INGEST, GPUSORT_MSG_CHUNK_PUT, (GpuSortMessage){.u.put.rows = 0},
			  true, 1, "CHUNK_PUT of no rows");
	misbehave(INGEST, GPUSORT_MSG_CHUNK_PUT, (GpuSortMessage){.u.put = {.rows = 1, .bytes = big - 3}},
			  true, 1, "CHUNK_PUT of too many bytes");
	misbehave(INGEST, GPUSORT_MSG_CHUNK_PUT, (GpuSortMessage){.u.put = {.rows = 209716, .bytes = 64}}, true, 1,
			  "a put of more rows than granted");
	misbehave(INGEST, GPUSORT_MSG_CHUNK_PUT, (GpuSortMessage){.u.put = {.rows = UINT32_MAX, .bytes = 4}},
			  true, 1, "CHUNK_PUT of too many rows");
	misbehave(INGEST, GPUSORT_MSG_CHUNK_PUT, (GpuSortMessage){.u.put = {.rows = 1, .bytes = UINT32_MAX}},
			  true, 1, "CHUNK_PUT of 4 GiB");
	misbehave(READING, GPUSORT_MSG_CHUNK_FREE, (GpuSortMessage){.u.chunk.chunk = POOL_CHUNKS},
			  false, 1, "CHUNK_FREE of a chunk beyond the pool");
	misbehave(READING, GPUSORT_MSG_CHUNK_FREE, (GpuSortMessage){.u.chunk.chunk = others},
			  false, 1, "CHUNK_FREE of another's chunk");
	misbehave(READING, GPUSORT_MSG_CHUNK_FREE, (GpuSortMessage){.magic = 0},
			  true, 2, "CHUNK_FREE twice");
	misbehave(READING, GPUSORT_MSG_REWIND, (GpuSortMessage){.u.rewind.epoch = 0},
			  false, 1, "REWIND to the same epoch");
	misbehave(READING, GPUSORT_MSG_REWIND, (GpuSortMessage){.u.rewind.epoch = 2},
			  false, 1, "REWIND over an epoch");
	client_close(&other);
}

/* Rows in a chunk that make no sense. */
static void
test_bad_chunks(void)
{
	static const struct
	{
		const char *name;
		uint32_t offset;
		uint32_t length;
		uint32_t bytes;
	} cases[] = {
		{"a record beyond the chunk", GPUSORT_CHUNK_BYTES, 16, 64},
		{"a record at the largest offset", 0xFFFFFFF8u, 16, 64},
		{"a record beyond the bytes", 64, 16, 64},
		{"a record that ends beyond the bytes", 48, 16, 64},
		{"an offset that is no multiple of 8", 4, 16, 64},
		{"a row of no bytes", 0, 0, 64},
		{"a row shorter than its header", 0, 7, 64},
		{"a row longer than the bytes", 0, 57, 64},
		{"a row of 4 GiB", 0, 0xFFFFFFFFu, 64},
		{"no bytes", 0, 16, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		Client client;
		uint32_t chunk;
		char *start;
		GpuSortMessage message = {.magic = 0};

		reach(&client, INGEST, &chunk);
		start = client_chunk(&client, chunk);
		memset(start, 0, 64);
		*gpusort_chunk_offset(start, 0) = cases[i].offset;
		if (cases[i].offset < GPUSORT_CHUNK_BYTES - 12)
			memcpy(start + cases[i].offset + 8, &cases[i].length, 4);
		message.u.put.chunk = chunk;
		message.u.put.rows = 1;
		message.u.put.bytes = cases[i].bytes;
		client_send(&client, GPUSORT_MSG_CHUNK_PUT, message);
		message.type = 0;
		while (client_receive(&client, &message, ANSWER_MS) && message.type == GPUSORT_MSG_CHUNK)
			;
		ok(message.type == GPUSORT_MSG_FAILED && message.u.failure.reason == GPUSORT_REASON_BAD_CHUNK,
		   "%s fails the sort", cases[i].name);

		/* what was on its way is ignored */
		client_send(&client, GPUSORT_MSG_SORT, message);
		ok(!client_is_closed(&client, 20), "and the connection stays until the client closes it");
		client_close(&client);
	}
}

/* Until a client knows that it was shut out it may write to its chunks: nobody else has them. */
static void
test_shut_out(Stage stage)
{
	Client client;
	Client others[POOL_CHUNKS / GPUSORT_JOB_CHUNKS_MIN];
	GpuSortMessage message;
	uint32_t chunk = 0;
	int begun = 0;
	bool granted = false;

	reach(&client, stage, &chunk);
	client_send(&client, GPUSORT_MSG_HELLO, (GpuSortMessage){.magic = 0});
	ok(client_is_closed(&client, ANSWER_MS), "a client is shut out %s", stage_names[stage]);
	for (int i = 0; i < POOL_CHUNKS / GPUSORT_JOB_CHUNKS_MIN; i++)
	{
		client_open(&others[i], &service);
		begun += client_begin(&others[i], 1, false, 0, 0).type == GPUSORT_MSG_JOB;
		while (client_receive(&others[i], &message, 100))
			granted |= message.type == GPUSORT_MSG_CHUNK && message.u.chunk.chunk == chunk;
	}
	ok(begun > 0 && !granted, "its chunk is not granted to the %d that begin then", begun);
	ok(client_send(&client, GPUSORT_MSG_SORT, message), "what it sends is dropped");
	for (int i = 0; i < POOL_CHUNKS / GPUSORT_JOB_CHUNKS_MIN; i++)
		client_close(&others[i]);
	client_close(&client);
	ok(all_chunks_are_back(), "once it has closed its end all chunks are back");
}

/* A client that asks and asks and never reads. */
static void
test_flood(void)
{
	Client client;
	bool closed = false;

	client_open(&client, &service);
	for (int i = 0; i < 20000 && !closed; i++)
		closed = !client_send(&client, GPUSORT_MSG_STATUS, (GpuSortMessage){.magic = 0});
	ok(closed, "a client that does not read is closed before its answers fill the memory");
	client_close(&client);
}

/* A client of another user, as soon as the socket's mode lets it in. */
static void
test_other_user(void)
{
	pid_t pid;
	int status;

	if (geteuid() != 0)
	{
		ok(true, "a client of another user # SKIP takes root");
		return;
	}
	{
		struct stat mode;

		ok(stat(service.socket, &mode) == 0 && (mode.st_mode & 0777) == 0600,
		   "the socket's mode is 0600");
	}
	if (chmod(service.socket, 0666) != 0 || chmod(test_directory(), 0755) != 0)
		bail("chmod");
	pid = fork();
	if (pid == 0)
	{
		Client client;

		if (setgid(65534) != 0 || setuid(65534) != 0 || !client_connect(&client, &service))
			_exit(2);
		client_send(&client, GPUSORT_MSG_HELLO, (GpuSortMessage){.magic = 0});
		_exit(client_is_closed(&client, ANSWER_MS) ? 0 : 1);
	}
	if (waitpid(pid, &status, 0) != pid)
		bail("waitpid");
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a client of another user is closed");
}

int
main(void)
{
	const char *const options[] = {"--staging-memory", "33554432", "--threads", "2", NULL};
	Client bystander;
	Rows rows;
	GpuSortMessage message;
	uint32_t last = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	random_seed(time(NULL));
	service_start(&service, options);
	ok(all_chunks_are_back(), "as many sorts as there are chunks for");
	test_shut_out(INGEST);
	test_shut_out(READING);

	/* a sort that is under way all the time */
	rows_make(&rows, 80000, 1, KEYS_RANDOM, 60, 60, 0);
	client_open(&bystander, &service);
	client_begin(&bystander, 1, false, 0, 0);
	ok(sort_put(&bystander, &rows) == NULL, "a bystander puts its rows");

	test_other_user();
	ok(service_log(&service, geteuid() == 0 ? "of user 65534" : "", geteuid() == 0 ? ANSWER_MS : 0) || geteuid() != 0,
	   "which is logged");
	test_no_messages();
	ok(service_log(&service, "something else than a message", ANSWER_MS), "what is no message is logged");
	test_wrong_order();
	test_wrong_arguments();
	test_bad_chunks();
	test_flood();

	ok(sort_finish(&bystander, &rows, &message) == NULL, "the bystander's rows are sorted");
	ok(sort_read(&bystander, &rows) == NULL, "and read");
	client_close(&bystander);
	rows_free(&rows);
	ok(all_chunks_are_back(), "all chunks are back");

	while (service_log(&service, "", 100) && last++ < 1000)
		;
	ok(service.warnings <= 30, "not every line was logged");
	ok(service_stop(&service) == 0, "the service ends");
	return done_testing();
}
