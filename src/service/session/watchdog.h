/*-------------------------------------------------------------------------
 *
 * watchdog.h
 *	  Finds engine calls that do not return.
 *
 * Main thread only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WATCHDOG_H
#define GPUSORT_WATCHDOG_H

#include "service/session/sessions.h"

extern bool gpusort_watchdog_look(GpuSortSessions *sessions);
extern int gpusort_watchdog_timeout(const GpuSortSessions *sessions);

#endif /* GPUSORT_WATCHDOG_H */
