/*-------------------------------------------------------------------------
 *
 * attempt.h
 *	  Calls that may fail and leave nothing behind, where no subtransaction may be begun.
 *
 * Legal order of calls: begin; attempt, again and again until one fails; end.  An error around them needs no end.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ATTEMPT_H
#define GPUSORT_ATTEMPT_H

#include "compat.h"

#include "utils/resowner.h"

extern ResourceOwner gpusort_attempts_begin(void);
extern bool gpusort_attempt(ResourceOwner own, void (*function)(void *arg), void *arg);
extern void gpusort_attempts_end(ResourceOwner own, bool good);
extern bool gpusort_attempt_once(void (*function)(void *arg), void *arg);

#endif /* GPUSORT_ATTEMPT_H */
