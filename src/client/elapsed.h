/*-------------------------------------------------------------------------
 *
 * elapsed.h
 *	  Milliseconds between two looks at the clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ELAPSED_H
#define GPUSORT_ELAPSED_H

#include "compat.h"

#include "portability/instr_time.h"

static inline double
gpusort_ms_between(instr_time start, instr_time end)
{
	INSTR_TIME_SUBTRACT(end, start);
	return INSTR_TIME_GET_MILLISEC(end);
}

static inline double
gpusort_ms_since(instr_time start)
{
	instr_time now;

	INSTR_TIME_SET_CURRENT(now);
	return gpusort_ms_between(start, now);
}

#endif /* GPUSORT_ELAPSED_H */
