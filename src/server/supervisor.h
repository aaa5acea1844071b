/*-------------------------------------------------------------------------
 *
 * supervisor.h
 *	  The background worker that keeps the sort service running.
 *
 * The postmaster finds it by name (availability.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SUPERVISOR_H
#define GPUSORT_SUPERVISOR_H

#include "compat.h"

pg_noreturn extern PGDLLEXPORT void gpusort_supervisor_main(Datum arg);

#endif /* GPUSORT_SUPERVISOR_H */
