/*-------------------------------------------------------------------------
 *
 * session.h
 *	  A client's connection: its side of protocol.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SESSION_H
#define GPUSORT_SESSION_H

#include "service/job.h"

typedef struct GpuSortSession GpuSortSession;

/* What sessions have in common; belongs to the main loop. */
typedef struct GpuSortSessions
{
	int epoll;
	GpuSortPool *pool;
	GpuSortSession *first;
	uint32_t jobs;    /* engine sorts begun and not ended */
	bool draining;    /* take no new ones */
	bool device_lost; /* the cuda engine fails again and again */
} GpuSortSessions;

extern bool gpusort_session_start(GpuSortSessions *sessions, int socket, int pid);
extern void gpusort_session_event(GpuSortSession *session, uint32_t events);
extern void gpusort_session_done(GpuSortCommand *command);
extern void gpusort_sessions_reap(GpuSortSessions *sessions);
extern void gpusort_sessions_fail(GpuSortSessions *sessions, GpuSortReason reason, const char *text);
extern void gpusort_sessions_close(GpuSortSessions *sessions);

#endif /* GPUSORT_SESSION_H */
