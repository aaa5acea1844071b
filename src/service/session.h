/*-------------------------------------------------------------------------
 *
 * session.h
 *	  A client's connection: its side of protocol.h.
 *
 * Main thread only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SESSION_H
#define GPUSORT_SESSION_H

#include <time.h>

#include "service/job.h"

typedef struct GpuSortSession GpuSortSession;

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
	GpuSortDeviceFailures device_failures;
} GpuSortSessions;

extern bool gpusort_session_start(GpuSortSessions *sessions, int socket, int pid);
extern void gpusort_session_event(GpuSortSession *session, uint32_t events);
extern void gpusort_session_done(GpuSortCommand *command);
extern void gpusort_sessions_reap(GpuSortSessions *sessions);
extern void gpusort_sessions_fail(GpuSortSessions *sessions, GpuSortReason reason, const char *text);
extern void gpusort_sessions_close(GpuSortSessions *sessions);

#endif /* GPUSORT_SESSION_H */
