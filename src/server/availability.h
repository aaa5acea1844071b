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
	TimestampTz alive; /* as the service was last seen */
	int looks;         /* since then */
	instr_time looked;
} GpuSortPulseWatch;

/* Every wait for a service wakes after so long at most, in milliseconds, to look at its pulse. */
#define GPUSORT_LOOK_MS 1000

extern void gpusort_availability_init(void);
extern void gpusort_availability_leave_alone(void);
extern const char *gpusort_availability_expected(const GpuSortService *service);
extern bool gpusort_availability_wait(uint32 *generation, char *why_not, size_t why_not_size);
extern bool gpusort_availability_look(GpuSortPulseWatch *watch);

#endif /* GPUSORT_AVAILABILITY_H */
