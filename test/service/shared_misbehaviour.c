/*-------------------------------------------------------------------------
 *
 * shared_misbehaviour.c
 *	  Tests of the sort service: what is not legal of those who share a sort, at every stage of it.
 *
 *-------------------------------------------------------------------------
 */
#include "shared_case.h"

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
	closed = client_is_closed(&client, ANSWER_MS);
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

void
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
