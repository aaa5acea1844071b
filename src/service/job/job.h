/*-------------------------------------------------------------------------
 *
 * job.h
 *	  A sort's engine calls, on a thread of their own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOB_H
#define GPUSORT_JOB_H

#include <stdbool.h>

#include "service/call_watch.h"
#include "service/external/ranges.h"
#include "service/machine/memory.h"
#include "service/pool.h"

typedef struct GpuSortJob GpuSortJob;

typedef enum GpuSortCommandType
{
	GPUSORT_COMMAND_BEGIN = GPUSORT_CALL_BEGIN,
	GPUSORT_COMMAND_RESERVE = GPUSORT_CALL_RESERVE,
	GPUSORT_COMMAND_PUT = GPUSORT_CALL_PUT, /* and reserve the next, unless "final" is set */
	GPUSORT_COMMAND_SORT = GPUSORT_CALL_SORT,
	GPUSORT_COMMAND_EMIT = GPUSORT_CALL_EMIT,
	GPUSORT_COMMAND_CUT = GPUSORT_CALL_CUT,
	GPUSORT_COMMAND_SPACE = GPUSORT_CALL_SPACE, /* space in a file; commands that wait for it continue */
	GPUSORT_COMMAND_END = GPUSORT_CALL_END,     /* the thread's last */
	GPUSORT_COMMAND_LACK,                       /* not a command: tells the asker that one of its own waits for space */
} GpuSortCommandType;

/*
 * Rows that chunk after chunk is filled with.  The asker's, and kept while EMITs of
 * it are under way; next is the job's thread's from the first of them on.
 */
typedef struct GpuSortInterval
{
	uint32_t number; /* the asker's, higher for later ones */
	uint64_t next;   /* number of the first row that was not emitted */
	uint64_t end;    /* number of the row after the last; may be larger than the number of rows */
} GpuSortInterval;

/*
 * A command on its way to the job's thread and back.  Belongs to the main
 * thread but while it is in the job's hands.
 */
typedef struct GpuSortCommand
{
	GpuSortCommandType type;
	GpuSortJob *job;
	void *asker; /* the caller's; END's is the job's owner */
	struct GpuSortCommand *next;

	/* what to do */
	uint32_t chunk;            /* PUT, EMIT; RESERVE: the chunk to be granted; CUT: for the ranges' first rows */
	uint32_t rows;             /* PUT */
	uint32_t bytes;            /* PUT */
	uint32_t rows_max;         /* PUT: most rows of its chunk.  Result of RESERVE, PUT: of the next chunk */
	bool final;                /* PUT */
	GpuSortInterval *interval; /* EMIT */
	uint32_t bits;             /* CUT */
	uint32_t most;             /* CUT */
	int descriptor;            /* SPACE: of the file, or -1; the command's until it is done */
	uint64_t owner;            /* SPACE: whose file it is */
	uint64_t start;            /* SPACE: bytes from the start of the file */
	uint64_t space;            /* SPACE: bytes given; LACK: bytes that are lacking */
	/* CUT: borders to cut at, or NULL; then the result.  Belongs to the command */
	GpuSortBorders *borders;

	/* the result */
	bool skipped;   /* not done, because an earlier command has made it pointless */
	bool released;  /* memory of the engine was freed, because rows are in a run */
	bool failed;    /* the sort is lost, see error */
	bool busy;      /* BEGIN: other sorts use the memory, see error; the command may be repeated */
	bool reserved;  /* RESERVE, PUT: there is room for one more chunk; otherwise see error */
	uint64_t first; /* EMIT: number of the first row in the chunk */
	GpuSortError error;
	union
	{
		GpuSortPlace place;     /* BEGIN */
		GpuSortOutcome outcome; /* SORT */
		GpuSortEmitted emitted; /* EMIT */
	} u;
} GpuSortCommand;

/* An engine call that has not returned. */
typedef struct GpuSortCall
{
	GpuSortCallType type;
	uint64_t rows;              /* that the sort has */
	uint32_t seconds;           /* it has taken, by gpusort_jobs_tick */
	uint32_t cancelled_seconds; /* of them, since it was asked to return */
} GpuSortCall;

/* What a job uses; all of it outlives the job. */
typedef struct GpuSortJobMeans
{
	GpuSortEngineHandle handle;
	const GpuSortPool *pool;
	GpuSortHostMemory *run_memory; /* for runs; NULL: they go to files alone */
	int cpus;                      /* that the service may use */
} GpuSortJobMeans;

extern bool gpusort_jobs_open(int *descriptor);
extern void gpusort_jobs_close(void);
extern GpuSortCommand *gpusort_jobs_done(void);
extern void gpusort_jobs_tick(void);

extern GpuSortJob *gpusort_job_start(const GpuSortJobMeans *means, const GpuSortRequest *request, void *owner);
extern void *gpusort_job_owner(const GpuSortJob *job);
extern bool gpusort_job_command(GpuSortJob *job, const GpuSortCommand *command, GpuSortCommand *spare);
extern GpuSortCommand *gpusort_job_take_back(GpuSortJob *job, const void *asker, uint32_t number);
extern bool gpusort_job_call(const GpuSortJob *job, GpuSortCall *call);
extern bool gpusort_job_gets_on(GpuSortJob *job);
extern GpuSortCommand *gpusort_job_finish(GpuSortJob *job);
extern void gpusort_job_free(GpuSortJob *job);

#endif /* GPUSORT_JOB_H */
