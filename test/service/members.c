/*-------------------------------------------------------------------------
 *
 * members.c
 *	  Tests of the sort service: several processes that put rows into one sort.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "testlib.h"

/* The pool is as small as makes what is lost show. */
#define POOL_CHUNKS 12
#define MOST        (POOL_CHUNKS / GPUSORT_JOB_CHUNKS_MIN) /* clients with chunks */

static const GpuSortMessage nothing = {.magic = 0};

static Service service;

/* Connects a client and begins a sort; returns the token to join it by. */
static uint64_t
begin(Client *owner)
{
	GpuSortMessage message;

	client_open(owner, &service);
	message = client_begin(owner, 1, false, 0, 0);
	if (message.type != GPUSORT_MSG_JOB)
		bail("refused");
	return message.u.job.token;
}

/* Connects a client and asks to join; returns the answer. */
static GpuSortMessage
join(Client *member, uint64_t token)
{
	GpuSortMessage message = {.u.job_join.token = token};

	client_open(member, &service);
	client_send(member, GPUSORT_MSG_JOB_JOIN, message);
	if (!client_receive(member, &message, ANSWER_MS))
		bail("no answer to JOB_JOIN");
	return message;
}

static void
must_join(Client *member, uint64_t token)
{
	if (join(member, token).type != GPUSORT_MSG_JOB)
		bail("a member was refused");
}

/* Waits for a chunk, fills it with the rows from the given one on, puts it; returns the next row. */
static uint64_t
put_one(Client *client, const Rows *rows, uint64_t from)
{
	GpuSortMessage granted = client_expect(client, GPUSORT_MSG_CHUNK);
	uint32_t chunk = granted.u.chunk.chunk;
	GpuSortMessage message = {.u.put.chunk = chunk};

	from = rows_fill(rows, from, granted.u.chunk.rows_max, client_chunk(client, chunk), &message.u.put.rows,
					 &message.u.put.bytes);
	client_send(client, GPUSORT_MSG_CHUNK_PUT, message);
	return from;
}

/* The next message that is no grant is of that type. */
static bool
gets(Client *client, GpuSortMessageType type)
{
	GpuSortMessage message;

	do
	{
		if (!client_receive(client, &message, ANSWER_MS))
			return false;
	} while (message.type == GPUSORT_MSG_CHUNK);
	return message.type == type;
}

static bool
leave(Client *member)
{
	client_send(member, GPUSORT_MSG_LEAVE, nothing);
	return gets(member, GPUSORT_MSG_LEFT);
}

/* A sort whose rows come from members, in turns, and from the owner too if it is one of them. */
static void
test_answers(int members, bool owner_too)
{
	Client owner;
	Client others[MOST];
	Rows rows;
	GpuSortMessage sorted;
	uint64_t token;
	uint64_t next = 0;
	const char *problem = NULL;

	rows_make(&rows, 300000, 1, KEYS_RANDOM, 16, 120, 0);
	token = begin(&owner);
	for (int i = 0; i < members; i++)
		must_join(&others[i], token);
	for (int turn = 0; next < rows.n; turn++)
	{
		int i = turn % (members + owner_too);

		next = put_one(i == members ? &owner : &others[i], &rows, next);
	}
	for (int i = 0; i < members; i++)
	{
		/* some go at once, some stay until the sort is over */
		if (!leave(&others[i]))
			problem = "LEFT did not come";
		if (i % 2 == 0)
			client_close(&others[i]);
	}
	if (problem == NULL)
		problem = sort_finish(&owner, &rows, &sorted);
	if (problem == NULL)
		problem = sort_read(&owner, &rows);
	ok(problem == NULL, "rows of %d members%s: %s", members, owner_too ? " and the owner" : "", told(problem));
	for (int i = 1; i < members; i += 2)
		client_close(&others[i]);
	client_close(&owner);
	rows_free(&rows);
}

/* Members that have put and leave without waiting for answers, and an owner in a hurry. */
static void
test_haste(void)
{
	int good = 0;

	for (int round = 0; round < 40; round++)
	{
		Client owner;
		Client members[3];
		Rows rows;
		GpuSortMessage sorted;
		uint64_t token = begin(&owner);
		uint64_t next = 0;

		rows_make(&rows, 5 * 37000, 1, KEYS_RANDOM, 100, 100, 0);
		for (int i = 0; i < 3; i++)
			must_join(&members[i], token);
		for (int i = 0; i < 6 && next < rows.n; i++)
			next = put_one(&members[i % 3], &rows, next);
		if (next < rows.n)
			bail("six chunks do not hold the rows");
		for (int i = 0; i < 3; i++)
			client_send(&members[i], GPUSORT_MSG_LEAVE, nothing);
		for (int i = 0; i < 3; i++)
		{
			if (!gets(&members[i], GPUSORT_MSG_LEFT))
				bail("LEFT did not come");
		}
		good += sort_finish(&owner, &rows, &sorted) == NULL && sort_read(&owner, &rows) == NULL;
		for (int i = 0; i < 3; i++)
			client_close(&members[i]);
		client_close(&owner);
		rows_free(&rows);
	}
	ok(good == 40, "after LEFT, SORT has all rows: %d of 40 times", good);
}

static void
test_refusals(void)
{
	Client owner;
	Client member;
	Client others[MOST];
	Rows rows;
	GpuSortMessage message;
	uint64_t token = begin(&owner);
	int in = 0;

	ok(token != 0, "a sort has a token");
	ok(join(&member, token + 1).type == GPUSORT_MSG_REFUSED, "another token is refused");
	ok(!client_is_closed(&member, 20), "and the connection stays until the client closes it");
	client_close(&member);
	ok(join(&member, 0).type == GPUSORT_MSG_REFUSED, "token 0 is refused");
	client_close(&member);

	/* as many as there are chunks for */
	for (;;)
	{
		message = join(&others[in], token);
		if (message.type != GPUSORT_MSG_JOB)
			break;
		if (++in == MOST)
			bail("one member too many was let in");
	}
	ok(in >= 2 && message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_POOL,
	   "a member that the pool has no chunks for is refused, after %d", in);
	client_close(&others[in]);
	for (int i = 0; i < in; i++)
	{
		if (!leave(&others[i]))
			bail("LEFT did not come");
		client_close(&others[i]);
	}

	rows_make(&rows, 1000, 1, KEYS_RANDOM, 16, 16, 0);
	ok(sort_put(&owner, &rows) == NULL && sort_finish(&owner, &rows, &message) == NULL,
	   "the sort does without those that were refused");
	ok(join(&member, token).type == GPUSORT_MSG_REFUSED, "nobody joins after SORT");
	client_close(&member);
	ok(sort_read(&owner, &rows) == NULL, "which the sort does not notice");
	client_close(&owner);
	rows_free(&rows);
	ok(join(&member, token).type == GPUSORT_MSG_REFUSED, "nor after the sort");
	client_close(&member);
}

/* What ends a sort ends it for everybody. */
typedef enum Loss
{
	MEMBER_CLOSES,
	MEMBER_CLOSES_AFTER_PUT,
	MEMBER_PUTS_NONSENSE,
	OWNER_CLOSES,
	OWNER_SORTS,
} Loss;

static void
test_loss(Loss loss, const char *name)
{
	Client owner;
	Client member;
	Client other;
	Rows rows;
	uint64_t token = begin(&owner);

	rows_make(&rows, 1000, 1, KEYS_RANDOM, 16, 16, 0);
	must_join(&member, token);
	must_join(&other, token);
	(void) put_one(&other, &rows, 0);
	switch (loss)
	{
		case MEMBER_CLOSES_AFTER_PUT:
			(void) put_one(&member, &rows, 0);
			client_close(&member);
			break;
		case MEMBER_CLOSES:
			client_close(&member);
			break;
		case MEMBER_PUTS_NONSENSE:
			{
				GpuSortMessage message = {.u.put = {.rows = 1, .bytes = 64}};
				char *start;

				message.u.put.chunk = client_expect(&member, GPUSORT_MSG_CHUNK).u.chunk.chunk;
				start = client_chunk(&member, message.u.put.chunk);
				memset(start, 0, 64);
				*gpusort_chunk_offset(start, 0) = 48;
				client_send(&member, GPUSORT_MSG_CHUNK_PUT, message);
				ok(gets(&member, GPUSORT_MSG_FAILED), "%s: the member hears of it", name);
				break;
			}
		case OWNER_CLOSES:
			client_close(&owner);
			ok(gets(&member, GPUSORT_MSG_FAILED), "%s: one member hears of it", name);
			break;
		case OWNER_SORTS:
			client_send(&owner, GPUSORT_MSG_SORT, nothing);
			break;
	}
	if (loss != OWNER_CLOSES)
		ok(gets(&owner, GPUSORT_MSG_FAILED), "%s: the owner hears of it", name);
	ok(gets(&other, GPUSORT_MSG_FAILED), "%s: the other member hears of it", name);

	/* what was on its way is ignored */
	client_send(&other, GPUSORT_MSG_LEAVE, nothing);
	ok(!client_is_closed(&other, 20), "%s: and may close when it likes", name);
	client_close(&other);
	if (loss != MEMBER_CLOSES && loss != MEMBER_CLOSES_AFTER_PUT)
		client_close(&member);
	if (loss != OWNER_CLOSES)
		client_close(&owner);
	rows_free(&rows);
}

/* What is legal for an owner is not for a member, and the other way round. */
static void
test_wrong_order(void)
{
	enum
	{
		GREETED,
		OWNER,
		MEMBER,
		LEFT
	};
	static const struct
	{
		int stage;
		GpuSortMessageType type;
		const char *name;
	} cases[] = {
		{GREETED, GPUSORT_MSG_LEAVE, "LEAVE after HELLO"},
		{OWNER, GPUSORT_MSG_LEAVE, "LEAVE of the owner"},
		{OWNER, GPUSORT_MSG_JOB_JOIN, "JOB_JOIN of the owner"},
		{MEMBER, GPUSORT_MSG_SORT, "SORT of a member"},
		{MEMBER, GPUSORT_MSG_JOB_JOIN, "JOB_JOIN of a member"},
		{MEMBER, GPUSORT_MSG_JOB_BEGIN, "JOB_BEGIN of a member"},
		{MEMBER, GPUSORT_MSG_CHUNK_FREE, "CHUNK_FREE of a member"},
		{LEFT, GPUSORT_MSG_LEAVE, "LEAVE after LEFT"},
		{LEFT, GPUSORT_MSG_CHUNK_PUT, "CHUNK_PUT after LEFT"},
		{LEFT, GPUSORT_MSG_SORT, "SORT after LEFT"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		Client owner;
		Client member;
		uint64_t token = begin(&owner);
		GpuSortMessage message = {.u.job_join.token = token};
		Client *client = cases[i].stage == OWNER ? &owner : &member;

		if (cases[i].stage == GREETED)
			client_open(&member, &service);
		else
			must_join(&member, token);
		if (cases[i].stage == LEFT && !leave(&member))
			bail("LEFT did not come");
		client_send(client, cases[i].type, message);
		ok(client_is_closed(client, ANSWER_MS), "%s is answered by closing", cases[i].name);
		client_close(&member);
		client_close(&owner);
	}
}

/* Two members: neither may put the other's chunk. */
static void
test_foreign_chunk(void)
{
	Client owner;
	Client member;
	uint64_t token = begin(&owner);
	uint32_t chunk = client_expect(&owner, GPUSORT_MSG_CHUNK).u.chunk.chunk;

	must_join(&member, token);
	client_send(&member, GPUSORT_MSG_CHUNK_PUT,
				(GpuSortMessage){.u.put = {.chunk = chunk, .rows = 1, .bytes = 16}});
	ok(client_is_closed(&member, ANSWER_MS), "the owner's chunk is not a member's to put");
	ok(gets(&owner, GPUSORT_MSG_FAILED), "and the owner hears that rows are missing");
	client_close(&member);
	client_close(&owner);
}

/* Returns true if as many sorts can begin as there are chunks for. */
static bool
all_chunks_are_back(void)
{
	Client clients[MOST];
	bool good = true;

	for (int i = 0; i < MOST; i++)
	{
		client_open(&clients[i], &service);
		good &= client_begin(&clients[i], 1, false, 0, 0).type == GPUSORT_MSG_JOB;
	}
	for (int i = 0; i < MOST; i++)
		client_close(&clients[i]);
	return good;
}

int
main(void)
{
	const char *const options[] = {"--staging-memory", "50331648", "--threads", "2", NULL};

	setvbuf(stdout, NULL, _IOLBF, 0);
	random_seed(time(NULL));
	service_start(&service, options);

	test_answers(1, false);
	test_answers(1, true);
	test_answers(4, false);
	test_answers(4, true);
	test_haste();
	test_refusals();
	test_loss(MEMBER_CLOSES, "a member closes");
	test_loss(MEMBER_CLOSES_AFTER_PUT, "a member closes after a put");
	test_loss(MEMBER_PUTS_NONSENSE, "a member puts nonsense");
	test_loss(OWNER_CLOSES, "the owner closes");
	test_loss(OWNER_SORTS, "SORT with members");
	test_wrong_order();
	test_foreign_chunk();

	ok(client_sees_idle(&service), "no sort is left");
	ok(all_chunks_are_back(), "all chunks are back");
	ok(service_stop(&service) == 0, "the service ends");
	return done_testing();
}
