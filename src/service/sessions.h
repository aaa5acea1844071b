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
#include <time.h>

#include "service/job.h"

typedef struct GpuSortSession GpuSortSession;

typedef TAILQ_HEAD(GpuSortQueue, GpuSortSession) GpuSortQueue;
typedef TAILQ_ENTRY(GpuSortSession) GpuSortQueueEntry;

/* So many device failures within so many seconds mean that the context is lost. */
#define GPUSORT_DEVICE_FAILURES        3
#define GPUSORT_DEVICE_FAILURE_SECONDS 60

/* The last failures of the device in anybody's sort. */
typedef struct GpuSortDeviceFailures
{
	time_t at[GPUSORT_DEVICE_FAILURES]; /* seconds of CLOCK_MONOTONIC, a ring */
	unsigned count;                     /* since the service began */
	bool lost;                          /* too many in a short time: the device is given up */
} GpuSortDeviceFailures;

/* What sessions have in common; belongs to the main loop, zeroed at first. */
typedef struct GpuSortSessions
{
	int epoll;
	GpuSortPool *pool;
	GpuSortSession *first;
	uint32_t jobs; /* engine sorts begun and not ended */
	bool draining; /* take no new ones */

	/* those that wait to be let in (session_queue.c) */
	GpuSortQueue queue; /* by arrival */
	double moved;       /* ms of gpusort_clock_ms: when a sort last got on */
	uint32_t releases;  /* how often sorts have given memory back */

	GpuSortDeviceFailures device_failures;
} GpuSortSessions;

#endif /* GPUSORT_SESSIONS_H */
