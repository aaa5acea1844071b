/*-------------------------------------------------------------------------
 *
 * wait_events.h
 *	  What pg_stat_activity says that a process waits for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WAIT_EVENTS_H
#define GPUSORT_WAIT_EVENTS_H

#include "compat.h"

typedef enum GpuSortWait
{
	GPUSORT_WAIT_START,         /* a service that is starting */
	GPUSORT_WAIT_CONNECT,       /* the service, to take a connection */
	GPUSORT_WAIT_STATUS,        /* the service, to tell about its devices */
	GPUSORT_WAIT_QUEUE,         /* its turn, for chunks or memory */
	GPUSORT_WAIT_INGEST,        /* room for rows, or the end of the ingest */
	GPUSORT_WAIT_SORT,          /* the order */
	GPUSORT_WAIT_EMIT,          /* rows in order */
	GPUSORT_WAIT_WORKERS,       /* the leader: workers that put rows or order the sort */
	GPUSORT_WAIT_RANGES,        /* a worker: the other participants, until ranges are published */
	GPUSORT_WAIT_VERIFY,        /* the leader: workers that verify the order */
	GPUSORT_WAIT_EXCHANGE,      /* the leader: a worker's rows */
	GPUSORT_WAIT_EXCHANGE_ROOM, /* a worker: room for rows in its queue to the leader */
	GPUSORT_WAIT_SUPERVISOR,    /* the supervisor: anything to do */
} GpuSortWait;

extern uint32 gpusort_wait_event(GpuSortWait wait);

#endif /* GPUSORT_WAIT_EVENTS_H */
