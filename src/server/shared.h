/*-------------------------------------------------------------------------
 *
 * shared.h
 *	  The memory that backends and the supervisor share.
 *
 * Each part of it has a header of its own: service_state.h, jobs.h, statistics.h, distrusted.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_H
#define GPUSORT_SHARED_H

#include "compat.h"

#include "storage/lwlock.h"

extern void gpusort_shared_init(void);
extern bool gpusort_shared_is_private(void);
extern bool gpusort_shared_is_preloaded(void);
extern void gpusort_shared_init_lock(LWLock *lock);

#endif /* GPUSORT_SHARED_H */
