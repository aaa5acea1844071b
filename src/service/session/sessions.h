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

/* What sessions have in common; belongs to the main loop, zeroed at first. */
typedef struct GpuSortSessions
{
	int epoll;
	GpuSortPool *pool;
	GpuSortHostMemory *host_memory; /* of the host engine, and of others' runs */
	int cpus;                       /* that the service may use */
	GpuSortSession *first;
	uint32_t jobs;  /* engine sorts begun and not ended */
	bool draining;  /* take no new ones */
	uint64_t named; /* sessions so far, of which each has its number */

	/* those that wait to be let in (session_queue.c) */
	GpuSortQueue queue; /* by arrival */
	double moved;       /* ms of gpusort_clock_ms: when a sort last got on */
	uint32_t releases;  /* how often sorts have given memory back */

	GpuSortDeviceFailures device_failures;
	double ticked; /* ms of gpusort_clock_ms: when the watchdog last looked */
} GpuSortSessions;

#endif /* GPUSORT_SESSIONS_H */
