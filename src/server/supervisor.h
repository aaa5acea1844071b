/*-------------------------------------------------------------------------
 *
 * supervisor.h
 *	  The background worker that keeps the sort service running.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SUPERVISOR_H
#define GPUSORT_SUPERVISOR_H

#include "compat.h"

/*
 * Relative to the data directory, which is every backend's working directory:
 * so it fits a socket address however deep the data directory lies.  Base
 * backups leave out what is in pg_stat_tmp.
 */
#define GPUSORT_SOCKET_PATH "pg_stat_tmp/gpusort.sock"

extern void gpusort_supervisor_register(void);
extern void gpusort_supervisor_leave_alone(void);
extern const char *gpusort_supervisor_wake(void);
extern bool gpusort_supervisor_wait_ready(char *why_not, size_t why_not_size);

pg_noreturn extern PGDLLEXPORT void gpusort_supervisor_main(Datum arg);

#endif /* GPUSORT_SUPERVISOR_H */
