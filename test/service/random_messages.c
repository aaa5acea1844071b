/*-------------------------------------------------------------------------
 *
 * random_messages.c
 *	  Tests of the sort service: clients that send messages at random, legal,
 *	  nearly legal and others, with chunks of random bytes, while an honest one
 *	  sorts.
 *
 * The service closes them or fails their sorts.  It must not crash, hang, lose
 * chunks or memory, or give the honest client anything but right answers.
 *
 * RANDOM_SEEDS is how many seeds, RANDOM_MESSAGES how many messages of each;
 * RANDOM_SEED is the first one.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testlib.h"

/* The pool is as small as makes what is lost show. */
#define POOL_CHUNKS 8

#define CLIENTS  4
#define HELD_MAX 64

/* A client, with what it believes of its sort. */
typedef struct Wanderer
{
	Client client;
	bool asked; /* has sent JOB_BEGIN or JOB_JOIN */
	bool joined;
	bool reads;              /* joined as a reader */
	bool put_all;            /* has sent SORT or LEAVE */
	GpuSortMessageType last; /* message of the service, 0: none */
	GpuSortRequest request;
	uint64_t token;
	uint32_t granted[HELD_MAX];  /* chunks to put rows into */
	uint32_t rows_max[HELD_MAX]; /* and how many at most */
	uint32_t ngranted;
	uint32_t data[HELD_MAX]; /* chunks with rows that were not freed */
	uint32_t ndata;
	bool sorted;
	uint64_t rows;    /* that are sorted */
	int open;         /* READs that are not over */
	int large;        /* chunks that it will fill before it has them sorted */
	uint64_t lacking; /* bytes that SPACE has asked for and FILE not given yet */
	uint64_t given;   /* of space */
	int file;         /* that it is in; 0: there is none yet */
	/* it has sent what may have had it closed: its chunks may be others', and it does not write into them */
	bool strayed;
	int sent;
} Wanderer;

static Service service;
static Wanderer wanderers[CLIENTS];
static Rows large_rows; /* a chunk of them, and more */
static int spaces;      /* SPACE that came */

static bool
chance(int of_100)
{
	return random64() % 100 < (uint64_t) of_100;
}

/* A number as it may stand in a message: small, at an edge, or any. */
static uint64_t
random_number(void)
{
	static const uint64_t edges[] = {0, 1, 2, 7, 8, GPUSORT_CHUNK_BYTES, GPUSORT_CHUNK_BYTES - 1, GPUSORT_MAX_ROWS,
									 UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX};

	switch (random64() % 3)
	{
		case 0:
			return random64() % 40;
		case 1:
			return edges[random64() % (sizeof(edges) / sizeof(edges[0]))];
		default:
			return random64() >> random64() % 64;
	}
}

static void
random_bytes(void *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *) to)[i] = random64();
}

/* Connects anew, forgetting what was. */
static void
restart(Wanderer *wanderer)
{
	if (wanderer->client.pool != NULL || wanderer->client.socket > 0)
		client_close(&wanderer->client);
	if (wanderer->file > 0)
		close(wanderer->file);
	memset(wanderer, 0, sizeof(*wanderer));
	/* some share a process, as sorts that are cut alike do */
	clients_are_one_process(chance(30));
	client_open(&wanderer->client, &service);
	clients_are_one_process(false);
	wanderer->last = GPUSORT_MSG_WELCOME;
}

/* Reads what has come; false if the service has closed the connection. */
static bool
read_all(Wanderer *wanderer, int milliseconds)
{
	struct pollfd event = {.fd = wanderer->client.socket, .events = POLLIN};

	while (poll(&event, 1, milliseconds) > 0)
	{
		GpuSortMessage message;

		if (recv(wanderer->client.socket, &message, sizeof(message), MSG_DONTWAIT) != sizeof(message))
			return false;
		wanderer->last = message.type;
		if (message.type == GPUSORT_MSG_JOB)
			wanderer->token = message.u.job.token;
		if (message.type == GPUSORT_MSG_SORTED || (message.type == GPUSORT_MSG_JOB && wanderer->reads))
			wanderer->sorted = true;
		if (message.type == GPUSORT_MSG_SORTED)
			wanderer->rows = message.u.sorted.rows;
		if (message.type == GPUSORT_MSG_SPACE)
		{
			wanderer->lacking = message.u.space.bytes;
			spaces++;
		}
		if (message.type == GPUSORT_MSG_DATA && message.u.data.emitted.last && wanderer->open > 0)
			wanderer->open--;
		if (message.type == GPUSORT_MSG_RANGES && message.u.ranges.ranges > 0 && wanderer->ndata < HELD_MAX)
			wanderer->data[wanderer->ndata++] = message.u.ranges.chunk;
		/* those on their way when SORT or LEAVE was sent are the service's again */
		if (message.type == GPUSORT_MSG_CHUNK && !wanderer->put_all && wanderer->ngranted < HELD_MAX)
		{
			wanderer->rows_max[wanderer->ngranted] = message.u.chunk.rows_max;
			wanderer->granted[wanderer->ngranted++] = message.u.chunk.chunk;
		}
		if (message.type == GPUSORT_MSG_DATA && message.u.data.emitted.rows > 0 && wanderer->ndata < HELD_MAX)
			wanderer->data[wanderer->ndata++] = message.u.data.chunk;
		milliseconds = 0;
	}
	return true;
}

/* Fills a chunk with rows, or with nearly what rows are, or with anything. */
static void
fill(const Wanderer *wanderer, void *chunk, uint32_t rows_max, GpuSortMessage *message)
{
	Rows rows;
	uint32_t words = wanderer->request.key_words;

	if (chance(10))
	{
		message->u.put.rows = 1 + random64() % 1000;
		message->u.put.bytes = 8 * (random64() % 10000);
		random_bytes(chunk, message->u.put.bytes);
		random_bytes(gpusort_chunk_offset(chunk, message->u.put.rows - 1), message->u.put.rows * sizeof(uint32_t));
		return;
	}
	if (wanderer->large > 0)
	{
		(void) rows_fill(&large_rows, 0, rows_max, chunk, &message->u.put.rows, &message->u.put.bytes);
		return;
	}
	rows_make(&rows, 1 + random64() % 2000, words, (Keys) (random64() % (KEYS_LAST_WORD + 1)), 8, 8 + random64() % 300,
			  wanderer->request.may_tie ? 20 : 0);
	rows_fill(&rows, 0, rows_max == 0 || chance(3) ? UINT32_MAX : rows_max, chunk, &message->u.put.rows,
			  &message->u.put.bytes);
	rows_free(&rows);
	if (chance(15))
	{
		for (int i = 0; i < 3; i++)
			((char *) chunk)[random64() % message->u.put.bytes] ^= 1 << random64() % 8;
	}
	if (chance(10))
		*gpusort_chunk_offset(chunk, random64() % message->u.put.rows) = random_number();
}

/* What an honest reader of a shared sort, or its owner, would send now, but for chunks. */
static GpuSortMessage
shared_message(Wanderer *wanderer)
{
	GpuSortMessage message = {.type = 0};
	const Wanderer *other = &wanderers[random64() % CLIENTS];

	if (!wanderer->reads && chance(10))
	{
		message.type = GPUSORT_MSG_CUT;
		message.u.cut.bits = 1 + random64() % (64 * wanderer->request.key_words);
		message.u.cut.most = 1 + random64() % (chance(50) ? 20 : GPUSORT_RANGES_MAX);
		message.u.cut.like = chance(20) ? other->token : 0;
	}
	else if (wanderer->client.epoch > 0 && chance(15))
	{
		message.type = GPUSORT_MSG_SKIP;
		message.u.skip.number = wanderer->client.epoch;
		wanderer->open = 0;
	}
	else if (wanderer->open < GPUSORT_READS_MAX && wanderer->rows > 0 && chance(60))
	{
		message.type = GPUSORT_MSG_READ;
		message.u.read.first = random64() % wanderer->rows;
		message.u.read.end = message.u.read.first + 1 + random64() % (wanderer->rows - message.u.read.first);
		wanderer->client.epoch++;
		wanderer->open++;
	}
	return message;
}

/* What an honest client would send now; type 0: nothing. */
static GpuSortMessage
legal_message(Wanderer *wanderer)
{
	GpuSortMessage message = {.type = 0};

	if (!wanderer->asked)
	{
		const Wanderer *other = &wanderers[random64() % CLIENTS];

		if (wanderer->last == GPUSORT_MSG_WELCOME && chance(10))
			message.type = GPUSORT_MSG_STATUS;
		else if (chance(25) && other->token != 0)
		{
			message.type = GPUSORT_MSG_JOB_JOIN;
			message.u.job_join.token = other->token;
			message.u.job_join.reader = other->sorted && other->request.shared;
			wanderer->request = other->request;
			wanderer->rows = other->rows;
			wanderer->reads = message.u.job_join.reader;
			wanderer->asked = wanderer->joined = true;
		}
		else
		{
			message.type = GPUSORT_MSG_JOB_BEGIN;
			message.u.job_begin = (GpuSortRequest){
				.engine = GPUSORT_ENGINE_AUTO,
				.key_words = 1 + random64() % (chance(80) ? 3 : GPUSORT_MAX_KEY_WORDS),
				.may_tie = chance(50),
				.estimated_rows = chance(50) ? 0 : random64() % 100000,
				.estimated_bytes = chance(50) ? 0 : random64() % 10000000,
				.limit = chance(70) ? 0 : random64() % 500,
			};
			if (message.u.job_begin.limit == 0 && chance(50))
			{
				message.u.job_begin.run_rows = 1 + random64() % (chance(50) ? 1 : 100);
				message.u.job_begin.run_bits = 1 + random64() % (64 * message.u.job_begin.key_words);
				message.u.job_begin.run_peers = chance(50);
				message.u.job_begin.run_exact = chance(50);
				message.u.job_begin.run_counts = message.u.job_begin.run_rows == 1 && chance(30);
			}
			message.u.job_begin.spill = chance(60);
			message.u.job_begin.readers = chance(90) ? random64() % 8 : random_number();
			message.u.job_begin.shared = message.u.job_begin.limit == 0 && chance(50);
			if (chance(15))
			{
				message.u.job_begin.key_words = large_rows.key_words;
				if (message.u.job_begin.run_rows > 0)
					message.u.job_begin.run_bits = 1 + message.u.job_begin.run_bits % (64 * large_rows.key_words);
				message.u.job_begin.spill = 1;
				wanderer->large = 40;
			}
			wanderer->request = message.u.job_begin;
			wanderer->asked = true;
		}
	}
	else if (wanderer->lacking > 0 && chance(70))
	{
		message.type = GPUSORT_MSG_FILE;
		message.u.space.start = wanderer->given;
		message.u.space.bytes = chance(80) ? wanderer->lacking : 1 + random64() % wanderer->lacking;
		wanderer->given += message.u.space.bytes;
		wanderer->lacking = 0;
	}
	else if (wanderer->sorted)
	{
		if (wanderer->ndata > 0 && chance(80))
		{
			message.type = GPUSORT_MSG_CHUNK_FREE;
			message.u.chunk.chunk = wanderer->data[--wanderer->ndata];
		}
		else if (wanderer->request.shared)
			message = shared_message(wanderer);
		else if (chance(20))
		{
			message.type = GPUSORT_MSG_REWIND;
			message.u.rewind.epoch = ++wanderer->client.epoch;
			message.u.rewind.first = chance(50) ? 0 : random64() % 1000;
		}
	}
	else if (wanderer->ngranted > 0 && chance(85))
	{
		wanderer->large -= wanderer->large > 1;
		message.type = GPUSORT_MSG_CHUNK_PUT;
		message.u.put.chunk = wanderer->granted[--wanderer->ngranted];
		if (wanderer->strayed)
			message.u.put.rows = message.u.put.bytes = 8 + random64() % 100;
		else
			fill(wanderer, client_chunk(&wanderer->client, message.u.put.chunk),
				 wanderer->rows_max[wanderer->ngranted], &message);
	}
	else if (wanderer->token != 0 && !wanderer->put_all && wanderer->large <= 1 && chance(50))
	{
		message.type = wanderer->joined ? GPUSORT_MSG_LEAVE : GPUSORT_MSG_SORT;
		wanderer->put_all = true;
		wanderer->ngranted = 0;
	}
	return message;
}

/* Any message: of any type, with random numbers where fields are. */
static GpuSortMessage
any_message(Wanderer *wanderer)
{
	GpuSortMessage message = {.type = 0};
	uint32_t *fields = (uint32_t *) &message.u;
	uint32_t chunk = wanderer->ndata > 0 ? wanderer->data[0] : wanderer->ngranted > 0 ? wanderer->granted[0]
																					  : 0;

	for (size_t i = 0; i < sizeof(message.u) / sizeof(uint32_t); i++)
	{
		if (chance(60))
			fields[i] = random_number();
	}
	if (chance(50))
		fields[0] = chunk;
	message.type = chance(90) ? GPUSORT_MSG_HELLO + random64() % (GPUSORT_MSG_FILE - GPUSORT_MSG_HELLO + 1)
							  : random64() % 256;
	/* what makes no sense is mostly refused for its size before its fields are looked at */
	if (message.type == GPUSORT_MSG_JOB_BEGIN && chance(70))
	{
		message.u.job_begin.engine %= 3;
		message.u.job_begin.key_words = 1 + message.u.job_begin.key_words % 32;
		wanderer->request = message.u.job_begin;
	}
	return message;
}

/* Sends so many bytes: with a file, if that is to be, or now and then with what nobody asked for. */
static bool
send_with_file(Wanderer *wanderer, char *buffer, size_t size, bool with_file)
{
	int descriptors[2] = {STDOUT_FILENO, STDERR_FILENO};
	int count = chance(1) ? 1 + random64() % 2 : 0;

	if (with_file && chance(95))
	{
		wanderer->file = open(test_directory(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (wanderer->file < 0)
			bail("a file cannot be made");
		descriptors[0] = wanderer->file;
		count = 1;
	}
	return space_send_bytes(&wanderer->client, buffer, size, descriptors, count, MSG_DONTWAIT);
}

/* Sends one message; false if the connection is over. */
static bool
send_one(Wanderer *wanderer)
{
	GpuSortMessage message = {.type = 0};
	char buffer[2 * sizeof(GpuSortMessage)] = {0};
	size_t size = sizeof(message);

	if (chance(88))
		message = legal_message(wanderer);
	else if (chance(70))
	{
		/* a legal one of which something is changed */
		message = legal_message(wanderer);
		((uint32_t *) &message.u)[random64() % 6] = random_number();
		wanderer->strayed = true;
	}
	else
	{
		message = any_message(wanderer);
		wanderer->strayed = true;
	}
	if (message.type == 0)
		return true;
	message.magic = GPUSORT_PROTOCOL_MAGIC;
	message.version = GPUSORT_PROTOCOL_VERSION;
	if (chance(1))
	{
		random_bytes(&message, 1 + random64() % sizeof(message));
		size = 1 + random64() % sizeof(buffer);
		wanderer->strayed = true;
	}
	memcpy(buffer, &message, sizeof(message));
	return send_with_file(wanderer, buffer, size, message.type == GPUSORT_MSG_FILE && wanderer->file == 0);
}

static void
wander(int messages)
{
	for (int i = 0; i < CLIENTS; i++)
	{
		wanderers[i].client.socket = -1;
		restart(&wanderers[i]);
	}
	for (int i = 0; i < messages; i++)
	{
		Wanderer *wanderer = &wanderers[random64() % CLIENTS];

		if (!send_one(wanderer) || !read_all(wanderer, chance(30) ? 2 : 0) || chance(1) || ++wanderer->sent > 200 ||
			wanderer->last == GPUSORT_MSG_REFUSED || wanderer->last == GPUSORT_MSG_FAILED || wanderer->last == GPUSORT_MSG_LEFT)
			restart(wanderer);
	}
	for (int i = 0; i < CLIENTS; i++)
	{
		client_close(&wanderers[i].client);
		if (wanderers[i].file > 0)
			close(wanderers[i].file);
		wanderers[i].file = 0;
	}
}

/* Sorts until it is killed; tells how each sort went, a byte each: right, refused, or wrong. */
static void
be_honest(int to)
{
	for (;;)
	{
		Client client;
		Rows rows;
		GpuSortMessage message = {.magic = 0};
		const char *problem;
		bool shared = random64() % 2;
		char how;

		rows_make(&rows, 1 + random64() % 40000, 1 + random64() % 2, KEYS_RANDOM, 16, 150, 0);
		client_open(&client, &service);
		message = shared ? client_begin_shared(&client, rows.key_words)
						 : client_begin(&client, rows.key_words, false, rows.n, 0);
		problem = message.type == GPUSORT_MSG_JOB ? sort_put(&client, &rows) : NULL;
		if (message.type == GPUSORT_MSG_JOB && problem == NULL)
			problem = sort_finish(&client, &rows, &message);
		if (message.type == GPUSORT_MSG_SORTED && problem == NULL)
			problem = shared ? sort_read_ranges(&client, &rows) : sort_read(&client, &rows);
		/* full is refused as well, but late */
		if (message.type == GPUSORT_MSG_REFUSED || (problem && strcmp(problem, "FULL came") == 0))
			how = 'f';
		else
			how = problem == NULL ? 'r' : 'w';
		if (how == 'w')
			diag("the honest client: %s", problem);
		client_close(&client);
		rows_free(&rows);
		if (write(to, &how, 1) != 1)
			_exit(1);
	}
}

static long
number_from(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : otherwise;
}

int
main(void)
{
	const char *const options[] = {"--staging-memory", "33554432", "--host-memory", "100000000", "--threads", "2", NULL};
	long seeds = number_from("RANDOM_SEEDS", 4);
	long messages = number_from("RANDOM_MESSAGES", 3000);
	long first = number_from("RANDOM_SEED", 1);
	int right = 0;
	int refused = 0;
	int wrong = 0;
	int honest[2];
	pid_t pid;
	int status;
	char how;

	setvbuf(stdout, NULL, _IOLBF, 0);
	test_directory();
	rows_make(&large_rows, 60000, 2, KEYS_LAST_WORD, 60, 100, 0);
	service_start(&service, options);
	ok(client_sees_room(&service, POOL_CHUNKS / GPUSORT_JOB_CHUNKS_MIN), "as many sorts as there are chunks for");
	if (pipe(honest) != 0)
		bail("pipe");
	pid = fork();
	if (pid == 0)
		be_honest(honest[1]);
	close(honest[1]);
	for (long seed = first; seed < first + seeds; seed++)
	{
		random_seed(seed);
		wander(messages);
		/* its log is read, so that it does not wait for room there */
		while (service_log(&service, "", 0))
			;
		if (!ok(service_pong(&service, seed, ANSWER_MS), "seed %ld: the service answers", seed))
			break;
	}
	if (kill(pid, SIGTERM) != 0 || waitpid(pid, &status, 0) != pid)
		bail("the honest client is gone");
	while (read(honest[0], &how, 1) == 1)
	{
		right += how == 'r';
		refused += how == 'f';
		wrong += how == 'w';
	}
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM && wrong == 0,
	   "an honest client beside them had right answers alone");
	ok(right > 0, "%d of them, and %d sorts were refused", right, refused);
	ok(client_sees_idle(&service), "all sorts ended and gave their memory back");
	ok(client_sees_room(&service, POOL_CHUNKS / GPUSORT_JOB_CHUNKS_MIN), "all chunks are back");
	diag("space was asked for %d times", spaces);
	ok(service_stop(&service) == 0, "the service ends");
	rows_free(&large_rows);
	return done_testing();
}
