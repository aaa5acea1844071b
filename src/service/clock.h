/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  The time that the service measures waits by.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLOCK_H
#define GPUSORT_CLOCK_H

#include <time.h>

/* Milliseconds since some moment; never goes back. */
static inline double
gpusort_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

#endif /* GPUSORT_CLOCK_H */
