/*-------------------------------------------------------------------------
 *
 * availability.h
 *	  Whether a backend has a service to talk to, and whether that still lives.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_AVAILABILITY_H
#define GPUSORT_AVAILABILITY_H

#include "compat.h"

#include "portability/instr_time.h"
#include "server/service_state.h"

/* What a backend that waits for a service has seen of its pulse; zeroed at first, but for generation. */
typedef struct GpuSortPulseWatch
{
	uint32 generation; /* of the service that it waits for */
	TimestampTz alive; /* as the service was last seen; 0: not yet */
	int looks;         /* since then */
	int silent;        /* looks since the wait began */
	instr_time looked; /* the last look, or the beginning of the wait */
} GpuSortPulseWatch;

/* A backend that waits for a service looks at its pulse so often, in milliseconds, whatever else wakes it. */
#define GPUSORT_LOOK_MS 1000

extern void gpusort_availability_init(void);
extern void gpusort_availability_leave_alone(void);
extern const char *gpusort_availability_expected(const GpuSortService *service);
extern bool gpusort_availability_wait(uint32 *generation, char *why_not, size_t why_not_size);
extern void gpusort_availability_begin_watch(GpuSortPulseWatch *watch);
extern long gpusort_availability_look_due(const GpuSortPulseWatch *watch);
extern bool gpusort_availability_look(GpuSortPulseWatch *watch);

#endif /* GPUSORT_AVAILABILITY_H */
