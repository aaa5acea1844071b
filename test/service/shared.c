/*-------------------------------------------------------------------------
 *
 * shared.c
 *	  Tests of the sort service: sorts whose rows several processes read.
 *
 *-------------------------------------------------------------------------
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "testlib.h"

/* The pool is as small as makes what is lost show. */
#define POOL_CHUNKS 16
#define MOST        (POOL_CHUNKS / GPUSORT_JOB_CHUNKS_MIN) /* clients with chunks */
#define READERS     (MOST - 2)                             /* of one sort: an eighth is left for others */

static const GpuSortMessage nothing = {.magic = 0};

static Service service;
static uint64_t first_rows[GPUSORT_RANGES_MAX + 1];

/* Sorts rows for several readers; returns the token. */
static uint64_t
sort_shared(Client *owner, const Rows *rows)
{
	GpuSortMessage message;
	GpuSortMessage job;
	const char *problem;

	client_open(owner, &service);
	job = client_begin_shared(owner, rows->key_words);
	if (job.type != GPUSORT_MSG_JOB)
		bail("refused: %s", job.u.failure.text);
	problem = sort_put(owner, rows);
	if (problem == NULL)
		problem = sort_finish(owner, rows, &message);
	if (problem != NULL)
		bail("a shared sort: %s", problem);
	return job.u.job.token;
}

/* Connects a client and asks to read a sort; returns the answer. */
static GpuSortMessage
join(Client *reader, uint64_t token)
{
	GpuSortMessage message = {.u.job_join = {.token = token, .reader = 1}};

	client_open(reader, &service);
	client_send(reader, GPUSORT_MSG_JOB_JOIN, message);
	if (!client_receive(reader, &message, ANSWER_MS))
		bail("no answer to JOB_JOIN");
	return message;
}

static void
must_join(Client *reader, uint64_t token)
{
	if (join(reader, token).type != GPUSORT_MSG_JOB)
		bail("a reader was refused");
}

static void
free_chunk(Client *client, uint32_t chunk)
{
	client_send(client, GPUSORT_MSG_CHUNK_FREE, (GpuSortMessage){.u.chunk.chunk = chunk});
}

/* Asks for rows; returns the number of the READ. */
static uint32_t
ask_rows(Client *client, uint64_t first, uint64_t end)
{
	client_send(client, GPUSORT_MSG_READ, (GpuSortMessage){.u.read = {.first = first, .end = end}});
	return ++client->epoch;
}

static bool
send_cut(Client *owner, uint32_t bits, uint32_t most, uint64_t like)
{
	return client_send(owner, GPUSORT_MSG_CUT, (GpuSortMessage){.u.cut = {.bits = bits, .most = most, .like = like}});
}

/* Takes RANGES into first_rows, with the number of rows behind the last; returns how many ranges there are. */
static uint32_t
expect_ranges(Client *owner, uint64_t rows)
{
	GpuSortMessage message = client_expect(owner, GPUSORT_MSG_RANGES);
	uint32_t ranges = message.u.ranges.ranges;

	if (ranges > GPUSORT_RANGES_MAX || (ranges == 0) != (message.u.ranges.chunk == UINT32_MAX))
		bail("%u ranges in chunk %u", ranges, message.u.ranges.chunk);
	if (ranges > 0)
	{
		memcpy(first_rows, client_chunk(owner, message.u.ranges.chunk), ranges * sizeof(uint64_t));
		free_chunk(owner, message.u.ranges.chunk);
	}
	first_rows[ranges] = rows;
	return ranges;
}

static uint32_t
cut(Client *owner, const Rows *rows, uint32_t bits, uint32_t most)
{
	uint32_t ranges;
	const char *problem = sort_cut(owner, rows, bits, most, first_rows, &ranges);

	if (problem != NULL)
		bail("cut: %s", problem);
	return ranges;
}

/* Asks for ranges in turns, ahead, and reads them. */
typedef struct Range
{
	uint64_t first;
	uint64_t end;
	uint32_t number;
	uint64_t place; /* so far */
} Range;

typedef struct Reader
{
	Client client;
	Range asked[GPUSORT_READS_MAX];
	int nasked;
} Reader;

/* Takes one DATA; NULL or what is wrong.  *read counts rows. */
static const char *
take_data(Reader *reader, const Rows *rows, uint64_t *read)
{
	GpuSortMessage data;
	Range *range = &reader->asked[0];
	const char *problem;

	if (!client_receive(&reader->client, &data, ANSWER_MS) || data.type != GPUSORT_MSG_DATA)
		return "no DATA came";
	if (data.u.data.epoch == reader->asked[1].number && reader->nasked > 1)
		range = &reader->asked[1];
	else if (data.u.data.epoch != range->number)
		return "rows of another READ";
	if (data.u.data.first != range->place)
		return "DATA tells another number of rows before it";
	problem = rows_check(rows, range->place, client_chunk(&reader->client, data.u.data.chunk), &data);
	free_chunk(&reader->client, data.u.data.chunk);
	if (problem != NULL)
		return problem;
	range->place += data.u.data.emitted.rows;
	*read += data.u.data.emitted.rows;
	if (range->place > range->end || data.u.data.emitted.last != (range->place == range->end))
		return "a range that ends elsewhere";
	if (!data.u.data.emitted.last)
		return NULL;
	if (range != &reader->asked[0])
		return "a later range is over first";
	reader->asked[0] = reader->asked[1];
	reader->nasked--;
	return NULL;
}

/* All ranges, in rising or random order, by the owner and as many readers. */
static void
test_readers(uint64_t n, Keys keys, uint32_t words, uint32_t bits, uint32_t most, int readers, bool shuffled)
{
	Reader all[MOST] = {0};
	uint32_t order[GPUSORT_RANGES_MAX];
	uint64_t read = 0;
	uint32_t next = 0;
	uint32_t ranges;
	const char *problem = NULL;
	uint64_t token;
	Rows rows;
	int busy;

	rows_make(&rows, n, words, keys, 16, 300, 20);
	token = sort_shared(&all[0].client, &rows);
	ranges = cut(&all[0].client, &rows, bits, most);
	for (int i = 1; i <= readers; i++)
		must_join(&all[i].client, token);
	for (uint32_t i = 0; i < ranges; i++)
	{
		uint32_t j = shuffled ? random64() % (i + 1) : i;

		order[i] = order[j];
		order[j] = i;
	}
	do
	{
		struct pollfd events[MOST];

		for (int i = 0; i <= readers; i++)
		{
			while (next < ranges && all[i].nasked < GPUSORT_READS_MAX)
			{
				Range *range = &all[i].asked[all[i].nasked++];
				uint32_t r = order[next++];

				*range = (Range){.first = first_rows[r], .end = first_rows[r + 1], .place = first_rows[r]};
				range->number = ask_rows(&all[i].client, range->first, range->end);
			}
		}
		busy = 0;
		for (int i = 0; i <= readers; i++)
		{
			if (all[i].nasked > 0)
				events[busy++] = (struct pollfd){.fd = all[i].client.socket, .events = POLLIN};
		}
		if (busy > 0 && poll(events, busy, ANSWER_MS) <= 0)
			problem = "no rows come";
		for (int e = 0; e < busy && problem == NULL; e++)
		{
			for (int i = 0; i <= readers && problem == NULL; i++)
			{
				if (events[e].revents != 0 && all[i].client.socket == events[e].fd)
					problem = take_data(&all[i], &rows, &read);
			}
		}
	} while (busy > 0 && problem == NULL);
	if (problem == NULL && read != n)
		problem = "not all rows were read";
	ok(problem == NULL, "%llu rows, keys %d of %u words by %u bits: %u ranges, %d readers, %s order: %s",
	   (unsigned long long) n, keys,
	   words, bits, ranges, readers, shuffled ? "any" : "rising", told(problem));
	for (int i = readers; i >= 0; i--)
		client_close(&all[i].client);
	rows_free(&rows);
}

/* Intervals that no cut made, of one row too, again and again. */
static void
test_intervals(void)
{
	Client owner;
	Rows rows;
	const char *problem = NULL;

	rows_make(&rows, 120000, 1, KEYS_RANDOM, 16, 200, 10);
	sort_shared(&owner, &rows);
	for (int i = 0; i < 60 && problem == NULL; i++)
	{
		uint64_t first = random64() % rows.n;
		uint64_t end = i % 3 == 0 ? first + 1 : i % 3 == 1 ? rows.n
														   : first + 1 + random64() % (rows.n - first);

		problem = sort_read_interval(&owner, &rows, first, end);
	}
	ok(problem == NULL, "intervals of all sizes: %s", told(problem));
	client_close(&owner);
	rows_free(&rows);
}

/* What is skipped does not come any more, and its chunks are others'. */
static void
test_skip(void)
{
	Client owner;
	Rows rows;
	GpuSortMessage data;
	const char *problem = NULL;

	rows_make(&rows, 150000, 1, KEYS_RANDOM, 100, 200, 0);
	sort_shared(&owner, &rows);
	for (int i = 0; i < 40 && problem == NULL; i++)
	{
		uint32_t number = ask_rows(&owner, 0, rows.n);

		/* at once, after a chunk, or a second READ behind it */
		if (i % 3 == 1)
		{
			data = client_expect(&owner, GPUSORT_MSG_DATA);
			free_chunk(&owner, data.u.data.chunk);
		}
		else if (i % 3 == 2)
			number = ask_rows(&owner, 10, 70000);
		client_send(&owner, GPUSORT_MSG_SKIP, (GpuSortMessage){.u.skip.number = number});
		problem = sort_read_interval(&owner, &rows, 5 * i, 5 * i + 60000);
		/* one that is over, and one twice */
		client_send(&owner, GPUSORT_MSG_SKIP, (GpuSortMessage){.u.skip.number = owner.epoch});
		client_send(&owner, GPUSORT_MSG_SKIP, (GpuSortMessage){.u.skip.number = number});
	}
	ok(problem == NULL, "rows after SKIP: %s", told(problem));
	ask_rows(&owner, 0, rows.n);
	ask_rows(&owner, 0, 100);
	client_send(&owner, GPUSORT_MSG_SKIP, (GpuSortMessage){.u.skip.number = owner.epoch - 1});
	do
	{
		data = client_expect(&owner, GPUSORT_MSG_DATA);
		free_chunk(&owner, data.u.data.chunk);
	} while (data.u.data.epoch != owner.epoch);
	ok(data.u.data.first == 0 && data.u.data.emitted.rows == 100 && data.u.data.emitted.last,
	   "the READ behind a skipped one goes on");
	client_close(&owner);
	rows_free(&rows);
}

/* A sort of no rows, and cuts that come after each other. */
static void
test_cuts(void)
{
	Client owner;
	Rows rows;
	Rows none;
	uint32_t chunks[2];
	uint32_t ranges;

	rows_make(&none, 0, 1, KEYS_RANDOM, 16, 16, 0);
	sort_shared(&owner, &none);
	ok(cut(&owner, &none, 64, 10) == 0, "no rows are no range");
	ok(cut(&owner, &none, 64, 1) == 0, "and no chunk is held for them");
	client_close(&owner);
	rows_free(&none);

	rows_make(&rows, 200000, 1, KEYS_RANDOM, 100, 100, 0);
	sort_shared(&owner, &rows);
	ok(cut(&owner, &rows, 64, 1) == 1 && first_rows[0] == 0, "one range is all rows");
	ok(cut(&owner, &rows, 1, 1000) == 2, "one bit is two ranges");
	ranges = cut(&owner, &rows, 64, GPUSORT_RANGES_MAX);
	ok(ranges == GPUSORT_RANGES_MAX, "as many ranges as there may be: %u", ranges);

	/* all chunks are the client's when it asks */
	ask_rows(&owner, 0, rows.n);
	for (int i = 0; i < 2; i++)
		chunks[i] = client_expect(&owner, GPUSORT_MSG_DATA).u.data.chunk;
	client_send(&owner, GPUSORT_MSG_SKIP, (GpuSortMessage){.u.skip.number = owner.epoch});
	send_cut(&owner, 64, 10, 0);
	free_chunk(&owner, chunks[0]);
	free_chunk(&owner, chunks[1]);
	for (GpuSortMessage message = {.magic = 0}; message.type != GPUSORT_MSG_RANGES;)
	{
		if (!client_receive(&owner, &message, ANSWER_MS))
			bail("no answer to CUT");
		if (message.type == GPUSORT_MSG_DATA || message.type == GPUSORT_MSG_RANGES)
			free_chunk(&owner, message.type == GPUSORT_MSG_DATA ? message.u.data.chunk : message.u.ranges.chunk);
	}
	ok(sort_read_interval(&owner, &rows, 0, rows.n) == NULL, "CUT waits for a chunk, and rows come after it");
	client_close(&owner);
	rows_free(&rows);
}

/* The next message is FAILED. */
static bool
fails(Client *client)
{
	GpuSortMessage message;

	do
	{
		if (!client_receive(client, &message, ANSWER_MS))
			return false;
	} while (message.type == GPUSORT_MSG_DATA);
	return message.type == GPUSORT_MSG_FAILED;
}

/* Two sorts of one process, and of others. */
static void
test_like(void)
{
	Client one;
	Client two;
	Client stranger;
	Rows rows;
	Rows fewer;
	uint64_t token;
	uint32_t ranges;
	uint64_t border;
	bool good = true;

	rows_make(&rows, 50000, 2, KEYS_RANDOM, 16, 16, 0);
	rows_make(&fewer, 20000, 1, KEYS_RANDOM, 16, 16, 0);
	clients_are_one_process(true);
	token = sort_shared(&one, &rows);
	ranges = cut(&one, &rows, 40, 20);
	border = rows.keys[2 * rows.order[first_rows[7]]];
	sort_shared(&two, &fewer);
	send_cut(&two, 40, 20, token);
	good = expect_ranges(&two, fewer.n) == ranges;
	ok(good && ranges == 20 && fewer.keys[fewer.order[first_rows[7] - 1]] >> 24 < border >> 24 &&
		   fewer.keys[fewer.order[first_rows[7]]] >> 24 >= border >> 24,
	   "a sort is cut at another one's borders");
	send_cut(&two, 40, 19, token);
	ok(fails(&two), "not into fewer ranges");
	client_close(&two);
	sort_shared(&two, &fewer);
	send_cut(&two, 41, 20, token);
	ok(fails(&two), "not by other bits");
	client_close(&two);
	sort_shared(&two, &fewer);
	send_cut(&two, 40, 20, token + 1);
	ok(fails(&two), "not like a sort that there is not");
	client_close(&two);
	token = sort_shared(&two, &fewer);
	send_cut(&two, 40, 20, token);
	ok(fails(&two), "not like itself");
	client_close(&two);

	token = sort_shared(&two, &fewer);
	send_cut(&one, 40, 20, token);
	ok(fails(&one), "not like a sort that was not cut");
	client_close(&one);
	cut(&two, &fewer, 40, 20);
	clients_are_one_process(false);
	sort_shared(&stranger, &fewer);
	send_cut(&stranger, 40, 20, token);
	ok(fails(&stranger), "not like a sort of another process");
	client_close(&stranger);
	client_close(&two);
	rows_free(&rows);
	rows_free(&fewer);
}

/* How far sorts get, and who sends what is not legal. */
typedef enum Stage
{
	PLAIN,    /* SORTED, not shared */
	INGEST,   /* shared, chunks were granted */
	OUTPUT,   /* SORTED */
	CUTTING,  /* CUT was sent, and the chunk for its answer is not to be had */
	READING,  /* as many READs as may be, rows have come */
	READER,   /* a reader, with as many */
	OF_PLAIN, /* GREETED, another's plain sort has its rows */
	EARLY,    /* GREETED, another's shared sort puts its rows */
	LATE,     /* GREETED, another's shared sort has its rows */
} Stage;

static const char *const stage_names[] = {
	"of a plain sort", "while putting", "after SORTED", "behind a CUT", "while reading", "by a reader",
	"to a plain sort", "while rows are put", "after SORTED"};

static Rows some_rows;

/* Gets a client there; returns the token of the sort.  others: who else takes part. */
static uint64_t
reach(Client *client, Client *other, Stage stage)
{
	GpuSortMessage message;
	uint64_t token = 0;

	other->socket = -1;
	other->pool = NULL;
	switch (stage)
	{
		case PLAIN:
		case OF_PLAIN:
			if (stage == OF_PLAIN)
				client_open(client, &service);
			else
				other = client;
			client_open(other, &service);
			message = client_begin(other, 1, false, 0, 0);
			token = message.u.job.token;
			if (sort_put(other, &some_rows) != NULL || sort_finish(other, &some_rows, &message) != NULL)
				bail("a sort failed");
			break;
		case INGEST:
		case EARLY:
			if (stage == EARLY)
				client_open(client, &service);
			else
				other = client;
			client_open(other, &service);
			token = client_begin_shared(other, 1).u.job.token;
			break;
		case OUTPUT:
			token = sort_shared(client, &some_rows);
			break;
		case CUTTING:
			token = sort_shared(client, &some_rows);
			ask_rows(client, 0, some_rows.n);
			for (int i = 0; i < GPUSORT_JOB_CHUNKS_MIN; i++)
				client_expect(client, GPUSORT_MSG_DATA);
			send_cut(client, 64, 10, 0);
			break;
		case READER:
		case READING:
			token = sort_shared(stage == READER ? other : client, &some_rows);
			if (stage == READER)
				must_join(client, token);
			for (int i = 0; i < GPUSORT_READS_MAX; i++)
				ask_rows(client, 0, some_rows.n);
			client_expect(client, GPUSORT_MSG_DATA);
			break;
		case LATE:
			client_open(client, &service);
			token = sort_shared(other, &some_rows);
			break;
	}
	return token;
}

static void
misbehave(Stage stage, GpuSortMessageType type, GpuSortMessage message, const char *name)
{
	Client client;
	Client other;
	uint64_t token = reach(&client, &other, stage);
	bool closed;

	if (type == GPUSORT_MSG_JOB_JOIN)
		message.u.job_join.token = token;
	client_send(&client, type, message);
	closed = client_is_closed(&client, 5000);
	client_close(&client);
	client_close(&other);
	ok(closed, "%s %s is answered by closing", name, stage_names[stage]);
}

/* Returns true if JOB_JOIN is refused. */
static bool
is_refused(Stage stage, uint32_t reader)
{
	Client client;
	Client other;
	GpuSortMessage message = {.u.job_join = {.token = reach(&client, &other, stage), .reader = reader}};
	bool refused;

	client_send(&client, GPUSORT_MSG_JOB_JOIN, message);
	refused = client_receive(&client, &message, ANSWER_MS) && message.type == GPUSORT_MSG_REFUSED;
	client_close(&client);
	client_close(&other);
	return refused;
}

static void
test_misbehaviour(void)
{
	const GpuSortMessage cut_message = {.u.cut = {.bits = 64, .most = 10}};
	const GpuSortMessage read_message = {.u.read = {.first = 0, .end = 1}};
	const GpuSortMessage skip_message = {.u.skip.number = 1};
	uint64_t n = some_rows.n;

	for (int i = 0; i < 2; i++)
	{
		Stage stage = i == 0 ? PLAIN : INGEST;

		misbehave(stage, GPUSORT_MSG_CUT, cut_message, "CUT");
		misbehave(stage, GPUSORT_MSG_READ, read_message, "READ");
		misbehave(stage, GPUSORT_MSG_SKIP, skip_message, "SKIP");
	}
	misbehave(OUTPUT, GPUSORT_MSG_REWIND, (GpuSortMessage){.u.rewind.epoch = 1}, "REWIND");
	misbehave(OUTPUT, GPUSORT_MSG_SKIP, skip_message, "SKIP of no READ");
	misbehave(OUTPUT, GPUSORT_MSG_SKIP, (GpuSortMessage){.u.skip.number = 0}, "SKIP of READ 0");
	misbehave(OUTPUT, GPUSORT_MSG_READ, (GpuSortMessage){.u.read = {n, n + 1}}, "READ of rows behind the last");
	misbehave(OUTPUT, GPUSORT_MSG_READ, (GpuSortMessage){.u.read = {0, n + 1}}, "READ of a row behind the last");
	misbehave(OUTPUT, GPUSORT_MSG_READ, (GpuSortMessage){.u.read = {5, 5}}, "READ of no rows");
	misbehave(OUTPUT, GPUSORT_MSG_READ, (GpuSortMessage){.u.read = {6, 5}}, "READ backwards");
	misbehave(OUTPUT, GPUSORT_MSG_READ, (GpuSortMessage){.u.read = {0, UINT64_MAX}}, "READ of all rows there might be");
	misbehave(OUTPUT, GPUSORT_MSG_CUT, (GpuSortMessage){.u.cut = {.bits = 0, .most = 10}}, "CUT by no bits");
	misbehave(OUTPUT, GPUSORT_MSG_CUT, (GpuSortMessage){.u.cut = {.bits = 65, .most = 10}},
			  "CUT by more bits than keys have");
	misbehave(OUTPUT, GPUSORT_MSG_CUT, (GpuSortMessage){.u.cut = {.bits = 64, .most = 0}}, "CUT into no ranges");
	misbehave(OUTPUT, GPUSORT_MSG_CUT, (GpuSortMessage){.u.cut = {.bits = 64, .most = GPUSORT_RANGES_MAX + 1}},
			  "CUT into too many ranges");
	misbehave(CUTTING, GPUSORT_MSG_CUT, cut_message, "CUT");
	for (int i = 0; i < 2; i++)
	{
		Stage stage = i == 0 ? READING : READER;

		misbehave(stage, GPUSORT_MSG_READ, read_message, "one READ too many");
		misbehave(stage, GPUSORT_MSG_SKIP, (GpuSortMessage){.u.skip.number = GPUSORT_READS_MAX + 1},
				  "SKIP of a READ to come");
		misbehave(stage, GPUSORT_MSG_CHUNK_FREE, (GpuSortMessage){.u.chunk.chunk = POOL_CHUNKS},
				  "CHUNK_FREE beyond the pool");
		misbehave(stage, GPUSORT_MSG_REWIND, (GpuSortMessage){.u.rewind.epoch = 1}, "REWIND");
		misbehave(stage, GPUSORT_MSG_SORT, nothing, "SORT");
		misbehave(stage, GPUSORT_MSG_LEAVE, nothing, "LEAVE");
		misbehave(stage, GPUSORT_MSG_CHUNK_PUT, nothing, "CHUNK_PUT");
		misbehave(stage, GPUSORT_MSG_JOB_JOIN, (GpuSortMessage){.u.job_join.reader = 1}, "JOB_JOIN");
	}
	misbehave(READER, GPUSORT_MSG_CUT, cut_message, "CUT");
	misbehave(LATE, GPUSORT_MSG_JOB_BEGIN, (GpuSortMessage){.u.job_begin = {.key_words = 1, .shared = 1, .limit = 1}},
			  "JOB_BEGIN shared and with a limit");
	ok(is_refused(OF_PLAIN, 1), "nobody reads another's plain sort");
	ok(!is_refused(EARLY, 1), "who joins to read before SORTED is to have the rows sorted");
	ok(is_refused(LATE, 0), "nobody puts after SORTED");
}

/* Readers go as they like, and nothing but their part is lost. */
static void
test_readers_that_go(void)
{
	Client owner;
	Rows rows;
	uint64_t token;
	const char *problem = NULL;

	rows_make(&rows, 100000, 1, KEYS_RANDOM, 100, 200, 0);
	token = sort_shared(&owner, &rows);
	for (int round = 0; round < 15 && problem == NULL; round++)
	{
		Client readers[READERS];

		for (int i = 0; i < READERS; i++)
		{
			must_join(&readers[i], token);
			for (int r = 0; r < round % 3; r++)
				ask_rows(&readers[i], r * 1000, rows.n);
			if (round % 3 > 0 && i % 2 == 0)
				client_expect(&readers[i], GPUSORT_MSG_DATA);
			if (round % 5 == 4)
				client_send(&readers[i], GPUSORT_MSG_HELLO, nothing);
		}
		problem = sort_read_interval(&owner, &rows, 10, 30000);
		for (int i = 0; i < READERS; i++)
			client_close(&readers[i]);
		/* the service hears of that in time */
		while (!client_sees_room(&service, MOST - 1))
			;
	}
	ok(problem == NULL, "readers that go, or are shut out: %s", told(problem));
	ok(sort_read_interval(&owner, &rows, 0, rows.n) == NULL, "the owner reads on");
	client_close(&owner);
	ok(client_sees_room(&service, MOST), "all chunks are back");
	rows_free(&rows);
}

/* The end of the sort is the end for its readers. */
static void
test_owner_that_goes(bool shut_out)
{
	int failed = 0;

	for (int round = 0; round < 10; round++)
	{
		Client owner;
		Client readers[3];
		uint64_t token = sort_shared(&owner, &some_rows);

		for (int i = 0; i < 3; i++)
		{
			must_join(&readers[i], token);
			for (int r = 0; r < i; r++)
				ask_rows(&readers[i], 0, some_rows.n);
			if (i == 2)
				client_expect(&readers[i], GPUSORT_MSG_DATA);
		}
		if (shut_out)
			client_send(&owner, GPUSORT_MSG_HELLO, nothing);
		else
			client_close(&owner);
		for (int i = 0; i < 3; i++)
		{
			failed += fails(&readers[i]);
			/* what is on its way is ignored */
			ask_rows(&readers[i], 0, 10);
			if (client_is_closed(&readers[i], 10))
				failed--;
			client_close(&readers[i]);
		}
		if (shut_out)
			client_close(&owner);
	}
	ok(failed == 30, "when an owner %s its readers are told: %d of 30", shut_out ? "is shut out" : "goes", failed);
	ok(client_sees_idle(&service), "the sort's memory is back");
	ok(client_sees_room(&service, MOST), "and so are all chunks");
}

/*
 * Begins a shared sort of some_rows and puts them, all in the beginner, which leaves it to others to have them
 * sorted; returns the token.
 */
static uint64_t
put_and_leave(Client *owner)
{
	GpuSortMessage message;
	uint64_t token;

	client_open(owner, &service);
	token = client_begin_shared(owner, 1).u.job.token;
	if (sort_put(owner, &some_rows) != NULL)
		bail("rows are not taken");
	client_send(owner, GPUSORT_MSG_LEAVE, nothing);
	do
	{
		if (!client_receive(owner, &message, ANSWER_MS))
			bail("LEFT did not come");
	} while (message.type == GPUSORT_MSG_CHUNK);
	if (message.type != GPUSORT_MSG_LEFT)
		bail("no LEFT came");
	return token;
}

/* A member has the rows sorted and cut, whose beginner does not, and all of them read. */
static void
test_sorter(void)
{
	Client owner;
	Client sorter;
	Client reader;
	GpuSortMessage message;
	uint64_t token = put_and_leave(&owner);
	const char *problem;
	uint32_t ranges;

	must_join(&sorter, token);
	problem = sort_finish(&sorter, &some_rows, &message);
	ok(problem == NULL, "a sorter has rows sorted: %s", told(problem));
	ranges = cut(&sorter, &some_rows, 64, 20);
	must_join(&reader, token);
	for (uint32_t i = 0; problem == NULL && i < ranges; i++)
		problem = sort_read_interval(i % 3 == 0 ? &owner : i % 3 == 1 ? &sorter
																	  : &reader,
									 &some_rows, first_rows[i], first_rows[i + 1]);
	ok(problem == NULL && ranges > 2, "owner, sorter and reader read %u ranges: %s", ranges, told(problem));
	client_close(&sorter);
	ok(sort_read_interval(&owner, &some_rows, 0, some_rows.n) == NULL, "the owner reads on when the sorter has gone");
	client_close(&reader);
	client_close(&owner);

	/* one that leaves it to another, or to the owner */
	for (int by_owner = 0; by_owner < 2; by_owner++)
	{
		token = put_and_leave(&owner);
		must_join(&sorter, token);
		client_send(&sorter, GPUSORT_MSG_LEAVE, nothing);
		client_expect(&sorter, GPUSORT_MSG_LEFT);
		client_close(&sorter);
		if (!by_owner)
			must_join(&sorter, token);
		problem = sort_finish(by_owner ? &owner : &sorter, &some_rows, &message);
		if (problem == NULL)
			problem = sort_read_interval(&owner, &some_rows, 0, some_rows.n);
		ok(problem == NULL, "a sorter may leave it to %s: %s", by_owner ? "the owner" : "another", told(problem));
		if (!by_owner)
			client_close(&sorter);
		client_close(&owner);
	}
	ok(client_sees_idle(&service) && client_sees_room(&service, MOST), "nothing is left");
}

/* What sorters may not do: they are shut out, or the sort is lost. */
static void
test_sorters_that_fail(void)
{
	Client owner;
	Client sorter;
	Client other;
	uint64_t token;

	for (int type = 0; type < 2; type++)
	{
		token = put_and_leave(&owner);
		must_join(&sorter, token);
		client_send(&sorter, type == 0 ? GPUSORT_MSG_READ : GPUSORT_MSG_CHUNK_PUT, (GpuSortMessage){.u.read = {0, 1}});
		ok(client_is_closed(&sorter, 5000) && fails(&owner), "%s of a sorter before SORT ends the sort",
		   type == 0 ? "READ" : "CHUNK_PUT");
		client_close(&sorter);
		client_close(&owner);
	}
	token = put_and_leave(&owner);
	must_join(&sorter, token);
	client_close(&sorter);
	ok(fails(&owner), "one that closes before SORT ends the sort");
	client_close(&owner);

	token = put_and_leave(&owner);
	must_join(&sorter, token);
	must_join(&other, token);
	client_send(&sorter, GPUSORT_MSG_SORT, nothing);
	ok(fails(&sorter) && fails(&other) && fails(&owner), "so does SORT where there is a second one");
	client_close(&sorter);
	client_close(&other);
	client_close(&owner);

	token = put_and_leave(&owner);
	must_join(&sorter, token);
	client_close(&owner);
	ok(fails(&sorter), "the sort ends with its beginner");
	client_close(&sorter);
	ok(client_sees_idle(&service) && client_sees_room(&service, MOST), "nothing is left");
}

/* Others do without a reader that the pool has no chunks for. */
static void
test_exhausted_pool(void)
{
	Client owner;
	Client readers[READERS + 1];
	Client other;
	GpuSortMessage message;
	uint64_t token = sort_shared(&owner, &some_rows);
	int in = 0;

	for (;;)
	{
		message = join(&readers[in], token);
		if (message.type != GPUSORT_MSG_JOB)
			break;
		if (++in > READERS)
			bail("one reader too many was let in");
	}
	ok(in == READERS && message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_POOL,
	   "a reader that the pool has no chunks for is refused, after %d", in);
	client_close(&readers[in]);
	client_open(&other, &service);
	ok(client_begin(&other, 1, false, 0, 0).type == GPUSORT_MSG_JOB, "but another sort finds room");
	client_close(&other);
	ok(sort_read_interval(&readers[0], &some_rows, 0, some_rows.n) == NULL, "another one reads all rows");
	ok(sort_read_interval(&owner, &some_rows, 0, some_rows.n) == NULL, "and so does the owner");
	while (in > 0)
		client_close(&readers[--in]);
	client_close(&owner);
}

/* A service that ends when its sorts have takes no new ones, but readers of those that it has. */
static void
test_drain(const char *const *options)
{
	Service sound = service;
	Client owner;
	Client reader;
	uint64_t token;

	service_start(&service, options);
	token = sort_shared(&owner, &some_rows);
	service_send(&service, GPUSORT_MSG_DRAIN);
	usleep(50000);
	must_join(&reader, token);
	ok(sort_read_interval(&reader, &some_rows, 10, some_rows.n) == NULL, "a reader joins a sort of a service that drains");
	client_close(&owner);
	ok(fails(&reader) && service_wait(&service, 5000) == 0, "which ends with the sort, whoever reads");
	client_close(&reader);
	service_stop(&service);
	service = sound;
}

/* A device that fails under a reader fails the sort, for everybody with its reason. */
static void
test_failing_device(void)
{
	const char *const options[] = {"--engine", "auto", "--threads", "1", "--cuda-library", getenv("FAKE_ENGINE"), NULL};
	Service sound = service;
	Client owner;
	Client readers[2];
	GpuSortMessage message;
	uint64_t token;
	int told = 0;

	setenv("GPUSORT_FAKE", "emit", 1);
	service_start(&service, options);
	unsetenv("GPUSORT_FAKE");
	token = sort_shared(&owner, &some_rows);
	for (int i = 0; i < 2; i++)
		must_join(&readers[i], token);
	ask_rows(&readers[0], 0, 10);
	for (int i = 0; i < 3; i++)
	{
		Client *client = i == 2 ? &owner : &readers[i];

		message = client_expect(client, GPUSORT_MSG_FAILED);
		told += message.u.failure.reason == GPUSORT_REASON_DEVICE;
	}
	ok(told == 3, "a failing device fails the owner and all readers: %s", message.u.failure.text);
	for (int i = 0; i < 2; i++)
		client_close(&readers[i]);
	client_close(&owner);
	ok(client_sees_idle(&service), "and the sort ends");
	service_stop(&service);
	service = sound;
}

int
main(void)
{
	const char *const options[] = {"--staging-memory", "67108864", "--threads", "2", NULL};
	uint64_t seed = time(NULL);

	setvbuf(stdout, NULL, _IOLBF, 0);
	diag("seed %llu", (unsigned long long) seed);
	random_seed(seed);
	rows_make(&some_rows, 100000, 1, KEYS_RANDOM, 100, 200, 0);
	service_start(&service, options);

	test_readers(300000, KEYS_RANDOM, 1, 64, 64, 0, false);
	test_readers(300000, KEYS_RANDOM, 1, 64, 64, 1, false);
	test_readers(300000, KEYS_RANDOM, 2, 70, 64, READERS, false);
	test_readers(300000, KEYS_RANDOM, 2, 20, 1000, READERS, true);
	test_readers(300000, KEYS_SKEWED, 1, 64, 100, 3, true);
	test_readers(300000, KEYS_FEW, 3, 100, 100, 3, false);
	test_readers(300000, KEYS_EQUAL, 1, 64, 100, 3, false);
	test_readers(10, KEYS_RANDOM, 1, 64, 100, 3, true);
	test_readers(1, KEYS_RANDOM, 32, 2048, 100, 2, false);
	test_readers(0, KEYS_RANDOM, 1, 64, 100, 2, false);
	test_intervals();
	test_skip();
	test_cuts();
	test_like();
	test_misbehaviour();
	test_readers_that_go();
	test_owner_that_goes(false);
	test_owner_that_goes(true);
	test_sorter();
	test_sorters_that_fail();
	test_exhausted_pool();
	test_drain(options);
	if (getenv("FAKE_ENGINE") != NULL)
		test_failing_device();

	ok(client_sees_idle(&service), "no sort is left");
	ok(client_sees_room(&service, MOST), "all chunks are back");
	ok(service_stop(&service) == 0, "the service ends");
	rows_free(&some_rows);
	return done_testing();
}
