/*-------------------------------------------------------------------------
 *
 * shared_case.c
 *	  A sort whose rows several processes read, and its readers: for its tests.
 *
 *-------------------------------------------------------------------------
 */
#include "shared_case.h"

Service service;
Rows some_rows;
uint64_t first_rows[GPUSORT_RANGES_MAX + 1];

/* Sorts rows for several readers; returns the token. */
uint64_t
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
GpuSortMessage
join(Client *reader, uint64_t token)
{
	GpuSortMessage message = {.u.job_join = {.token = token, .reader = 1}};

	client_open(reader, &service);
	client_send(reader, GPUSORT_MSG_JOB_JOIN, message);
	if (!client_receive(reader, &message, ANSWER_MS))
		bail("no answer to JOB_JOIN");
	return message;
}

void
must_join(Client *reader, uint64_t token)
{
	if (join(reader, token).type != GPUSORT_MSG_JOB)
		bail("a reader was refused");
}

void
free_chunk(Client *client, uint32_t chunk)
{
	client_send(client, GPUSORT_MSG_CHUNK_FREE, (GpuSortMessage){.u.chunk.chunk = chunk});
}

/* Asks for rows; returns the number of the READ. */
uint32_t
ask_rows(Client *client, uint64_t first, uint64_t end)
{
	client_send(client, GPUSORT_MSG_READ, (GpuSortMessage){.u.read = {.first = first, .end = end}});
	return ++client->epoch;
}

bool
send_cut(Client *owner, uint32_t bits, uint32_t most, uint64_t like)
{
	return client_send(owner, GPUSORT_MSG_CUT, (GpuSortMessage){.u.cut = {.bits = bits, .most = most, .like = like}});
}

uint32_t
cut(Client *owner, const Rows *rows, uint32_t bits, uint32_t most)
{
	uint32_t ranges;
	const char *problem = sort_cut(owner, rows, bits, most, first_rows, &ranges);

	if (problem != NULL)
		bail("cut: %s", problem);
	return ranges;
}

/* The next message is FAILED. */
bool
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
