/*-------------------------------------------------------------------------
 *
 * patience.h
 *	  How long a sort waits in the queue.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PATIENCE_H
#define GPUSORT_PATIENCE_H

#include "service/session/sessions.h"

/* The limit for all sorts, and for those whose time is not known. */
#define GPUSORT_QUEUE_WAIT_MS 5000

/* How many times as long as PostgreSQL's own sort a sort waits. */
#define GPUSORT_QUEUE_NATIVE_TIMES 10

extern double gpusort_session_patience(const GpuSortSession *session);

#endif /* GPUSORT_PATIENCE_H */
