/*-------------------------------------------------------------------------
 *
 * client.c
 *	  A backend's side of one sort in the service.
 *
 * Legal order of calls: begin, (get_chunk, put_chunk)*, sort, (next_data,
 * free_data | rewind)*, end; in a process that only adds rows to another's sort:
 * join, (get_chunk, put_chunk)*, leave, end.  A call that fails says why in
 * *failure; after that only end is legal, but for get_chunk when is_full, after
 * which sort and leave are.
 *
 * Of a shared sort no rows come unasked: begin, (get_chunk, put_chunk)*, sort, cut,
 * (read, (next_data, free_data)*, skip)*, end, and no rewind; in a process that
 * reads what another has had sorted: join, (read, (next_data, free_data)*, skip)*,
 * end.  Where another process that has joined as the sorter has the rows sorted: begin,
 * (get_chunk, put_chunk)*, leave, (read, (next_data, free_data)*, skip)*, end; there, join, sort, cut and
 * then as a reader, or join, leave, end.  Rows are given out by intervals, in the order in which these were
 * asked for; an interval is over when its last row has come, or with skip.  The service may send rows of
 * the next before all of the current one, when that is larger than it thought: they wait in the client.
 *
 * Where a sort is larger than memory the service may ask for space in a temporary file while
 * get_chunk, sort or leave wait (space.c).  The calls give it, or raise fd.c's error.
 *
 * A client belongs to the memory context that was current at begin: when that
 * is reset, on error say, the connection closes, and the service takes back all
 * that the sort held.  end does the same at once, and closes the temporary file; it must
 * be called but after an error, when that belongs to the resource owner alone.
 *
 * What is called of sorted rows, from cut to rewind, is in client_output.c, the rest here.  connection.c
 * says what may happen while a call waits for the service, and how chunks come to be mapped.
 *
 *-------------------------------------------------------------------------
 */
#include "client/client.h"

#include "client/client_state.h"
#include "miscadmin.h"
#include "server/reasons.h"

static void
close_client(void *arg)
{
	GpuSortClient *client = arg;

	gpusort_connection_close(&client->connection);
}

static GpuSortClient *
new_client(void)
{
	GpuSortClient *client = palloc0(sizeof(GpuSortClient));

	gpusort_connection_init(&client->connection);
	client->on_reset.func = close_client;
	client->on_reset.arg = client;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &client->on_reset);
	return client;
}

static GpuSortClient *
open_client(uint32 generation, GpuSortFailure *failure)
{
	GpuSortClient *client = new_client();

	if (gpusort_connection_open(&client->connection, generation, failure))
		return client;
	gpusort_client_end(client);
	return NULL;
}

/* Connects, after waiting for a service that is just starting. */
static GpuSortClient *
wait_and_open_client(GpuSortFailure *failure)
{
	uint32 generation;

	if (gpusort_availability_wait(&generation, failure->text, sizeof(failure->text)))
		return open_client(generation, failure);
	failure->reason = GPUSORT_REASON_UNAVAILABLE;
	return NULL;
}

/* Makes the client read rows of a shared sort; its first interval is number 1. */
static void
expect_intervals(GpuSortClient *client)
{
	client->shared = true;
	client->epoch = 1;
}

/* Asks for a part in a sort, that of the token if it is not 0; ends the client if there is none to be had. */
static GpuSortClient *
enter_job(GpuSortClient *client, GpuSortMessage *request, GpuSortMessageType type, uint64 token,
		  GpuSortFailure *failure)
{
	GpuSortMessage answer;

	client->connection.wait = GPUSORT_WAIT_QUEUE;
	if (!gpusort_connection_send(&client->connection, request, type, failure) ||
		!gpusort_connection_receive_soon(&client->connection, &answer, failure) ||
		(answer.type != GPUSORT_MSG_JOB && !gpusort_failure_unexpected(failure, &answer)))
	{
		gpusort_client_end(client);
		return NULL;
	}
	if ((answer.u.job.engine != GPUSORT_ENGINE_CUDA && answer.u.job.engine != GPUSORT_ENGINE_HOST) ||
		answer.u.job.token == 0 || (token != 0 && answer.u.job.token != token))
	{
		(void) gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service began, or joined, a sort that cannot be");
		gpusort_client_end(client);
		return NULL;
	}
	client->engine = answer.u.job.engine;
	if (client->engine == GPUSORT_ENGINE_HOST)
		gpusort_connection_expect_host(&client->connection);
	client->ecc = answer.u.job.place.ecc != 0;
	client->token = answer.u.job.token;
	client->queue_ms = answer.u.job.queue_ms > 0 ? answer.u.job.queue_ms : 0;
	memcpy(client->device, answer.u.job.place.device, sizeof(client->device));
	client->device[sizeof(client->device) - 1] = '\0';
	client->connection.wait = GPUSORT_WAIT_INGEST;
	return client;
}

/*
 * Begins a sort; NULL when the service is not there or refuses.  The client is
 * allocated in the current memory context.
 */
GpuSortClient *
gpusort_client_begin(const GpuSortRequest *request, GpuSortFailure *failure)
{
	GpuSortClient *client = wait_and_open_client(failure);
	GpuSortMessage message = {0};

	if (client == NULL)
		return NULL;
	message.u.job_begin = *request;
	message.u.job_begin.role = GetSessionUserId();
	if (request->shared)
	{
		expect_intervals(client);
		client->void_grants = true;
	}
	return enter_job(client, &message, GPUSORT_MSG_JOB_BEGIN, 0, failure);
}

/*
 * Joins the sort that another process has begun: to add rows to it;
 * as a reader, to read those of a shared sort, which is sorted, or, where all rows
 * have been put and it is not, as its sorter, to have them sorted and cut before.
 * NULL when the service is not there or refuses.  The client is allocated in the current memory context.
 */
GpuSortClient *
gpusort_client_join(uint64 token, uint32 generation, bool reader, GpuSortFailure *failure)
{
	GpuSortClient *client = open_client(generation, failure);
	GpuSortMessage message = {0};

	if (client == NULL)
		return NULL;
	message.u.job_join.token = token;
	message.u.job_join.reader = reader;
	if (reader)
		expect_intervals(client);
	return enter_job(client, &message, GPUSORT_MSG_JOB_JOIN, token, failure);
}

/* What other processes join the sort by, with the generation. */
uint64
gpusort_client_token(const GpuSortClient *client)
{
	return client->token;
}

/* The generation of the service that sorts. */
uint32
gpusort_client_generation(const GpuSortClient *client)
{
	return client->connection.watch.generation;
}

/* The engine that sorts, never AUTO. */
GpuSortEngineKind
gpusort_client_engine(const GpuSortClient *client)
{
	return client->engine;
}

/* The name of the device that sorts; valid as long as the client. */
const char *
gpusort_client_device(const GpuSortClient *client)
{
	return client->device;
}

/* How long the sort waited for others before it began, in milliseconds; 0: not at all. */
double
gpusort_client_queue_ms(const GpuSortClient *client)
{
	return client->queue_ms;
}

/* Returns true if the memory of the device that sorts corrects errors, or is the host's. */
bool
gpusort_client_has_ecc(const GpuSortClient *client)
{
	return client->ecc;
}

/* Returns how many bytes of this process's temporary file the service was given. */
uint64
gpusort_client_temp_bytes(const GpuSortClient *client)
{
	return client->space.bytes;
}

/* Gives the service the space that it asks for.  Errors: there is none. */
static bool
give_space(GpuSortClient *client, const GpuSortMessage *request, GpuSortFailure *failure)
{
	GpuSortMessage answer = {0};
	bool first = client->space.file == 0;

	if (!gpusort_space_can_grow(&client->space, request->u.space.bytes))
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service asked for " UINT64_FORMAT " bytes after " UINT64_FORMAT,
								   request->u.space.bytes, client->space.bytes);
	answer.u.space.bytes = request->u.space.bytes;
	answer.u.space.start = gpusort_space_grow(&client->space, request->u.space.bytes);
	return gpusort_connection_send_file(&client->connection, &answer, GPUSORT_MSG_FILE, first ? client->space.file : 0,
										failure);
}

/* Takes note of a message that may come while chunks are put. */
static bool
note_ingest_message(GpuSortClient *client, const GpuSortMessage *message, GpuSortFailure *failure)
{
	switch (message->type)
	{
		case GPUSORT_MSG_CHUNK:
			if (!gpusort_connection_has_chunk(&client->connection, message->u.chunk.chunk) ||
				client->ngranted == GPUSORT_JOB_CHUNKS_MAX || message->u.chunk.rows_max == 0)
				return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
										   "the sort service granted a chunk that cannot be");
			client->granted[client->ngranted++] = (Grant){.chunk = message->u.chunk.chunk,
														  .rows_max = message->u.chunk.rows_max};
			return true;
		case GPUSORT_MSG_FULL:
			client->full = true;
			gpusort_failure_copy(&client->full_reason, message);
			return true;
		case GPUSORT_MSG_SPACE:
			return give_space(client, message, failure);
		default:
			return gpusort_failure_unexpected(failure, message);
	}
}

/*
 * The next chunk to fill, GPUSORT_CHUNK_BYTES long, with *rows_max rows at most;
 * waits for one if need be.  NULL when the sort takes no more rows (what was put can still be sorted) or
 * is lost: failure->reason tells.
 */
char *
gpusort_client_get_chunk(GpuSortClient *client, uint32 *rows_max, GpuSortFailure *failure)
{
	GpuSortMessage message;

	while (client->ngranted == 0)
	{
		if (client->full)
		{
			*failure = client->full_reason;
			return NULL;
		}
		if (!gpusort_connection_receive(&client->connection, &message, failure) ||
			!note_ingest_message(client, &message, failure))
			return NULL;
	}
	client->current = client->granted[0].chunk;
	*rows_max = client->granted[0].rows_max;
	client->ngranted--;
	memmove(client->granted, client->granted + 1, client->ngranted * sizeof(client->granted[0]));
	return gpusort_connection_chunk(&client->connection, client->current);
}

/* Returns true if get_chunk failed because the service takes no more rows, and for no worse reason. */
bool
gpusort_client_is_full(const GpuSortClient *client)
{
	return client->full;
}

/* Hands over the chunk that get_chunk returned: so many rows, in so many bytes from its front. */
bool
gpusort_client_put_chunk(GpuSortClient *client, uint32 rows, uint32 bytes, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	message.u.put.chunk = client->current;
	message.u.put.rows = rows;
	message.u.put.bytes = bytes;
	return gpusort_connection_send(&client->connection, &message, GPUSORT_MSG_CHUNK_PUT, failure);
}

/* Says that no more rows come, by a message of that type, and waits for the answer to it, which takes its place. */
static bool
end_input(GpuSortClient *client, GpuSortMessageType type, GpuSortMessageType answer_type,
		  GpuSortMessage *answer, GpuSortFailure *failure)
{
	if (!gpusort_connection_send(&client->connection, answer, type, failure))
		return false;
	client->ngranted = 0;
	for (;;)
	{
		if (!gpusort_connection_receive(&client->connection, answer, failure))
			return false;
		if (answer->type == answer_type)
			return true;
		if (answer->type == GPUSORT_MSG_SPACE)
		{
			if (!give_space(client, answer, failure))
				return false;
		}
		/* Grants may cross ours on the wire: they are void. */
		else if (answer->type != GPUSORT_MSG_CHUNK && answer->type != GPUSORT_MSG_FULL)
			return gpusort_failure_unexpected(failure, answer);
	}
}

/*
 * After join: what was put is sure to be in the sort when this returns true.  After begin of a shared sort: the
 * same, and a sorter may have it sorted in our place; its rows can be read then.
 */
bool
gpusort_client_leave(GpuSortClient *client, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	return end_input(client, GPUSORT_MSG_LEAVE, GPUSORT_MSG_LEFT, &message, failure);
}

/* After begin: ends the input and waits for the order; *outcome is filled.  Rows will come from number first on. */
bool
gpusort_client_sort(GpuSortClient *client, uint64 first, GpuSortOutcome *outcome, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	message.u.sort.first = first;
	client->next_row = first;
	client->connection.wait = GPUSORT_WAIT_SORT;
	if (!end_input(client, GPUSORT_MSG_SORT, GPUSORT_MSG_SORTED, &message, failure))
		return false;
	*outcome = message.u.sorted;
	if (outcome->rows > outcome->rows_in || outcome->tie_rows > outcome->rows || !gpusort_is_duration(outcome->sort_ms))
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service says that of " UINT64_FORMAT " rows " UINT64_FORMAT
								   " come and " UINT64_FORMAT " tie, after %g ms",
								   outcome->rows_in, outcome->rows, outcome->tie_rows, outcome->sort_ms);
	if (outcome->runs > outcome->rows_in || (outcome->runs == 0 && (outcome->run_memory > 0 || outcome->run_disk > 0)))
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service says that " UINT64_FORMAT " rows are in %u runs of " UINT64_FORMAT
								   " bytes in memory and " UINT64_FORMAT " on disk",
								   outcome->rows_in, outcome->runs, outcome->run_memory, outcome->run_disk);
	client->sorted_rows = outcome->rows;
	client->void_grants = false;
	client->in_runs = outcome->runs > 0;
	return true;
}

/* Ends the sort, wherever it is; the client's few bytes stay with their context.  Not while an error is handled. */
void
gpusort_client_end(GpuSortClient *client)
{
	close_client(client);
	gpusort_space_close(&client->space);
}

/* Calls back for every device of the service's engines; false, perhaps after some, if it cannot be asked. */
bool
gpusort_client_devices(GpuSortDeviceCallback callback, void *arg, GpuSortFailure *failure)
{
	GpuSortClient *client = wait_and_open_client(failure);
	GpuSortMessage message = {0};
	bool ok;

	if (client == NULL)
		return false;
	client->connection.wait = GPUSORT_WAIT_STATUS;
	ok = gpusort_connection_send(&client->connection, &message, GPUSORT_MSG_STATUS, failure);
	while (ok)
	{
		ok = gpusort_connection_receive_soon(&client->connection, &message, failure) &&
			(message.type == GPUSORT_MSG_DEVICE || gpusort_failure_unexpected(failure, &message));
		if (!ok)
			break;
		message.u.device.state.name[GPUSORT_NAME_BYTES - 1] = '\0';
		message.u.device.state.detail[GPUSORT_NAME_BYTES - 1] = '\0';
		callback(&message, arg);
		if (message.u.device.last)
			break;
	}
	gpusort_client_end(client);
	return ok;
}
