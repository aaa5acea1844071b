/*-------------------------------------------------------------------------
 *
 * messages.h
 *	  Messages with rows that PostgreSQL's own receivers would send: caught, and sent later as they are.
 *
 * All messages of a process go through a table of functions, the server's PqCommMethods.  While a catch is on, that is
 * a table of this file, which puts messages with rows (DataRow, CopyData) into a buffer, drops those that stand
 * around CopyData, and passes all others on.  So all types, formats and encodings are PostgreSQL's own, and errors and
 * notices go where they went.
 *
 * Legal order of calls: init at load; in any process begin and end around a call of a receiver, also within another
 * catch.  An error in between ends all catches by itself in a backend whose session goes on, for the server resets its
 * communication; who catches the error calls end.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MESSAGES_H
#define GPUSORT_MESSAGES_H

#include "compat.h"

#include "lib/stringinfo.h"
#include "port/pg_bswap.h"

/*
 * A longer message is not caught: there would be two copies of it and more.  Its row travels as a row, and the leader
 * sends it by the receiver.
 */
#define GPUSORT_MESSAGE_MAX ((Size) 16 << 20)

/* What is caught. */
typedef struct GpuSortCatch
{
	StringInfoData bytes; /* of messages, as they are sent: type, length, body */
	bool bodies_alone;    /* without types and lengths, as a file has them */
	bool of_any_length;   /* messages longer than GPUSORT_MESSAGE_MAX are caught, too */
	bool too_long;        /* a message was, and is not in bytes */
} GpuSortCatch;

/* Before the body of a message stand its type and its length, without the type. */
#define GPUSORT_MESSAGE_HEAD_BYTES 5

/* Returns the length of a whole message. */
static inline Size
gpusort_message_length(const char *message)
{
	uint32 length;

	memcpy(&length, message + 1, sizeof(length));
	return 1 + (Size) pg_ntoh32(length);
}

extern void gpusort_messages_init(void);
extern bool gpusort_messages_are_sent(void);
extern void gpusort_catch_init(GpuSortCatch *caught, bool bodies_alone);
extern GpuSortCatch *gpusort_catch_begin(GpuSortCatch *caught);
extern void gpusort_catch_end(GpuSortCatch *previous);
extern void gpusort_message_send(char type, const char *body, Size length);
extern void gpusort_messages_send(const char *bytes, Size length);

#endif /* GPUSORT_MESSAGES_H */
