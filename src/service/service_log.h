/*-------------------------------------------------------------------------
 *
 * service_log.h
 *	  Lines for the server's log, and other messages to the supervisor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_LOG_H
#define GPUSORT_SERVICE_LOG_H

#include <stdbool.h>

#include "service/protocol.h"

extern void gpusort_log_open(int control);
extern bool gpusort_log_has_supervisor(void);
extern bool gpusort_log_ready(const GpuSortMessage *ready);
extern void gpusort_log_pong(const GpuSortMessage *ping);
extern void gpusort_log(bool warning, const char *format, ...) __attribute__((format(printf, 2, 3)));
extern void gpusort_log_peer(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* GPUSORT_SERVICE_LOG_H */
