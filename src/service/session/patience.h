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

/* Whatever a sort takes, and where nobody knows. */
#define GPUSORT_QUEUE_WAIT_MS 5000

/* So many times as long as PostgreSQL's own sort would take. */
#define GPUSORT_QUEUE_NATIVE_TIMES 10

extern double gpusort_session_patience(const GpuSortSession *session);

#endif /* GPUSORT_PATIENCE_H */
