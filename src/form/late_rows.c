/*-------------------------------------------------------------------------
 *
 * late_rows.c
 *	  Rows of a FETCH that were formed before the server says what they are: they leave behind that.
 *
 * While rows wait, the server's table of functions for messages is replaced by one of this file.  It is put back with
 * the message that the command is complete, with an error, and when the server resets its communication after one:
 * then no row is sent.
 *
 *-------------------------------------------------------------------------
 */
#include "form/late_rows.h"

/* The headers of these libraries need not be there.  No field of a Port is used. */
#undef ENABLE_GSS
#undef USE_OPENSSL
#include "libpq/libpq.h"
#include "utils/memutils.h"

/* The tag of a FETCH, before the number of its rows */
#define FETCH_TAG "FETCH "

/* A buffer as large as this is kept for the next FETCH. */
#define KEPT_BYTES (4 << 20)

/* The rows; the buffer has a context of its own.  No buffer: it is lent, or there is none. */
static GpuSortCatch waiting;
static uint64 waiting_rows;
static MemoryContext context = NULL;

/* What was there before; NULL: nothing waits. */
static const PQcommMethods *previous_methods = NULL;

/* What is there while rows wait: the same, but for messages that tell when they go. */
static PQcommMethods late_methods;

/* The buffer's memory goes. */
static void
forget(void *arg)
{
	context = NULL;
	waiting.bytes = (StringInfoData){0};
}

/* Makes the buffer's memory, which goes with the transaction. */
static void
make_context(void)
{
	MemoryContextCallback *callback;

	context = AllocSetContextCreate(TopTransactionContext, "gpusort late rows", ALLOCSET_DEFAULT_SIZES);
	callback = MemoryContextAllocZero(context, sizeof(MemoryContextCallback));
	callback->func = forget;
	MemoryContextRegisterResetCallback(context, callback);
}

/* Empties the buffer; frees a large one, and one that is lent. */
static void
clear(void)
{
	waiting.bytes.len = 0;
	if (waiting.bytes.data != NULL && waiting.bytes.maxlen <= KEPT_BYTES)
		return;
	MemoryContextDelete(context);
}

/* Makes the server's table send messages again. */
static void
end_waiting(void)
{
	PqCommMethods = previous_methods;
	previous_methods = NULL;
}

/* Sends the rows, unless that was done. */
static void
send_rows(void)
{
	if (waiting.bytes.len == 0)
		return;
	PqCommMethods = previous_methods;
	gpusort_messages_send(waiting.bytes.data, waiting.bytes.len);
	PqCommMethods = &late_methods;
	clear();
}

/* Sends that the command is complete, with the number of all of its rows. */
static int
complete(const char *tag, size_t length)
{
	char all[64];

	if (strncmp(tag, FETCH_TAG, strlen(FETCH_TAG)) != 0)
		return pq_putmessage('C', tag, length);
	snprintf(all, sizeof(all), FETCH_TAG UINT64_FORMAT,
			 (uint64) strtoull(tag + strlen(FETCH_TAG), NULL, 10) + waiting_rows);
	return pq_putmessage('C', all, strlen(all) + 1);
}

static int
put_message(char type, const char *body, size_t length)
{
	int result;

	switch (type)
	{
		case 'T':
			result = previous_methods->putmessage(type, body, length);
			send_rows();
			return result;
		case 'D':
			send_rows();
			break;
		case 'C':
			send_rows();
			end_waiting();
			return complete(body, length);
		case 'E':
			gpusort_late_rows_drop();
			return pq_putmessage(type, body, length);
	}
	return previous_methods->putmessage(type, body, length);
}

/* The server resets after an error. */
static void
reset(void)
{
	gpusort_late_rows_drop();
	PqCommMethods->comm_reset();
}

/* Lends an empty buffer for rows. */
GpuSortCatch
gpusort_late_rows_begin(void)
{
	MemoryContext caller;
	GpuSortCatch lent;

	gpusort_late_rows_drop();
	if (context == NULL)
		make_context();
	caller = MemoryContextSwitchTo(context);
	if (waiting.bytes.data == NULL)
		gpusort_catch_init(&waiting, false);
	MemoryContextSwitchTo(caller);
	lent = waiting;
	waiting.bytes = (StringInfoData){0};
	return lent;
}

/* Takes the buffer back, with so many rows that leave when their time has come. */
void
gpusort_late_rows_send_later(const GpuSortCatch *rows, uint64 count)
{
	waiting = *rows;
	waiting_rows = count;
	if (count == 0)
		return;
	previous_methods = PqCommMethods;
	late_methods = *previous_methods;
	late_methods.putmessage = put_message;
	late_methods.comm_reset = reset;
	PqCommMethods = &late_methods;
}

/* Forgets rows that wait, or are in the buffer that is lent. */
void
gpusort_late_rows_drop(void)
{
	if (previous_methods != NULL)
		end_waiting();
	if (context != NULL)
		clear();
}
