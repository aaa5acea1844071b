/*-------------------------------------------------------------------------
 *
 * outbox.h
 *	  Messages to a client that does not take them at once.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_OUTBOX_H
#define GPUSORT_OUTBOX_H

#include <stdbool.h>

#include "service/protocol.h"

/* Belongs to its session; zeroed at first. */
typedef struct GpuSortOutbox
{
	GpuSortMessage *messages;
	uint32_t first;
	uint32_t count;
	uint32_t room;
	int descriptor; /* goes out with the message WELCOME */
} GpuSortOutbox;

typedef enum GpuSortOutboxResult
{
	GPUSORT_OUTBOX_SENT,   /* all of it */
	GPUSORT_OUTBOX_WAITS,  /* the socket is full */
	GPUSORT_OUTBOX_BROKEN, /* the client is gone, or lets messages pile up */
} GpuSortOutboxResult;

extern GpuSortOutboxResult gpusort_outbox_send(GpuSortOutbox *outbox, int socket,
											   const GpuSortMessage *message);
extern GpuSortOutboxResult gpusort_outbox_flush(GpuSortOutbox *outbox, int socket);
extern void gpusort_outbox_free(GpuSortOutbox *outbox);

#endif /* GPUSORT_OUTBOX_H */
