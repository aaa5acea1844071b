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

#include "service/session/sessions.h"

extern bool gpusort_session_start(GpuSortSessions *sessions, int socket, int pid);
extern void gpusort_session_event(GpuSortSession *session, uint32_t events);
extern void gpusort_session_done(GpuSortCommand *command);

/* session_job.c: what a session has under way, for the watchdog */
extern const GpuSortSession *gpusort_session_next(const GpuSortSession *session);
extern int gpusort_session_pid(const GpuSortSession *session);
extern bool gpusort_session_is_busy(const GpuSortSession *session);
extern bool gpusort_session_call(const GpuSortSession *session, GpuSortCall *call);
extern GpuSortEngineKind gpusort_session_engine(const GpuSortSession *session);
extern void gpusort_sessions_tell_working(GpuSortSessions *sessions);

extern void gpusort_queue_init(GpuSortSessions *sessions);
extern void gpusort_queue_advance(GpuSortSessions *sessions);
extern int gpusort_queue_timeout(const GpuSortSessions *sessions);

extern void gpusort_sessions_reap(GpuSortSessions *sessions);
extern void gpusort_sessions_fail(GpuSortSessions *sessions, GpuSortReason reason, const char *text);
extern void gpusort_sessions_close(GpuSortSessions *sessions);

#endif /* GPUSORT_SESSION_H */
