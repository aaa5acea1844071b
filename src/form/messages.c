/*-------------------------------------------------------------------------
 *
 * messages.c
 *	  Messages with rows that PostgreSQL's own receivers would send: caught, and sent later as they are.
 *
 * SENDING
 *	Whole blocks of messages go past the server's buffer of 8 kB, by secure_write, which has TLS and GSS in it.  What
 *	that buffer holds goes first.  A connection that fails is treated as the server treats it: the log tells, and the
 *	next look at interrupts ends the session.  A block ends where a message does, so that an error can be told to the
 *	client between two of them.
 *
 *	That is done only if the table of functions is the one that the server started with: another module's is not
 *	known.
 *
 * NOTICES
 *	A worker's errors and notices go to its leader, who converts them for the client.  One that comes while a row is
 *	formed, with the client's encoding in force, has been converted in the worker already, so that is undone here.
 *
 *-------------------------------------------------------------------------
 */
#include "form/messages.h"

#include "access/parallel.h"

/* The headers of these libraries need not be there.  No field of a Port is used. */
#undef ENABLE_GSS
#undef USE_OPENSSL
#include "libpq/libpq.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "tcop/tcopprot.h"

/* Fewer bytes go through the server's buffer, which is as large: else packets would be small. */
#define DIRECT_BYTES 8192

/* What the server started with; NULL: not known. */
static const PQcommMethods *server_methods = NULL;

/* What was there before the catch, and is called for other messages; and where those with rows go. */
static const PQcommMethods *previous_methods = NULL;
static GpuSortCatch *current = NULL;

/* What is there during the catch: the same, but for messages. */
static PQcommMethods catch_methods;

static void
catch_message(char type, const char *body, size_t length)
{
	StringInfo bytes = &current->bytes;

	if (length > GPUSORT_MESSAGE_MAX && !current->of_any_length)
	{
		current->too_long = true;
		return;
	}
	enlargeStringInfo(bytes, GPUSORT_MESSAGE_HEAD_BYTES + length);
	if (!current->bodies_alone)
	{
		const uint32 total = pg_hton32((uint32) (length + sizeof(uint32)));

		bytes->data[bytes->len] = type;
		memcpy(bytes->data + bytes->len + 1, &total, sizeof(total));
		bytes->len += GPUSORT_MESSAGE_HEAD_BYTES;
	}
	memcpy(bytes->data + bytes->len, body, length);
	bytes->len += length;
}

/* Passes an error or a notice on to the leader, its texts in the database's encoding: each is a letter and a string. */
static int
put_texts(char type, const char *body)
{
	StringInfoData texts;
	int result;

	initStringInfo(&texts);
	while (*body != '\0')
	{
		const int length = strlen(body + 1);
		char *text = pg_client_to_server(body + 1, length);

		appendStringInfoChar(&texts, *body);
		appendBinaryStringInfo(&texts, text, strlen(text) + 1);
		body += 1 + length + 1;
	}
	appendStringInfoChar(&texts, '\0');
	result = previous_methods->putmessage(type, texts.data, texts.len);
	pfree(texts.data);
	return result;
}

static int
put_message(char type, const char *body, size_t length)
{
	switch (type)
	{
		case 'D':
		case 'd':
			catch_message(type, body, length);
			return 0;
		case 'H':
		case 'c':
			return 0; /* CopyOutResponse and CopyDone */
		case 'E':
		case 'N':
			if (IsParallelWorker() && pg_get_client_encoding() != GetDatabaseEncoding())
				return put_texts(type, body);
			break;
	}
	return previous_methods->putmessage(type, body, length);
}

/* The server resets after an error: nothing is caught any more. */
static void
reset(void)
{
	const PQcommMethods *methods = previous_methods;

	gpusort_catch_end(NULL);
	methods->comm_reset();
}

/* To be called once, when the server starts. */
void
gpusort_messages_init(void)
{
	server_methods = PqCommMethods;
}

/* Returns true if messages of this process go to a client, in no other way than the server's own. */
bool
gpusort_messages_are_sent(void)
{
	return server_methods != NULL && PqCommMethods == server_methods && whereToSendOutput == DestRemote &&
		MyProcPort != NULL;
}

/* Makes an empty buffer, which belongs to the current context. */
void
gpusort_catch_init(GpuSortCatch *caught, bool bodies_alone)
{
	*caught = (GpuSortCatch){.bodies_alone = bodies_alone};
	initStringInfo(&caught->bytes);
}

/* Begins to catch what is sent, behind what was caught before.  Returns what the caller hands to end. */
GpuSortCatch *
gpusort_catch_begin(GpuSortCatch *caught)
{
	GpuSortCatch *previous = current;

	caught->too_long = false;
	current = caught;
	if (previous == NULL)
	{
		if (previous_methods != PqCommMethods)
		{
			previous_methods = PqCommMethods;
			catch_methods = *previous_methods;
			catch_methods.putmessage = put_message;
			catch_methods.comm_reset = reset;
		}
		PqCommMethods = &catch_methods;
	}
	return previous;
}

/* Ends a catch, if one is on, in favour of that around it; NULL: there is none. */
void
gpusort_catch_end(GpuSortCatch *previous)
{
	if (current != NULL && previous == NULL)
		PqCommMethods = previous_methods;
	current = previous;
}

/* Sends a message to the client, as the server does. */
void
gpusort_message_send(char type, const char *body, Size length)
{
	(void) pq_putmessage(type, body, length);
}

/* Sends messages one by one, by way of the server's buffer. */
static void
send_one_by_one(const char *bytes, Size length)
{
	const char *end = bytes + length;

	while (bytes < end)
	{
		const Size whole = gpusort_message_length(bytes);

		(void) pq_putmessage(bytes[0], bytes + GPUSORT_MESSAGE_HEAD_BYTES, whole - GPUSORT_MESSAGE_HEAD_BYTES);
		bytes += whole;
	}
}

/* Sends whole messages to the client. */
void
gpusort_messages_send(const char *bytes, Size length)
{
	if (length < DIRECT_BYTES)
	{
		send_one_by_one(bytes, length);
		return;
	}
	if (pq_flush() != 0)
		return;
	while (length > 0)
	{
		ssize_t sent = secure_write(MyProcPort, (void *) bytes, length);

		if (sent <= 0)
		{
			if (errno == EINTR)
				continue;
			ereport(COMMERROR, (errcode_for_socket_access(), errmsg("could not send data to client: %m")));
			ClientConnectionLost = 1;
			InterruptPending = 1;
			return;
		}
		bytes += sent;
		length -= sent;
	}
}
