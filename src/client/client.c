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
 * A client belongs to the memory context that was current at begin: when that
 * is reset, on error say, the connection closes, and the service takes back all
 * that the sort held.  end does the same at once.
 *
 * connection.c says what may happen while a call waits for the service, and how
 * chunks come to be mapped.
 *
 *-------------------------------------------------------------------------
 */
#include "client/client.h"

#include <math.h>

#include "client/connection.h"
#include "server/shared.h"

/* A chunk that may be filled with so many rows. */
typedef struct Grant
{
	uint32 chunk;
	uint32 rows_max;
} Grant;

struct GpuSortClient
{
	GpuSortConnection connection;
	GpuSortEngineKind engine;
	char device[GPUSORT_NAME_BYTES];
	bool ecc;
	uint64 token;
	double queue_ms;
	MemoryContextCallback on_reset;

	/* Chunks granted and not put yet, oldest first. */
	Grant granted[GPUSORT_JOB_CHUNKS_MAX];
	int ngranted;
	uint32 current; /* the chunk that get_chunk returned */
	bool full;
	GpuSortFailure full_reason;

	uint32 epoch; /* number of rewinds */
	uint64 rows;  /* that have arrived since the last one */
};

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

/* Asks for a part in a sort, that of the token if it is not 0; ends the client if there is none to be had. */
static GpuSortClient *
enter_job(GpuSortClient *client, GpuSortMessage *request, GpuSortMessageType type, uint64 token, GpuSortFailure *failure)
{
	GpuSortMessage answer;

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
		(void) gpusort_failure_set(failure, GPUSORT_REASON_VERIFY, "the sort service began, or joined, a sort that cannot be");
		gpusort_client_end(client);
		return NULL;
	}
	client->engine = answer.u.job.engine;
	client->ecc = answer.u.job.place.ecc != 0;
	client->token = answer.u.job.token;
	client->queue_ms = answer.u.job.queue_ms > 0 ? answer.u.job.queue_ms : 0;
	memcpy(client->device, answer.u.job.place.device, sizeof(client->device));
	client->device[sizeof(client->device) - 1] = '\0';
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
	return enter_job(client, &message, GPUSORT_MSG_JOB_BEGIN, 0, failure);
}

/*
 * Joins the sort that another process has begun; NULL when the service is not
 * there or refuses.  The client is allocated in the current memory context.
 */
GpuSortClient *
gpusort_client_join(uint64 token, uint32 generation, GpuSortFailure *failure)
{
	GpuSortClient *client = open_client(generation, failure);
	GpuSortMessage message = {0};

	if (client == NULL)
		return NULL;
	message.u.job_join.token = token;
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
			client->granted[client->ngranted++] = (Grant){.chunk = message->u.chunk.chunk, .rows_max = message->u.chunk.rows_max};
			return true;
		case GPUSORT_MSG_FULL:
			client->full = true;
			gpusort_failure_copy(&client->full_reason, message);
			return true;
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

/* Says that no more rows come, by a message of that type, and waits for the answer to it. */
static bool
end_input(GpuSortClient *client, GpuSortMessageType type, GpuSortMessageType answer_type,
		  GpuSortMessage *answer, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	if (!gpusort_connection_send(&client->connection, &message, type, failure))
		return false;
	client->ngranted = 0;
	for (;;)
	{
		if (!gpusort_connection_receive(&client->connection, answer, failure))
			return false;
		if (answer->type == answer_type)
			return true;
		/* Grants may cross ours on the wire: they are void. */
		if (answer->type != GPUSORT_MSG_CHUNK && answer->type != GPUSORT_MSG_FULL)
			return gpusort_failure_unexpected(failure, answer);
	}
}

/* After join: what was put is sure to be in the sort when this returns true. */
bool
gpusort_client_leave(GpuSortClient *client, GpuSortFailure *failure)
{
	GpuSortMessage message;

	return end_input(client, GPUSORT_MSG_LEAVE, GPUSORT_MSG_LEFT, &message, failure);
}

/* Returns true if ms are milliseconds that something may have taken. */
static bool
is_duration(double ms)
{
	return isfinite(ms) && ms >= 0;
}

/* After begin: ends the input and waits for the order; *outcome is filled. */
bool
gpusort_client_sort(GpuSortClient *client, GpuSortOutcome *outcome, GpuSortFailure *failure)
{
	GpuSortMessage message;

	if (!end_input(client, GPUSORT_MSG_SORT, GPUSORT_MSG_SORTED, &message, failure))
		return false;
	*outcome = message.u.sorted;
	if (outcome->rows > outcome->rows_in || outcome->tie_rows > outcome->rows || !is_duration(outcome->sort_ms))
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service says that of " UINT64_FORMAT " rows " UINT64_FORMAT
								   " come and " UINT64_FORMAT " tie, after %g ms",
								   outcome->rows_in, outcome->rows, outcome->tie_rows, outcome->sort_ms);
	return true;
}

/* Gives a chunk back, without the length of its first row: if it came again as it is, that would show. */
static bool
free_chunk(GpuSortClient *client, uint32 chunk, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	memset(gpusort_connection_chunk(&client->connection, chunk), 0, sizeof(uint64));
	message.u.chunk.chunk = chunk;
	return gpusort_connection_send(&client->connection, &message, GPUSORT_MSG_CHUNK_FREE, failure);
}

/* Returns true if what a chunk is said to have been filled with fits into one. */
static bool
is_filling(const GpuSortEmitted *emitted)
{
	if (emitted->rows == 0)
		return emitted->bytes == 0 && emitted->tie_rows == 0 && emitted->last != 0;
	return emitted->bytes <= GPUSORT_CHUNK_BYTES && emitted->bytes % MAXIMUM_ALIGNOF == 0 &&
		emitted->rows <= emitted->bytes / MAXIMUM_ALIGNOF && emitted->tie_rows <= emitted->rows;
}

/* The next rows in order, until free_data; waits until they have arrived.  Not legal after last. */
bool
gpusort_client_next_data(GpuSortClient *client, GpuSortData *data, GpuSortFailure *failure)
{
	GpuSortMessage message;

	for (;;)
	{
		if (!gpusort_connection_receive_soon(&client->connection, &message, failure))
			return false;
		if (message.type != GPUSORT_MSG_DATA)
			return gpusort_failure_unexpected(failure, &message);
		if (message.u.data.emitted.rows > 0 && !gpusort_connection_has_chunk(&client->connection, message.u.data.chunk))
			return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY, "the sort service sent a chunk that cannot be");
		if (message.u.data.epoch == client->epoch)
			break;
		if (message.u.data.epoch > client->epoch)
			return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY, "the sort service sent rows that were not asked for");
		if (message.u.data.emitted.rows > 0 && !free_chunk(client, message.u.data.chunk, failure))
			return false;
	}
	if (message.u.data.first != client->rows)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service sent rows from " UINT64_FORMAT " on after the first " UINT64_FORMAT,
								   message.u.data.first, client->rows);
	if (!is_filling(&message.u.data.emitted) || !is_duration(message.u.data.emitted.gather_ms))
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service sent a chunk of %u rows in %u bytes, %u of which tie",
								   message.u.data.emitted.rows, message.u.data.emitted.bytes,
								   message.u.data.emitted.tie_rows);
	data->chunk = message.u.data.chunk;
	data->emitted = message.u.data.emitted;
	client->rows += data->emitted.rows;
	data->rows = data->emitted.rows > 0 ? gpusort_connection_chunk(&client->connection, data->chunk) : NULL;
	return true;
}

/*
 * Gives rows back to the service.  When it is gone that shows with the next
 * rows asked for, so there is nothing to return.
 */
void
gpusort_client_free_data(GpuSortClient *client, GpuSortData *data)
{
	GpuSortFailure ignored;

	if (data->rows == NULL)
		return;
	(void) free_chunk(client, data->chunk, &ignored);
	data->rows = NULL;
}

/* The next rows will be the first again.  Rows held must have been freed. */
bool
gpusort_client_rewind(GpuSortClient *client, GpuSortFailure *failure)
{
	GpuSortMessage message = {0};

	message.u.rewind.epoch = ++client->epoch;
	client->rows = 0;
	return gpusort_connection_send(&client->connection, &message, GPUSORT_MSG_REWIND, failure);
}

/* Ends the sort, wherever it is; the client's few bytes stay with their context. */
void
gpusort_client_end(GpuSortClient *client)
{
	close_client(client);
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
