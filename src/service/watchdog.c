/*-------------------------------------------------------------------------
 *
 * watchdog.c
 *	  Finds engine calls that do not return.
 *
 * A call into a driver may never come back, and then neither does its thread: what
 * the sort holds is lost until the service ends, and locks of the engine may be.
 * So the service gives itself up, for a fresh start.
 *
 * Limits are generous, for what is ended with the service is everybody's sorts. A
 * call waits for others' sorts on the same cores or device, so each row that is
 * being sorted by anybody counts: 5 us, where slow machines take a fifth of that.
 * Engines look for a cancel every million rows or so.
 *
 * Time is counted in rounds of a second in which the service was awake
 * (gpusort_jobs_tick), not by a clock, so that a machine or a process that was
 * stopped for a while has no hung calls when it goes on.
 *
 *-------------------------------------------------------------------------
 */
#include "service/clock.h"
#include "service/service_log.h"
#include "service/session_state.h"
#include "service/watchdog.h"

#define TICK_MS 1000

/* A call may take so many seconds, and one that was cancelled so many more. */
#define CALL_SECONDS      10
#define CANCELLED_SECONDS 5

/* And a second more for so many rows that are being sorted. */
#define ROWS_PER_SECOND 200000

static const char *const call_names[] = {
	[GPUSORT_COMMAND_BEGIN] = "begin",
	[GPUSORT_COMMAND_RESERVE] = "reserve",
	[GPUSORT_COMMAND_PUT] = "put",
	[GPUSORT_COMMAND_SORT] = "sort",
	[GPUSORT_COMMAND_EMIT] = "emit",
	[GPUSORT_COMMAND_REWIND] = "rewind",
	[GPUSORT_COMMAND_END] = "end",
};

/* Returns true if anything was asked of an engine and is not done. */
static bool
engines_are_busy(const GpuSortSessions *sessions)
{
	for (const GpuSortSession *session = sessions->first; session != NULL; session = session->next)
	{
		/* Of a sort that goes on, END is counted and not asked for yet. */
		uint32_t to_come = session->job != NULL && session->owner == NULL && !session->finished;

		if (session->commands > to_come)
			return true;
	}
	return false;
}

/* Fills *call if the session's job is in an engine call. */
static bool
find_call(const GpuSortSession *session, GpuSortCall *call)
{
	return session->job != NULL && session->owner == NULL && gpusort_job_call(session->job, call);
}

/* Returns true, after a line in the log, if an engine call is not going to return. */
bool
gpusort_watchdog_look(GpuSortSessions *sessions)
{
	double now = gpusort_clock_ms();
	uint64_t rows = 0;
	GpuSortCall call;

	if (now - sessions->ticked < TICK_MS || !engines_are_busy(sessions))
		return false;
	sessions->ticked = now;
	gpusort_jobs_tick();
	for (const GpuSortSession *session = sessions->first; session != NULL; session = session->next)
	{
		if (find_call(session, &call) && call.type == GPUSORT_COMMAND_SORT)
			rows += call.rows;
	}
	for (const GpuSortSession *session = sessions->first; session != NULL; session = session->next)
	{
		if (find_call(session, &call) &&
			(call.seconds > CALL_SECONDS + rows / ROWS_PER_SECOND ||
			 call.cancelled_seconds > CANCELLED_SECONDS + rows / ROWS_PER_SECOND))
		{
			gpusort_log(true, "engine call \"%s\" for process %d has not returned for %u seconds, exiting for a fresh start",
						call_names[call.type], session->pid, call.seconds);
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
