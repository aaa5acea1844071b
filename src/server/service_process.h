/*-------------------------------------------------------------------------
 *
 * service_process.h
 *	  A process of the sort service, as its supervisor has it.
 *
 * For supervisor.c and service_processes.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_PROCESS_H
#define GPUSORT_SERVICE_PROCESS_H

#include "compat.h"

#include "service/protocol.h"

/* A service is hung if it has not answered this many PINGs in turn. */
#define GPUSORT_PINGS_UNANSWERED 4

/* The command line: gpusortd and its options. */
#define GPUSORT_SERVICE_ARGUMENTS 24
typedef struct GpuSortServiceArguments
{
	int count;
	char text[GPUSORT_SERVICE_ARGUMENTS][MAXPGPATH];
} GpuSortServiceArguments;

/*
 * Times are milliseconds of a clock that only goes forward; 0: not yet.  What kind of process it is
 * follows from them: it was started, is ready, is to drain, has closed its end of the socket pair, was
 * killed, is left behind.
 */
typedef struct GpuSortServiceProcess
{
	pid_t pid;   /* 0 if there is no process; the rest is then undefined */
	int control; /* our end of the socket pair; -1 if closed */
	uint32 generation;
	GpuSortServiceArguments arguments;
	uint64 started;
	uint64 ready;
	uint64 drained; /* when it was told to end after its last sort */
	uint64 closed;  /* when the service closed control, because it ends */
	uint64 killed;
	bool told_drain;
	bool told_late;   /* it was logged that it is not ready in time */
	bool left_behind; /* it was killed and does not end */
	int unanswered;   /* PINGs since its last PONG */
	int status;       /* how it ended, as waitpid returns it */
} GpuSortServiceProcess;

extern uint64 gpusort_process_now(void);
extern bool gpusort_process_start(GpuSortServiceProcess *process, uint32 generation);
extern bool gpusort_process_is_outdated(const GpuSortServiceProcess *process);
extern uint64 gpusort_process_start_limit(void);
extern bool gpusort_process_receive(GpuSortServiceProcess *process, GpuSortMessage *message);
extern bool gpusort_process_ping(GpuSortServiceProcess *process, bool counts);
extern void gpusort_process_drain(GpuSortServiceProcess *process);
extern void gpusort_process_kill(GpuSortServiceProcess *process);
extern bool gpusort_process_has_ended(GpuSortServiceProcess *process);
extern void gpusort_process_how_it_ended(const GpuSortServiceProcess *process, char *text, size_t size);
extern void gpusort_process_close(GpuSortServiceProcess *process);
extern void gpusort_process_remove_files(const GpuSortServiceProcess *process);
extern void gpusort_process_remove_old_files(void);

#endif /* GPUSORT_SERVICE_PROCESS_H */
