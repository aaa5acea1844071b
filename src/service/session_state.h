/*-------------------------------------------------------------------------
 *
 * session_state.h
 *	  What session.c (the connection) and session_sort.c (its sort) share.
 *	  Nobody else includes this.
 *
 * STATES
 *
 *	NEW --HELLO--> GREETED --JOB_BEGIN--> BEGINNING --JOB--> INGEST --SORT-->
 *	SORTING --SORTED--> OUTPUT
 *
 *	BEGINNING --REFUSED--> REFUSED		only closing is legal
 *	any with a job --FAILED--> FAILED	messages on their way are ignored
 *	any --> CLOSED						the socket is gone; the job may still end
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SESSION_STATE_H
#define GPUSORT_SESSION_STATE_H

#include "outbox.h"
#include "session.h"

typedef enum GpuSortSessionState
{
	STATE_NEW,
	STATE_GREETED,
	STATE_BEGINNING,
	STATE_INGEST,
	STATE_SORTING,
	STATE_OUTPUT,
	STATE_REFUSED,
	STATE_FAILED,
	STATE_CLOSED,
} GpuSortSessionState;

struct GpuSortSession
{
	GpuSortSessions *sessions;
	GpuSortSession *next;
	int			socket;			/* -1 once closed */
	int			pid;			/* of the peer */
	GpuSortSessionState state;
	bool		broken;			/* to be closed as soon as nobody uses it */
	bool		waits;			/* EPOLLOUT is asked for */
	GpuSortOutbox outbox;

	/* the sort */
	const GpuSortEngineHandle *handle;
	GpuSortJob *job;			/* NULL before and after */
	bool		finished;		/* the job was told to end */
	GpuSortShare share;

	/* ingest */
	bool		full;
	GpuSortMessage full_message;
	GpuSortMessage job_message; /* JOB, sent when the first reserve is there */

	/* output */
	GpuSortSorted sorted;
	uint64_t	bytes_left;		/* of rows not emitted yet */
	uint32_t	epoch;
	uint32_t	emits;			/* under way, of this epoch */
	bool		last;			/* the last rows of this epoch were sent */
};

/* session.c */
extern void gpusort_session_send(GpuSortSession *session, GpuSortMessage *message,
								 GpuSortMessageType type);

/* session_sort.c: messages; false if they are not legal */
extern bool gpusort_session_begin(GpuSortSession *session, const GpuSortMessage *message);
extern bool gpusort_session_put(GpuSortSession *session, const GpuSortMessage *message);
extern void gpusort_session_sort(GpuSortSession *session);
extern bool gpusort_session_chunk_free(GpuSortSession *session, const GpuSortMessage *message);
extern bool gpusort_session_rewind(GpuSortSession *session, const GpuSortMessage *message);

/* session_sort.c: the end of a sort */
extern void gpusort_session_fail(GpuSortSession *session, GpuSortReason reason, const char *text);
extern void gpusort_session_finish(GpuSortSession *session);

#endif							/* GPUSORT_SESSION_STATE_H */
