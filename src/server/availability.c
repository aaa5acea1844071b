/*-------------------------------------------------------------------------
 *
 * availability.c
 *	  Whether a backend has a service to talk to, and whether that still lives.
 *
 * The supervisor (supervisor.c) keeps the service running and says in shared
 * memory how it does; here is what backends make of that.
 *
 * WAITING
 *	A sort waits for a service that is starting, counted from the start of that
 *	service: so the first one waits, and when the service does not come those
 *	after it do not.
 *
 * PULSE
 *	A service that answers the supervisor's PINGs has a pulse.  A backend that
 *	waits for it looks there now and then, and gives it up when the supervisor
 *	has, or when the pulse stands still for some looks of the backend's own: then
 *	the supervisor is no better.  Looks are counted rather than time, so that
 *	a machine that was paused loses nothing; but they are a fixed time apart, however
 *	often the backend is woken for something else.
 *
 *-------------------------------------------------------------------------
 */
#include "server/availability.h"

#include <math.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "server/installation.h"
#include "server/shared.h"
#include "server/shared_state.h"
#include "server/wait_events.h"
#include "settings.h"
#include "utils/timestamp.h"

/* How long a sort waits for a service, from when that was started or told to leave. */
#define READY_WAIT_MS 2000

/* A failed attempt to get a supervisor is not repeated for so long. */
#define REGISTER_RETRY_MS 10000

/* A pulse that was seen so often without a beat is none. */
#define LOOKS_WITHOUT_BEAT 4

/* When this backend last found no worker slot for a supervisor; 0: never, or one since */
static TimestampTz register_failed = 0;

/* The pulse that this backend last saw standing still for too long: the next sorts do not wait for that again */
static GpuSortPulse given_up = {0};

/* It is not to start a supervisor */
static bool leave_alone = false;

/* Fills in how the postmaster runs the supervisor. */
static void
describe_worker(BackgroundWorker *worker)
{
	memset(worker, 0, sizeof(*worker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker->bgw_start_time = BgWorkerStart_PostmasterStart;
	worker->bgw_restart_time = 1;
	/* This very module, wherever it was loaded from, if its path is not too long to say so (PostgreSQL 15 and 16). */
	if (strlcpy(worker->bgw_library_name, gpusort_module_path(), sizeof(worker->bgw_library_name)) >=
		sizeof(worker->bgw_library_name))
		strlcpy(worker->bgw_library_name, "gpusort", sizeof(worker->bgw_library_name));
	strlcpy(worker->bgw_function_name, "gpusort_supervisor_main", BGW_MAXLEN);
	strlcpy(worker->bgw_name, "gpusort supervisor", BGW_MAXLEN);
	strlcpy(worker->bgw_type, "gpusort supervisor", BGW_MAXLEN);
}

/* To be called while shared_preload_libraries are loaded: the service starts with the server. */
void
gpusort_availability_init(void)
{
	BackgroundWorker worker;

	describe_worker(&worker);
	RegisterBackgroundWorker(&worker);
}

/* Notes that a service was asked for just now, if nobody has since this copy of the state was taken. */
static void
note_start(const GpuSortService *seen)
{
	GpuSortSharedState *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	if (state->service.supervisor_pid == 0 && state->service.started == seen->started)
	{
		state->service.state = GPUSORT_SERVICE_STARTING;
		state->service.started = state->service.since = GetCurrentTimestamp();
	}
	LWLockRelease(&state->lock);
}

/* To be called at load: this session does not start a supervisor, but may use one. */
void
gpusort_availability_leave_alone(void)
{
	leave_alone = true;
}

/*
* Starts a supervisor if there is none.  Does not wait;
 * does nothing when there is one, or one was asked for a short while ago.
 * Returns NULL, or why there will be none.
 */
static const char *
wake_supervisor(const GpuSortService *service)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;
	TimestampTz now = GetCurrentTimestamp();

	if (service->supervisor_pid != 0 ||
		(service->started != 0 && !TimestampDifferenceExceeds(service->started, now, REGISTER_RETRY_MS)))
		return NULL;
	if (gpusort_shared_is_private())
		return "gpusort has no shared memory";
	if (leave_alone)
		return "gpusort was loaded by a function call in this session, which starts no sort service";
	if (!gpusort_allowed)
		return "gpusort.allowed is off";
	if (!IsUnderPostmaster)
		return "a server in single-user mode has no background workers";
	if (register_failed == 0 || TimestampDifferenceExceeds(register_failed, now, REGISTER_RETRY_MS))
	{
		describe_worker(&worker);
		if (RegisterDynamicBackgroundWorker(&worker, &handle))
		{
			register_failed = 0;
			note_start(service);
			return NULL;
		}
		register_failed = now;
		ereport(LOG,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("gpusort found no background worker slot for its supervisor"),
				 errhint("Raise max_worker_processes, or add gpusort to shared_preload_libraries.")));
	}
	return "there is no background worker slot for gpusort's supervisor";
}

/* Milliseconds that a sort may still wait for the service to become ready; 0: it does not. */
static long
wait_left(const GpuSortService *service)
{
	TimestampTz from = service->state == GPUSORT_SERVICE_DRAINING ? service->since : service->started;

	if (service->state != GPUSORT_SERVICE_STARTING && service->state != GPUSORT_SERVICE_DRAINING)
		return 0;
	return TimestampDifferenceMilliseconds(GetCurrentTimestamp(), TimestampTzPlusMilliseconds(from, READY_WAIT_MS));
}

/*
 * Returns NULL if a sort that is planned now can expect a service, which is started
 * if it sleeps; else why not, in words for the log.
 */
const char *
gpusort_availability_expected(const GpuSortService *service)
{
	const char *why_not;

	switch (service->state)
	{
		case GPUSORT_SERVICE_READY:
		case GPUSORT_SERVICE_DRAINING:
			return NULL;
		case GPUSORT_SERVICE_HUNG:
		case GPUSORT_SERVICE_BACKOFF:
			return "the sort service is not running";
		case GPUSORT_SERVICE_STARTING:
			if (wait_left(service) > 0)
				return NULL;
			/* One that nobody has begun to start may have to be asked for again. */
			why_not = wake_supervisor(service);
			return why_not != NULL ? why_not : "the sort service is not ready yet";
		case GPUSORT_SERVICE_NONE:
			break;
	}
	return wake_supervisor(service);
}

/* Returns true if this backend has given the service up, and it has had no beat since. */
static bool
was_given_up(const GpuSortService *service)
{
	const GpuSortPulse *pulse = &service->pulses[service->generation % GPUSORT_PULSES];

	return given_up.alive != 0 && given_up.generation == service->generation && pulse->alive == given_up.alive;
}

/*
 * Waits for a service that is starting, not long;
 * *generation is which one is ready.  False, with a text,
 * when there is none to wait for or it takes too long.  Ends on cancel.
 */
bool
gpusort_availability_wait(uint32 *generation, char *why_not, size_t why_not_size)
{
	GpuSortSharedState *state = gpusort_shared();
	TimestampTz deadline = 0;
	bool ready = false;

	for (;;)
	{
		GpuSortService service = gpusort_shared_service();
		const char *no_supervisor;
		long left;

		if (service.state == GPUSORT_SERVICE_HUNG || (service.state == GPUSORT_SERVICE_READY && was_given_up(&service)))
		{
			strlcpy(why_not, "the sort service does not answer", why_not_size);
			break;
		}
		if (service.state == GPUSORT_SERVICE_READY)
		{
			*generation = service.generation;
			ready = true;
			break;
		}
		if (service.state == GPUSORT_SERVICE_BACKOFF)
		{
			strlcpy(why_not, "the sort service ended and has not been started again yet", why_not_size);
			break;
		}
		no_supervisor = wake_supervisor(&service);
		if (no_supervisor != NULL)
		{
			strlcpy(why_not, no_supervisor, why_not_size);
			break;
		}
		if (deadline == 0)
		{
			deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), READY_WAIT_MS);
			ConditionVariablePrepareToSleep(&state->service_changed);
			continue; /* it may have changed before we were on the list */
		}
		left = Min(wait_left(&service), TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline));
		if (left <= 0)
		{
			strlcpy(why_not, "the sort service did not become ready in time", why_not_size);
			break;
		}
		(void) ConditionVariableTimedSleep(&state->service_changed, left, gpusort_wait_event(GPUSORT_WAIT_START));
	}
	ConditionVariableCancelSleep();
	return ready;
}

/* The pulse of the service that a backend waits for. */
static GpuSortPulse
watched_pulse(const GpuSortPulseWatch *watch)
{
	return gpusort_shared_service().pulses[watch->generation % GPUSORT_PULSES];
}

/* Milliseconds since the last look, or since the wait began. */
static double
since_look(const GpuSortPulseWatch *watch)
{
	instr_time since;

	INSTR_TIME_SET_CURRENT(since);
	INSTR_TIME_SUBTRACT(since, watch->looked);
	return INSTR_TIME_GET_MILLISEC(since);
}

/* A wait for the service begins: the first look is one interval later. */
void
gpusort_availability_begin_watch(GpuSortPulseWatch *watch)
{
	INSTR_TIME_SET_CURRENT(watch->looked);
	watch->silent = 0;
	if (watch->alive == 0)
		watch->alive = watched_pulse(watch).alive;
}

/* Milliseconds until the next look is due. */
long
gpusort_availability_look_due(const GpuSortPulseWatch *watch)
{
	double since = since_look(watch);

	return since < GPUSORT_LOOK_MS ? (long) ceil(GPUSORT_LOOK_MS - since) : 0;
}

/*
 * To be called by a backend that waits for the service, as often as it likes: looks at the pulse where that
 * is due.  False: the service hangs or is gone.
 */
bool
gpusort_availability_look(GpuSortPulseWatch *watch)
{
	GpuSortPulse pulse;

	if (since_look(watch) < GPUSORT_LOOK_MS)
		return true;
	INSTR_TIME_SET_CURRENT(watch->looked);
	watch->silent++;
	pulse = watched_pulse(watch);
	if (pulse.generation != watch->generation || pulse.lost)
		return false;
	if (pulse.alive != watch->alive)
	{
		watch->alive = pulse.alive;
		watch->looks = 0;
		return true;
	}
	if (++watch->looks < LOOKS_WITHOUT_BEAT)
		return true;
	given_up = pulse;
	return false;
}
