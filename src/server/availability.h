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

/* What a waiting backend has seen of the service's pulse; zeroed at first, except generation. */
typedef struct GpuSortPulseWatch
{
	uint32 generation; /* of the service that it waits for */
	TimestampTz alive; /* the service's last sign of life that was seen; 0 before */
	int looks;         /* looks since then */
	int silent;        /* looks since the wait began */
	instr_time looked; /* the last look, or the beginning of the wait */
} GpuSortPulseWatch;

/* How often a backend that waits for a service looks at its pulse, in milliseconds. */
#define GPUSORT_LOOK_MS 1000

extern void gpusort_availability_init(void);
extern void gpusort_availability_leave_alone(void);
extern const char *gpusort_availability_expected(const GpuSortService *service);
extern bool gpusort_availability_wait(uint32 *generation, char *why_not, size_t why_not_size);
extern void gpusort_availability_begin_watch(GpuSortPulseWatch *watch);
extern long gpusort_availability_look_due(const GpuSortPulseWatch *watch);
extern bool gpusort_availability_look(GpuSortPulseWatch *watch);

#endif /* GPUSORT_AVAILABILITY_H */
