/*-------------------------------------------------------------------------
 *
 * connection.h
 *	  A backend's connection to the service.
 *
 * For client.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CONNECTION_H
#define GPUSORT_CONNECTION_H

#include "compat.h"

#include "client/failure.h"
#include "client/mapped_pool.h"
#include "server/availability.h"
#include "server/wait_events.h"
#include "service/protocol.h"
#include "storage/fd.h"

typedef struct GpuSortConnection
{
	int socket;              /* -1: closed */
	GpuSortMappedPool *pool; /* NULL: closed */
	GpuSortPulseWatch watch; /* of the service that it goes to */
	int soon;                /* so many are too many for what comes soon */
	GpuSortWait wait;        /* what for, when it waits */
} GpuSortConnection;

extern void gpusort_connection_init(GpuSortConnection *connection);
extern bool gpusort_connection_open(GpuSortConnection *connection, uint32 generation, GpuSortFailure *failure);
extern void gpusort_connection_expect_host(GpuSortConnection *connection);
extern void gpusort_connection_close(GpuSortConnection *connection);

extern bool gpusort_connection_send(GpuSortConnection *connection, GpuSortMessage *message,
									GpuSortMessageType type, GpuSortFailure *failure);
extern bool gpusort_connection_send_file(GpuSortConnection *connection, GpuSortMessage *message,
										 GpuSortMessageType type, File file, GpuSortFailure *failure);
extern bool gpusort_connection_receive(GpuSortConnection *connection, GpuSortMessage *message,
									   GpuSortFailure *failure);
extern bool gpusort_connection_receive_soon(GpuSortConnection *connection, GpuSortMessage *message,
											GpuSortFailure *failure);

extern bool gpusort_connection_has_chunk(const GpuSortConnection *connection, uint32 chunk);
extern char *gpusort_connection_chunk(GpuSortConnection *connection, uint32 chunk);

#endif /* GPUSORT_CONNECTION_H */
