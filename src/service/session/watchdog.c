/*-------------------------------------------------------------------------
 *
 * watchdog.c
 *	  Finds engine calls that do not return.
 *
 * Clients that wait are told each second that they are worked for, so that they need not know
 * how long that may take.
 *
 * A call into a driver may never come back, and then neither does its thread: what
 * the sort holds is lost until the service ends, and locks of the engine may be.
 * So the service gives itself up, for a fresh start.
 *
 * Limits are generous, for what is ended with the service is everybody's sorts. A
 * call waits for others' sorts on the same cores or device, so each row that is
 * being sorted by anybody counts: 5 us on the host, where slow machines take a fifth
 * of that, and 0.1 us on a device, where any takes a hundredth.  Engines look for a
 * cancel every million rows or so.
 *
 * Time is counted in rounds of a second in which the service was awake
 * (gpusort_jobs_tick), not by a clock, so that a machine or a process that was
 * stopped for a while has no hung calls when it goes on.
 *
 *-------------------------------------------------------------------------
 */
#include "service/session/watchdog.h"

#include "service/clock.h"
#include "service/service_log.h"
#include "service/session/session.h"

#define TICK_MS 1000

/* A call may take so many seconds, and one that was cancelled so many more. */
#define CALL_SECONDS      10
#define CANCELLED_SECONDS 5

/* And a second more for so many rows that are being sorted. */
#define HOST_ROWS_PER_SECOND   200000
#define DEVICE_ROWS_PER_SECOND 10000000

static const char *const call_names[] = {
	[GPUSORT_CALL_BEGIN] = "begin",
	[GPUSORT_CALL_RESERVE] = "reserve",
	[GPUSORT_CALL_PUT] = "put",
	[GPUSORT_CALL_SORT] = "sort",
	[GPUSORT_CALL_EMIT] = "emit",
	[GPUSORT_CALL_CUT] = "cut",
	[GPUSORT_CALL_SPACE] = "space",
	[GPUSORT_CALL_END] = "end",
};

/* Returns true if anything was asked of an engine and is not done. */
static bool
engines_are_busy(const GpuSortSessions *sessions)
{
	for (const GpuSortSession *session = sessions->first; session != NULL; session = gpusort_session_next(session))
	{
		if (gpusort_session_is_busy(session))
			return true;
	}
	return false;
}

/* Returns true, after a line in the log, if an engine call is not going to return. */
bool
gpusort_watchdog_look(GpuSortSessions *sessions)
{
	double now = gpusort_clock_ms();
	uint64_t host_rows = 0;
	uint64_t device_rows = 0;
	uint64_t more_seconds;
	GpuSortCall call;

	if (now - sessions->ticked < TICK_MS || !engines_are_busy(sessions))
		return false;
	sessions->ticked = now;
	gpusort_jobs_tick();
	gpusort_sessions_tell_working(sessions);
	for (const GpuSortSession *session = sessions->first; session != NULL; session = gpusort_session_next(session))
	{
		if (gpusort_session_call(session, &call) && call.type == GPUSORT_CALL_SORT)
			*(gpusort_session_engine(session) == GPUSORT_ENGINE_HOST ? &host_rows : &device_rows) += call.rows;
	}
	more_seconds = host_rows / HOST_ROWS_PER_SECOND + device_rows / DEVICE_ROWS_PER_SECOND;
	for (const GpuSortSession *session = sessions->first; session != NULL; session = gpusort_session_next(session))
	{
		if (gpusort_session_call(session, &call) &&
			(call.seconds > CALL_SECONDS + more_seconds || call.cancelled_seconds > CANCELLED_SECONDS + more_seconds))
		{
			gpusort_log(true, "engine call \"%s\" for process %d has not returned for %u seconds, exiting for a fresh start",
						call_names[call.type], gpusort_session_pid(session), call.seconds);
			return true;
		}
	}
	return false;
}

/* Milliseconds until look is to be called though nothing happens, or -1. */
int
gpusort_watchdog_timeout(const GpuSortSessions *sessions)
{
	return engines_are_busy(sessions) ? TICK_MS : -1;
}
