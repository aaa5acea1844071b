/*-------------------------------------------------------------------------
 *
 * service_state.c
 *	  The state of the service, as the supervisor tells it to the backends.
 *
 *-------------------------------------------------------------------------
 */
#include "server/service_state.h"

#include <signal.h>

#include "miscadmin.h"
#include "server/shared_state.h"
#include "utils/timestamp.h"

/* What gpusort_service calls a state. */
const char *
gpusort_service_state_name(GpuSortServiceState state)
{
	switch (state)
	{
		case GPUSORT_SERVICE_NONE:
			return "none";
		case GPUSORT_SERVICE_STARTING:
			return "starting";
		case GPUSORT_SERVICE_READY:
			return "ready";
		case GPUSORT_SERVICE_DRAINING:
			return "draining";
		case GPUSORT_SERVICE_HUNG:
			return "hung";
		case GPUSORT_SERVICE_BACKOFF:
			return "backing off";
	}
	return "unknown";
}

/* Makes it the state of no service, whose generations go on all the same; the lock is held. */
static void
reset_service(GpuSortService *service)
{
	GpuSortService none = {.generation = service->generation, .since = GetCurrentTimestamp()};

	for (int i = 0; i < GPUSORT_PULSES; i++)
	{
		none.pulses[i] = service->pulses[i];
		none.pulses[i].lost = true;
	}
	*service = none;
}

/*
 * Makes this process the supervisor, which alone writes the service's state; false if there is one
 * already.  Generations go on where the last one's ended.
 */
bool
gpusort_shared_claim_service(void)
{
	GpuSortSharedState *state = gpusort_shared();
	pid_t other;
	bool claimed;

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	other = state->service.supervisor_pid;
	claimed = other == 0 || other == MyProcPid || kill(other, 0) != 0;
	if (claimed)
	{
		reset_service(&state->service);
		state->service.state = GPUSORT_SERVICE_STARTING;
		state->service.started = state->service.since;
		state->service.supervisor_pid = MyProcPid;
	}
	LWLockRelease(&state->lock);
	return claimed;
}

/* Ends what claim began: there is no service any more. */
void
gpusort_shared_release_service(void)
{
	GpuSortSharedState *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	if (state->service.supervisor_pid == MyProcPid)
		reset_service(&state->service);
	LWLockRelease(&state->lock);
	ConditionVariableBroadcast(&state->service_changed);
}

/* Tells the backends, and those that wait, of the current service: pid 0 if there is none. */
void
gpusort_shared_set_service(GpuSortServiceState service_state, pid_t pid, uint32 generation, uint32 leaving)
{
	GpuSortSharedState *state = gpusort_shared();
	TimestampTz now = GetCurrentTimestamp();

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	if (state->service.state != service_state)
		state->service.since = now;
	state->service.state = service_state;
	state->service.pid = pid;
	if (pid != 0 && state->service.generation != generation)
	{
		state->service.generation = generation;
		state->service.started = now;
	}
	state->service.leaving = leaving;
	LWLockRelease(&state->lock);
	ConditionVariableBroadcast(&state->service_changed);
}

/* Notes what the current service said of its engines when it was ready. */
void
gpusort_shared_set_engines(const GpuSortMessage *ready)
{
	GpuSortSharedState *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	state->service.engines = ready->u.ready.engines;
	state->service.devices = ready->u.ready.devices;
	state->service.device_limit = ready->u.ready.device_limit;
	state->service.host_limit = ready->u.ready.host_limit;
	LWLockRelease(&state->lock);
}

/* Notes what the current service says before it is ready, or why there is none; formatted as by printf. */
void
gpusort_shared_set_report(const char *fmt, ...)
{
	GpuSortSharedState *state = gpusort_shared();
	va_list values;

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	va_start(values, fmt);
	vsnprintf(state->service.report, sizeof(state->service.report), fmt, values);
	va_end(values);
	LWLockRelease(&state->lock);
}

/* Tells those that wait for a service that it lives, or that what it held is lost. */
void
gpusort_shared_set_pulse(uint32 generation, bool lost)
{
	GpuSortSharedState *state = gpusort_shared();
	GpuSortPulse *pulse = &state->service.pulses[generation % GPUSORT_PULSES];

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	pulse->generation = generation;
	pulse->lost = lost;
	pulse->alive = GetCurrentTimestamp();
	LWLockRelease(&state->lock);
}

/* Returns a consistent copy of the service's state. */
GpuSortService
gpusort_shared_service(void)
{
	GpuSortSharedState *state = gpusort_shared();
	GpuSortService service;

	LWLockAcquire(&state->lock, LW_SHARED);
	service = state->service;
	LWLockRelease(&state->lock);
	return service;
}
