/*-------------------------------------------------------------------------
 *
 * session_state.h
 *	  What session.c (the connection), session_begin.c, session_queue.c,
 *	  session_sort.c, session_output.c, session_job.c (its sort) and patience.c share.
 *	  Nobody else includes this.
 *
 * STATES
 *
 *	NEW --HELLO--> GREETED --JOB_BEGIN--> QUEUED --> BEGINNING --JOB--> INGEST
 *	--SORT--> SORTING --SORTED--> OUTPUT
 *
 *	GREETED --JOB_JOIN--> QUEUED --> BEGINNING --JOB--> INGEST --LEAVE--> LEFT
 *	GREETED --JOB_JOIN as a reader--> QUEUED --> OUTPUT, or INGEST of a sorter
 *
 *	BEGINNING --> QUEUED				the engine lacks memory that others use now
 *	QUEUED, BEGINNING --REFUSED--> REFUSED	only closing is legal
 *	any with a job --FAILED--> FAILED	messages on their way are ignored
 *	any --> CLOSING						shut out; its chunks stay its own until it has closed
 *	any --> CLOSED						the socket is gone; the job may still end
 *
 * OWNERS, MEMBERS, READERS
 *	The session that began a job owns it.  Members, which have joined, put rows
 *	into it with chunks of their own.  The loss of a member in INGEST is the loss
 *	of the sort; the end of the job is the end of its members' part in it.
 *
 *	Readers have joined a shared sort's job when it was in OUTPUT, and are members
 *	in everything but this: they have chunks for output, and nothing is lost with
 *	them.  One that has joined as a sorter is a member in INGEST until it sends SORT; then the
 *	owner goes through SORTING to OUTPUT with it.
 *
 * OUTPUT
 *	What a session is sent are the rows of its reads.  Of a plain sort a read is all
 *	rows: the first opens by itself, and each REWIND closes one and opens the next.
 *	Of a shared sort it is what READ asks for, and SKIP closes it.  Chunks go to the
 *	oldest read first.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SESSION_STATE_H
#define GPUSORT_SESSION_STATE_H

#include "service/session/outbox.h"
#include "service/session/sessions.h"

typedef enum GpuSortSessionState
{
	STATE_NEW,
	STATE_GREETED,
	STATE_QUEUED,
	STATE_BEGINNING,
	STATE_INGEST,
	STATE_SORTING,
	STATE_OUTPUT,
	STATE_LEFT,
	STATE_REFUSED,
	STATE_FAILED,
	STATE_CLOSING,
	STATE_CLOSED,
} GpuSortSessionState;

/*
 * Rows that the client is sent: see OUTPUT.  One that is not open any more is kept
 * until its emits have come back.
 */
typedef struct GpuSortRead
{
	GpuSortInterval rows; /* must be first field; what DATA calls an epoch is its number */
	bool open;            /* more of its rows will come */
	uint64_t first;       /* number of its first row */
	uint32_t emits;       /* under way */
	uint64_t bytes_left;  /* bytes of rows not sent yet; an estimate if these are not all rows */
} GpuSortRead;

/* Each emit has a chunk, so at most this many reads have one. */
#define READS_KEPT (GPUSORT_READS_MAX + GPUSORT_JOB_CHUNKS_MAX)

struct GpuSortSession
{
	GpuSortSessions *sessions;
	GpuSortSession *next;
	uint64_t number;           /* of all sessions of this service */
	int socket;                /* -1 once closed */
	int pid;                   /* of the peer */
	GpuSortSessionState state; /* gpusort_session_move alone sets it */
	bool broken;               /* to be ended when nobody uses it any more */
	bool gone;                 /* the peer has closed its end */
	bool waits;                /* EPOLLOUT is asked for */
	bool foreign;              /* the peer's module is not of this service's build */
	GpuSortOutbox outbox;

	/* the sort */
	const GpuSortEngineHandle *handle;
	GpuSortJob *job;       /* NULL before and after */
	GpuSortSession *owner; /* of the job, if this is a member or a reader; else NULL */
	bool sorter;           /* it has joined to start the sort and cut the rows, in place of the owner */
	bool left;             /* the owner has left SORT to the last participant, and is asked nothing */
	uint64_t token;        /* what members join by */
	bool finished;         /* the job was told to end; a member has left the job */
	uint32_t commands;     /* number of commands that the job has not yet done or dropped; the owner's END counts */
	bool gets_on;          /* owner: the job made progress when the watchdog looked last */
	/* finished commands for reuse: BEGIN's for SORT, and one for the PUT of each granted chunk */
	GpuSortCommand *spares;
	GpuSortPoolShare share;

	/* until it is let in (session_begin.c, session_queue.c) */
	GpuSortRequest request;
	bool begun;                   /* the engine has the sort */
	bool queued;                  /* it is in the queue, between JOB_BEGIN and JOB */
	double arrived;               /* when JOB_BEGIN came, in ms of gpusort_clock_ms */
	double patience;              /* ms that it waits at most */
	uint32_t tried;               /* value of sessions->releases at its last try */
	GpuSortError lacks;           /* what it waits for; reason NONE if that is not known yet */
	bool role_lacks;              /* it waits for its role's share of the pool, so other roles need not wait behind it */
	GpuSortQueueEntry neighbours; /* in the queue */

	/* ingest */
	bool asked_space; /* SPACE is not answered yet */
	bool full;
	GpuSortMessage full_message;
	GpuSortMessage job_message; /* JOB, to be sent after the first reserve */

	/* output */
	GpuSortOutcome outcome;
	uint32_t epoch; /* number of the newest read */
	GpuSortRead reads[READS_KEPT];
	bool cutting;            /* CUT is not answered yet */
	GpuSortCommand cut;      /* the command of CUT while it waits for a chunk; its type is CUT then */
	GpuSortBorders *borders; /* where the rows were cut last, or NULL */
};

/* Changes the state.  A change that STATES does not have is a defect of the service, and breaks the session. */
extern void gpusort_session_move(GpuSortSession *session, GpuSortSessionState to);
extern const char *gpusort_session_state_name(GpuSortSessionState state);

/* Makes the main loop wake when the socket takes messages again (waits), or stops that. */
extern void gpusort_session_watch(GpuSortSession *session, bool waits);

/* Sends a message, or keeps it until the socket takes it; a session that cannot send is broken. */
extern void gpusort_session_send(GpuSortSession *session, GpuSortMessage *message,
								 GpuSortMessageType type);

/* Puts a session that has just asked for its sort at the end of the queue; takes it out, if it is there. */
extern void gpusort_queue_enter(GpuSortSession *session);
extern void gpusort_queue_leave(GpuSortSession *session);

/* To be called when a sort has made progress. */
extern void gpusort_queue_moved(GpuSortSessions *sessions);

/* session_begin.c: messages; false if they are not legal */
extern bool gpusort_session_begin(GpuSortSession *session, const GpuSortMessage *message);
extern bool gpusort_session_join(GpuSortSession *session, const GpuSortMessage *message);

/* session_begin.c: begins what is in the queue */
extern bool gpusort_session_admit(GpuSortSession *session);

/* session_sort.c: messages; false if they are not legal */
extern bool gpusort_session_put(GpuSortSession *session, const GpuSortMessage *message);
extern void gpusort_session_leave(GpuSortSession *session);
extern void gpusort_session_leave_to_members(GpuSortSession *session);
extern bool gpusort_session_sort(GpuSortSession *session, const GpuSortMessage *message);
extern bool gpusort_session_file(GpuSortSession *session, const GpuSortMessage *message, int *descriptor);

/* session_output.c: messages; false if they are not legal */
extern bool gpusort_session_chunk_free(GpuSortSession *session, const GpuSortMessage *message);
extern bool gpusort_session_rewind(GpuSortSession *session, const GpuSortMessage *message);
extern bool gpusort_session_cut(GpuSortSession *session, const GpuSortMessage *message);
extern bool gpusort_session_read(GpuSortSession *session, const GpuSortMessage *message);
extern bool gpusort_session_skip(GpuSortSession *session, const GpuSortMessage *message);

/* session_output.c: rows of a plain sort are asked for before they are sorted, and come when they are */
extern void gpusort_session_open_output(GpuSortSession *session, uint64_t first);
extern void gpusort_session_start_output(GpuSortSession *session);

/* session_output.c: EMIT and CUT have come back */
extern void gpusort_session_emitted(GpuSortSession *session, const GpuSortCommand *command);
extern void gpusort_session_was_cut(GpuSortSession *session, GpuSortCommand *command);

/* session_sort.c: begins a sort's work */
extern void gpusort_session_reserve(GpuSortSession *session);

/* session_job.c: what a job does for a session, and what ends it */
extern void gpusort_session_command(GpuSortSession *session, GpuSortCommand what);
extern void gpusort_session_close_reads(GpuSortSession *session, uint32_t number);
extern void gpusort_session_lose(GpuSortSession *session, const GpuSortError *error);
extern void gpusort_session_fail(GpuSortSession *session, GpuSortReason reason, const char *text);
extern void gpusort_session_finish(GpuSortSession *session);
extern void gpusort_session_note_failure(GpuSortSession *owner, const GpuSortError *error);
extern void gpusort_session_note_rows(GpuSortSession *owner);

#endif /* GPUSORT_SESSION_STATE_H */
