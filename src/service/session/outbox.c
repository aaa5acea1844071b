/*-------------------------------------------------------------------------
 *
 * outbox.c
 *	  Messages to a client that does not take them at once.
 *
 * A message goes straight to the socket if nothing waits before it,
 * else it waits until the socket takes more.
 * Chunks limit what a sort has under way, so few messages ever wait;
 * a client that asks for many answers and reads none is broken.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "service/session/outbox.h"

#define WAITING_MAX 1024

/* Hands a message to the socket, with the descriptor if it is WELCOME. */
static GpuSortOutboxResult
send_message(int socket, const GpuSortMessage *message, int descriptor)
{
	struct iovec part = {.iov_base = (void *) message, .iov_len = sizeof(*message)};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	union
	{
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	ssize_t sent;

	if (message->type == GPUSORT_MSG_WELCOME && descriptor >= 0)
	{
		struct cmsghdr *rights;

		memset(&control, 0, sizeof(control));
		header.msg_control = control.bytes;
		header.msg_controllen = sizeof(control.bytes);
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
	}
	do
		sent = sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent == sizeof(*message))
		return GPUSORT_OUTBOX_SENT;
	if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS))
		return GPUSORT_OUTBOX_WAITS;
	return GPUSORT_OUTBOX_BROKEN;
}

/* Sends what waits, as far as the socket takes it.  SENT: nothing waits any more. */
GpuSortOutboxResult
gpusort_outbox_flush(GpuSortOutbox *outbox, int socket)
{
	while (outbox->count > 0)
	{
		GpuSortOutboxResult result = send_message(socket, &outbox->messages[outbox->first],
												  outbox->descriptor);

		if (result != GPUSORT_OUTBOX_SENT)
			return result;
		outbox->first++;
		outbox->count--;
	}
	outbox->first = 0;
	return GPUSORT_OUTBOX_SENT;
}

/* Sends a message behind those that wait, or keeps a copy of it. */
GpuSortOutboxResult
gpusort_outbox_send(GpuSortOutbox *outbox, int socket, const GpuSortMessage *message)
{
	if (outbox->count == 0)
	{
		GpuSortOutboxResult result = send_message(socket, message, outbox->descriptor);

		if (result != GPUSORT_OUTBOX_WAITS)
			return result;
	}
	if (outbox->first > 0 && outbox->first + outbox->count == outbox->room)
	{
		memmove(outbox->messages, outbox->messages + outbox->first,
				outbox->count * sizeof(GpuSortMessage));
		outbox->first = 0;
	}
	if (outbox->first + outbox->count == outbox->room)
	{
		uint32_t room = outbox->room ? outbox->room * 2 : 16;
		GpuSortMessage *messages;

		if (room > WAITING_MAX)
			return GPUSORT_OUTBOX_BROKEN;
		messages = realloc(outbox->messages, room * sizeof(GpuSortMessage));
		if (messages == NULL)
			return GPUSORT_OUTBOX_BROKEN;
		outbox->messages = messages;
		outbox->room = room;
	}
	outbox->messages[outbox->first + outbox->count++] = *message;
	return GPUSORT_OUTBOX_WAITS;
}

/* Frees what waits; it will not be sent. */
void
gpusort_outbox_free(GpuSortOutbox *outbox)
{
	free(outbox->messages);
}
