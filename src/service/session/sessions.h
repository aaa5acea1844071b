/*-------------------------------------------------------------------------
 *
 * sessions.h
 *	  What the sessions of a service have in common.
 *
 * Main thread only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SESSIONS_H
#define GPUSORT_SESSIONS_H

#include <sys/queue.h>

#include "service/session/device_failures.h"
#include "service/job/job.h"

typedef struct GpuSortSession GpuSortSession;

typedef TAILQ_HEAD(GpuSortQueue, GpuSortSession) GpuSortQueue;
typedef TAILQ_ENTRY(GpuSortSession) GpuSortQueueEntry;

/* What all sessions share; belongs to the main loop, zeroed at first. */
typedef struct GpuSortSessions
{
	int epoll;
	GpuSortPool *pool;
	GpuSortHostMemory *host_memory; /* of the host engine, and of others' runs */
	int cpus;                       /* that the service may use */
	GpuSortSession *first;
	uint32_t jobs;  /* engine sorts begun and not ended */
	bool draining;  /* take no new ones */
	uint64_t named; /* number of sessions so far; each has its own number */

	/* sessions in the queue (session_queue.c) */
	GpuSortQueue queue; /* by arrival */
	double moved;       /* when a sort last made progress, in ms of gpusort_clock_ms */
	uint32_t releases;  /* how often sorts have given memory back */

	GpuSortDeviceFailures device_failures;
	double ticked; /* when the watchdog last looked, in ms of gpusort_clock_ms */
} GpuSortSessions;

#endif /* GPUSORT_SESSIONS_H */
