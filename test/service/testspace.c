/*-------------------------------------------------------------------------
 *
 * testspace.c
 *	  For tests of sorts larger than memory: files of a client that the service writes
 *	  runs to.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "testlib.h"

int
space_make_file(int flags)
{
	int descriptor = open(test_directory(), O_TMPFILE | O_CLOEXEC | flags, 0600);

	if (descriptor < 0)
		bail("open: %s", strerror(errno));
	return descriptor;
}

/* Sends so many bytes with descriptors, 16 at most; false if that is not possible now, or not any more. */
bool
space_send_bytes(Client *client, void *bytes, size_t size, const int *descriptors, int count, int flags)
{
	char space[CMSG_SPACE(16 * sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec part = {.iov_base = bytes, .iov_len = size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (count > 0)
	{
		struct cmsghdr *rights;

		header.msg_control = space;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(rights), descriptors, count * sizeof(int));
	}
	return sendmsg(client->socket, &header, MSG_NOSIGNAL | flags) == (ssize_t) size;
}

/* Sends a message of so many bytes with descriptors. */
bool
space_send_with(Client *client, GpuSortMessage message, size_t bytes, const int *descriptors, int count)
{
	message.magic = GPUSORT_PROTOCOL_MAGIC;
	message.version = GPUSORT_PROTOCOL_VERSION;
	return space_send_bytes(client, &message, bytes, descriptors, count, 0);
}

bool
space_send_file(Client *client, uint64_t start, uint64_t bytes, const int *descriptors, int count)
{
	GpuSortMessage message = {.type = GPUSORT_MSG_FILE, .u.space = {.bytes = bytes, .start = start}};

	return space_send_with(client, message, sizeof(message), descriptors, count);
}

/* Gives so many bytes at the end of the client's file. */
void
space_give(Client *client, SpaceFile *file, uint64_t bytes)
{
	bool has_file = file->descriptor >= 0;

	if (!has_file)
		file->descriptor = space_make_file(O_RDWR);
	space_send_file(client, file->given, bytes, &file->descriptor, has_file ? 0 : 1);
	file->given += bytes;
}

/* Fills a chunk that was granted and puts it; returns the next row. */
uint64_t
space_put_chunk(Client *client, const Rows *rows, uint64_t from, const GpuSortMessage *granted)
{
	GpuSortMessage message = {.u.put.chunk = granted->u.chunk.chunk};
	uint64_t next = rows_fill(rows, from, granted->u.chunk.rows_max, client_chunk(client, granted->u.chunk.chunk),
							  &message.u.put.rows, &message.u.put.bytes);

	client_send(client, GPUSORT_MSG_CHUNK_PUT, message);
	return next;
}

/* Puts rows up to a number and gives what space is asked for; NULL, or what went wrong. */
const char *
space_put(Client *client, const Rows *rows, uint64_t *next, uint64_t end, SpaceFile *file)
{
	while (*next < end)
	{
		GpuSortMessage message;

		if (!client_receive(client, &message, ANSWER_MS))
			return "no answer came";
		if (message.type == GPUSORT_MSG_SPACE)
			space_give(client, file, message.u.space.bytes);
		else if (message.type == GPUSORT_MSG_CHUNK)
			*next = space_put_chunk(client, rows, *next, &message);
		else
			return "neither CHUNK nor SPACE came";
	}
	return NULL;
}

/*
 * Waits for a message of this type, past chunks; space that is asked for meanwhile is given, or is not if file
 * is NULL.  Returns false if another message comes, or none.
 */
bool
space_await(Client *client, GpuSortMessageType type, SpaceFile *file, GpuSortMessage *message)
{
	do
	{
		if (!client_receive(client, message, ANSWER_MS))
			return false;
		if (message->type == GPUSORT_MSG_SPACE && file != NULL)
			space_give(client, file, message->u.space.bytes);
	} while (message->type == GPUSORT_MSG_CHUNK || message->type == GPUSORT_MSG_SPACE);
	return message->type == type;
}

/* Sends SORT and gives space until SORTED is there. */
static const char *
finish(Client *client, const Rows *rows, SpaceFile *file, GpuSortMessage *sorted)
{
	client_send(client, GPUSORT_MSG_SORT, (GpuSortMessage){.magic = 0});
	if (!space_await(client, GPUSORT_MSG_SORTED, file, sorted))
		return "no SORTED came";
	return sorted->u.sorted.rows == rows->n ? NULL : "SORTED tells another number of rows";
}

/* Puts the rows from a number on, sends SORT and gives what space is asked for; NULL, or what went wrong. */
const char *
space_sort(Client *client, const Rows *rows, uint64_t next, SpaceFile *file, GpuSortMessage *sorted)
{
	const char *problem = space_put(client, rows, &next, rows->n, file);

	return problem != NULL ? problem : finish(client, rows, file, sorted);
}

void
space_close(Client *client, SpaceFile *file)
{
	client_close(client);
	if (file->descriptor >= 0)
		close(file->descriptor);
	file->descriptor = -1;
}
